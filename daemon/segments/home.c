/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segments/home.h"

void home_init(struct segment_home *home)
{
    events_init(&home->events, 0);
    TAILQ_INIT(&home->recent);
    home->max_watches = LIMIT_WATCHES;
}

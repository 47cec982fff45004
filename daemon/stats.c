/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/stats.h"

#include <stdio.h>

#include "common/util.h"
#include "daemon/events.h"

#define N_ERRORS 64 /* SHMVIEW_ERR_* are less */

static uint64_t n_requests;
static uint64_t refusals[N_ERRORS];

static bool is_quota(int error)
{
    return error == SHMVIEW_ERR_LIMIT || error == SHMVIEW_ERR_NO_SLOT;
}

void stats_note(const struct connection *connection, const struct answer *answer)
{
    const char *reason;
    const struct wire_reply reply = {.error = answer->error, .parameters = answer->parameters};
    if (answer->pending)
        return; /* it comes later, and is counted then */
    n_requests++;
    if (!answer->error)
        return;
    int error = wire_error_code(&reply, &reason);
    if (error > 0 && error < N_ERRORS)
        refusals[error]++;
    if (!is_quota(error))
        return;
    events_by(connection->peer.pid, connection->peer.uid);
    struct event *e = events_add(EVENT_QUOTA_REFUSED, NULL);
    e->error = (uint16_t)error;
    snprintf(e->text, sizeof e->text, "%s", reason);
}

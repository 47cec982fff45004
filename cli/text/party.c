/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/party.h"

#include "cli/shell/cli.h"

const char *party_state(const struct shmview_party_stats *party)
{
    if (party->waits == SHMVIEW_EXCLUSIVE)
        return "waits exclusive";
    if (party->waits == SHMVIEW_SHARED)
        return "waits shared";
    const char *held = hold_name(party->holds);
    return held ? held : "";
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/tally.h"

#include <stdio.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/clients/refusal.h"
#include "daemon/segments/events.h"

static bool is_quota(int error)
{
    return error == SHMVIEW_ERR_QUOTA || error == SHMVIEW_ERR_LIMIT || error == SHMVIEW_ERR_NO_SLOT;
}

void tally_note(const struct connection *connection, const struct answer *answer)
{
    struct tally *tally = connection->tally;
    if (answer->pending)
        return; /* counted when it comes */
    tally->n_requests++;
    if (!answer->error)
        return;
    tally->refusals[answer->error]++;
    if (!is_quota(answer->error))
        return;
    const char *reason = answer->reason ? answer->reason : "";
    const struct peer *peer = &connection->peer;
    struct event *e =
        events_add(tally->events, SHMVIEW_EVENT_QUOTA, NULL, connection_actor(connection));
    e->error = (uint16_t)answer->error;
    snprintf(e->text, sizeof e->text, "%s", reason);
    const struct log_event event = {
        .kind = LOG_QUOTA,
        .reason = refusal_name(answer->error),
        .has_uid = true,
        .uid = peer->uid,
        .pid = peer->pid,
    };
    log_event(LOG_WARNING, &event, "uid %u, pid %d, is refused: %s", peer->uid, peer->pid, reason);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/tally.h"

#include <stdio.h>

#include "common/base/util.h"
#include "common/wire/wire.h"
#include "daemon/base/log.h"
#include "daemon/segments/events.h"

static struct tally tally;

/* Before main(): near enough to its start. */
__attribute__((constructor)) static void note_start(void)
{
    tally.started_ns = now_ns();
}

const struct tally *tally_read(void)
{
    return &tally;
}

static bool is_quota(int error)
{
    return error == SHMVIEW_ERR_QUOTA || error == SHMVIEW_ERR_LIMIT || error == SHMVIEW_ERR_NO_SLOT;
}

void tally_note(const struct connection *connection, const struct answer *answer)
{
    const char *reason;
    const struct wire_reply reply = {.error = answer->error, .parameters = answer->parameters};
    if (answer->pending)
        return; /* it comes later, and is counted then */
    tally.n_requests++;
    if (!answer->error)
        return;
    int error = wire_error_code(&reply, &reason);
    if (error > 0 && error < TALLY_ERRORS)
        tally.refusals[error]++;
    if (!is_quota(error))
        return;
    const struct peer *peer = &connection->peer;
    events_by(peer->pid, peer->uid);
    struct event *e = events_add(SHMVIEW_EVENT_QUOTA, NULL);
    e->error = (uint16_t)error;
    snprintf(e->text, sizeof e->text, "%s", reason);
    const struct log_event event = {
        .kind = LOG_QUOTA,
        .reason = answer->error,
        .has_uid = true,
        .uid = peer->uid,
        .pid = peer->pid,
    };
    log_event(LOG_WARNING, &event, "uid %u, pid %d, is refused: %s", peer->uid, peer->pid, reason);
}

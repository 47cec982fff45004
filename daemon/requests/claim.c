/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/clients/bell.h"
#include "daemon/clients/refusal.h"

/* Returns the text of the reply, new, with all attachments of the connection; the caller has set
 * the other members. Returns NULL if memory is short. */
static char *claimed(const struct connection *c, struct wire_claimed told, size_t *ret_bytes)
{
    struct attachment *a;
    told.held = calloc(c->attachments.n + 1, sizeof *told.held);
    if (!told.held)
        return NULL;
    LIST_FOREACH (a, &c->attachments, link)
        told.held[told.n_held++] = (int64_t)a->id;
    char *text = wire_claimed_text(&told, ret_bytes);
    free(told.held);
    return text;
}

/* Adds fd to the answer, which takes it over. Returns its index, or WIRE_ABSENT if fd is
 * negative. */
static int64_t add_descriptor(struct answer *answer, int fd)
{
    if (fd < 0)
        return WIRE_ABSENT;
    answer->fds.fd[answer->fds.n++] = fd;
    return (int64_t)answer->fds.n - 1;
}

void claim_answer(struct request *r, const union wanted *want)
{
    struct connection *c = r->connection;
    struct answer *answer = r->answer;
    struct wire_claimed told = {
        .descriptors = WIRE_ABSENT, .presence = WIRE_ABSENT, .bell = WIRE_ABSENT};
    int fd = -1;
    int error = client_claim(&r->state->clients, c, &want->claim, &fd);
    free(want->claim.held);
    if (error == -EEXIST) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "this connection is client %" PRIu64 " already",
               c->holder.client);
        return;
    }
    if (error) {
        refuse_system(answer, "a claim cannot be carried out", -error);
        return;
    }
    size_t n = 0;
    char *without = claimed(c, told, &n);
    /* The presence comes last, because the client closes its descriptor as soon as it is mapped. If
     * the bell came after it, the client would have a hole below the bell. Later descriptors of an
     * attachment would not be consecutive then, and the client could not close them in one call. */
    told.bell = add_descriptor(answer, bell_open(r->state->turns, c, want->claim.bell));
    told.presence = add_descriptor(answer, fd);
    if (answer->fds.n == 0) {
        answer_with_text(answer, without, n);
        return;
    }
    answer->spare = without; /* sent if the client has no room for descriptors */
    told.descriptors = (int64_t)answer->fds.n;
    char *text = claimed(c, told, &n);
    answer_with_text(answer, text, n);
}

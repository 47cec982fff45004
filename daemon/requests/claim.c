/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/claim.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "daemon/clients/bell.h"
#include "daemon/clients/refusal.h"

/* Returns the reply to Claim, of which told has all but the attachments; or NULL: memory is
 * short. */
static char *claimed(const struct connection *c, struct wire_claimed told, size_t *ret_bytes)
{
    struct attachment *a;
    size_t n = 0;
    LIST_FOREACH (a, &c->attachments, link)
        n++;
    told.held = calloc(n ? n : 1, sizeof *told.held);
    if (!told.held)
        return NULL;
    LIST_FOREACH (a, &c->attachments, link)
        told.held[told.n_held++].attachment = (int64_t)a->id;
    char *text = wire_claimed_text(&told, ret_bytes);
    free(told.held);
    return text;
}

/* Takes fd, unless it is negative. Returns its index, or WIRE_ABSENT. */
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
        refuse_system(answer, "a client cannot be known", -error);
        return;
    }
    size_t n = 0;
    char *without = claimed(c, told, &n);
    /* The client closes the presence when it is mapped. It comes last, so that no hole is left in
     * the client's numbers: it closes the descriptors of an attachment in one call if they are
     * consecutive. */
    told.bell = add_descriptor(answer, bell_open(r->state->turns, c, want->claim.bell));
    told.presence = add_descriptor(answer, fd);
    if (answer->fds.n == 0) {
        answer_with_text(answer, without, n);
        return;
    }
    answer->spare = without;
    told.descriptors = (int64_t)answer->fds.n;
    char *text = claimed(c, told, &n);
    answer_with_text(answer, text, n);
}

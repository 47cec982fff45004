/* SPDX-License-Identifier: Apache-2.0 */
/* What the harness and its clients share, in memory of their own. */
#ifndef ROUNDS_ARENA_H
#define ROUNDS_ARENA_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define CLIENTS_MAX  32
#define OWN_BYTES    1000 /* of each client's own segment */
#define SHARED_BYTES 4096
#define TEXT_BYTES   400

enum kind {
    CALL_CONNECT,
    CALL_CREATE,
    CALL_ATTACH,
    CALL_DETACH,
    CALL_REMOVE,
    CALL_DEFINE,
    CALL_LOCK,
    CALL_SWITCH,
    CALL_PING,
    N_CALLS
};

struct arena {
    char socket[108];
    uint64_t seed;
    atomic_bool over;
    atomic_ulong calls[N_CALLS];
    atomic_long worst_ns[N_CALLS];
    atomic_ulong repairs;   /* locks whose holder had died inside */
    atomic_ulong uncertain; /* requests that were sent, and not answered */
    atomic_uint n_wrong;
    char wrong[TEXT_BYTES]; /* the first that was */
    struct {
        atomic_bool exists;  /* its own segment was acknowledged */
        atomic_uint written; /* what its bytes say, or one more */
    } own[CLIENTS_MAX];
};

extern struct arena *arena;

/* Something that must not be. */
__attribute__((format(printf, 1, 2))) void wrong(const char *format, ...);

/* A client's life, by its number; begins anew what it cannot do again. Ends by itself, or by
 * a signal that it sends to itself. */
__attribute__((noreturn)) void client_live(unsigned number, unsigned incarnation);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The counters and results that the harness shares with its clients, in memory without shmview. */
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
    atomic_ulong repairs;   /* locks taken after an owner died inside */
    atomic_ulong uncertain; /* requests that were sent but not answered */
    atomic_uint n_wrong;
    char wrong[TEXT_BYTES]; /* the first failure */
    struct {
        atomic_bool exists;  /* its own segment was acknowledged */
        atomic_uint written; /* the value of its bytes, or one less than it */
    } own[CLIENTS_MAX];
};

extern struct arena *arena;

/* Records a failure. Only the first one's text is kept. */
__attribute__((format(printf, 1, 2))) void wrong(const char *format, ...);

/* Runs client number until it exits or kills itself. Its incarnations follow each other; each
 * takes over the own segment of the one before. */
__attribute__((noreturn)) void client_live(unsigned number, unsigned incarnation);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What there must be, by what was acknowledged, and the comparison with what there is. */
#ifndef CRASH_WORLD_H
#define CRASH_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/shmview.h>

#include "crash/keeper.h"

#define WORLD_SEGMENTS 8
#define WORLD_LAYOUTS  4

/* A segment as it must be. */
struct thing {
    const char *name;
    uint64_t size;
    uint32_t lifetime;
    bool exists, named;
    bool is_locked;        /* by another process */
    unsigned slots, peeks; /* attachments with a slot in the lock, and without */
    const char *layouts[WORLD_LAYOUTS];
    unsigned n_layouts;
    uint32_t mode;                  /* changed, with an entry for a user; 0: as it was created */
    struct shmview_segment *handle; /* ours; NULL: none */
};

struct world {
    struct keeper keeper;
    struct shmview_connection *conn;
    struct thing things[WORLD_SEGMENTS];
    unsigned n_things;
    unsigned deaths_seen;
};

/* A call that may be made again: until it is no longer told that the daemon went away. */
#define AGAIN(call)                                                                                \
    ({                                                                                             \
        int again_result;                                                                          \
        AWAIT((again_result = (call)) != -SHMVIEW_ERR_DISCONNECTED);                               \
        again_result;                                                                              \
    })
/* The same, and it must succeed. */
#define DONE(call) client_expect(AGAIN(call), 0, "", #call)

/* Creates it, attached, its bytes filled; whatever becomes of the daemon. */
struct thing *world_create(struct world *world, const char *name, uint64_t size, uint32_t lifetime);
void world_define(struct world *world, struct thing *thing, const char *layout);
/* Changes who may use it. */
void world_set_mode(struct world *world, struct thing *thing, uint32_t mode);
void world_remove(struct world *world, struct thing *thing);
/* Gives the handle back. */
void world_detach(struct world *world, struct thing *thing);

/* Compares all, if a daemon has ended since the last time or if asked to. Nothing may end the
 * daemon meanwhile: of those in question one has ended already. */
void world_check(struct world *world, bool always);

#endif

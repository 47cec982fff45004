/* SPDX-License-Identifier: Apache-2.0 */
/* A record of the segments that must exist, because the daemon has acknowledged them, and the
 * comparison of this record with the instance. */
#ifndef CRASH_WORLD_H
#define CRASH_WORLD_H

#include <stdbool.h>
#include <stdint.h>

#include <shmview/shmview.h>

#include "crash/keeper.h"

#define WORLD_SEGMENTS 8
#define WORLD_LAYOUTS  4

/* The required state of one segment. */
struct thing {
    const char *name;
    uint64_t size;
    uint32_t lifetime;
    bool exists, named;
    bool is_locked;        /* by another process */
    unsigned slots, peeks; /* attachments with and without a slot in the lock */
    const char *layouts[WORLD_LAYOUTS];
    unsigned n_layouts;
    uint32_t frozen;                /* an enum shmview_frozen; 0: not at all */
    uint32_t mode;                  /* set together with an entry for a user; 0: unchanged */
    struct shmview_segment *handle; /* the test's own; NULL: none */
};

struct world {
    struct keeper keeper;
    struct shmview_connection *conn;
    struct thing things[WORLD_SEGMENTS];
    unsigned n_things;
    unsigned deaths_seen;
};

/* Repeats a call for as long as it returns -SHMVIEW_ERR_DISCONNECTED. The call must be safe to
 * repeat. */
#define AGAIN(call)                                                                                \
    ({                                                                                             \
        int again_result;                                                                          \
        AWAIT((again_result = (call)) != -SHMVIEW_ERR_DISCONNECTED);                               \
        again_result;                                                                              \
    })
/* Like AGAIN(), but fails the test unless the call then succeeds. */
#define DONE(call) client_expect(AGAIN(call), 0, "", #call)

/* Returns the enum shmview_backing of all segments: sealed if $SHMVIEW_CRASH_SEALED is set. */
uint32_t world_backing(void);

/* Creates a segment and fills its bytes, even if daemons end. Returns its record, which holds the
 * handle. */
struct thing *world_create(struct world *world, const char *name, uint64_t size, uint32_t lifetime);
void world_define(struct world *world, struct thing *thing, const char *layout);
/* Changes the mode and adds an entry for a user. */
void world_set_mode(struct world *world, struct thing *thing, uint32_t mode);
/* Freezes the segment with flags of shmview_freeze(). */
void world_freeze(struct world *world, struct thing *thing, unsigned flags);
void world_remove(struct world *world, struct thing *thing);
/* Detaches the handle. */
void world_detach(struct world *world, struct thing *thing);

/* Compares the record with the instance, if a daemon has ended since the last comparison or if
 * always is set. Does nothing while the daemon has yet to end at a point, because it could end
 * during the comparison. */
void world_check(struct world *world, bool always);

#endif

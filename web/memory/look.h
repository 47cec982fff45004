/* SPDX-License-Identifier: Apache-2.0 */
/* A view that a page looks at: opens it, and reads it so that no writer waits for long.
 *
 * An optimistic read takes no lock. If a writer comes in between, it is repeated, and in the end
 * reported as torn: the bytes are of different moments. A read under the shared lock waits at most
 * LOOK_WAIT_NS, and delays a writer by one read. Neither hides an owner who died inside.
 *
 * The writers of a stream take no lock. A view of its layout is that of the newest frame, which is
 * torn if it is overwritten during the read. Nothing can be stored in a stream, because its readers
 * must not see half of a change. */
#ifndef WEB_LOOK_H
#define WEB_LOOK_H

#include "web/memory/backend.h"
#include "web/memory/pool.h"

#define LOOK_WAIT_NS INT64_C(50000000)
#define LOOK_TRIES   3
/* Failed reads of one look, after which each part is read once only: otherwise a writer that is
 * always inside would delay each of a thousand parts of an image. */
#define LOOK_FAILED 30

/* What to open. Members other than the segment may be NULL. */
struct look_at {
    const char *segment;
    const char *layout, *view; /* without them, all bytes in the format `as` */
    const char *as;            /* NULL: uint8 */
    const char *field;         /* "a.b" of a struct */
    const char *slice;         /* as in Python: "0,:,3:10" */
    bool takes_lock;
};

/* How the last read went. The worst of several reads is kept. */
enum look_state {
    LOOK_CLEAN = 0,     /* no writer was inside */
    LOOK_UNCHECKED = 1, /* no lock, no slot for us, or bytes of a stream outside its layout */
    LOOK_TORN = 2,      /* a writer came in between */
    LOOK_WRITING = 3,   /* a writer is inside */
    LOOK_HALF = 4,      /* an owner has died inside: the bytes may be half written */
};

/* A view that is open. */
struct look {
    struct backend *backend;
    struct held *held;
    struct shmview_view view;
    struct shmview_frame frame; /* of a stream, to which the view belongs; else zeroes */
    bool takes_lock, is_stale, is_gone, is_stream;
    uint32_t change; /* the counter of changes when it was opened */
    enum look_state state;
    unsigned n_failed; /* optimistic reads that a writer has disturbed */
    uint32_t pid;      /* of the writer who is or has died inside; 0: not known */
    char command[17];
    char error[256]; /* the reason of a failure that no call of the library has; else "" */
};

#define LOOK_WRONG 1 /* result: the request is wrong, and look.error has the text */

/* Opens a view. The caller owes look_close(), on failure too. Returns 0, LOOK_WRONG, or an error of
 * the library. */
int look_open(struct backend *backend, struct shmview_connection *connection,
              const struct look_at *at, int access, struct look *ret);
void look_close(struct look *look);
#define CLEANUP_LOOK CLEANUP(look_close)

/* Calls f(arg), which reads memory of the segment and must own nothing. Returns what f has
 * returned, or -SHMVIEW_ERR_LOST if the memory is gone. */
int look_guard(struct look *look, int (*f)(void *arg), void *arg);

/* Calls copy(arg), perhaps several times: it copies from the view and must own nothing. Returns
 * what copy has returned, or -SHMVIEW_ERR_LOST if the memory is gone. */
int look_read(struct look *look, int (*copy)(void *arg), void *arg);

/* Returns the name of a state, static. */
const char *look_state_name(enum look_state state);

/* Applies a slice to a view. On failure writes the reason to error. Returns 0, LOOK_WRONG, or an
 * error of the library. */
int look_slice(struct shmview_view *view, const char *slice, char *error, size_t bytes);

#endif

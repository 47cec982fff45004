/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/shmview.h - named shared-memory segments with a lock and typed views.
 *
 * A segment is a named region of POSIX shared memory, zeroed at birth. shmviewd
 * allocates it and hands it out; from then on reading, writing and locking are
 * memory operations between the clients, and the daemon may die without
 * stopping anybody.
 *
 *     struct shmview_connection *conn;
 *     struct shmview_segment *seg;
 *     struct shmview_view a;
 *     shmview_connect(NULL, &conn);
 *     shmview_create(conn, "demo", 4000, NULL, &seg);
 *     shmview_view_cast(seg, "float32", 0, SHMVIEW_REST, &a);
 *     shmview_lock(seg);
 *     SHMVIEW_DATA(float, &a)[0] = 1;
 *     shmview_unlock(seg);
 *
 * Caveats. Clients that attach a segment for writing trust each other with that
 * segment: one of them can spoil its bytes, its lock, or truncate the object so
 * that touching it raises SIGBUS. Clients that attach for reading can disturb
 * the lock, not the bytes. Nobody can disturb a segment he has not attached.
 *
 * Errors: 0 or a negated SHMVIEW_ERR_*; shmview_error_text() tells the story.
 * Threads: every handle may be used by any thread. A close call (disconnect,
 * detach) must be the last use of its handle.
 * Fork: a child uses its parent's handles as if it had opened them itself; on
 * first use it gets a connection and a lock slot of its own. It never holds or
 * releases its parent's lock. After vfork or in a signal handler nothing here
 * may be called.
 * The library starts no thread, installs no signal handler, prints nothing, and
 * leaves no descriptor open but one socket for each connection. */
#ifndef SHMVIEW_SHMVIEW_H
#define SHMVIEW_SHMVIEW_H

#include <stddef.h>
#include <stdint.h>

#include <shmview/element.h>
#include <shmview/error.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SHMVIEW_VERSION_MAJOR 0
#define SHMVIEW_VERSION_MINOR 1
#define SHMVIEW_VERSION_PATCH 0

/* Version of the library that is loaded, "0.1.0". The string is static. */
const char *shmview_version(void);

struct shmview_connection;
struct shmview_segment;

/* --- Connection ---------------------------------------------------------- */

/* Never start a session daemon: fail with SHMVIEW_ERR_NO_DAEMON instead. */
#define SHMVIEW_CONNECT_NO_START 1u

/* Connects to a daemon.
 *
 * socket_path is borrowed for the call and names the daemon's socket. NULL
 * means: $SHMVIEW_SOCKET if set; else the user's daemon
 * ($XDG_RUNTIME_DIR/shmviewd/io.shmview); else the system's
 * (/run/shmviewd/io.shmview); else this user's session daemon, which is started
 * if need be and leaves by itself some time after it was last needed.
 * flags is 0 or SHMVIEW_CONNECT_NO_START. *ret_connection is new: the caller
 * owes shmview_disconnect(). Blocks for one round trip, or until a session
 * daemon is up (at most 10 s). Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_DAEMON (the text lists what was
 * tried), _INVALID (path too long, unknown flag), _DENIED, _PROTOCOL (something
 * else answers there), _NO_MEMORY or _SYSTEM on failure. */
int shmview_connect(const char *socket_path, unsigned flags,
                    struct shmview_connection **ret_connection);

/* Closes a connection. Takes NULL. All segments attached through it must be
 * detached first. Does not block. Returns 0, or -SHMVIEW_ERR_BUSY with the
 * number of segments still attached in the text; the connection then lives. */
int shmview_disconnect(struct shmview_connection *connection);

/* Asks the daemon to answer. Blocks for one round trip. Any thread.
 * Returns 0, or -SHMVIEW_ERR_DISCONNECTED or _PROTOCOL. */
int shmview_ping(struct shmview_connection *connection);

/* --- Segments ------------------------------------------------------------ */

/* What an attachment may do. Each includes the one before. */
enum shmview_access {
    SHMVIEW_PEEK = 1,  /* see the bytes; no lock; can disturb nothing */
    SHMVIEW_READ = 2,  /* and take the lock */
    SHMVIEW_WRITE = 3, /* and change the bytes */
};

/* When a segment goes. */
enum shmview_lifetime {
    SHMVIEW_ATTACHED = 1, /* with its last attachment (the default) */
    SHMVIEW_MANUAL = 2,   /* when it is removed */
    SHMVIEW_CREATOR = 3,  /* with the connection that created it */
};

#define SHMVIEW_NO_LOCK  1u /* create: the segment has no lock, only its data */
#define SHMVIEW_POPULATE 2u /* create, attach: map every page now instead of at first touch */

/* Wishes for a new segment. Zero means the default; size the struct with
 * sizeof so that it can grow: { .struct_bytes = sizeof o, ... }. */
struct shmview_create_options {
    uint32_t struct_bytes;
    uint32_t lifetime; /* enum shmview_lifetime */
    uint32_t flags;    /* SHMVIEW_NO_LOCK | SHMVIEW_POPULATE */
    uint32_t reserved; /* 0 */
};

/* Creates the segment called name, zeroed, and attaches it for writing.
 *
 * name is borrowed: 1 to 128 of letters, digits, '.', '_', '-', not starting
 * with '.'. size is in bytes, 1 or more; all of it is committed before the call
 * returns, so that no later access can run out of memory. options may be NULL.
 * *ret_segment is new: the caller owes shmview_detach(). Blocks until the memory
 * is allocated. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_EXISTS, _NO_SPACE (asked, free and
 * limit in the text), _LIMIT, _INVALID, _DENIED, _DISCONNECTED, _PROTOCOL,
 * _NO_MEMORY or _SYSTEM on failure. */
int shmview_create(struct shmview_connection *connection, const char *name, uint64_t size,
                   const struct shmview_create_options *options,
                   struct shmview_segment **ret_segment);

/* Attaches the segment called name with access, an enum shmview_access.
 *
 * name is borrowed. flags is 0 or SHMVIEW_POPULATE. *ret_segment is new: the
 * caller owes shmview_detach(). A segment may be attached many times, also by
 * one process: each attachment has its own slot in the lock. Blocks for one
 * round trip. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_FOUND (also where the caller
 * has no right to see it), _DENIED, _NO_SLOT, _LIMIT, _LAYOUT_VERSION, _INVALID,
 * _DISCONNECTED, _PROTOCOL, _NO_MEMORY or _SYSTEM on failure. */
int shmview_attach(struct shmview_connection *connection, const char *name, int access,
                   unsigned flags, struct shmview_segment **ret_segment);

/* Detaches: unmaps, tells the daemon, frees the handle. Takes NULL. Views of the
 * segment are invalid from here on. Blocks for one round trip; a daemon that is
 * gone is not an error.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_BUSY, and does nothing, if a thread
 * of this process holds the lock through this handle. */
int shmview_detach(struct shmview_segment *segment);

/* Removes the name at once; the memory goes with the last attachment. Blocks for
 * one round trip. Returns 0, -SHMVIEW_ERR_NOT_FOUND, _DENIED, _INVALID,
 * _DISCONNECTED or _PROTOCOL. */
int shmview_remove(struct shmview_connection *connection, const char *name);

/* Facts of an attachment. The pointers are borrowed from it. Never fail. */
const char *shmview_name(const struct shmview_segment *segment);
uint64_t shmview_size(const struct shmview_segment *segment); /* bytes */
int shmview_access(const struct shmview_segment *segment);    /* enum shmview_access */
void *shmview_data(const struct shmview_segment *segment);    /* byte 0; page-aligned */

/* --- Views --------------------------------------------------------------- */

/* Every byte from the offset to the end of the segment. */
#define SHMVIEW_REST UINT64_MAX

/* Sees nbytes bytes from offset on as a one-dimensional array of format, without
 * a copy: what memoryview.cast() does.
 *
 * format is a PEP 3118 / struct format of one element ("h", "<i", "d") or an
 * alias ("int16", "<i4", "float64"): int8 to int64, uint8 to uint64, float32
 * and float64 in native byte order. nbytes must divide into whole elements;
 * SHMVIEW_REST means to the end. format is borrowed for the call. *ret_view is
 * filled; it needs no release and is valid until the segment is detached. It is
 * read-only if the attachment is, and not bound to a phase. Does not block. Any
 * thread.
 *
 * Returns 0 on success. On failure the text names the byte: -SHMVIEW_ERR_FORMAT,
 * _MISALIGNED, _ILL_SIZED or _BOUNDS. */
int shmview_view_cast(struct shmview_segment *segment, const char *format, uint64_t offset,
                      uint64_t nbytes, struct shmview_view *ret_view);

/* Describes a view. Zero is the default of every member but format. */
struct shmview_view_spec {
    const char *name;       /* only in a layout: 1 to 64 letters, digits, '.', '_', '-' */
    const char *format;     /* as in shmview_view_cast() */
    uint64_t offset;        /* byte of element [0, ..., 0] */
    uint32_t ndim;          /* 0 (one element) to SHMVIEW_MAX_NDIM */
    uint32_t flags;         /* SHMVIEW_VIEW_READ_ONLY: must not be written through this view */
    const int64_t *shape;   /* ndim lengths in elements, 0 or more */
    const int64_t *strides; /* ndim steps in bytes, negative and zero allowed; NULL: C order */
};

/* Sees a part of a segment as spec says, without a copy. spec and all it points
 * to are borrowed for the call. *ret_view is as in shmview_view_cast(). Does not
 * block. Any thread.
 *
 * Returns 0 on success. On failure the text names the dimension and the byte:
 * -SHMVIEW_ERR_FORMAT, _MISALIGNED (offset or a stride is no multiple of the
 * element's alignment), _BOUNDS, _OVERFLOW or _INVALID. */
int shmview_view_make(struct shmview_segment *segment, const struct shmview_view_spec *spec,
                      struct shmview_view *ret_view);

/* Declares a layout: a named set of n views that hold at the same time. Layouts
 * of one segment may overlap each other, and so may views of one layout. Needs
 * SHMVIEW_WRITE. Everything is borrowed for the call. Blocks for one round trip.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_LAYOUT_EXISTS, _READ_ONLY, _LIMIT,
 * what shmview_view_make() returns (the text names the view), or
 * _DISCONNECTED, _PROTOCOL, _NO_MEMORY on failure; then nothing is declared. */
int shmview_define(struct shmview_segment *segment, const char *layout,
                   const struct shmview_view_spec *views, size_t n);

/* Opens the view called view of the layout called layout. *ret_view is as in
 * shmview_view_cast(). Blocks for one round trip if the layout was declared
 * after this attachment was made, else not at all. Any thread.
 * Returns 0, -SHMVIEW_ERR_NO_LAYOUT, _NOT_FOUND, _DISCONNECTED or _PROTOCOL. */
int shmview_view_open(struct shmview_segment *segment, const char *layout, const char *view,
                      struct shmview_view *ret_view);

/* --- Lock ---------------------------------------------------------------- */

/* The exclusive lock of a segment: recursive for each thread, as
 * multiprocessing.RLock is. It survives the death of its holder at any instant.
 * No call here talks to the daemon; an uncontended pair makes no system call.
 *
 * All return 0 when the lock is taken, or SHMVIEW_OWNER_DIED (1) when it is
 * taken and the last holder died inside: the bytes may be half written.
 * shmview_owner_died() tells who it was. Repair and unlock, or unlock with
 * shmview_unlock_not_repaired() so that the next holder is told too.
 *
 * On failure: -SHMVIEW_ERR_NO_LOCK (created without a lock, or attached with
 * SHMVIEW_PEEK), _TOO_DEEP (2^31 nested), or for a process that was forked
 * _NOT_FOUND or _NO_DAEMON if it cannot get a slot of its own. */

/* Waits as long as it takes. */
int shmview_lock(struct shmview_segment *segment);

/* Never waits: -SHMVIEW_ERR_TIMED_OUT if another thread or process holds it. */
int shmview_trylock(struct shmview_segment *segment);

/* Waits until deadline_ns, absolute nanoseconds of CLOCK_MONOTONIC; then
 * -SHMVIEW_ERR_TIMED_OUT. See shmview_deadline(). */
int shmview_lock_until(struct shmview_segment *segment, int64_t deadline_ns);

/* The CLOCK_MONOTONIC time that lies timeout_ns nanoseconds from now. */
int64_t shmview_deadline(int64_t timeout_ns);

/* Gives the lock back, once for each time it was taken. Does not block.
 * Returns 0, -SHMVIEW_ERR_NOT_OWNER (nothing is changed) or _NO_LOCK. */
int shmview_unlock(struct shmview_segment *segment);

/* The same, and the next holder gets SHMVIEW_OWNER_DIED: the bytes are not in
 * order. Counts once, at the outermost unlock, also if a nested one says it. */
int shmview_unlock_not_repaired(struct shmview_segment *segment);

/* Who died inside. Members are 0 or "" where they cannot be known any more.
 * pid and command are what that client wrote into shared memory. */
struct shmview_death {
    uint32_t pid;
    uint32_t slot;
    char command[16];
};

/* Tells about the death that the last SHMVIEW_OWNER_DIED of this handle
 * reported. The caller holds the lock. Does not block.
 * Returns 0, -SHMVIEW_ERR_NOT_OWNER, or _NO_LOCK. */
int shmview_owner_died(struct shmview_segment *segment, struct shmview_death *ret_death);

#ifdef __cplusplus
}
#endif
#endif

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
 *     shmview_connect(NULL, 0, &conn);
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
 * may be called. A signal handler that interrupts a call of the library may
 * fork; the child may then call only async-signal-safe functions (POSIX), so
 * nothing here, and must not return from the handler: it calls exec or _exit.
 * Where the signal may interrupt malloc() of a process with threads such a
 * handler needs _Fork(), because glibc's fork() waits for that malloc().
 * Unloading: dlclose() leaves the library in memory, because threads that have
 * locked, and forks, still run functions of it. Programs that link the static
 * library into a plugin must not unload that plugin.
 * The library starts no thread, installs no signal handler and prints nothing. It keeps
 * two descriptors open for each connection, and one for each handle that was given to
 * shmview_change_fd(). */
#ifndef SHMVIEW_SHMVIEW_H
#define SHMVIEW_SHMVIEW_H

#include <stddef.h>
#include <stdint.h>

#include <shmview/access.h>
#include <shmview/element.h>
#include <shmview/error.h>
#include <shmview/value.h>
#include <shmview/view.h>

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
 * socket_path is borrowed for the call and names the daemon's socket. A relative
 * path begins in the directory that is current now, also when the library connects
 * again later; the absolute path has at most 107 bytes. NULL
 * means: $SHMVIEW_SOCKET if set; else the user's daemon
 * ($XDG_RUNTIME_DIR/shmviewd/io.shmview); else the system's
 * (/run/shmviewd/io.shmview); else this user's session daemon, which is started
 * if need be and leaves by itself some time after it was last needed. A user's
 * or the system's daemon that is not there, but has left its socket, its lock
 * file or its registry, is waited for (at most 0.9 s each); if it does not come,
 * the call fails, because another daemon would have other segments.
 * flags is 0 or SHMVIEW_CONNECT_NO_START. *ret_connection is new: the caller
 * owes shmview_disconnect(). Blocks for one round trip, or until a session
 * daemon is up (at most 10 s). Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_DAEMON (the text lists what was
 * tried), _INVALID (path too long, unknown flag), _DENIED (also where a socket is there
 * that this user may not connect to), _QUOTA (of connections;
 * asked, used and limit in the text), _PROTOCOL (something else answers there),
 * _NO_MEMORY or _SYSTEM on failure. */
int shmview_connect(const char *socket_path, unsigned flags,
                    struct shmview_connection **ret_connection);

/* Closes a connection. Takes NULL. All segments attached through it must be
 * detached first. Does not block. Returns 0, or -SHMVIEW_ERR_BUSY with the
 * number of segments still attached in the text, those of shmview_detach_later() among
 * them; the connection then lives. */
int shmview_disconnect(struct shmview_connection *connection);

/* Asks the daemon to answer. Blocks for one round trip. Any thread.
 * Returns 0, or -SHMVIEW_ERR_DISCONNECTED or _PROTOCOL. */
int shmview_ping(struct shmview_connection *connection);

/* Lets a program end the calling thread's waits; interpreters do it on Ctrl-C.
 *
 * While a call of this thread waits (for a lock, a change, a phase, an event, the daemon's reply,
 * or another thread's call over the same connection), is_over(arg) is called ten times a second,
 * and after each signal handler that interrupts the wait, one installed with SA_RESTART excepted.
 * If it returns other than 0, the call fails with -SHMVIEW_ERR_INTERRUPTED. A call that waited for
 * a lock has not taken it then. Whether the daemon has done what was asked is unknown, as with
 * _DISCONNECTED, but an attachment that it made is given back. NULL, as at the start of a thread
 * and of a forked child: nothing ends a wait. While is_over runs it is NULL as well.
 *
 * is_over may call the library. In a wait for the daemon, calls that would ask the daemon fail with
 * -SHMVIEW_ERR_DEADLOCK, and is_over must not wait for another thread that asks the daemon. In a
 * wait for a lock it may take and release locks, the same one included. It may fork: the child may
 * ask, and where it returns from is_over its call, which is its parent's, fails with
 * -SHMVIEW_ERR_INTERRUPTED. arg is borrowed until the next call of
 * this function. Does not block. Never fails. */
void shmview_on_wait(int (*is_over)(void *arg), void *arg);

/* The path of the socket that the connection was made to, for others to find the same daemon.
 * Borrowed: it lives as long as the connection. Never fails. */
const char *shmview_socket_path(const struct shmview_connection *connection);

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
    SHMVIEW_CREATOR = 3,  /* with the connection that created it; see shmview_entrust() */
};

#define SHMVIEW_NO_LOCK  1u /* create: the segment has no lock, only its data */
#define SHMVIEW_POPULATE 2u /* create, attach: map every page now instead of at first touch */

/* Wishes for a new segment. Zero means the default; size the struct with
 * sizeof so that it can grow: { .struct_bytes = sizeof o, ... }. */
struct shmview_create_options {
    uint32_t struct_bytes;
    uint32_t lifetime;                          /* enum shmview_lifetime */
    uint32_t flags;                             /* SHMVIEW_NO_LOCK | SHMVIEW_POPULATE */
    uint32_t reserved;                          /* 0 */
    const struct shmview_access_change *access; /* who may use it; NULL: the default */
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
 * limit in the text), _QUOTA (what, asked, used and limit in the text), _LIMIT,
 * _INVALID, _DENIED (also where this user may not create segments), _DISCONNECTED, _PROTOCOL,
 * _NO_MEMORY or _SYSTEM on failure. A name that another user has taken, of whose segment
 * this one may not know, is -SHMVIEW_ERR_EXISTS too. */
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
 * has no right to see it), _DENIED (the right to read is there, to write is not),
 * _QUOTA, _NO_SLOT, _LIMIT, _LAYOUT_VERSION, _INVALID,
 * _DISCONNECTED, _PROTOCOL, _NO_MEMORY or _SYSTEM on failure. */
int shmview_attach(struct shmview_connection *connection, const char *name, int access,
                   unsigned flags, struct shmview_segment **ret_segment);

/* Lets a segment, which this process has created with lifetime creator, go with the process pid
 * from now on, and no longer with the connection: for a worker whose results the family's first
 * process shall find after the worker's end.
 *
 * That process is an ancestor of this one, or this one itself, and of the same user; not process 1.
 * Blocks for one round trip. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_DENIED (it is no such process, or the segment was not
 * created so by this connection), _NOT_FOUND (its name is gone), _INVALID, _DISCONNECTED,
 * _PROTOCOL, _NO_MEMORY or _SYSTEM on failure; then all is as it was. */
int shmview_entrust(struct shmview_segment *segment, uint32_t pid);

/* Detaches: unmaps, tells the daemon, frees the handle. Takes NULL. Views of the
 * segment are invalid from here on. Does not wait for the daemon, which does what it is asked
 * over the same connection from now on after that; one that is gone is not an error. To another
 * connection the attachment, and a segment that ends with it, may still be there for a moment.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_BUSY, and does nothing, if a thread
 * of this process holds the lock through this handle, or a buffer or tensor of it is still
 * out (shmview_buffer_get(), shmview_dlpack_export()); see shmview_detach_later(). */
int shmview_detach(struct shmview_segment *segment);

/* Removes the name at once; the memory goes with the last attachment. Blocks for
 * one round trip. For its owner and administrators. Returns 0, -SHMVIEW_ERR_NOT_FOUND,
 * _DENIED, _INVALID, _DISCONNECTED or _PROTOCOL. */
int shmview_remove(struct shmview_connection *connection, const char *name);

/* Facts of an attachment. The pointers are borrowed from it. Never fail. */
const char *shmview_name(const struct shmview_segment *segment);
uint64_t shmview_size(const struct shmview_segment *segment); /* bytes */
int shmview_access(const struct shmview_segment *segment);    /* enum shmview_access */
void *shmview_data(const struct shmview_segment *segment);    /* byte 0; page-aligned */

/* --- Lock ---------------------------------------------------------------- */

/* The lock of a segment: exclusive, recursive for each thread as
 * multiprocessing.RLock is, or shared by any number of readers. It survives the
 * death of any holder at any instant. No call here talks to the daemon, except the
 * first one of a forked child, which attaches the segment again and waits for that
 * without regard to a deadline. An uncontended pair makes no system call.
 *
 * Taking it returns 0; or SHMVIEW_OWNER_DIED (1): the lock is held exclusively,
 * whichever way it was asked for, and the last exclusive holder died inside: the
 * bytes may be half written. shmview_owner_died() tells who it was. Repair and
 * unlock, or unlock with shmview_unlock_not_repaired() so that the next one is
 * told too. A thread that exits while it holds has died inside.
 *
 * Rules. A thread that holds exclusively may take it again in either way. One that
 * holds shared may take it shared again, and never waits behind a writer for that;
 * taking it exclusively is -SHMVIEW_ERR_DEADLOCK. Readers that could starve take
 * their turn among the writers. No call is a cancellation point while it waits;
 * shmview_on_wait() ends a wait.
 *
 * A living process keeps its attachments, and its locks with them, whatever becomes of its
 * connection and of the daemon. If an attachment has ended nevertheless (its segment was removed
 * with the daemon's instance, or its registry was damaged), the handle is lost: each call below
 * that takes the lock, or depends on it, returns -SHMVIEW_ERR_LOST. A call that gives the lock back
 * returns it too if others may have written in the meantime, and 0 if nobody else has had the lock
 * until then. The lock is not held in either case. Detach the handle and attach again.
 *
 * On failure: -SHMVIEW_ERR_NO_LOCK (created without a lock, or attached with
 * SHMVIEW_PEEK), _LOST, _DEADLOCK, _TOO_DEEP (2^31 nested), _LIMIT (a thread that holds 64
 * segments shared, or the 4096th thread of a process that uses locks), _INTERRUPTED (by the
 * function of shmview_on_wait()); for a process that was forked, what shmview_attach() returns if
 * it cannot get a slot of its own. */

#define SHMVIEW_EXCLUSIVE 1
#define SHMVIEW_SHARED    2

/* Waits as long as it takes. */
int shmview_lock(struct shmview_segment *segment);
int shmview_lock_shared(struct shmview_segment *segment);

/* Never waits: -SHMVIEW_ERR_TIMED_OUT if another thread or process is in the way. */
int shmview_trylock(struct shmview_segment *segment);
int shmview_trylock_shared(struct shmview_segment *segment);

/* A deadline that never comes. */
#define SHMVIEW_FOREVER INT64_MAX

/* Waits until deadline_ns, absolute nanoseconds of CLOCK_MONOTONIC; then
 * -SHMVIEW_ERR_TIMED_OUT. A deadline that has passed tries once. */
int shmview_lock_until(struct shmview_segment *segment, int64_t deadline_ns);
int shmview_lock_shared_until(struct shmview_segment *segment, int64_t deadline_ns);

/* The CLOCK_MONOTONIC time that lies timeout_ns nanoseconds from now. */
int64_t shmview_deadline(int64_t timeout_ns);

/* Gives back what this thread took last, exclusive or shared. Does not block.
 * Returns 0, -SHMVIEW_ERR_NOT_OWNER (nothing is changed), _LOST (see above) or _NO_LOCK. */
int shmview_unlock(struct shmview_segment *segment);

/* The same for an exclusive holder, and the next one gets SHMVIEW_OWNER_DIED: the
 * bytes are not in order. Counts at the outermost unlock, also if a nested one
 * says it. */
int shmview_unlock_not_repaired(struct shmview_segment *segment);

/* The owner that died inside. The daemon keeps its pid, its command and the time. If an owner gives
 * the lock back with shmview_unlock_not_repaired() and lives on, pid and command are what it wrote
 * into its slot, the time is 0; pid is 0 and command "" if that slot has another user now. */
struct shmview_death {
    uint32_t pid;
    uint32_t slot;
    uint32_t phase; /* generation of the phase it died in */
    uint32_t reserved;
    int64_t when_ns; /* CLOCK_MONOTONIC */
    char command[16];
};

/* Tells about the death that SHMVIEW_OWNER_DIED reported, until the lock is given
 * back. The caller holds it. shmview_phase_read() has the name of the phase, if that is
 * still current. Does not block.
 * Returns 0, -SHMVIEW_ERR_NOT_OWNER, or _NO_LOCK. */
int shmview_owner_died(struct shmview_segment *segment, struct shmview_death *ret_death);

#define SHMVIEW_HOLDS          1u
#define SHMVIEW_HOLDS_SHARED   2u
#define SHMVIEW_WAITS          3u
#define SHMVIEW_WAITS_TO_SHARE 4u

/* One process in the lock's status, by what it wrote about itself. */
struct shmview_lock_party {
    uint32_t role; /* SHMVIEW_HOLDS ... */
    uint32_t slot;
    uint32_t pid;
    uint32_t reserved;
    /* CLOCK_MONOTONIC, 0 unknown. A holder has held the lock since before this. */
    int64_t since_ns;
    char command[16];
};

struct shmview_lock_status {
    int is_held; /* exclusively */
    int owner_is_dead;
    int is_dirty; /* the next owner will be told that one died; or one is inside */
    int reserved;
    size_t n_parties; /* that there are, whether or not they fit */
};

/* Tells who holds the lock and who waits, at about the same time, without taking
 * it. ret_parties has room for n. Does not block.
 * Returns 0, -SHMVIEW_ERR_NO_LOCK or what a forked process may get. */
int shmview_lock_query(struct shmview_segment *segment, struct shmview_lock_status *ret_status,
                       struct shmview_lock_party *ret_parties, size_t n);

/* Reading without a lock. What is read between begin and validate may change
 * meanwhile: copy, do not follow; believe it only if validate says 1. Needs no
 * write to shared memory at all.
 *
 * begin returns 0; -SHMVIEW_ERR_BUSY if an owner is inside, or died there: then
 * take the lock; or _NO_LOCK. validate returns 1 if nobody was inside since. */
int shmview_read_begin(struct shmview_segment *segment, uint64_t *ret_version);
int shmview_read_validate(const struct shmview_segment *segment, uint64_t version);

/* --- Changes ------------------------------------------------------------- */

/* Each segment with a lock has a counter of changes. It means what its users say;
 * notify adds one, and a switch of phase does. */

/* The counter. It wraps. Never fails; 0 for a segment without a lock. */
uint32_t shmview_change(const struct shmview_segment *segment);

/* Adds one and wakes all, or one, of those who wait in shmview_wait_change(); event
 * loops hear of both, from the daemon, a moment later or when it runs again. Does not
 * wait for the daemon; only the first call of a forked child attaches the segment. Any
 * thread, with or without the lock.
 * Returns 0 or -SHMVIEW_ERR_NO_LOCK. */
int shmview_notify(struct shmview_segment *segment);
int shmview_notify_one(struct shmview_segment *segment);

/* Waits until the counter is not seen, or until deadline_ns. Looks for some 20 us
 * before it sleeps, where there is more than one processor.
 * Returns 0 with *ret_change, -SHMVIEW_ERR_TIMED_OUT, _INTERRUPTED or _NO_LOCK. */
int shmview_wait_change(struct shmview_segment *segment, uint32_t seen, int64_t deadline_ns,
                        uint32_t *ret_change);

/* A descriptor that becomes readable when the counter changes, for poll and event
 * loops. Read from it until it would block, then look at the counter; it may also wake
 * for no change. Non-blocking and close-on-exec; borrowed: it lives as long as the
 * handle. End of file means that the daemon has gone: look at the counter and ask again; the
 * descriptor goes on under the same number. Blocks for one round trip the first time. At most 64
 * handles of a segment may have one, fewer where the daemon has many to serve. A forked child asks
 * for its own. Returns 0, -SHMVIEW_ERR_LIMIT, _NO_LOCK, _DISCONNECTED or _PROTOCOL. */
int shmview_change_fd(struct shmview_segment *segment, int *ret_fd);

/* --- Phases -------------------------------------------------------------- */

/* Which layout is current, and how often that was switched. */
struct shmview_phase {
    uint32_t generation; /* 0: never switched; then there is no layout. It wraps to 1 */
    uint32_t layout;     /* index, in the order of definition */
    char name[65];       /* of the layout */
};

/* The phase now. Blocks for one round trip where the layout is new to this handle.
 * Returns 0, -SHMVIEW_ERR_NO_LOCK, or what shmview_view_open() returns. */
int shmview_phase_get(struct shmview_segment *segment, struct shmview_phase *ret_phase);

/* Like shmview_phase_get(), but asks nobody: name is "" where this handle does not know it. It
 * knows the layouts that it has declared, and those that there were when the daemon was asked last.
 * For callers that hold the lock, or take it, and must not wait for the daemon. Does not block. Any
 * thread. Returns 0 or -SHMVIEW_ERR_NO_LOCK. */
int shmview_phase_read(struct shmview_segment *segment, struct shmview_phase *ret_phase);

/* Makes the layout called layout current. The caller holds the lock exclusively,
 * with SHMVIEW_WRITE. Who dies in the middle leaves the old phase or the new one.
 * Does not wait for the daemon, also where the layout is new to this handle.
 * Views of other phases are stale from here on. Wakes all who wait.
 * Returns 0, -SHMVIEW_ERR_NOT_OWNER, _LOST, _READ_ONLY, _NO_LAYOUT or _NO_LOCK. */
int shmview_switch(struct shmview_segment *segment, const char *layout);

/* Waits until the generation is past after and, if layout is not NULL, that layout
 * is current; or until deadline_ns. Phases that come and go unseen are missed.
 * Returns 0 with *ret_phase, -SHMVIEW_ERR_TIMED_OUT, _INTERRUPTED, _NO_LAYOUT (it is not declared
 * yet), _NO_LOCK, _DISCONNECTED or _PROTOCOL. */
int shmview_wait_phase(struct shmview_segment *segment, const char *layout, uint32_t after,
                       int64_t deadline_ns, struct shmview_phase *ret_phase);

/* Whether the view was opened from a layout in a phase that is over, or that has
 * not come. Views that were cast are never stale. Returns 1 or 0; never fails. */
int shmview_view_is_stale(const struct shmview_view *view);

/* Takes the lock of the view's segment, mode SHMVIEW_EXCLUSIVE or SHMVIEW_SHARED,
 * if the view is not stale. Under the lock it cannot become so.
 * Returns what shmview_lock_until() returns; -SHMVIEW_ERR_STALE, and the lock is
 * not held; or _INVALID. */
int shmview_view_lock(const struct shmview_view *view, int mode, int64_t deadline_ns);

/* --- Scopes -------------------------------------------------------------- */

/* Gives *segment's lock back unless it is NULL: what the scopes end with. */
void shmview_unlock_scope(struct shmview_segment **segment);

#if defined(__GNUC__) && !defined(__cplusplus)
/* A lock that is given back at the end of the block, also by return and goto:
 *     SHMVIEW_LOCKED(seg, result);            or SHMVIEW_LOCKED_SHARED
 *     if (result < 0) return result;
 * result is what taking it returned. */
#define SHMVIEW_LOCKED_WITH(take, segment, result, line)                                           \
    int result = take(segment);                                                                    \
    struct shmview_segment *shmview_scope_##line                                                   \
        __attribute__((cleanup(shmview_unlock_scope), unused)) = result < 0 ? NULL : (segment)
#define SHMVIEW_LOCKED_AT(take, segment, result, line)                                             \
    SHMVIEW_LOCKED_WITH(take, segment, result, line)
#define SHMVIEW_LOCKED(segment, result) SHMVIEW_LOCKED_AT(shmview_lock, segment, result, __LINE__)
#define SHMVIEW_LOCKED_SHARED(segment, result)                                                     \
    SHMVIEW_LOCKED_AT(shmview_lock_shared, segment, result, __LINE__)
#endif

#ifdef __cplusplus
}
#endif
#endif

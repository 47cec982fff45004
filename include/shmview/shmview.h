/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/shmview.h - named shared-memory segments with a lock and typed views.
 *
 * A segment is a named region of POSIX shared memory. The daemon shmviewd allocates it, fills it
 * with zeros and hands its descriptors to clients. After that, reading, writing and locking are
 * memory operations of the clients. The daemon has no part in them, and need not run.
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
 * Trust. Clients that attach a segment for writing trust each other with that segment. Each of them
 * can overwrite its bytes and its lock, or truncate its memory, and then an access to a missing
 * page raises SIGBUS. A client that attaches for reading can disturb the lock, but not the bytes. A
 * client can disturb no segment that it has not attached.
 *
 * Results. Most calls return 0 on success and a negated enum shmview_error on failure. In lists of
 * errors, _NAME is short for -SHMVIEW_ERR_NAME. After a failure the out parameters are unchanged,
 * and shmview_error_text() returns a sentence with names and figures.
 *
 * Requests. A call that asks the daemon blocks until the reply has come, usually for one round
 * trip. If the daemon is gone, the call waits up to 0.9 s for the next daemon. Besides its own
 * errors it can return an error of requests:
 *     _DISCONNECTED         no daemon came back; or it ended after it had received a request that
 *                           must not be repeated (create, remove, define, entrust)
 *     _PROTOCOL             the reply is not one of shmviewd, or it does not know the request
 *     _QUOTA                the user has too many connections
 *     _NO_MEMORY, _SYSTEM   memory is short, or a system call failed, here or in the daemon
 *     _INTERRUPTED, _DEADLOCK   see shmview_on_wait()
 * After _DISCONNECTED and _INTERRUPTED the daemon may have carried out the request.
 *
 * Ownership. A handle that a call stores in *ret_... belongs to the caller, who must pass it to the
 * closing call that the comment names. Pointers that a program passes are borrowed for the call.
 * Pointers that it gets from a handle are borrowed from that handle. Views need no release.
 *
 * Threads. Any thread may use any handle at any time; requests over one connection take turns. A
 * call that closes a handle (disconnect, detach) must be the last use of that handle. A lock
 * belongs to the thread that took it.
 *
 * Fork. A child uses its parent's handles like its own: on first use it gets a connection and a
 * lock slot. It never holds or releases its parent's lock. After vfork(), or in a signal handler, a
 * program must not call the library. A signal handler that interrupts a call of the library may
 * fork; its child may only call async-signal-safe functions (POSIX) until exec or _exit. If the
 * signal can interrupt malloc(), for which fork() waits, the handler needs _Fork(). Handlers of
 * pthread_atfork() registered before the library is loaded must neither call it nor wait for a
 * thread that does; later ones must take no lock that malloc() needs.
 *
 * Unloading. dlclose() leaves the library in memory, because threads that have locked, and forks,
 * still run functions of it. A program that links the static library into a plugin must not unload
 * that plugin. The library starts no thread, installs no signal handler and prints nothing. It
 * keeps two descriptors open for each connection, one for each handle that shmview_change_fd() got,
 * and three for each sealed segment, while these are at most an eighth of RLIMIT_NOFILE. */
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

/* The version of this header, for #if. */
#define SHMVIEW_VERSION_MAJOR 0
#define SHMVIEW_VERSION_MINOR 1
#define SHMVIEW_VERSION_PATCH 0

/* Returns the version of the library that is loaded, "0.1.0". The string is static. Never fails. */
const char *shmview_version(void);

/* A connection to a daemon; a segment that this process has attached. */
struct shmview_connection;
struct shmview_segment;

/* --- Connection ---------------------------------------------------------- */

/* A flag of shmview_connect(): start no session daemon, but fail with _NO_DAEMON instead. */
#define SHMVIEW_CONNECT_NO_START 1u

/* Connects to a daemon.
 *
 * socket_path is the path of the daemon's socket, at most 107 bytes as an absolute path. The
 * library resolves a relative path now, so a later change of the directory does not matter. If it
 * is NULL, the library uses $SHMVIEW_SOCKET. If that is not set, it tries the user's daemon
 * ($XDG_RUNTIME_DIR/shmviewd/io.shmview), then the system's (/run/shmviewd/io.shmview), then the
 * user's session daemon. It starts the session daemon if that does not run; such a daemon exits
 * some time after its last use. If a user's or system's daemon has left a socket, a lock file or a
 * registry, the library waits up to 0.9 s for it, and then fails, because another daemon would have
 * other segments.
 *
 * flags is 0 or SHMVIEW_CONNECT_NO_START. The caller must pass *ret_connection to
 * shmview_disconnect(). Blocks for a round trip, or 10 s until a session daemon runs. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_DAEMON if no daemon could be reached (the text
 * lists the paths that were tried), _DENIED if this user may not connect to a socket or an
 * untrusted user serves it, _INVALID if the path is empty or too long or a flag is unknown, _QUOTA
 * if the user has too many connections (the text has the figures), or an error of requests. */
int shmview_connect(const char *socket_path, unsigned flags,
                    struct shmview_connection **ret_connection);

/* Writes the path of the session daemon that shmview_connect() starts: $SHMVIEW_DAEMON; or else the
 * shmviewd beside this library (in its directory, in bin of its installation, or in its build); or
 * that of the prefix it was built for; or "shmviewd", to be searched in $PATH. A program with more
 * rights than its caller, such as a set-uid one, ignores both variables. bytes is the size of path;
 * PATH_MAX is enough. Blocks for look-ups of files. Any thread. Returns 0, or -SHMVIEW_ERR_INVALID
 * if the path does not fit. */
int shmview_daemon_path(char *path, size_t bytes);

/* Closes a connection. connection may be NULL. All segments attached through it must be detached
 * first. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_BUSY if segments are attached, including those that
 * wait in shmview_detach_later(); the text has their number, and the connection stays usable. */
int shmview_disconnect(struct shmview_connection *connection);

/* Asks the daemon for a reply, to find out whether it runs. Blocks as a request. Any thread.
 * Returns 0 on success. Returns an error of requests on failure. */
int shmview_ping(struct shmview_connection *connection);

/* Lets a program end the calling thread's waits; interpreters do it on Ctrl-C.
 *
 * While a call of this thread waits (for a lock, a mutex of family.h, a change, a phase, an event,
 * the daemon's reply, or another thread's call over the same connection), it calls is_over(arg) at
 * least ten times a second, and after each signal handler that interrupts the wait and is not
 * installed with SA_RESTART. If that returns other than 0, the waiting call fails with
 * -SHMVIEW_ERR_INTERRUPTED. A call that waited for a lock has not taken it then. A request may have
 * been carried out, as after _DISCONNECTED, but an attachment that it made is detached. NULL ends
 * no wait. It is NULL at the start of a thread and of a forked child, and while is_over runs.
 *
 * is_over may call the library. In a wait for the daemon, calls that would ask the daemon fail with
 * -SHMVIEW_ERR_DEADLOCK, and is_over must not wait for another thread that asks the daemon. In a
 * wait for a lock it may take and release locks, this one included. is_over may fork. The child may
 * ask the daemon; if it returns from is_over, the call of its parent, in which it is, fails with
 * -SHMVIEW_ERR_INTERRUPTED. A call of this function in is_over lasts only until is_over returns.
 * arg is borrowed until the next call outside of is_over. Does not block. Never fails. */
void shmview_on_wait(int (*is_over)(void *arg), void *arg);

/* Returns the absolute path of the socket, with which other programs find the same daemon. The
 * string lives as long as the connection. Never fails. */
const char *shmview_socket_path(const struct shmview_connection *connection);

/* --- Segments ------------------------------------------------------------ */

/* What an attachment may do. Each value includes the one before it. */
enum shmview_access {
    SHMVIEW_PEEK = 1,  /* read the bytes; no lock, so that it can disturb nobody */
    SHMVIEW_READ = 2,  /* also take the lock */
    SHMVIEW_WRITE = 3, /* also change the bytes */
};

/* When a segment ends. Its memory stays until the last attachment ends in each case. */
enum shmview_lifetime {
    SHMVIEW_ATTACHED = 1, /* with its last attachment (the default) */
    SHMVIEW_MANUAL = 2,   /* when shmview_remove() removes it */
    SHMVIEW_CREATOR = 3,  /* when its creator disconnects or ends; see shmview_entrust() */
};

/* What the memory of a segment is. */
enum shmview_backing {
    SHMVIEW_BACKING_FILE = 1, /* files in /dev/shm, which the next daemon takes over */
    /* memfds that nobody can truncate. A service manager or keeper holds them between daemons. */
    SHMVIEW_BACKING_SEALED = 2,
};

#define SHMVIEW_NO_LOCK    1u /* create: the segment has only its data, no lock, changes or phases */
#define SHMVIEW_POPULATE   2u /* create, attach: map every page now instead of at its first use */
#define SHMVIEW_OWN_MEMORY 8u /* create: this process allocates the memory, and seals it */

/* Options for shmview_create(). Set struct_bytes to sizeof, so that later versions can add members:
 * { .struct_bytes = sizeof o, ... }. A member that is 0 has its default. */
struct shmview_create_options {
    uint32_t struct_bytes;
    uint32_t lifetime;                          /* enum shmview_lifetime */
    uint32_t flags;                             /* SHMVIEW_NO_LOCK | ... */
    uint32_t backing;                           /* enum shmview_backing; 0: as configured */
    const struct shmview_access_change *access; /* its owner, mode ...; NULL: defaults */
    const char *label; /* for people: UTF-8, at most 63 bytes, no control characters; NULL: none */
    const struct shmview_placement *placement; /* huge pages, nodes: placement.h; NULL: defaults */
};

/* Creates the segment called name, filled with zeros, and attaches it for writing.
 *
 * name has 1 to 128 letters, digits, '.', '_' or '-', and does not begin with '.'. size is in
 * bytes, at least 1. The daemon allocates all of it, or with SHMVIEW_OWN_MEMORY this process, whose
 * control group then pays, so that no later access can fail for lack of memory. options may be
 * NULL. The caller must pass *ret_segment to shmview_detach(). Blocks as a request, until the
 * memory is allocated. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_EXISTS if the name is taken, also by a segment that
 * this user may not see; _NO_SPACE if there is not enough shared memory, _QUOTA beyond a quota (for
 * both the text has what was asked for, used or free, and the limit); _LIMIT beyond 4096
 * attachments of the connection, or if the daemon has no descriptors left for a sealed segment;
 * _DENIED if this user may not create segments, or not for that owner or group; _INVALID for a
 * wrong argument; _UNSUPPORTED if the daemon takes no memory of clients; _LAYOUT_VERSION if an
 * object of the segment is damaged; or an error of requests. */
int shmview_create(struct shmview_connection *connection, const char *name, uint64_t size,
                   const struct shmview_create_options *options,
                   struct shmview_segment **ret_segment);

/* Attaches the segment called name. access is an enum shmview_access, flags 0 or SHMVIEW_POPULATE.
 *
 * A process may attach a segment many times. Each attachment for reading or writing takes one of
 * the 1000 slots in the segment's lock. The caller must pass *ret_segment to shmview_detach().
 * Blocks as a request. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_FOUND if there is no such segment or this user has
 * no right to see it, _DENIED if the user may not attach it with this access, _NO_SLOT if all slots
 * are taken, _LIMIT beyond 4096 attachments of the connection, _QUOTA beyond the user's quota of
 * attachments, _LAYOUT_VERSION if the lock is damaged or from another version of shmview, _INVALID
 * for a wrong argument, or an error of requests. */
int shmview_attach(struct shmview_connection *connection, const char *name, int access,
                   unsigned flags, struct shmview_segment **ret_segment);

/* Ends an attachment and frees the handle, after which its views are invalid, also where the memory
 * stays mapped for a while (shmview_trim()). segment may be NULL. Does not wait for the daemon, and
 * succeeds without one. The daemon serves later requests over this connection after the detachment.
 * Other connections may see the attachment, or a segment that ends with it, a moment longer.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_BUSY and does nothing if a thread of this process
 * holds the lock through this handle, or if a buffer or tensor of it is not released
 * (shmview_buffer_get(), shmview_dlpack_export()); see shmview_detach_later(). */
int shmview_detach(struct shmview_segment *segment);

/* Removes the name of a segment at once; its memory stays until its last attachment ends. Only the
 * owner and administrators may remove a segment. Blocks as a request. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_FOUND if there is no such segment or this user has
 * no right to see it, _DENIED if this user does not own it, _INVALID for a wrong name, or an error
 * of requests. */
int shmview_remove(struct shmview_connection *connection, const char *name);

/* Facts of an attachment, which do not change. Pointers live as long as the handle. They do not
 * block and never fail. An access to the page that follows the data's last page raises SIGBUS, so a
 * program that runs past the end does not change other memory. */
const char *shmview_name(const struct shmview_segment *segment);
uint64_t shmview_size(const struct shmview_segment *segment); /* bytes */
int shmview_access(const struct shmview_segment *segment);    /* enum shmview_access */
void *shmview_data(const struct shmview_segment *segment);    /* byte 0; page-aligned */

/* --- Lock ---------------------------------------------------------------- */

/* Each segment has one lock unless its creator set SHMVIEW_NO_LOCK. A thread holds it exclusively,
 * as often nested as it likes, or any number of readers share it. Readers that could starve take
 * turns with the writers. Taking and releasing it needs no daemon and, if nobody else uses it, no
 * system call. Only the first call of a forked child asks the daemon, because the child needs a
 * slot of its own; that wait ignores deadlines. No call is a cancellation point while it waits;
 * shmview_on_wait() ends a wait.
 *
 * Death. The lock survives the death of any holder at any instant. If an exclusive holder dies, or
 * its thread exits, the bytes may be half written. The next call that takes the lock, also a shared
 * one, then holds it exclusively and returns SHMVIEW_OWNER_DIED (1). That caller must repair the
 * bytes and unlock, or call shmview_unlock_not_repaired(), after which the next owner gets
 * SHMVIEW_OWNER_DIED again.
 *
 * Rules. A thread that holds the lock exclusively may take it again in either mode. A thread that
 * shares it may share it again, and does not wait for writers then. It must not take the lock
 * exclusively, because it would wait for itself.
 *
 * Lost handles. A living process keeps its attachments and its locks, even if its connection or its
 * daemon ends. An attachment ends without the process only if the daemon removed all segments of
 * the instance, or its registry was damaged, or if the process had no address space for the mapping
 * by which the daemon knows that it lives, and lost its connection (docs/LIFECYCLE.md, presence).
 * The handle is then lost, and each call below that takes or needs the lock returns _LOST, also a
 * call that waits when the segments are removed. A call that releases the lock also returns _LOST
 * if others may have written since, and 0 if nobody else has had the lock. In both cases the lock
 * is no longer held. The caller must detach the handle and attach again.
 *
 * Results. Each call that takes the lock returns 0 on success, or SHMVIEW_OWNER_DIED, which is a
 * success too. Returns -SHMVIEW_ERR_NO_LOCK if the segment has no lock or is attached with
 * SHMVIEW_PEEK; _DEADLOCK by the rules above; _LOST; _TOO_DEEP if the thread holds the lock 2^31
 * times; _LIMIT if the thread shares 64 segments, if 4095 other threads of the process use locks,
 * or in the thread's last round of destructors; _INTERRUPTED by shmview_on_wait(); _NO_MEMORY;
 * _SYSTEM; or, in a forked child, what shmview_attach() returns. */

/* Modes of the lock, for shmview_view_lock() and for events and figures. */
#define SHMVIEW_EXCLUSIVE 1
#define SHMVIEW_SHARED    2

/* Takes the lock and waits as long as that takes. Returns as described above. */
int shmview_lock(struct shmview_segment *segment);
int shmview_lock_shared(struct shmview_segment *segment);

/* Takes the lock without waiting. Also returns -SHMVIEW_ERR_TIMED_OUT if another has it. */
int shmview_trylock(struct shmview_segment *segment);
int shmview_trylock_shared(struct shmview_segment *segment);

/* A deadline that never comes. */
#define SHMVIEW_FOREVER INT64_MAX

/* Takes the lock and waits until deadline_ns, an absolute time of CLOCK_MONOTONIC in nanoseconds. A
 * deadline in the past tries once. Also returns -SHMVIEW_ERR_TIMED_OUT after the deadline. */
int shmview_lock_until(struct shmview_segment *segment, int64_t deadline_ns);
int shmview_lock_shared_until(struct shmview_segment *segment, int64_t deadline_ns);

/* Returns the deadline that is timeout_ns nanoseconds from now. A timeout that is too long for a
 * deadline, such as SHMVIEW_FOREVER, gives SHMVIEW_FOREVER. Never fails. */
int64_t shmview_deadline(int64_t timeout_ns);

/* Releases what this thread took last, in whichever mode. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_OWNER and changes nothing if this thread does not
 * hold the lock, _LOST as described above, or _NO_LOCK. */
int shmview_unlock(struct shmview_segment *segment);

/* Like shmview_unlock(), for an exclusive holder whose bytes are not in order: the next owner gets
 * SHMVIEW_OWNER_DIED. If the lock is held more than once, this takes effect at the outermost
 * unlock, whichever of the calls that is. */
int shmview_unlock_not_repaired(struct shmview_segment *segment);

/* The owner that died inside. The daemon keeps its pid, its command and the time of its death. If
 * an owner that lives on has called shmview_unlock_not_repaired(), or a thread has exited inside,
 * pid and command are what that client wrote into its slot, and the time is 0. They are 0 and "" if
 * the slot has another user now. command is printable ASCII: other bytes that it had are '?'. */
struct shmview_death {
    uint32_t pid;
    uint32_t slot;
    uint32_t phase; /* generation of the phase it died in */
    uint32_t reserved;
    int64_t when_ns; /* CLOCK_MONOTONIC */
    char command[16];
};

/* Describes the death that SHMVIEW_OWNER_DIED reported, until the caller unlocks. All members are 0
 * if its lock call returned 0. shmview_phase_read() returns the name of the phase. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_OWNER if this thread does not hold the lock
 * exclusively, _LOST or _NO_LOCK. */
int shmview_owner_died(struct shmview_segment *segment, struct shmview_death *ret_death);

/* Roles of a party: it holds the lock exclusively or shared, or waits for that. */
#define SHMVIEW_HOLDS          1u
#define SHMVIEW_HOLDS_SHARED   2u
#define SHMVIEW_WAITS          3u
#define SHMVIEW_WAITS_TO_SHARE 4u

/* One client in the status of a lock, by what it wrote about itself. command is as in struct
 * shmview_death. */
struct shmview_lock_party {
    uint32_t role; /* SHMVIEW_HOLDS ... */
    uint32_t slot;
    uint32_t pid;
    uint32_t reserved;
    /* CLOCK_MONOTONIC, 0: unknown. For an exclusive holder an upper bound: it has held the lock at
     * least since then. For a waiter, the beginning of its wait. */
    int64_t since_ns;
    char command[16];
};

struct shmview_lock_status {
    int is_held;       /* exclusively */
    int owner_is_dead; /* the exclusive holder has died: the next client takes the lock */
    int is_dirty;      /* an owner is inside now, or has died inside */
    int is_held_here;  /* a thread of this process has it, or tries to share it, by this handle */
    size_t n_parties;  /* how many there are; more than n if there was no room for all */
};

/* Reports who holds the lock and who waits for it, without taking it. Fills ret_parties, which has
 * room for n. The words are read one after the other, so that they may not fit each other exactly:
 * the report is for people. A client that holds and waits is two parties. Does not block.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_LOCK, _LOST, or what a forked child may get. */
int shmview_lock_query(struct shmview_segment *segment, struct shmview_lock_status *ret_status,
                       struct shmview_lock_party *ret_parties, size_t n);

/* Optimistic reads copy bytes without taking the lock. Others may write between begin and validate,
 * so copy the bytes and follow nothing in them. Use the copy only if validate returns 1, because
 * then no owner was inside in between. Neither call sleeps. Only the first call through a handle
 * writes to shared memory.
 *
 * shmview_read_begin() returns 0 on success. Returns -SHMVIEW_ERR_BUSY if an owner is inside or has
 * died inside (take the lock then), _NO_LOCK, _LOST, or what a forked child may get.
 * shmview_read_validate() returns 1 or 0. Never fails. */
int shmview_read_begin(struct shmview_segment *segment, uint64_t *ret_version);
int shmview_read_validate(const struct shmview_segment *segment, uint64_t version);

/* --- Changes ------------------------------------------------------------- */

/* Each segment with a lock has a counter of changes, whose meaning its users define. A notification
 * adds one to it, and so does a switch of the phase. A forked child attaches the segment with its
 * first call, and may then get what shmview_attach() returns. */

/* Returns the counter, which wraps; 0 for a segment without a lock. Never fails. */
uint32_t shmview_change(const struct shmview_segment *segment);

/* Adds one to the counter and wakes all, or one, of the threads in shmview_wait_change(). Both wake
 * all event loops through the daemon: a moment later, or when it runs again. Neither waits for the
 * daemon. Any thread, with or without the lock.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_LOCK or _LOST on failure. */
int shmview_notify(struct shmview_segment *segment);
int shmview_notify_one(struct shmview_segment *segment);

/* Waits until the counter is not seen, or until deadline_ns. With more than one processor it polls
 * for up to 100 us before it sleeps, and less after polls that found nothing.
 *
 * Returns 0 on success, with the counter in *ret_change. Returns -SHMVIEW_ERR_TIMED_OUT after the
 * deadline, _INTERRUPTED by shmview_on_wait(), _NO_LOCK or _LOST. */
int shmview_wait_change(struct shmview_segment *segment, uint32_t seen, int64_t deadline_ns,
                        uint32_t *ret_change);

/* Returns a descriptor that becomes readable when the counter changes, for poll() and event loops.
 * Read from it until it would block, and then look at the counter; it may wake without a change. It
 * is non-blocking and close-on-exec, and lives as long as the handle. End of file means that the
 * daemon is gone: look at the counter and call again, which keeps the number of the descriptor. The
 * first call blocks as a request.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_LIMIT if 64 attachments of the segment have one, or
 * fewer while the daemon serves many; _NO_LOCK, _LOST, or an error of requests. */
int shmview_change_fd(struct shmview_segment *segment, int *ret_fd);

/* --- Phases -------------------------------------------------------------- */

/* The phase of a segment is the layout that is current. Layouts are declared by shmview_define(),
 * and a switch begins a new phase. */
struct shmview_phase {
    uint32_t generation; /* grows with each switch, wraps to 1; 0: never switched, no layout */
    uint32_t layout;     /* index of the layout, in the order of definition */
    char name[65];       /* of the layout */
};

/* Gets the current phase. Blocks as a request if the layout is new to this handle.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_LOCK, _LOST, _NO_LAYOUT if the segment has no
 * layout of that index, because a client overwrote the phase, or an error of requests. */
int shmview_phase_get(struct shmview_segment *segment, struct shmview_phase *ret_phase);

/* Like shmview_phase_get(), but never asks the daemon: name is "" if this handle does not know it.
 * A handle knows the layouts that it has declared, and those that existed when it last asked. For
 * callers that hold the lock and must not wait for the daemon. Does not block. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NO_LOCK on failure. */
int shmview_phase_read(struct shmview_segment *segment, struct shmview_phase *ret_phase);

/* Makes a layout current. The caller must hold the lock exclusively, with SHMVIEW_WRITE. A client
 * that dies in this call leaves the old phase or the new one. Views of other phases are stale from
 * now on, and all who wait for a phase or a change wake. Does not wait for the daemon.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_NOT_OWNER, _READ_ONLY, _NO_LAYOUT, _LOST or
 * _NO_LOCK. */
int shmview_switch(struct shmview_segment *segment, const char *layout);

/* Waits until the generation is past after (0: any phase) and, if layout is not NULL, that layout
 * is current, or until deadline_ns. A phase that begins and ends between two looks is missed.
 * Blocks as a request first if the layout is new to this handle.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_TIMED_OUT after the deadline, _INTERRUPTED by
 * shmview_on_wait(), _NO_LAYOUT if the layout is not declared yet, _NO_LOCK, _LOST, or an error of
 * requests. */
int shmview_wait_phase(struct shmview_segment *segment, const char *layout, uint32_t after,
                       int64_t deadline_ns, struct shmview_phase *ret_phase);

/* Returns 1 if the view was opened from a layout and another phase is current, else 0. Views that
 * were cast, segments before their first switch and attachments without the lock (SHMVIEW_PEEK)
 * give 0. Never fails. */
int shmview_view_is_stale(const struct shmview_view *view);

/* Takes the lock of a view's segment if the view is not stale; under the lock it cannot become
 * stale. mode is SHMVIEW_EXCLUSIVE or SHMVIEW_SHARED. Waits until deadline_ns.
 *
 * Returns what shmview_lock_until() returns. Also returns -SHMVIEW_ERR_STALE, or _INVALID for an
 * unknown mode; the lock is not held then. */
int shmview_view_lock(const struct shmview_view *view, int mode, int64_t deadline_ns);

/* --- Scopes -------------------------------------------------------------- */

/* Unlocks *segment unless it is NULL. The macros below call it at the end of the block. */
void shmview_unlock_scope(struct shmview_segment **segment);

#if defined(__GNUC__) && !defined(__cplusplus)
/* Takes a lock that the end of the block releases, also by return and goto:
 *     SHMVIEW_LOCKED(seg, result);            or SHMVIEW_LOCKED_SHARED
 *     if (result < 0) return result;
 * The macro declares result, which is what taking the lock returned. */
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

/* SPDX-License-Identifier: Apache-2.0 */
/* What is behind the opaque names, and what the files of the library share. */
#ifndef CLIENT_PRIVATE_H
#define CLIENT_PRIVATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

#include <shmview/layout.h>
#include <shmview/shmview.h>

#include "common/base/address.h"
#include "common/base/looking.h"
#include "common/views/view.h"
#include "common/wire/frame.h"
#include "common/wire/wire.h"

#pragma GCC visibility push(hidden)

/* --- error.c ------------------------------------------------------------- */

#define ERROR_TEXT_BYTES 512
/* Keeps the text for shmview_error_text(). Returns -error. */
__attribute__((format(printf, 2, 3))) int fail(int error, const char *format, ...);
/* Like fail(), for a system call: SHMVIEW_ERR_SYSTEM, or _NO_MEMORY for ENOMEM. */
int fail_errno(const char *what, int error_number);
/* Like fail() for a reply that cannot be read: SHMVIEW_ERR_PROTOCOL, or _NO_MEMORY. */
int fail_reply(const struct wire_fault *fault);

/* --- process.c: fork ----------------------------------------------------- */

/* Lies on a page that a forked child finds zeroed. epoch is 0 in a child until
 * its first call here; an object of another epoch belongs to an ancestor. The
 * mutexes are unlocked in a child, whoever held them when it was forked. Nobody waits for
 * the daemon, or for another process, inside segments, details and forks. */
struct process_page {
    _Atomic uint32_t epoch;
    _Atomic uint32_t n_threads; /* that use locks */
    pthread_mutex_t mutex;      /* epoch, and the connection's step into it */
    pthread_mutex_t steps;      /* a segment's step into a child, for which the daemon is asked */
    pthread_mutex_t segments;   /* the list of segments; after a connection's mutex */
    pthread_mutex_t details;    /* layouts, slots, descriptors, what connections hold */
    pthread_mutex_t forks;      /* NOT_FORKED; the last to be taken */
};
extern struct process_page *process;

/* Makes the page, once. Returns 0 or an error. */
int process_init(void);
/* The epoch of this process; never 0. */
uint32_t process_epoch(void);

/* No call of the library is a cancellation point: one in the middle would leave half
 * a message, or a mutex. Holds until the end of the block. */
static inline int cancel_off(void)
{
    int was;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &was);
    return was;
}
static inline void cancel_back(int *was)
{
    pthread_setcancelstate(*was, was);
}
/* A change of private state that a fork in another thread must not cut in two: the
 * child would inherit half of it. Nothing may block until the end of the block. */
void fork_off(void);
void fork_back(const char *unused);
/* process->details until the end of the block. */
void details_lock(void);
void details_unlock(const char *unused);
#define DETAILS                                                                                    \
    __attribute__((cleanup(details_unlock), unused)) const char details_was = (details_lock(), 0)
#define NOT_FORKED    __attribute__((cleanup(fork_back), unused)) const char fork_was = (fork_off(), 0)
#define NOT_CANCELLED __attribute__((cleanup(cancel_back), unused)) int cancel_was = cancel_off()

/* --- connection.c -------------------------------------------------------- */

struct shmview_connection {
    pthread_mutex_t mutex; /* everything below */
    _Atomic uint32_t epoch;
    int fd;              /* -1: connect before the next call */
    dev_t socket_device; /* of fd, which is ours as long as it is this file */
    ino_t socket_inode;
    void *presence;   /* mapped as long as this process exists, for the daemon; NULL: not mapped */
    _Atomic int bell; /* changed under mutex; -1: none */
    _Atomic dev_t bell_device;
    _Atomic ino_t bell_inode;
    bool greets;     /* a claim was sent, its reply not yet read */
    bool is_checked; /* who serves the socket must be root or this user */
    bool may_start;  /* a session daemon, if there is none */
    address_path path;
    int64_t client; /* the number that the daemon knows it by */
    _Atomic unsigned n_segments;
    _Atomic bool owes;            /* attachments must be given back, or changes reported */
    _Atomic bool rings;           /* ... changes */
    bool is_late;                 /* ... and could not be reported yet: the next call tries again */
    int64_t *held;                /* their ids; negative: must be given back */
    size_t n_held, held_capacity; /* ... under process->details */
    struct frame in;
    struct frame_descriptors arrived; /* with a reply to Claim, or a part of it */
    struct looking looking;           /* for replies */
    LIST_ENTRY(shmview_connection) link;
};

/* A reply and the descriptors that came with it. */
struct reply {
    struct wire_reply wire;      /* nothing, if it is_attached */
    bool is_attached;            /* the usual one to Attach and Create */
    struct wire_segment segment; /* ... then what it tells; strings are in room */
    struct wire_attachment attachment;
    char room[LIMIT_NAME_BYTES + 1];
    struct frame_descriptors fds;
    int64_t held; /* the id of the attachment that it gives, which is noted; 0: none */
};

/* Calls method with parameters (new; stolen; NULL means memory was short) and
 * waits for the reply. Returns 0 and owes reply_deinit(), or the error, the
 * daemon's included. */
int connection_call(struct shmview_connection *connection, const char *method, json_t *parameters,
                    struct reply *reply);

/* Like connection_call(), with the whole call as text of n bytes (new; stolen; NULL means memory
 * was short). */
int connection_call_text(struct shmview_connection *connection, const char *method, char *call,
                         size_t n, struct reply *reply);

/* Forgets the socket and what was read from it. */
void connection_hang_up(struct shmview_connection *connection);
/* Hangs up, because of the error, which it returns. */
int connection_fail(struct shmview_connection *connection, int error, const char *why);
/* Hangs up, because the caller has ended a wait: the daemon's answer would be taken for that to the
 * next request. */
int connection_give_up(struct shmview_connection *connection);
/* Sends all of it. Returns 0 or -errno; -ECANCELED: the caller has ended the wait. */
int connection_send(const struct shmview_connection *connection, const char *text, size_t n);
void reply_deinit(struct reply *reply);
/* Whether sending failed with r because the daemon does not hear. A daemon that refuses to hear
 * sends its reason before it hangs up, so there may be something to receive where sending fails. */
bool connection_is_refused(const struct shmview_connection *connection, int r);
/* Receives a reply. Returns 0 and owes reply_deinit(), or an error, having hung up. */
int connection_receive(struct shmview_connection *connection, struct reply *reply);
/* Hangs up. r is what frame_receive() returned: 0, or -errno. Returns an error. */
int connection_receive_failed(struct shmview_connection *connection, ssize_t r);
/* Like connection_receive_failed(), for a reply that could not be read: the daemon takes back what
 * the reply gave when it reads a claim that does not name it. */
int connection_unreadable(struct shmview_connection *connection, const struct wire_fault *fault);

/* Locks connection->mutex unless another thread has it; in a forked child as well. */
bool connection_trylock(struct shmview_connection *connection);
/* Does what other threads have left to the owner of the mutex, and unlocks it. */
void connection_unlock(struct shmview_connection *connection);

/* --- claim.c ------------------------------------------------------------- */

/* Connects to path and sends a claim. Returns 0; 1 with errno set if nobody is there; or an
 * error. */
int connection_open(struct shmview_connection *connection);
/* Like connection_open(), but does not wait, and does not ask whether a wait goes on. The reply to
 * the claim, or the rest of it, may still be on its way then: the next call reads it. Returns 0; 1
 * if nobody is there; or -1. */
int connection_reopen(struct shmview_connection *connection);
/* Sends a claim over the socket that it has, without waiting; connection_reopen() reads the reply.
 * The daemon then wakes those who watch what is attached, and sends a new bell. Returns 0; -ENOMEM;
 * -EAGAIN if the socket is full; any other -errno if the socket is of no use any more. */
int connection_claim(struct shmview_connection *connection);
/* Reads the reply to a claim that was sent. Returns 0; 1 with errno: the daemon is leaving; or an
 * error. */
int connection_be_greeted(struct shmview_connection *connection);

/* --- dial.c -------------------------------------------------------------- */

/* Connects: *ret_fd is a socket, the caller's. waits: also where the daemon's queue of new
 * connections is full, until there is room. Returns 0; 1 with errno if nobody is there, or EAGAIN
 * if that queue is full; or an error. */
int connection_dial(const struct shmview_connection *connection, bool waits, int *ret_fd);

/* --- socket.c ------------------------------------------------------------ */

/* On the list of those whose descriptors a forked child closes. */
void connection_enlist(struct shmview_connection *connection);
void connection_delist(struct shmview_connection *connection);
/* A number by which a daemon can know a client; no other process has it. */
int64_t client_number(void);
/* In a forked child, under NOT_FORKED: forgets what its ancestor had. */
void connection_disown(struct shmview_connection *connection);
/* In the child, right after the fork; async-signal-safe. */
void connections_after_fork(void);

/* Gives it a socket, which is closed on failure. Returns 0 or an error. */
int connection_take_socket(struct shmview_connection *connection, int fd);
/* Whether the connection has a socket, and its number still is that: the program may have closed
 * it and have given the number to another file. Safe in a signal handler. */
bool connection_has_socket(const struct shmview_connection *connection);
/* Closes the socket unless the program has given its number to another file. */
void connection_close_socket(struct shmview_connection *connection);

/* Maps the file that the daemon has sent, in place of an older one; where that fails there is
 * no presence, or the older one. fd stays the caller's. */
void connection_map_presence(struct shmview_connection *connection, int fd);
void connection_unmap_presence(struct shmview_connection *connection);

/* --- bell.c --------------------------------------------------------------- */

/* Has *fd as its bell, and sets that to -1; or a duplicate of it under the number of the older
 * bell, so that others may ring meanwhile. Where that fails the older bell stays. */
void bell_take(struct shmview_connection *connection, int *fd);
/* Safe in a signal handler. */
void bell_close(struct shmview_connection *connection);
/* Returns whether the daemon will hear of it. attachment 0: of all. */
bool bell_ring(const struct shmview_connection *connection, int64_t attachment);
/* The segment has changed: lets the daemon wake those who watch it. Waits for nobody. */
void connection_ring(struct shmview_connection *connection, int64_t attachment);

/* --- held.c --------------------------------------------------------------- */

/* Makes room for one more attachment. Returns 0 or -ENOMEM. */
int connection_reserve(struct shmview_connection *connection);
/* Notes that the attachment is there; there is room for it. */
void connection_hold(struct shmview_connection *connection, int64_t attachment);
/* The attachment has ended: notifies the daemon, and waits for no reply and no other call. Requests
 * on the connection from then on come after that. */
void connection_give_back(struct shmview_connection *connection, int64_t attachment);
/* The daemon has these, sorted, and no others of those that a claim has named: forgets the rest. */
void connection_keep(struct shmview_connection *connection, const struct wire_held *held, size_t n);
bool connection_holds(struct shmview_connection *connection, int64_t attachment);
bool connection_holds_any(struct shmview_connection *connection);
/* Does what other threads have left to the owner of the mutex, the caller. Waits for a moment where
 * the socket is full, and not even that where a change must be reported. No wait here asks the
 * caller's function, so that none can be ended without being reported. */
void connection_settle(struct shmview_connection *connection);
/* The ids that a claim names, new; NULL if memory is short. */
int64_t *connection_claims(struct shmview_connection *connection, size_t *ret_n);

/* --- interrupt.c ---------------------------------------------------------- */

/* A wait for the daemon is as many slices as it takes; after each of them wait_go_on() runs the
 * function that the caller has given to shmview_on_wait(). This thread may have the mutex of a
 * connection then. So what that function calls in turn must wait for no connection: it fails
 * where it would ask a daemon, and leaves a Detach to the owner of the mutex. */
#define WAIT_SLICE_NS 40000000

/* Returns 0 to go on, or -SHMVIEW_ERR_INTERRUPTED. */
int wait_go_on(void);
/* Whether this thread is in wait_go_on(). */
bool wait_is_asking(void);
/* Returns 0, or -SHMVIEW_ERR_DEADLOCK if it is. */
int wait_refuse(void);
/* Locks the mutex. Returns 0, or -SHMVIEW_ERR_INTERRUPTED without it. */
int wait_for_mutex(pthread_mutex_t *mutex);
/* Sleeps. Returns what wait_go_on() returns. */
int wait_a_moment(int64_t ns);

/* --- session.c ----------------------------------------------------------- */

/* Starts this user's session daemon and waits until it listens or has failed.
 * Returns 0, -1 with a line about the cause in text, or -SHMVIEW_ERR_INTERRUPTED. */
int session_start(const char *path, char *text, size_t bytes);

/* --- segment.c ----------------------------------------------------------- */

/* Layouts as the daemon told them; strings live in root. */
struct layouts {
    json_t *root;
    struct wire_layout *list;
    size_t n;
};

/* A layout that was declared through this handle. */
struct declared {
    SLIST_ENTRY(declared) link;
    int64_t index; /* as the daemon has said */
    char name[LIMIT_VIEW_NAME_BYTES + 1];
};

/* Epochs that no process has: of a lock that is not there, of one whose slot is
 * not signed yet, and of one whose attachment the daemon has ended. */
#define NO_LOCK_EPOCH  UINT32_MAX
#define UNSIGNED_EPOCH (UINT32_MAX - 1)
#define LOST_EPOCH     (UINT32_MAX - 2)

#define UNTIDY_OWNER_DIED   1u
#define UNTIDY_NOT_REPAIRED 2u

/* The lock, as this process sees it. owner is written by the thread that holds
 * the word for this process; the rest only by that thread. */
struct lock_state {
    _Atomic uint32_t epoch;      /* this process's, an ancestor's, or one of the above */
    uint32_t nested;             /* times that it was taken again */
    _Atomic(const void *) owner; /* the thread's own address, NULL: none */
    uint32_t untidy;             /* UNTIDY_*: the way out is not the usual one */
    uint32_t dead; /* id of who died inside, if that was reported and is not yet over */
};

struct shmview_segment {
    /* what every lock call reads comes first */
    struct lock_state lock;
    struct shmview_control *control; /* NULL: no lock */
    const struct shmview_liveness *live;
    uint32_t *my_readers;       /* the count in my slot */
    const uint32_t *my_life;    /* the generation of my slot, as the daemon has it */
    uint32_t me;                /* my id in the lock word */
    _Atomic int64_t gave_up_ns; /* when one of us last waited in vain, for people */

    _Atomic uint32_t epoch; /* of the process whose attachment this is */
    struct shmview_connection *connection;
    void *data;
    uint64_t size;
    uint64_t id;
    int access;
    int64_t attachment;
    struct layouts layouts;
    SLIST_HEAD(, declared) declared;
    int change_fd;       /* -1: nobody asked for it */
    dev_t change_device; /* of change_fd, as of a connection's socket */
    ino_t change_inode;
    _Atomic(struct looking) looking; /* for changes, until now */
    struct formats formats;          /* of its views; under NOT_FORKED */
    _Atomic uint32_t n_buffers;      /* that are out; the high bit: detach with the last one */
    void (*release)(void *arg);      /* of foreign memory: then connection is NULL */
    void *release_arg;
    char name[LIMIT_NAME_BYTES + 1];
    LIST_ENTRY(shmview_segment) link;
};

/* Said here already, for text that is no UTF-8 cannot even be sent. Returns 0 or an error. */
int segment_check_name(const char *name);

/* The slot's line in the control object. */
struct shmview_slot *segment_slot(const struct shmview_segment *segment, uint32_t slot);

/* Lets a forked child take part under its own slot. Returns 0 or an error. */
int segment_step_in(struct shmview_segment *segment);

/* The daemon has these attachments of the connection, sorted, whose mutex the caller has: handles
 * of others are lost from now on. */
void segments_claimed(const struct shmview_connection *connection, const struct wire_held *held,
                      size_t n);

/* Calls visit for each segment of this process. */
void segment_each(void (*visit)(struct shmview_segment *, void *), void *arg);

/* --- map.c --------------------------------------------------------------- */

/* Whether the descriptors are those that the attachment tells of. Returns 0 or an error. */
int segment_check_attachment(const struct wire_attachment *a, const struct frame_descriptors *fds);
/* Maps them for a segment whose id, size and access are known. flags as of shmview_attach().
 * Returns 0 or an error; what was mapped until then is in the segment. */
int segment_map(struct shmview_segment *segment, const struct wire_attachment *a,
                const struct frame_descriptors *fds, unsigned flags);
void segment_unmap_lock(struct shmview_segment *segment);

/* --- view.c -------------------------------------------------------------- */

/* Keeps the fault of a view, called name if that is not NULL, as the error. Returns it. */
int fail_view(const char *name, const struct view_fault *fault);

/* Finds or makes a format that lives as long as the segment. NULL with *fault. */
const struct format *segment_format(struct shmview_segment *segment, const char *text,
                                    struct view_fault *fault);

/* A public view and its description, one from the other. desc holds in the segment. layout and
 * generation are those of no phase. */
void view_fill(struct shmview_segment *segment, const struct view_desc *desc,
               struct shmview_view *ret);
void view_describe(const struct shmview_view *view, struct view_desc *ret);
/* Checks a description against the segment and fills *ret. Returns 0 or the error, which
 * names the view if name is not NULL. */
int view_finish(struct shmview_segment *segment, const struct view_desc *desc, const char *name,
                struct shmview_view *ret);

/* Finds the layout of that name. Asks the daemon if it is not known here. Returns
 * its index or an error. */
int layout_find(struct shmview_segment *segment, const char *layout);
/* Returns SHMVIEW_ERR_NO_LAYOUT, negative. */
int fail_no_layout(const struct shmview_segment *segment, const char *layout);
/* Copies the name of that layout to ret_name. Returns 0 or an error. */
int layout_name(struct shmview_segment *segment, uint32_t index, char *ret_name, size_t bytes);
/* Like layout_name(), but asks nobody: *ret_name is untouched where the handle does not know it. */
void layout_known_name(struct shmview_segment *segment, uint32_t index, char *ret_name,
                       size_t bytes);
/* Frees what shmview_define() has noted. */
void layouts_forget_declared(struct shmview_segment *segment);

/* --- phase.c ------------------------------------------------------------- */

/* The generation of the phase now; 0 without a lock. */
uint32_t phase_generation(const struct shmview_segment *segment);

/* --- change.c ------------------------------------------------------------ */

/* Closes what a segment holds for changes. */
void change_close(struct shmview_segment *segment);

/* --- thread.c ------------------------------------------------------------ */

/* The segment has this slot from now on. lock is what the lock word was lately. */
void lock_take_slot(struct shmview_segment *segment, uint32_t slot, uint32_t generation,
                    uint32_t lock);

#pragma GCC visibility pop

#endif

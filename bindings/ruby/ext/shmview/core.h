/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - what the files of the extension shmview/core share.
 *
 * Only <shmview/...> of libshmview is used. An object that has a handle of the library has it
 * in a struct of its own which counts who needs it, so that objects may end in any order, also
 * at the end of the process, when Ruby frees all of them without asking who refers to whom.
 *
 * rb_raise() and its like leave a function by longjmp(). So nothing is allocated across a call
 * that may raise unless a Ruby object owns it, or rb_ensure() or rb_protect() is around it. */
#ifndef CORE_H
#define CORE_H

#include <ruby.h>
#include <ruby/encoding.h>
#include <ruby/thread.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <shmview/shmview.h>
#include <shmview/view.h>

#define LIKELY(x)   __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

static inline VALUE truth(bool is_true)
{
    return is_true ? Qtrue : Qfalse;
}

/* rb_check_typeddata() without a call, where the object is what it should be. */
static inline void *data_of(VALUE self, const rb_data_type_t *type)
{
    if (LIKELY(RB_TYPE_P(self, T_DATA) && RTYPEDDATA_P(self) && RTYPEDDATA_TYPE(self) == type))
        return RTYPEDDATA_DATA(self);
    return rb_check_typeddata(self, type);
}

/* A String or Symbol as a text that no other thread changes while the GVL is free. */
static inline VALUE name_of(VALUE value)
{
    return rb_str_new_frozen(rb_String(value));
}

/* Names of keywords. */
extern ID id_change, id_generation, id_layout, id_one, id_phase, id_repaired, id_row_major,
    id_shared, id_start, id_timeout, id_writable;

extern VALUE mShmview, cConnection, cSegment, cView;

/* --- error.c ------------------------------------------------------------- */

/* Raises what belongs to r, a negated SHMVIEW_ERR_*, with the text of the last failed call of
 * this thread. facts: a Hash of what the call was about, or Qnil. */
NORETURN(void raise_error(int r, VALUE facts));
/* Like raise_error(), with the error and the text that call_unlocked() or call_once() got. */
struct told;
NORETURN(void raise_told(const struct told *told, VALUE facts));
/* Like raise_error(), with an error and a text of our own. */
NORETURN(PRINTF_ARGS(void raise_text(int error, const char *format, ...), 2, 3));
NORETURN(PRINTF_ARGS(void raise_text_with(int error, VALUE facts, const char *format, ...), 3, 4));
/* Raises Shmview::Closed. */
NORETURN(void raise_closed(const char *what));
/* An exception, not raised: who died, of a lock that is held now. */
VALUE make_death(VALUE name, const struct shmview_death *death, VALUE phase);
/* {key => value} */
VALUE fact(const char *key, VALUE value);
void Init_error(void);

/* --- wait.c -------------------------------------------------------------- */

/* What libshmview has returned in a thread that may be another one. */
struct told {
    int r;
    char text[512]; /* of an error */
};
/* Fills *told, in the thread in which the call has returned r. */
void told_by(struct told *told, int r);

/* Calls without the GVL; call returns what libshmview has returned, and so does *told. Signals,
 * Thread#raise and Thread#kill end a wait for the daemon if they raise. Returns 0, or the state of
 * an exception that is pending, which the caller hands to rb_jump_tag() when all is in order. A
 * call that has succeeded is never made again. One that waits for the daemon may have succeeded
 * although a state is returned: what it has got is the caller's to give back. Any other was not
 * made then, or has failed. */
int call_unlocked(int (*call)(void *arg), void *arg, struct told *told);

/* For shmview_on_wait(): whether flag, an atomic_bool, is set. */
int is_flag_set(void *flag);

/* Runs what interrupts this thread now. Returns 0, or the state of what was raised. */
int run_interrupts(void);

/* A call that may wait, until deadline at the latest. */
typedef int wait_call(struct shmview_segment *handle, int64_t deadline, void *arg);
struct segment;
/* Makes the call without the GVL; signals, Thread#raise and Thread#kill end it if they raise. *ret
 * is what it returned. Returns 0, or the state of what was raised: then the call has not succeeded.
 * The segment cannot be closed before this returns. */
int wait_unlocked(struct segment *segment, wait_call *call, void *arg, int64_t deadline, int *ret);

/* Seconds, or nil, as a deadline. */
int64_t parse_timeout(VALUE timeout);

/* --- once.c -------------------------------------------------------------- */

/* Like call_unlocked(), for what the daemon must not be asked twice: another thread makes the call,
 * and interrupts that raise nothing do not end the wait. */
int call_once(int (*call)(void *arg), void *arg, struct told *told);

/* --- connection.c -------------------------------------------------------- */

/* A handle and how many need it: the object, segments, buffers that are out. */
struct link {
    atomic_size_t n_users;
    atomic_size_t n_out; /* segments, and calls that run without the GVL now */
    struct shmview_connection *handle;
};
struct link *link_take(struct link *link);
/* Disconnects with the last one. Any thread, with or without the GVL. */
void link_drop(struct link *link);

/* The argument given as connection:, or the process's own where that is nil. */
VALUE connection_value(VALUE argument);
/* Its link; raises Closed where it is closed. */
struct link *connection_use(VALUE connection);
void Init_connection(void);

/* --- segment.c ----------------------------------------------------------- */

struct segment {
    VALUE connection;               /* nil: foreign memory */
    VALUE layouts;                  /* a frozen Hash: layouts declared here, by their views */
    VALUE owner;                    /* of foreign memory: what it belongs to; else nil */
    struct shmview_segment *handle; /* NULL: closed */
    struct link *link;              /* the connection's; NULL: foreign memory */
    atomic_size_t n_calls;          /* that use the handle without the GVL now */
    unsigned forks;                 /* n_forks when n_calls was counted */
    unsigned entered;               /* n_forks when its lock was known to need no daemon */
};
extern const rb_data_type_t segment_type;
extern unsigned n_forks; /* behind this process: a child has none of its parent's other threads */

static inline struct segment *segment_of(VALUE self)
{
    return data_of(self, &segment_type);
}
/* Raises Closed where it is closed. */
static inline struct segment *segment_use(VALUE self)
{
    struct segment *segment = segment_of(self);
    if (UNLIKELY(!segment->handle))
        raise_closed("the segment");
    return segment;
}
/* How many calls of this process use the handle without the GVL. */
static inline size_t calls_of(struct segment *segment)
{
    if (UNLIKELY(segment->forks != n_forks)) {
        segment->forks = n_forks;
        atomic_store(&segment->n_calls, 0);
    }
    return atomic_load(&segment->n_calls);
}
/* Before and after such a call, during which the segment cannot be closed. */
static inline void call_begins(struct segment *segment)
{
    calls_of(segment);
    atomic_fetch_add(&segment->n_calls, 1);
}
static inline void call_ends(struct segment *segment)
{
    atomic_fetch_sub(&segment->n_calls, 1);
}
/* Whether its lock can be touched with the GVL held. A forked child attaches again first, in the
 * call that needs it, and waits for the daemon. */
static inline bool is_entered(const struct segment *segment)
{
    return LIKELY(segment->entered == n_forks);
}
/* call_unlocked(), between call_begins() and call_ends(). The segment is open. */
int segment_call(VALUE segment, int (*call)(void *arg), void *arg, struct told *told);
/* A Segment of foreign memory. The handle is the object's from here on. */
VALUE segment_wrap(struct shmview_segment *handle, VALUE owner);
void Init_segment(void);

/* --- lock.c -------------------------------------------------------------- */

void Init_lock(void);

/* --- held.c -------------------------------------------------------------- */

/* What the calling thread holds through the segment changes by one. */
void held_push(VALUE segment, struct shmview_segment *handle, bool shared);
void held_pop(struct shmview_segment *handle);
/* Before a lock is taken: leaves what a Ruby thread that has ended left held, on whose native
 * thread this one runs now, as by a death. */
void held_check(void);
/* From here on nothing is left: Ruby frees its objects. */
void held_end(void);
void Init_held(void);

/* --- phase.c ------------------------------------------------------------- */

void Init_phase(void);

/* --- segment_view.c ------------------------------------------------------ */

/* A format as libshmview knows it: a String, NUL-terminated. */
VALUE format_text(VALUE format);
/* Numbers of an Array, or one Integer; at most SHMVIEW_MAX_NDIM. Returns how many. */
uint32_t parse_numbers(const char *what, VALUE numbers, int64_t *ret);
void Init_segment_view(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* core.h - what the files of the extension shmview/core share.
 *
 * The extension uses only the public headers of libshmview. Three rules of Ruby shape every file:
 *
 * - rb_raise() and its like leave a function by longjmp(). So memory that must survive a call which
 *   may raise belongs to a Ruby object, or rb_ensure() or rb_protect() surrounds the call.
 * - A call that may wait releases the GVL, the lock under which Ruby code runs, because otherwise
 *   no other Thread could run. In that time other Threads may close a segment or release a view;
 *   counters (n_out, n_calls) make them refuse.
 * - At the end of the process Ruby frees all objects in any order. So an object never reads another
 *   one when it is freed; a handle that several objects need is in a struct that counts them. */
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

/* Like rb_check_typeddata(), but without a function call if the type is right. */
static inline void *data_of(VALUE self, const rb_data_type_t *type)
{
    if (LIKELY(RB_TYPE_P(self, T_DATA) && RTYPEDDATA_P(self) && RTYPEDDATA_TYPE(self) == type))
        return RTYPEDDATA_DATA(self);
    return rb_check_typeddata(self, type);
}

/* Returns a String or Symbol as a frozen String, so that no other thread can change the text while
 * a call without the GVL reads it. */
static inline VALUE name_of(VALUE value)
{
    return rb_str_new_frozen(rb_String(value));
}

/* Names of keyword arguments, interned once by init.c. */
extern ID id_change, id_generation, id_layout, id_one, id_phase, id_repaired, id_row_major,
    id_shared, id_start, id_timeout, id_versioned, id_writable;

extern VALUE mShmview, cConnection, cSegment, cView;

/* --- error.c ------------------------------------------------------------- */

/* Raises the exception of r, a negated SHMVIEW_ERR_*, with the text of the last failed call of this
 * thread. facts is a Hash of the arguments that matter for the error, or Qnil. */
NORETURN(void raise_error(int r, VALUE facts));
/* Like raise_error(), but with the error and the text that call_unlocked() or call_unrepeated()
 * stored: the failed call may have run in another thread. */
struct told;
NORETURN(void raise_told(const struct told *told, VALUE facts));
/* Like raise_error(), but for errors that the extension itself finds. error is not negated. */
NORETURN(PRINTF_ARGS(void raise_text(int error, const char *format, ...), 2, 3));
NORETURN(PRINTF_ARGS(void raise_text_with(int error, VALUE facts, const char *format, ...), 3, 4));
/* Raises Shmview::Closed. what names the object: "the segment". */
NORETURN(void raise_closed(const char *what));
/* Returns an OwnerDied without raising it. name is that of the segment; phase is the name of the
 * phase of the death, or Qnil. */
VALUE make_death(VALUE name, const struct shmview_death *death, VALUE phase);
/* Returns text, which may have bytes that a client wrote, as valid UTF-8. */
VALUE text_of(const char *text);
/* Returns the Hash {key => value}. */
VALUE fact(const char *key, VALUE value);
void Init_error(void);

/* --- wait.c -------------------------------------------------------------- */

/* The result of a call of libshmview. libshmview keeps the text of an error for each thread, so a
 * call that ran in another thread must bring its text along. */
struct told {
    int r;
    char text[512]; /* of the error; "" if r is 0 */
};
/* Fills *told with r and the error text. Must run in the thread in which the call returned r. */
void told_by(struct told *told, int r);

/* The objects whose handles a call uses without the GVL: a Connection, a Segment, a Stream, an
 * Array of these, or nil. They cannot be closed before use_ends(). It lives on the stack of the
 * call. */
struct use {
    VALUE objects;
    unsigned forks; /* n_forks when the objects counted the call */
};
/* Begins the use of objects, which must be open. */
void use_begins(struct use *use, VALUE objects);
void use_ends(struct use *use);
/* Runs the pending interrupts of this thread: signal handlers, Thread#raise, Thread#kill. A handler
 * may fork; then the objects count the call in the child too, where it goes on. Returns 0, or the
 * state of the exception that an interrupt raised, or that of Closed: code of the child may have
 * closed an object before the count. */
int use_interrupts(struct use *use);

/* Calls call(arg) without the GVL. call returns the result of libshmview, which *told gets. objects
 * are those that the call uses, as for use_begins(). A signal handler that raises, Thread#raise and
 * Thread#kill end a wait for the daemon.
 *
 * Returns 0, or the state of a pending exception. The caller must hand the state to rb_jump_tag()
 * once it has released what it owns. A call that has succeeded is never repeated. A call that waits
 * for the daemon may have succeeded although a state is returned; then the caller must release its
 * result. Any other call was not made in that case, or has failed. */
int call_unlocked(VALUE objects, int (*call)(void *arg), void *arg, struct told *told);

/* For shmview_on_wait(): returns whether flag, an atomic_bool, is set. */
int is_flag_set(void *flag);

/* Like use_interrupts(), for a call that uses no object. */
int run_interrupts(void);

/* A call of libshmview that waits until deadline at the latest. */
typedef int wait_call(struct shmview_segment *handle, int64_t deadline, void *arg);
/* Makes the call without the GVL and stores its result in *ret. objects are those that the call
 * uses, as for use_begins(); if they are one Segment, the call gets its handle, and otherwise NULL.
 * A signal handler that raises, Thread#raise and Thread#kill end the wait; after other interrupts
 * the call is made again. Returns 0, or the state of the exception; then the call has not
 * succeeded. */
int wait_unlocked(VALUE objects, wait_call *call, void *arg, int64_t deadline, int *ret);

/* Converts seconds, or nil for no limit, to a deadline. Raises ArgumentError or TypeError. */
int64_t parse_timeout(VALUE timeout);

/* --- once.c -------------------------------------------------------------- */

/* Like call_unlocked(), but for requests that must not be repeated (Create, Define, Remove).
 * Another thread makes the call, and interrupts that raise nothing do not end its wait. */
int call_unrepeated(VALUE objects, int (*call)(void *arg), void *arg, struct told *told);

/* --- connection.c -------------------------------------------------------- */

/* The handle of a connection. The Connection, its Segments and the buffers of its segments that
 * consumers have each count as a user; the last one frees it. Outside of Ruby's memory, because
 * these may end in any order. */
struct link {
    atomic_size_t n_users;
    atomic_size_t n_out;   /* open segments and streams */
    atomic_size_t n_calls; /* calls that use the handle without the GVL now */
    unsigned forks;        /* n_forks when n_calls was counted */
    struct shmview_connection *handle;
};
extern const rb_data_type_t connection_type;
/* Adds a user and returns link. The user owes link_drop(). */
struct link *link_take(struct link *link);
/* Removes a user; the last one disconnects. link may be NULL. Any thread, with or without the
 * GVL. */
void link_drop(struct link *link);

/* Returns the Connection given as connection:, or the one of this process if that is nil. Raises
 * TypeError, or the errors of Shmview.connect. */
VALUE connection_value(VALUE argument);
/* Returns the link of a Connection, borrowed. Raises Closed if the connection is closed. */
struct link *connection_use(VALUE connection);
/* Returns how many calls of this process use the handle without the GVL. */
size_t calls_of_link(struct link *link);
void Init_connection(void);

/* --- segment.c ----------------------------------------------------------- */

/* A Shmview::Segment: an attachment, or foreign memory, which another Ruby object exports and
 * foreign.c wraps. The handle is used with the GVL held, or between use_begins() and
 * use_ends(). */
struct segment {
    VALUE connection;               /* nil: foreign memory */
    VALUE layouts;                  /* nil, or a frozen Hash: name of a view => layouts that have
                                     * it, of those that were declared through this object */
    VALUE owner;                    /* of foreign memory: the object that exports it; else nil */
    VALUE name;                     /* a frozen String, which a closed segment keeps; "": foreign
                                     * memory */
    struct shmview_segment *handle; /* NULL: closed */
    struct shmview_segment *frozen; /* the handle while freeze_bytes has taken it away, or NULL */
    struct link *link;              /* of the connection; NULL: foreign memory */
    struct got *got;                /* the foreign memory that it wraps; NULL: released */
    atomic_size_t n_calls;          /* calls that use the handle without the GVL now */
    atomic_size_t n_held;           /* how often Threads hold its lock; never too few */
    unsigned forks;                 /* n_forks when these two were counted */
    unsigned entered;               /* n_forks when its lock was known to need no daemon */
};
extern const rb_data_type_t segment_type;
/* How often this process and its ancestors forked since the extension was loaded. A number that was
 * stored before a fork differs, and so marks state of the parent: its other threads do not exist in
 * the child. */
extern unsigned n_forks;

static inline struct segment *segment_of(VALUE self)
{
    return data_of(self, &segment_type);
}
/* Returns the segment if it is open. Raises Closed. */
static inline struct segment *segment_use(VALUE self)
{
    struct segment *segment = segment_of(self);
    if (UNLIKELY(!segment->handle))
        raise_closed("the segment");
    return segment;
}
/* Makes the counts begin at 0 in a forked child, because the calls and the Threads of the parent go
 * on only there. */
static inline void count_anew(struct segment *segment)
{
    if (UNLIKELY(segment->forks != n_forks)) {
        segment->forks = n_forks;
        atomic_store(&segment->n_calls, 0);
        atomic_store(&segment->n_held, 0);
    }
}
/* Returns how many calls of this process use the handle without the GVL. */
static inline size_t calls_of(struct segment *segment)
{
    count_anew(segment);
    return atomic_load(&segment->n_calls);
}
/* Returns whether a Thread of this process holds the lock. True for too long if memory was too
 * short to record that the Thread took it. */
static inline bool may_be_held(struct segment *segment)
{
    count_anew(segment);
    return atomic_load(&segment->n_held) > 0;
}
/* Returns whether the lock may be used with the GVL held. In a forked child it may not at first:
 * the first call that uses the lock attaches again, and waits for the daemon. */
static inline bool is_entered(const struct segment *segment)
{
    return LIKELY(segment->entered == n_forks);
}
/* Returns the number of value among three names, which NULL ends, from 1 on, as the enums of
 * libshmview count. what names the argument in errors. Raises ArgumentError, TypeError. */
unsigned choose(const char *what, VALUE value, const char *const *names);
/* Returns the enum shmview_backing of a Symbol or String; 0 for nil. Raises ArgumentError. */
uint32_t backing_called(VALUE value);
/* Returns a Segment of foreign memory, which belongs to owner. The Segment owns the handle, which
 * may be NULL and set later. */
VALUE segment_wrap(struct shmview_segment *handle, VALUE owner);
void Init_segment(void);

/* --- got.c --------------------------------------------------------------- */

struct got;
/* Makes the handle of the segment, which shmview_wrap() returned, the owner of got. */
void got_belongs(struct got *got, struct segment *segment);
/* Call before the struct segment is freed: a consumer may still have the memory of its got. */
void got_forget(struct segment *segment);

/* --- freeze.c ------------------------------------------------------------ */

void Init_freeze(void);

/* --- lock.c -------------------------------------------------------------- */

void Init_lock(void);

/* --- held.c -------------------------------------------------------------- */

/* Records that the calling thread took the lock of the segment once, or released it once. */
void held_push(VALUE segment, struct shmview_segment *handle, bool shared);
void held_pop(struct segment *segment, struct shmview_segment *handle);
/* Call before taking a lock. Keeps the Thread on its native thread. If an ended Thread left locks
 * held on this native thread, abandons them as if their holder had died. */
void held_begin(void);
/* Call before Ruby frees its objects. From then on native threads that end abandon nothing, because
 * the segments may be gone. */
void held_end(void);
void Init_held(void);

/* --- phase.c ------------------------------------------------------------- */

void Init_phase(void);

/* --- placement.c --------------------------------------------------------- */

struct shmview_placement;
/* Converts huge: and numa: of create. Raises ArgumentError. */
struct shmview_placement placement_read(VALUE huge, VALUE numa);
void Init_placement(void);

/* --- access.c ------------------------------------------------------------ */

void Init_access(void);

/* --- describe.c ---------------------------------------------------------- */

void Init_describe(void);

/* --- reading.c ----------------------------------------------------------- */

void Init_reading(void);

/* --- events.c ------------------------------------------------------------ */

void Init_events(void);

/* --- stats.c ------------------------------------------------------------- */

void Init_stats(void);

/* --- stream.c, take.c, frame.c, stream_status.c -------------------------- */

void Init_stream(void);
void Init_take(void);
void Init_frame(void);
void Init_stream_status(void);

/* --- segment_view.c ------------------------------------------------------ */

/* Returns a format as a NUL-terminated String in libshmview's spelling. format is a String, a
 * Symbol, or a class: Integer, Float or Complex. */
VALUE format_text(VALUE format);
/* Converts an Array of numbers, or one Integer, to at most SHMVIEW_MAX_NDIM numbers in ret. what
 * names the argument in errors. Returns how many there are. Raises ArgumentError. */
uint32_t parse_numbers(const char *what, VALUE numbers, int64_t *ret);
/* Descriptions of views, with the objects that keep what they point to. The struct is on the stack
 * of the caller, so that the collector sees these objects. */
struct view_specs {
    struct shmview_view_spec *specs;
    size_t n;
    VALUE texts, room, specs_room;
};
/* Converts [[name, format, offset, shape, strides, suboffsets, readonly], ...], as layouts.rb makes
 * them. The caller owes view_specs_end(), unless an exception leaves it. Raises ArgumentError,
 * TypeError, RangeError. */
void view_specs_begin(VALUE views, struct view_specs *ret);
void view_specs_end(struct view_specs *specs);
void Init_segment_view(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The locks that a Ruby Thread holds.
 *
 * To libshmview a lock belongs to the native thread. A Thread that takes one therefore stays on its
 * native thread. Ruby gives the native thread of a Thread that has ended to a later Thread, which
 * would then own a lock that it never took. So this file records what each native thread holds, and
 * abandons it as if the holder had died:
 *
 *   thread_ends()          when the Thread ends, if Ruby reports it
 *   held_begin()           when another Thread begins to lock on the same native thread
 *   native_thread_ends()   when the native thread ends
 *
 * A segment whose lock is held is not collected, because its Thread may still unlock it. */
#include "core.h"

#include <pthread.h>
#include <ruby/debug.h>
#include <stdlib.h>

struct hold {
    VALUE segment;
    struct segment *seg; /* the struct of segment */
    struct shmview_segment *handle;
    bool shared;
};

/* What one native thread holds. Only that thread changes it, with the GVL held or, at its end,
 * under all_lock; the links change under all_lock. The collector reads it. */
struct held {
    VALUE thread;       /* the Thread that took the locks, or the last one; 0: none yet */
    struct hold *holds; /* one for each lock call, in order; malloc(), because it outlives Ruby */
    size_t n, room;
    struct held *next, **prev; /* in the list of all native threads; under all_lock */
};

/* The model initial-exec finds it without a function call, also in a library that is loaded late.
 * It is small enough for the room that the C library reserves for such variables. */
static _Thread_local struct held mine __attribute__((tls_model("initial-exec")));
static struct held *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_end;
unsigned n_forks;
static atomic_bool ending; /* the segments may be gone by now */

/* Releases all locks. A shared one is simply unlocked, because a reader leaves no bytes half
 * written; the next owner of an exclusive one gets SHMVIEW_OWNER_DIED. */
static void leave(struct held *held)
{
    while (held->n) {
        struct hold *hold = &held->holds[--held->n];
        if (hold->shared)
            shmview_unlock(hold->handle);
        else
            shmview_unlock_not_repaired(hold->handle);
        atomic_fetch_sub(&hold->seg->n_held, 1);
    }
}

static void link_in(void)
{
    pthread_mutex_lock(&all_lock);
    mine.next = all;
    mine.prev = &all;
    if (all)
        all->prev = &mine.next;
    all = &mine;
    pthread_mutex_unlock(&all_lock);
}

/* If this fails, the lock is not recorded. Then only the end of the native thread abandons it, in
 * libshmview. */
static bool make_room(void)
{
    size_t room = mine.room ? mine.room * 2 : 4;
    struct hold *holds = realloc(mine.holds, room * sizeof *holds);
    if (!holds)
        return false;
    if (!mine.room) {
        link_in();
        pthread_setspecific(at_end, &mine);
    }
    mine.holds = holds;
    mine.room = room;
    return true;
}

/* Since Ruby 3.3 Threads of other Ractors than the main one share native threads, and may continue
 * on another one after each wait; with $RUBY_MN_THREADS those of the main one do too. Ruby counts
 * the calls that end this for a Thread, and does not count down. So there is one for each Thread,
 * which is known from mine.thread: that Thread stays here, and is not collected. */
static void stay(void)
{
#ifdef HAVE_RB_THREAD_LOCK_NATIVE_THREAD
    VALUE thread = rb_thread_current();
    if (LIKELY(mine.thread == thread))
        return;
    rb_thread_lock_native_thread();
    if (mine.room || make_room())
        mine.thread = thread;
#endif
}

void held_begin(void)
{
    if (UNLIKELY(mine.n) && mine.thread != rb_thread_current())
        leave(&mine);
    stay();
}

void held_push(VALUE self, struct shmview_segment *handle, bool shared)
{
    struct segment *segment = segment_of(self);
    count_anew(segment);
    atomic_fetch_add(&segment->n_held, 1);
    if (UNLIKELY(mine.n == mine.room) && !make_room())
        return;
    if (mine.n == 0)
        mine.thread = rb_thread_current();
    mine.holds[mine.n++] = (struct hold){self, segment, handle, shared};
}

void held_pop(struct segment *segment, struct shmview_segment *handle)
{
    size_t i = mine.n;
    atomic_fetch_sub(&segment->n_held, 1);
    while (i-- > 0)
        if (LIKELY(mine.holds[i].handle == handle)) {
            for (mine.n--; i < mine.n; i++)
                mine.holds[i] = mine.holds[i + 1];
            return;
        }
}

/* --- The ends ------------------------------------------------------------ */

static void thread_ends(rb_event_flag_t event, VALUE data, VALUE self, ID id, VALUE class)
{
    (void)event, (void)data, (void)self, (void)id, (void)class;
    leave(&mine);
}

static void native_thread_ends(void *arg)
{
    struct held *held = arg;
    pthread_mutex_lock(&all_lock); /* so that the collector keeps the segments until then */
    if (!atomic_load(&ending))
        leave(held);
    *held->prev = held->next;
    if (held->next)
        held->next->prev = held->prev;
    pthread_mutex_unlock(&all_lock);
    free(held->holds);
    held->holds = NULL;
    held->room = 0;
}

void held_end(void)
{
    atomic_store(&ending, true);
}

/* A forked child holds no lock of its parent and has one thread. The struct held of the other
 * threads are thread-local memory that new threads of the child may reuse, so none of them may stay
 * in the list. */
static void child_begins(void)
{
    n_forks++;
    pthread_mutex_init(&all_lock, NULL);
    all = NULL;
    mine.n = 0;
    if (mine.room)
        link_in();
}

/* Keeps the segments, and the Threads, from being collected: otherwise a new Thread could get the
 * address of a collected one, and held_begin() would take it for the owner. */
static void mark_all(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&all_lock);
    for (struct held *held = all; held; held = held->next) {
        rb_gc_mark(held->thread);
        for (size_t i = 0; i < held->n; i++)
            rb_gc_mark(held->holds[i].segment);
    }
    pthread_mutex_unlock(&all_lock);
}

static const rb_data_type_t root_type = {
    .wrap_struct_name = "Shmview/held",
    .function = {.dmark = mark_all},
    .flags = RUBY_TYPED_FREE_IMMEDIATELY,
};

void Init_held(void)
{
    if (pthread_key_create(&at_end, native_thread_ends) || pthread_atfork(NULL, NULL, child_begins))
        rb_memerror();
    rb_gc_register_mark_object(TypedData_Wrap_Struct(0, &root_type, &mine));
    rb_add_event_hook(thread_ends, RUBY_EVENT_THREAD_END, Qnil);
}

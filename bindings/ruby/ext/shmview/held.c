/* SPDX-License-Identifier: Apache-2.0 */
/* What a Ruby thread holds. To libshmview a lock belongs to the native thread, and Ruby gives
 * the native thread of a Thread that has ended to the next one. So what a Thread leaves held is
 * left here, as by a death: when the Thread ends, when another one begins to lock on the same
 * native thread, or when that ends. Until then the segments are kept from the garbage
 * collector. */
#include "core.h"

#include <pthread.h>
#include <ruby/debug.h>
#include <stdlib.h>

struct hold {
    VALUE segment;
    struct shmview_segment *handle;
    bool shared;
};

struct held {
    VALUE thread; /* whose they are, if there are any */
    struct hold *holds;
    size_t n, room;
    struct held *next, **prev; /* of all native threads */
};

/* Found without a call, although in a library that is loaded late: it is small enough for the room
 * that the C library keeps for such. */
static _Thread_local struct held mine __attribute__((tls_model("initial-exec")));
static struct held *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_end;
unsigned n_forks;
static atomic_bool ending; /* the segments may be gone by now */

static void leave(struct held *held)
{
    while (held->n) {
        struct hold *hold = &held->holds[--held->n];
        if (hold->shared)
            shmview_unlock(hold->handle);
        else
            shmview_unlock_not_repaired(hold->handle);
    }
}

void held_check(void)
{
    if (UNLIKELY(mine.n) && mine.thread != rb_thread_current())
        leave(&mine);
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

/* Where there is no memory for it, a lock is left only by the native thread's end. */
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

void held_push(VALUE self, struct shmview_segment *handle, bool shared)
{
    if (UNLIKELY(mine.n == mine.room) && !make_room())
        return;
    if (mine.n == 0)
        mine.thread = rb_thread_current();
    mine.holds[mine.n++] = (struct hold){self, handle, shared};
}

void held_pop(struct shmview_segment *handle)
{
    size_t i = mine.n;
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
    pthread_mutex_lock(&all_lock); /* the collector sees a segment until its lock is left */
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

/* A child holds nothing of its parent's, and has one thread: the memory of the others is the next
 * ones'. */
static void child_begins(void)
{
    n_forks++;
    pthread_mutex_init(&all_lock, NULL);
    all = NULL;
    mine.n = 0;
    if (mine.room)
        link_in();
}

static void mark_all(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&all_lock);
    for (struct held *held = all; held; held = held->next) {
        if (held->n)
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

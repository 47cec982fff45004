/* SPDX-License-Identifier: Apache-2.0 */
/* The MemoryViews that this extension obtains, and the tensors that it takes over.
 *
 * Each must be released exactly once, while its exporter still exists. libshmview does so when the
 * last buffer of the segment that wraps it is released; got_end() does so at the end of the
 * process. */
#include "memory_view.h"

#include <pthread.h>
#include <stdlib.h>

/* Ruby exports it for extensions, but only its own headers declare it. */
int ruby_thread_has_gvl_p(void);

/* --- Obtaining and releasing --------------------------------------------- */

/* All MemoryViews that are not released yet. At the end of the process Ruby frees all objects in
 * any order, so the exporter of one that is released later may be gone. */
static struct got *all;
static pthread_mutex_t all_lock = PTHREAD_MUTEX_INITIALIZER; /* Ractors have a GVL each */
static atomic_bool has_ended; /* got_end() has run: release nothing any longer */
/* Those that a thread gave back which could not release them. A thread pushes without a mutex, and
 * one that has the GVL takes the whole list. */
static _Atomic(struct got *) given_back;

static void link_in(struct got *got)
{
    pthread_mutex_lock(&all_lock);
    got->next = all;
    got->prev = &all;
    if (all)
        all->prev = &got->next;
    all = got;
    pthread_mutex_unlock(&all_lock);
}

static void link_out(struct got *got)
{
    pthread_mutex_lock(&all_lock);
    *got->prev = got->next;
    if (got->next)
        got->next->prev = got->prev;
    got->next = NULL;
    got->prev = &got->next;
    if (got->segment)
        got->segment->got = NULL;
    got->segment = NULL;
    pthread_mutex_unlock(&all_lock);
}

void got_belongs(struct got *got, struct segment *segment)
{
    pthread_mutex_lock(&all_lock);
    got->is_wrapped = true;
    got->segment = segment;
    segment->got = got;
    pthread_mutex_unlock(&all_lock);
}

void got_forget(struct segment *segment)
{
    pthread_mutex_lock(&all_lock);
    if (segment->got)
        segment->got->segment = NULL;
    segment->got = NULL;
    pthread_mutex_unlock(&all_lock);
}

/* Releases those that were left. */
static void free_given_back(void)
{
    struct got *got = atomic_exchange(&given_back, NULL);
    while (got) {
        struct got *next = got->next_back;
        got_free(got);
        got = next;
    }
}

/* rb_memory_view_available_p() of Ruby 3.1 walks past the end of the list of ancestors if the class
 * does not descend from Object. */
bool got_is_available(VALUE object)
{
    return !RB_SPECIAL_CONST_P(object) && RTEST(rb_obj_is_kind_of(object, rb_cObject)) &&
           rb_memory_view_available_p(object);
}

struct got *got_new(void)
{
    if (UNLIKELY(atomic_load(&given_back)))
        free_given_back();
    struct got *got = calloc(1, sizeof *got);
    if (!got)
        rb_memerror();
    got->view.obj = Qnil;
    link_in(got);
    return got;
}

struct got *got_get(VALUE object, int flags)
{
    if (!got_is_available(object))
        return NULL;
    struct got *got = got_new();
    if (rb_memory_view_get(object, &got->view, flags))
        return got;
    got->view.obj = Qnil;
    got_free(got);
    return NULL;
}

void got_release(struct got *got)
{
    if (atomic_load(&has_ended))
        return;
    shmview_detach_later(got->tensor);
    got->tensor = NULL;
    if (NIL_P(got->view.obj))
        return;
    if (got->view._memory_view_entry) {
        rb_memory_view_release(&got->view);
    } else { /* made by rb_memory_view_init_as_byte_array(): has no exporter */
        xfree((void *)(uintptr_t)got->view.item_desc.components);
        got->view.item_desc.components = NULL;
    }
    got->view.obj = Qnil;
}

void got_free(struct got *got)
{
    got_release(got);
    link_out(got);
    free(got);
}

static void *free_with_gvl(void *got)
{
    got_free(got);
    return NULL;
}

static void leave_for_later(struct got *got)
{
    got->next_back = atomic_load(&given_back);
    while (!atomic_compare_exchange_weak(&given_back, &got->next_back, got))
        ;
}

/* Releasing calls the class of the exporter and frees memory of Ruby, which needs the GVL, outside
 * of the collector. A thread that Ruby does not know cannot get the GVL. */
void got_give_back(void *arg)
{
    struct got *got = arg;
    if (atomic_load(&has_ended))
        got_free(got);
    else if (ruby_thread_has_gvl_p() && !rb_during_gc())
        got_free(got);
    else if (!ruby_thread_has_gvl_p() && ruby_native_thread_p())
        rb_thread_call_with_gvl(free_with_gvl, got);
    else
        leave_for_later(got);
}

void got_end(void)
{
    free_given_back();
    while (all) {
        struct got *got = all;
        struct segment *segment = got->segment;
        link_out(got);
        if (segment) { /* releases the MemoryView after the last buffer of a consumer */
            struct shmview_segment *handle = segment->handle;
            segment->handle = NULL;
            shmview_detach_later(handle);
        } else if (!got->is_wrapped) { /* otherwise consumers have the memory still */
            got_release(got);
        }
    }
    atomic_store(&has_ended, true);
}

/* --- Its shape ----------------------------------------------------------- */

ssize_t got_length(const rb_memory_view_t *view, ssize_t d)
{
    if (view->shape)
        return view->shape[d];
    return view->item_size > 0 ? view->byte_size / view->item_size : 0;
}

void got_strides(const rb_memory_view_t *view, ssize_t *ret)
{
    ssize_t step = view->item_size;
    for (ssize_t d = view->ndim; d-- > 0;) {
        ret[d] = view->strides ? view->strides[d] : step;
        step *= got_length(view, d);
    }
}

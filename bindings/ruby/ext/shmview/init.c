/* SPDX-License-Identifier: Apache-2.0 */
/* The beginning and the end of the extension shmview/core.
 *
 * lib/shmview.rb loads errors.rb before it, because the extension raises those classes. The other
 * files of the library come after it, because they extend the classes that it defines. */
#include "memory_view.h"

#include <ruby/version.h>

VALUE mShmview;
ID id_change, id_generation, id_layout, id_one, id_phase, id_repaired, id_row_major, id_shared,
    id_start, id_timeout, id_versioned, id_writable;

/* Core.version: returns the version of the libshmview that is loaded. */
static VALUE core_version(VALUE module)
{
    (void)module;
    return rb_obj_freeze(rb_utf8_str_new_cstr(shmview_version()));
}

/* Runs at the end of the process: after the at_exit blocks, because these may still use shmview,
 * and before Ruby frees all objects. Ruby runs the remaining finalizers between the two. */
static VALUE process_ends(RB_BLOCK_CALL_FUNC_ARGLIST(id, data))
{
    (void)id, (void)data, (void)argc, (void)argv, (void)blockarg;
    held_end();
    got_end();
    return Qnil;
}

/* Makes an object that is never collected, so that its finalizer runs at the end of the process. */
static void watch_the_end(void)
{
    VALUE last = rb_obj_alloc(rb_cObject);
    rb_gc_register_mark_object(last);
    rb_define_finalizer(last, rb_proc_new(process_ends, Qnil));
}

RUBY_FUNC_EXPORTED void Init_core(void);
void Init_core(void)
{
    /* Otherwise only the main Ractor can call the methods. Ruby 3.3 moves Threads of other Ractors
     * between native threads and has no means to stop that: see held.c. */
#if RUBY_API_VERSION_CODE < 30300 || defined(HAVE_RB_THREAD_LOCK_NATIVE_THREAD)
    rb_ext_ractor_safe(true);
#endif
    id_change = rb_intern("change");
    id_generation = rb_intern("generation");
    id_layout = rb_intern("layout");
    id_one = rb_intern("one");
    id_phase = rb_intern("phase");
    id_repaired = rb_intern("repaired");
    id_row_major = rb_intern("row_major");
    id_shared = rb_intern("shared");
    id_start = rb_intern("start");
    id_timeout = rb_intern("timeout");
    id_versioned = rb_intern("versioned");
    id_writable = rb_intern("writable");
    mShmview = rb_define_module("Shmview");
    Init_error();
    Init_connection();
    Init_segment();
    Init_held();
    Init_lock();
    Init_phase();
    Init_placement();
    Init_access();
    Init_freeze();
    Init_describe();
    Init_stats();
    Init_reading();
    Init_events();
    Init_view();
    Init_segment_view();
    Init_index();
    Init_assign();
    Init_shape();
    Init_memory_view();
    Init_foreign();
    Init_dlpack();
    Init_consumer();
    Init_io_buffer();
    Init_stream();
    Init_take();
    Init_frame();
    Init_stream_status();
    watch_the_end();
    rb_define_module_function(rb_path2class("Shmview::Core"), "version", core_version, 0);
}

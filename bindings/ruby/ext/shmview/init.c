/* SPDX-License-Identifier: Apache-2.0 */
/* The extension behind shmview: lib/shmview.rb loads what it builds upon first. */
#include "memory_view.h"

VALUE mShmview;
ID id_change, id_generation, id_layout, id_one, id_phase, id_repaired, id_row_major, id_shared,
    id_start, id_timeout, id_writable;

/* Core.version */
static VALUE core_version(VALUE module)
{
    (void)module;
    return rb_obj_freeze(rb_utf8_str_new_cstr(shmview_version()));
}

/* Called behind every at_exit block, of which there may be some that use shmview, and before all
 * objects are freed: that is when Ruby runs the finalizers that are left. */
static VALUE process_ends(RB_BLOCK_CALL_FUNC_ARGLIST(id, data))
{
    (void)id, (void)data, (void)argc, (void)argv, (void)blockarg;
    held_end();
    got_end();
    return Qnil;
}

static void watch_the_end(void)
{
    VALUE last = rb_obj_alloc(rb_cObject);
    rb_gc_register_mark_object(last);
    rb_define_finalizer(last, rb_proc_new(process_ends, Qnil));
}

RUBY_FUNC_EXPORTED void Init_core(void);
void Init_core(void)
{
    rb_ext_ractor_safe(true);
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
    id_writable = rb_intern("writable");
    mShmview = rb_define_module("Shmview");
    Init_error();
    Init_connection();
    Init_segment();
    Init_held();
    Init_lock();
    Init_phase();
    Init_view();
    Init_segment_view();
    Init_index();
    Init_assign();
    Init_shape();
    Init_memory_view();
    Init_foreign();
    Init_consumer();
    Init_io_buffer();
    watch_the_end();
    rb_define_module_function(rb_path2class("Shmview::Core"), "version", core_version, 0);
}

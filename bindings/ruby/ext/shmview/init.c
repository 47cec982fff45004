/* SPDX-License-Identifier: Apache-2.0 */
/* The extension behind shmview: lib/shmview.rb loads what it builds upon first. */
#include "view.h"

VALUE mShmview;

/* Core.version */
static VALUE core_version(VALUE module)
{
    (void)module;
    return rb_obj_freeze(rb_utf8_str_new_cstr(shmview_version()));
}

RUBY_FUNC_EXPORTED void Init_core(void);
void Init_core(void)
{
    rb_ext_ractor_safe(true);
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
    rb_define_module_function(rb_path2class("Shmview::Core"), "version", core_version, 0);
}

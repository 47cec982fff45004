/* SPDX-License-Identifier: Apache-2.0 */
/* Placement of a segment's memory. Threads, options and docstrings are in lib/shmview. */
#include "core.h"

#include <shmview/placement.h>

struct populating {
    struct shmview_segment *handle;
    uint64_t offset, bytes;
};

static int populate(void *arg)
{
    const struct populating *p = arg;
    return shmview_populate(p->handle, p->offset, p->bytes);
}

/* :nodoc: _populate(offset, bytes): shmview_populate() without the GVL. */
static VALUE segment_populate(VALUE self, VALUE offset, VALUE bytes)
{
    struct populating p = {.offset = NUM2ULL(offset), .bytes = NUM2ULL(bytes)};
    struct told told;
    p.handle = segment_use(self)->handle;
    int state = segment_call(self, populate, &p, &told);
    if (state)
        rb_jump_tag(state);
    if (told.r)
        raise_told(&told, Qnil);
    return Qnil;
}

void Init_placement(void)
{
    rb_define_private_method(cSegment, "_populate", segment_populate, 2);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Freezing a segment, after which nobody can change its bytes. Ruby's own freeze is about the
 * object, and stays what it is. */
#include "core.h"

#include <shmview/freeze.h>

struct freezing {
    struct shmview_segment *handle;
    unsigned flags;
};

static int freeze(void *arg)
{
    const struct freezing *f = arg;
    return shmview_freeze(f->handle, f->flags);
}

/* _freeze_bytes(future): returns nil. While the library freezes all writing, the segment has no
 * handle for other threads: one of them could write in the meantime. Only a thread that holds the
 * lock still finds the handle, to give the lock back. */
static VALUE segment_freeze_bytes(VALUE self, VALUE future)
{
    struct segment *segment = segment_use(self);
    struct freezing f = {segment->handle, RTEST(future) ? SHMVIEW_FREEZE_FUTURE : 0};
    struct told told;
    int state;
    size_t n = calls_of(segment);
    if (f.flags) {
        state = call_unlocked(self, freeze, &f, &told);
    } else {
        rb_check_frozen(self);
        if (n)
            raise_text(SHMVIEW_ERR_BUSY, "%zu threads are in calls of '%s'", n,
                       shmview_name(segment->handle));
        segment->frozen = f.handle;
        segment->handle = NULL;
        state = call_unlocked(Qnil, freeze, &f, &told);
        segment->handle = f.handle;
        segment->frozen = NULL;
    }
    if (state)
        rb_jump_tag(state);
    if (told.r)
        raise_told(&told, fact("name", segment->name));
    return Qnil;
}

/*
 * Returns whether nobody can change the bytes any longer, by the seals that the memory had when
 * this process last attached or froze the segment. Once true, it stays true. Raises Closed.
 */
static VALUE segment_bytes_frozen(VALUE self)
{
    return shmview_is_frozen(segment_use(self)->handle) ? Qtrue : Qfalse;
}

void Init_freeze(void)
{
    rb_define_method(cSegment, "bytes_frozen?", segment_bytes_frozen, 0);
    rb_define_private_method(cSegment, "_freeze_bytes", segment_freeze_bytes, 1);
}

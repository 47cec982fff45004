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
    int state = call_unlocked(self, populate, &p, &told);
    if (state)
        rb_jump_tag(state);
    if (told.r)
        raise_told(&told, Qnil);
    return Qnil;
}

struct shmview_placement placement_read(VALUE huge, VALUE numa)
{
    struct shmview_placement p = {.struct_bytes = sizeof p};
    if (huge == ID2SYM(rb_intern("required")))
        p.huge = SHMVIEW_HUGE_REQUIRED;
    else if (huge == Qtrue)
        p.huge = SHMVIEW_HUGE_WANTED;
    else if (RTEST(huge))
        rb_raise(rb_eArgError, "huge: false, true or :required, not %+" PRIsVALUE, huge);
    if (RB_INTEGER_TYPE_P(numa)) {
        p.numa = SHMVIEW_NUMA_NODE;
        p.node = NUM2UINT(numa);
    } else if (numa == ID2SYM(rb_intern("local"))) {
        p.numa = SHMVIEW_NUMA_LOCAL;
    } else if (numa == ID2SYM(rb_intern("interleaved"))) {
        p.numa = SHMVIEW_NUMA_INTERLEAVED;
    } else if (!NIL_P(numa)) {
        rb_raise(rb_eArgError,
                 "numa: :local, :interleaved or the number of a node, not %+" PRIsVALUE, numa);
    }
    return p;
}

static VALUE name_in(const char *const *names, uint32_t n, uint32_t i)
{
    return i > 0 && i <= n ? ID2SYM(rb_intern(names[i - 1])) : Qnil;
}

static void put(VALUE hash, const char *key, VALUE value)
{
    rb_hash_aset(hash, ID2SYM(rb_intern(key)), value);
}

/*
 * Returns what the segment got when it was created, a Hash: huge, huge_by (:hugetlb, :thp),
 * huge_missing (:small, :disabled, :short, :unsupported), huge_bytes, numa, and the Array nodes.
 * Names are nil where its creator wanted nothing. Does not block. Raises Closed.
 */
static VALUE segment_placement(VALUE self)
{
    static const char *const huge[] = {"wanted", "required"}, *const by[] = {"hugetlb", "thp"};
    static const char *const missing[] = {"small", "disabled", "short", "unsupported"};
    static const char *const numa[] = {"local", "interleaved", "node"};
    struct shmview_placed p;
    VALUE hash = rb_hash_new(), nodes = rb_ary_new();
    shmview_placement_get(segment_use(self)->handle, &p);
    for (unsigned i = 0; i < 63; i++)
        if (p.nodes >> i & 1)
            rb_ary_push(nodes, UINT2NUM(i));
    put(hash, "huge", name_in(huge, 2, p.huge));
    put(hash, "huge_by", name_in(by, 2, p.huge_by));
    put(hash, "huge_missing", name_in(missing, 4, p.huge_missing));
    put(hash, "huge_bytes", ULL2NUM(p.huge_bytes));
    put(hash, "numa", name_in(numa, 3, p.numa));
    put(hash, "nodes", nodes);
    return hash;
}

void Init_placement(void)
{
    rb_define_method(cSegment, "placement", segment_placement, 0);
    rb_define_private_method(cSegment, "_populate", segment_populate, 2);
}

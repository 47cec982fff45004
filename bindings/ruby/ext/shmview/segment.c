/* SPDX-License-Identifier: Apache-2.0 */
/* Shmview::Segment: opening, closing, and its attributes.
 *
 * A Segment owns one handle of libshmview. Views refer to the Segment but do not keep it open: Ruby
 * collects objects at any time, so a close that waited for all views would fail at random. A view
 * of a closed segment raises Closed instead. Consumers of memory (MemoryView, IO::Buffer) have real
 * pointers; libshmview counts these and refuses to detach.
 *
 * Options are converted here; their defaults and layouts are in lib/shmview/open.rb. */
#include "access.h"

#include <stdio.h>
#include <string.h>

#include <shmview/many.h>
#include <shmview/placement.h>

VALUE cSegment;

/* --- The object ---------------------------------------------------------- */

static void segment_mark(void *data)
{
    struct segment *self = data;
    rb_gc_mark_movable(self->connection);
    rb_gc_mark_movable(self->layouts);
    rb_gc_mark_movable(self->owner);
    rb_gc_mark_movable(self->name);
}

static void segment_compact(void *data)
{
    struct segment *self = data;
    self->connection = rb_gc_location(self->connection);
    self->layouts = rb_gc_location(self->layouts);
    self->owner = rb_gc_location(self->owner);
    self->name = rb_gc_location(self->name);
}

/* Consumers may still have buffers of the segment: each keeps the mapping alive by itself. */
static void segment_free(void *data)
{
    struct segment *self = data;
    got_forget(self);
    if (self->handle) {
        shmview_detach_later(self->handle);
        if (self->link)
            atomic_fetch_sub(&self->link->n_out, 1);
    }
    link_drop(self->link);
    xfree(self);
}

static size_t segment_size(const void *data)
{
    (void)data;
    return sizeof(struct segment);
}

/* Without RUBY_TYPED_FREE_IMMEDIATELY, because freeing foreign memory calls the class that exported
 * it. Code of another class must not run inside the collector. */
const rb_data_type_t segment_type = {
    .wrap_struct_name = "Shmview::Segment",
    .function =
        {
            .dmark = segment_mark,
            .dfree = segment_free,
            .dsize = segment_size,
            .dcompact = segment_compact,
        },
    .flags = RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_FROZEN_SHAREABLE,
};

static VALUE segment_new(const char *name)
{
    struct segment *segment;
    VALUE self = TypedData_Make_Struct(cSegment, struct segment, &segment_type, segment);
    segment->connection = segment->layouts = segment->owner = segment->name = Qnil;
    RB_OBJ_WRITE(self, &segment->name, rb_obj_freeze(rb_utf8_str_new_cstr(name)));
    segment->forks = n_forks;
    segment->entered = n_forks;
    return self;
}

VALUE segment_wrap(struct shmview_segment *handle, VALUE owner)
{
    VALUE self = segment_new("");
    struct segment *segment = segment_of(self);
    segment->handle = handle;
    RB_OBJ_WRITE(self, &segment->owner, owner);
    return self;
}

/* --- Opening ------------------------------------------------------------- */

unsigned choose(const char *what, VALUE value, const char *const *names)
{
    VALUE name = rb_String(value);
    for (unsigned i = 0; names[i]; i++)
        if (strcmp(StringValueCStr(name), names[i]) == 0)
            return i + 1;
    rb_raise(rb_eArgError, "%s: :%s, :%s or :%s, not %+" PRIsVALUE, what, names[0], names[1],
             names[2], value);
}

uint32_t backing_called(VALUE value)
{
    if (NIL_P(value))
        return 0;
    VALUE name = rb_String(value);
    const char *text = StringValueCStr(name);
    uint32_t backing = strcmp(text, "file") == 0     ? SHMVIEW_BACKING_FILE
                       : strcmp(text, "sealed") == 0 ? SHMVIEW_BACKING_SEALED
                                                     : 0;
    if (!backing)
        rb_raise(rb_eArgError, "backing: :file or :sealed, not %+" PRIsVALUE, value);
    RB_GC_GUARD(name);
    return backing;
}

/* The arguments and results of one request; each call below uses some of them. It is on the stack
 * of a method, which keeps the Ruby objects that the pointers belong to alive. */
struct opening {
    struct shmview_connection *connection;
    const char *name;
    uint64_t size;
    struct shmview_create_options options;
    int access;
    struct shmview_segment *handle;
    int r;
};

static int create(void *arg)
{
    struct opening *o = arg;
    o->handle = NULL; /* a forked child calls again: then the handle is that of its parent */
    return o->r = shmview_create(o->connection, o->name, o->size, &o->options, &o->handle);
}

static int attach(void *arg)
{
    struct opening *o = arg;
    o->handle = NULL;
    return o->r = shmview_attach(o->connection, o->name, o->access,
                                 o->options.flags & SHMVIEW_POPULATE, &o->handle);
}

/* Makes the object first, so that the handle has an owner at once. If an interrupt raises after the
 * request has succeeded, the caller never gets the segment. Then it is detached now and not when it
 * is collected, because its name would stay taken until then. */
static VALUE open_segment(VALUE connection, struct opening *o, bool creates, VALUE facts)
{
    struct told told;
    struct link *link = connection_use(connection);
    VALUE self = segment_new(o->name);
    struct segment *segment = segment_of(self);
    RB_OBJ_WRITE(self, &segment->connection, connection);
    segment->link = link_take(link);
    o->connection = link->handle;
    int state = creates ? call_unrepeated(connection, create, o, &told)
                        : call_unlocked(connection, attach, o, &told);
    if (o->handle)
        atomic_fetch_add(&link->n_out, 1);
    if (!state && o->handle)
        state = run_interrupts();
    if (state && o->handle) {
        shmview_detach_later(o->handle);
        atomic_fetch_sub(&link->n_out, 1);
    } else {
        segment->handle = o->handle;
    }
    if (state)
        rb_jump_tag(state);
    if (o->r)
        raise_told(&told, facts);
    return self;
}

/* Core.create(name, size, lifetime, lock, populate, access, label, connection, backing,
 * own_memory, huge, numa): returns a Segment. access is nil, or as access_read() takes it; label is
 * nil or a String. */
static VALUE core_create(VALUE module, VALUE name, VALUE size, VALUE lifetime, VALUE lock,
                         VALUE populate, VALUE access, VALUE label, VALUE connection, VALUE backing,
                         VALUE own_memory, VALUE huge, VALUE numa)
{
    struct access rights;
    static const char *const lifetimes[] = {"attached", "manual", "creator", NULL};
    (void)module;
    name = name_of(name);
    VALUE number = rb_Integer(size);
    if (RTEST(rb_funcall(number, '<', 1, INT2FIX(0))) ||
        RTEST(rb_funcall(number, '>', 1, ULL2NUM(UINT64_MAX))))
        rb_raise(rb_eArgError, "size is a number of bytes, not %+" PRIsVALUE, size);
    struct opening o = {
        .name = StringValueCStr(name),
        .size = NUM2ULL(number),
        .options =
            {
                .struct_bytes = sizeof o.options,
                .lifetime = choose("lifetime", lifetime, lifetimes),
                .flags = (RTEST(lock) ? 0 : SHMVIEW_NO_LOCK) |
                         (RTEST(populate) ? SHMVIEW_POPULATE : 0) |
                         (RTEST(own_memory) ? SHMVIEW_OWN_MEMORY : 0),
                .backing = backing_called(backing),
            },
    };
    struct shmview_placement placement = placement_read(huge, numa);
    o.options.placement = &placement;
    if (!NIL_P(access)) {
        access_read(access, &rights);
        o.options.access = &rights.change;
    }
    if (!NIL_P(label))
        o.options.label = StringValueCStr(label);
    VALUE facts = fact("name", name), texts = NIL_P(access) ? Qnil : rights.texts;
    rb_hash_aset(facts, ID2SYM(rb_intern("size")), number);
    VALUE self = open_segment(connection_value(connection), &o, true, facts);
    RB_GC_GUARD(name);
    RB_GC_GUARD(texts);
    RB_GC_GUARD(label);
    return self;
}

/* Core.attach(name, access, populate, connection): returns a Segment. */
static VALUE core_attach(VALUE module, VALUE name, VALUE access, VALUE populate, VALUE connection)
{
    static const char *const accesses[] = {"peek", "read", "write", NULL};
    (void)module;
    name = name_of(name);
    struct opening o = {
        .name = StringValueCStr(name),
        .access = (int)choose("access", access, accesses),
        .options = {.flags = RTEST(populate) ? SHMVIEW_POPULATE : 0},
    };
    VALUE self = open_segment(connection_value(connection), &o, false, fact("name", name));
    RB_GC_GUARD(name);
    return self;
}

static int remove_name(void *arg)
{
    struct opening *o = arg;
    return o->r = shmview_remove(o->connection, o->name);
}

/* Core.remove(name, connection): returns nil. */
static VALUE core_remove(VALUE module, VALUE name, VALUE connection)
{
    (void)module;
    VALUE used = connection_value(connection);
    name = name_of(name);
    struct opening o = {.name = StringValueCStr(name), .connection = connection_use(used)->handle};
    struct told told;
    int state = call_unrepeated(used, remove_name, &o, &told);
    RB_GC_GUARD(name);
    RB_GC_GUARD(used);
    if (state)
        rb_jump_tag(state);
    if (o.r)
        raise_told(&told, fact("name", name));
    return Qnil;
}

/* Returns the name, a String, also of a closed segment; empty for memory of another object. */
static VALUE segment_name(VALUE self)
{
    return segment_of(self)->name;
}

/*
 * Removes the name at once; the memory is freed with the last attachment. Returns nil. Blocks for
 * one round trip. Raises NotFound, Denied, Disconnected, Closed.
 */
static VALUE segment_remove(VALUE self)
{
    const struct segment *segment = segment_use(self);
    return core_remove(Qnil, segment->name, segment->connection);
}

/* --- Closing ------------------------------------------------------------- */

static int detach(void *arg)
{
    struct opening *o = arg;
    return o->r = shmview_detach(o->handle);
}

/*
 * Detaches the segment; does nothing if it is closed. Views of the segment raise Closed afterwards.
 * Does not wait for the daemon, and succeeds if there is none. Other connections may see the
 * attachment for a moment longer. Returns nil.
 *
 * Raises Busy, and changes nothing, if a consumer still has the memory (Fiddle::MemoryView,
 * IO::Buffer, Shmview::MemoryView), if a thread of this process holds the lock through this object,
 * or if another thread is in a call of it. Raises FrozenError if the segment is shareable, because
 * other Ractors may use it; it is detached when its last reference is collected.
 */
static VALUE segment_close(VALUE self)
{
    struct segment *segment = segment_of(self);
    if (!segment->handle)
        return Qnil;
    rb_check_frozen(self);
    size_t n = calls_of(segment);
    if (n)
        raise_text(SHMVIEW_ERR_BUSY,
                   "%zu threads are in calls of '%s'; close it when they are done", n,
                   shmview_name(segment->handle));
    struct opening o = {.handle = segment->handle};
    struct told told;
    int state = 0;
    /* The GVL stays held for foreign memory, because the call runs the class that exports it. It
     * also stays held if a Thread has the lock: libshmview refuses at once, and the holder must not
     * find the segment closed in the meantime, or it could not give the lock back. */
    bool has_gvl = !segment->link || may_be_held(segment);
    segment->handle = NULL; /* other threads must not use it while it is detached */
    if (has_gvl)
        told_by(&told, detach(&o));
    else
        state = call_unlocked(Qnil, detach, &o, &told);
    if (state || o.r) {
        segment->handle = o.handle; /* still attached: the call was not made, or has failed */
        if (state)
            rb_jump_tag(state);
        raise_told(&told, Qnil);
    }
    if (segment->link)
        atomic_fetch_sub(&segment->link->n_out, 1);
    return Qnil;
}

/* --- Attributes ---------------------------------------------------------- */

static const char *access_name(const struct shmview_segment *handle)
{
    int access = shmview_access(handle);
    return access == SHMVIEW_WRITE ? "write" : access == SHMVIEW_READ ? "read" : "peek";
}

/* Returns the size in bytes. Raises Closed. */
static VALUE segment_bytes(VALUE self)
{
    return ULL2NUM(shmview_size(segment_use(self)->handle));
}

/* Returns :peek, :read or :write. Raises Closed. */
static VALUE segment_access(VALUE self)
{
    return ID2SYM(rb_intern(access_name(segment_use(self)->handle)));
}

/* Returns whether close was called. */
static VALUE segment_is_closed(VALUE self)
{
    return segment_of(self)->handle ? Qfalse : Qtrue;
}

/* Returns the Connection; nil for memory of another object. */
static VALUE segment_connection(VALUE self)
{
    return segment_of(self)->connection;
}

/* Describes the segment for people. */
static VALUE segment_inspect(VALUE self)
{
    const struct segment *segment = segment_of(self);
    VALUE what = NIL_P(segment->connection)
                     ? rb_sprintf("of a %" PRIsVALUE, rb_obj_class(segment->owner))
                     : rb_sprintf("'%" PRIsVALUE "'", segment->name);
    if (!segment->handle)
        return rb_sprintf("#<Shmview::Segment %" PRIsVALUE ", closed>", what);
    return rb_sprintf("#<Shmview::Segment %" PRIsVALUE ", %llu bytes, %s>", what,
                      (unsigned long long)shmview_size(segment->handle),
                      access_name(segment->handle));
}

/* _daemon: returns the Connection of a segment of a daemon. Raises Closed, Invalid. */
static VALUE segment_daemon(VALUE self)
{
    const struct segment *segment = segment_use(self);
    if (NIL_P(segment->connection))
        raise_text(SHMVIEW_ERR_INVALID, "foreign memory is no segment of a daemon");
    return segment->connection;
}

static VALUE segment_layouts(VALUE self)
{
    return segment_of(self)->layouts;
}

/* _layouts=(hash): the Hash must be frozen, because Ractors may share the segment. */
static VALUE segment_set_layouts(VALUE self, VALUE layouts)
{
    rb_check_frozen(self);
    RB_OBJ_WRITE(self, &segment_of(self)->layouts, layouts);
    return layouts;
}

/*
 * call-seq: trim -> nil
 *
 * Unmaps all segments that this process has closed. Without it at most 32 mappings with 4 MiB in
 * all stay for a second or until the next attach or close after it, because attaching such a
 * segment again takes half the time.
 */
static VALUE shmview_s_trim(VALUE self)
{
    (void)self;
    shmview_trim();
    return Qnil;
}

void Init_segment(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
#endif
    VALUE core = rb_define_module_under(mShmview, "Core"); /* :nodoc: */
    rb_define_singleton_method(mShmview, "trim", shmview_s_trim, 0);
    rb_define_module_function(core, "create", core_create, 12);
    rb_define_module_function(core, "attach", core_attach, 4);
    rb_define_module_function(core, "remove", core_remove, 2);
    cSegment = rb_define_class_under(mShmview, "Segment", rb_cObject);
    rb_undef_alloc_func(cSegment);
    rb_undef_method(CLASS_OF(cSegment), "new");
    rb_define_method(cSegment, "name", segment_name, 0);
    rb_define_method(cSegment, "size", segment_bytes, 0);
    rb_define_method(cSegment, "access", segment_access, 0);
    rb_define_method(cSegment, "closed?", segment_is_closed, 0);
    rb_define_method(cSegment, "connection", segment_connection, 0);
    rb_define_method(cSegment, "remove", segment_remove, 0);
    rb_define_method(cSegment, "close", segment_close, 0);
    rb_define_method(cSegment, "inspect", segment_inspect, 0);
    rb_define_private_method(cSegment, "_daemon", segment_daemon, 0);
    rb_define_private_method(cSegment, "_layouts", segment_layouts, 0);
    rb_define_private_method(cSegment, "_layouts=", segment_set_layouts, 1);
}

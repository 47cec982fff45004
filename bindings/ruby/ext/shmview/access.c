/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the users who may use a segment. lib/shmview/access.rb checks the arguments. */
#include "access.h"

void access_read(VALUE change, struct access *ret)
{
    *ret = (struct access){.change = {.struct_bytes = sizeof ret->change}, .texts = rb_ary_new()};
    VALUE mode = rb_ary_entry(change, 0), owner = rb_ary_entry(change, 1);
    VALUE group = rb_ary_entry(change, 2), entries = rb_ary_entry(change, 3);
    struct shmview_access_change *c = &ret->change;
    if (!NIL_P(mode)) {
        c->set |= SHMVIEW_SET_MODE;
        c->mode = NUM2UINT(mode);
    }
    if (!NIL_P(owner)) {
        c->set |= SHMVIEW_SET_OWNER;
        c->owner = NUM2UINT(owner);
    }
    if (!NIL_P(group)) {
        c->set |= SHMVIEW_SET_GROUP;
        c->group = NUM2UINT(group);
    }
    if (NIL_P(entries))
        return;
    long n = RARRAY_LEN(entries);
    if (n > ACCESS_ENTRIES)
        raise_text(SHMVIEW_ERR_LIMIT, "%ld entries; a segment has at most %d", n, ACCESS_ENTRIES);
    for (long i = 0; i < n; i++) {
        VALUE entry = RARRAY_AREF(entries, i), text = name_of(RARRAY_AREF(entry, 2));
        rb_ary_push(ret->texts, text);
        ret->entries[i] = (struct shmview_access_entry){
            .kind = NUM2UINT(RARRAY_AREF(entry, 0)),
            .right = NUM2UINT(RARRAY_AREF(entry, 1)),
            .name = StringValueCStr(text),
        };
    }
    c->set |= SHMVIEW_SET_ENTRIES;
    c->n_entries = (uint32_t)n;
    c->entries = ret->entries;
}

/* One request. */
struct changing {
    struct shmview_connection *connection;
    const char *name;
    struct access access;
    int r;
};

static int change_access(void *arg)
{
    struct changing *c = arg;
    return c->r = shmview_set_access(c->connection, c->name, &c->access.change);
}

/* Core.set_access(name, change, connection): returns nil. */
static VALUE core_set_access(VALUE module, VALUE name, VALUE change, VALUE connection)
{
    (void)module;
    struct changing c;
    access_read(change, &c.access);
    name = name_of(name);
    connection = connection_value(connection);
    c.name = StringValueCStr(name);
    c.connection = connection_use(connection)->handle;
    struct told told;
    int state = call_unlocked(connection, change_access, &c, &told);
    RB_GC_GUARD(name);
    RB_GC_GUARD(c.access.texts);
    if (state)
        rb_jump_tag(state);
    if (c.r)
        raise_told(&told, fact("name", name));
    return Qnil;
}

void Init_access(void)
{
    rb_define_module_function(rb_path2class("Shmview::Core"), "set_access", core_set_access, 3);
}

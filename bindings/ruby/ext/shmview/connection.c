/* SPDX-License-Identifier: Apache-2.0 */
/* Shmview::Connection. The object owns no handle but a struct link, which its segments and their
 * buffers share: Ruby may free the Connection before them. */
#include "core.h"

#include <stdlib.h>

VALUE cConnection;

struct connection {
    struct link *link; /* NULL: closed, or not open yet; otherwise the object is one of its users */
};

/* --- The handle ---------------------------------------------------------- */

struct link *link_take(struct link *link)
{
    atomic_fetch_add(&link->n_users, 1);
    return link;
}

void link_drop(struct link *link)
{
    if (!link || atomic_fetch_sub(&link->n_users, 1) != 1)
        return;
    if (link->handle)
        shmview_disconnect(link->handle);
    free(link);
}

/* --- The object ---------------------------------------------------------- */

static void connection_free(void *data)
{
    struct connection *self = data;
    link_drop(self->link);
    xfree(self);
}

static size_t connection_size(const void *data)
{
    const struct connection *self = data;
    return sizeof *self + (self->link ? sizeof *self->link : 0);
}

const rb_data_type_t connection_type = {
    .wrap_struct_name = "Shmview::Connection",
    .function = {.dfree = connection_free, .dsize = connection_size},
    .flags = RUBY_TYPED_WB_PROTECTED | RUBY_TYPED_FROZEN_SHAREABLE,
};

static VALUE connection_alloc(VALUE class)
{
    struct connection *self;
    return TypedData_Make_Struct(class, struct connection, &connection_type, self);
}

static struct connection *connection_of(VALUE self)
{
    return rb_check_typeddata(self, &connection_type);
}

struct link *connection_use(VALUE self)
{
    struct connection *connection = connection_of(self);
    if (!connection->link)
        raise_closed("the connection");
    return connection->link;
}

/* The calls of the parent go on only there, so the count begins at 0 in a forked child. */
size_t calls_of_link(struct link *link)
{
    if (UNLIKELY(link->forks != n_forks)) {
        link->forks = n_forks;
        atomic_store(&link->n_calls, 0);
    }
    return atomic_load(&link->n_calls);
}

VALUE connection_value(VALUE argument)
{
    if (NIL_P(argument))
        return rb_funcall(mShmview, rb_intern("connect"), 0);
    if (!RTEST(rb_obj_is_kind_of(argument, cConnection)))
        rb_raise(rb_eTypeError, "connection: a Shmview::Connection, not %" PRIsVALUE,
                 rb_obj_class(argument));
    return argument;
}

struct connect {
    const char *path;
    unsigned flags;
    struct shmview_connection *handle;
    int r;
};

static int connect(void *arg)
{
    struct connect *c = arg;
    c->handle = NULL; /* a forked child calls again: then the handle is that of its parent */
    return c->r = shmview_connect(c->path, c->flags, &c->handle);
}

/*
 * call-seq: new(path = nil, start: true)
 *
 * Connects to the shmviewd whose socket is +path+. nil means $SHMVIEW_SOCKET, else the user's
 * daemon, else the system's, else a session daemon, which is started if none runs unless +start+ is
 * false. Blocks for one round trip, or up to 10 s until a session daemon is up.
 *
 * create and attach use the connection of the process if they are given none. A forked child can
 * use its parent's connections like its own.
 *
 * Raises NoDaemon (the text lists what was tried), Invalid, Denied, Quota, ProtocolError.
 */
static VALUE connection_initialize(int argc, VALUE *argv, VALUE self)
{
    const ID keywords[] = {id_start};
    struct connection *connection = connection_of(self);
    VALUE path, options = Qnil, start;
    rb_scan_args(argc, argv, "01:", &path, &options);
    rb_get_kwargs(options, keywords, 0, 1, &start);
    if (connection->link)
        rb_raise(rb_eTypeError, "the connection is open already");
    if (!NIL_P(path))
        FilePathValue(path);
    struct connect c = {
        .path = NIL_P(path) ? NULL : StringValueCStr(path),
        .flags = start == Qundef || RTEST(start) ? 0 : SHMVIEW_CONNECT_NO_START,
    };
    struct link *link = calloc(1, sizeof *link);
    if (!link)
        rb_memerror();
    connection->link = link;
    link->n_users = 1;
    link->forks = n_forks;
    struct told told;
    int state = call_unlocked(Qnil, connect, &c, &told);
    link->handle = c.handle;
    if (state || c.r) {
        connection->link = NULL;
        link_drop(link);
        if (state)
            rb_jump_tag(state);
        raise_told(&told, fact("path", path));
    }
    RB_GC_GUARD(path);
    return self;
}

/* A call that has no argument but the connection. */
struct plain_call {
    struct shmview_connection *handle;
    int r;
};

static int disconnect(void *arg)
{
    struct plain_call *c = arg;
    return c->r = shmview_disconnect(c->handle);
}

/*
 * Closes the connection; does nothing if it is closed. Its segments must be closed first. Does not
 * wait for the daemon. Returns nil. Raises Busy if a segment is open, if another thread is in a
 * call over the connection, or if a consumer (Fiddle::MemoryView, IO::Buffer, Shmview::MemoryView)
 * still has the memory of a segment; raises FrozenError if the connection is shareable.
 */
static VALUE connection_close(VALUE self)
{
    struct connection *connection = connection_of(self);
    struct link *link = connection->link;
    if (!link)
        return Qnil;
    rb_check_frozen(self);
    size_t n = atomic_load(&link->n_out) + calls_of_link(link);
    if (n)
        raise_text(SHMVIEW_ERR_BUSY,
                   "%zu segments and calls of other threads still need the connection; close "
                   "the segments first",
                   n);
    struct plain_call c = {.handle = link->handle};
    connection->link = NULL; /* other threads must not use the handle while the GVL is free */
    struct told told;
    int state = call_unlocked(Qnil, disconnect, &c, &told);
    if (state || c.r) {
        connection->link = link;
        if (state)
            rb_jump_tag(state);
        raise_told(&told, Qnil);
    }
    link->handle = NULL;
    link_drop(link);
    return Qnil;
}

static int ping(void *arg)
{
    struct plain_call *c = arg;
    return c->r = shmview_ping(c->handle);
}

/*
 * Sends an empty request and waits for the reply; returns self. Blocks for one round trip. Raises
 * Disconnected, ProtocolError, Closed.
 */
static VALUE connection_ping(VALUE self)
{
    struct plain_call c = {.handle = connection_use(self)->handle};
    struct told told;
    int state = call_unlocked(self, ping, &c, &told);
    if (state)
        rb_jump_tag(state);
    if (c.r)
        raise_told(&told, Qnil);
    return self;
}

/* Returns the path of the daemon's socket, a String. Raises Closed. */
static VALUE connection_path(VALUE self)
{
    return rb_filesystem_str_new_cstr(shmview_socket_path(connection_use(self)->handle));
}

/* Returns whether close was called. */
static VALUE connection_is_closed(VALUE self)
{
    return connection_of(self)->link ? Qfalse : Qtrue;
}

/* Describes the connection for people. */
static VALUE connection_inspect(VALUE self)
{
    if (!connection_of(self)->link)
        return rb_utf8_str_new_cstr("#<Shmview::Connection closed>");
    return rb_sprintf("#<Shmview::Connection %" PRIsVALUE ">", connection_path(self));
}

void Init_connection(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
#endif
    /*
     * Document-class: Shmview::Connection
     *
     * A connection to a shmviewd. Any thread may use it, and so may a forked child.
     */
    cConnection = rb_define_class_under(mShmview, "Connection", rb_cObject);
    rb_define_alloc_func(cConnection, connection_alloc);
    rb_define_method(cConnection, "initialize", connection_initialize, -1);
    rb_define_method(cConnection, "close", connection_close, 0);
    rb_define_method(cConnection, "ping", connection_ping, 0);
    rb_define_method(cConnection, "path", connection_path, 0);
    rb_define_method(cConnection, "closed?", connection_is_closed, 0);
    rb_define_method(cConnection, "inspect", connection_inspect, 0);
    rb_undef_method(cConnection, "initialize_copy");
}

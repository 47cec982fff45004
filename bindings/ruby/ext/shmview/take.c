/* SPDX-License-Identifier: Apache-2.0 */
/* Taking and loaning frames; iteration.
 *
 * A call first tries with the GVL held, because that costs less than giving it away and sends no
 * request. Only a forked child, whose first call attaches the segment again, gives it away at once.
 * A wait that an interrupt ends has taken nothing, so no frame is lost. */
#include "stream.h"

typedef int take_call(struct shmview_stream *stream, int64_t deadline, struct shmview_frame *ret);

struct taking {
    take_call *call;
    struct shmview_stream *handle;
    struct shmview_frame *frame;
};

static int wait_for_frame(struct shmview_segment *none, int64_t deadline, void *arg)
{
    const struct taking *t = arg;
    (void)none;
    return t->call(t->handle, deadline, t->frame);
}

/* Frames that nobody references keep their slots until they are collected, and so do consumers of
 * frames. A wait for a frame allocates nothing, so the collector would not run, and the writer
 * would wait for it. Returns after a collection if this process holds at least n frames of the
 * line. */
static void collect_frames(const struct line *line, size_t n)
{
    size_t n_holds = atomic_load(&line->n_users) - 1; /* the empty one of this call included */
    if (n_holds > n)
        rb_gc();
}

/* Makes the call, which fills an empty Frame. Returns its result, or leaves by the exception of an
 * interrupt. At the end of the call the Frame is over, unless the result is 0. */
static int get(VALUE self, VALUE frame, take_call *call, int64_t deadline)
{
    struct stream *stream = stream_use(self);
    struct taking t = {call, stream->line->handle, frame_target(frame)};
    bool loans = call == shmview_stream_loan;
    int r = -SHMVIEW_ERR_TIMED_OUT;
    if (LIKELY(stream->entered == n_forks)) {
        r = call(t.handle, 0, t.frame);
        /* a loan with a deadline waits for the death of the writer that it finds */
        if (LIKELY(r == 0) || deadline == 0 ||
            (r != -SHMVIEW_ERR_TIMED_OUT && !(loans && r == -SHMVIEW_ERR_BUSY)))
            return r;
    }
    collect_frames(stream->line, loans ? 0 : stream->info.n_slots / 2);
    stream_use(self); /* again, because finalizers may have run */
    int state = wait_unlocked(self, wait_for_frame, &t, deadline, &r);
    if (state) {
        frame_end(frame);
        rb_jump_tag(state);
    }
    if (r >= 0 || r == -SHMVIEW_ERR_TIMED_OUT)
        stream->entered = n_forks;
    return r;
}

/* Parses the only argument, timeout:. */
static int64_t only_timeout(int argc, VALUE *argv)
{
    const ID keywords[] = {id_timeout};
    VALUE options = Qnil, timeout;
    if (LIKELY(argc == 0))
        return SHMVIEW_FOREVER;
    rb_scan_args(argc, argv, "0:", &options);
    rb_get_kwargs(options, keywords, 0, 1, &timeout);
    return parse_timeout(timeout == Qundef ? Qnil : timeout);
}

/* --- Taking -------------------------------------------------------------- */

/* Returns a Frame, or nil at the end of the stage if has_end is true. Raises what take raises. */
static VALUE take_frame(VALUE self, take_call *call, int64_t deadline, bool has_end)
{
    VALUE frame = frame_new(self), name = stream_of(self)->name;
    int r = get(self, frame, call, deadline);
    if (LIKELY(r == 0)) {
        frame_filled(frame, call == shmview_stream_loan);
        return frame;
    }
    struct told told;
    told_by(&told, r);
    frame_end(frame);
    if (r == SHMVIEW_STREAM_ENDED && has_end)
        return Qnil;
    if (r == SHMVIEW_STREAM_ENDED)
        rb_exc_raise(rb_funcall(rb_path2class("Shmview::Errors"), rb_intern("make_end"), 1, name));
    if (r == SHMVIEW_WRITER_DIED)
        rb_exc_raise(stream_death(self));
    raise_told(&told, fact("name", name));
}

/*
 * call-seq:
 *   take(timeout: nil) -> Frame
 *   take(timeout: nil) { |frame| ... }
 *
 * Takes the next frame in order. With a block, yields it, releases it at the end, and returns what
 * the block returns. The first call joins the stage.
 *
 * Waits at most +timeout+ seconds (nil: without limit) without the GVL; signals, Thread#raise,
 * Thread#kill and Timeout.timeout end the wait, and no frame is lost. Raises TimedOut, WriterDied
 * (once for each death; the next call goes on), StreamEnded (a writer has called finish, and all
 * frames are taken), LayoutVersion (the stream is damaged), Invalid (another thread has called
 * leave during the call), Lost, Closed.
 */
static VALUE stream_take(int argc, VALUE *argv, VALUE self)
{
    VALUE frame = take_frame(self, shmview_stream_take, only_timeout(argc, argv), false);
    return rb_block_given_p() ? frame_lend(frame) : frame;
}

/*
 * call-seq:
 *   latest(timeout: nil) -> Frame
 *   latest(timeout: nil) { |frame| ... }
 *
 * Like take, but takes the newest frame, and skips those before it. Waits for a frame that this
 * Stream has not taken yet.
 */
static VALUE stream_latest(int argc, VALUE *argv, VALUE self)
{
    VALUE frame = take_frame(self, shmview_stream_take_latest, only_timeout(argc, argv), false);
    return rb_block_given_p() ? frame_lend(frame) : frame;
}

/*
 * call-seq:
 *   each(timeout: nil) { |frame| ... } -> self
 *   each(timeout: nil) -> Enumerator
 *
 * Yields each frame, and releases it after the block, until the stage ends (see finish). Waits and
 * raises like take, whose +timeout+ is for each frame. After WriterDied another each goes on with
 * the frames of the next writer.
 */
static VALUE stream_each(int argc, VALUE *argv, VALUE self)
{
    VALUE frame, options = Qnil, timeout = Qundef;
    const ID keywords[] = {id_timeout};
    RETURN_ENUMERATOR(self, argc, argv);
    rb_scan_args(argc, argv, "0:", &options);
    rb_get_kwargs(options, keywords, 0, 1, &timeout);
    timeout = timeout == Qundef ? Qnil : timeout;
    while (!NIL_P(frame = take_frame(self, shmview_stream_take, parse_timeout(timeout), true)))
        frame_lend(frame);
    return self;
}

/* --- Loaning ------------------------------------------------------------- */

/*
 * call-seq:
 *   loan(timeout: nil) -> Frame
 *   loan(timeout: nil) { |frame| ... }
 *
 * Loans a free slot. Its views have the bytes of an earlier frame. With a block, yields the frame,
 * publishes it at the end of the block, and returns what the block returns. If the block raises, or
 * is left by break, throw or Thread#kill, the frame is discarded. The block may publish or discard
 * it itself.
 *
 * Waits like take: in a lossless stream for the slowest reader, in any stream while all slots are
 * held or loaned. Raises TimedOut (the text names the processes that are in the way), Busy (another
 * process writes the stream), ReadOnly, Invalid (a later stage gets its frames by
 * Frame#pass_on), Lost, Closed.
 */
static VALUE stream_loan(int argc, VALUE *argv, VALUE self)
{
    VALUE frame = take_frame(self, shmview_stream_loan, only_timeout(argc, argv), false);
    return rb_block_given_p() ? frame_fill(frame) : frame;
}

/* --- The rest ------------------------------------------------------------ */

/* A call that has no argument but the stream. */
struct plain_call {
    int (*call)(struct shmview_stream *stream);
    struct shmview_stream *handle;
    int fd;
    int r;
};

static int call_plain(void *arg)
{
    struct plain_call *c = arg;
    return c->r = c->call(c->handle);
}

static int call_fd(void *arg)
{
    struct plain_call *c = arg;
    return c->r = shmview_stream_fd(c->handle, &c->fd);
}

static void make_call(VALUE self, int (*call)(void *), struct plain_call *c)
{
    struct told told;
    struct stream *stream = stream_use(self);
    c->handle = stream->line->handle;
    int state = call_unlocked(self, call, c, &told);
    if (state)
        rb_jump_tag(state);
    if (c->r)
        raise_told(&told, fact("name", stream->name));
}

/*
 * Marks the end of the stage: readers that have taken the last frame end. A frame that is published
 * later begins the stage again. Returns self. Raises ReadOnly, Busy, Lost, Closed.
 */
static VALUE stream_finish(VALUE self)
{
    struct plain_call c = {.call = shmview_stream_end};
    make_call(self, call_plain, &c);
    return self;
}

/*
 * Joins the stage as a reader: it gets the frames that are published from now on, and the history
 * before unless it has left earlier. The first take does it as well. Returns self. Raises Lost,
 * Closed.
 */
static VALUE stream_join(VALUE self)
{
    struct plain_call c = {.call = shmview_stream_join};
    make_call(self, call_plain, &c);
    return self;
}

static int leave(struct shmview_stream *handle)
{
    shmview_stream_leave(handle);
    return 0;
}

/*
 * Leaves the stage: writers do not wait for this reader any longer. Frames that it has taken stay
 * its own. A take of another thread that waits raises Invalid. Returns self. Raises Closed.
 */
static VALUE stream_leave(VALUE self)
{
    struct plain_call c = {.call = leave};
    make_call(self, call_plain, &c);
    return self;
}

/* _fd: returns the descriptor of to_io, which belongs to the stream. */
static VALUE stream_fd(VALUE self)
{
    struct plain_call c = {0};
    make_call(self, call_fd, &c);
    return INT2NUM(c.fd);
}

void Init_take(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cStream = rb_define_class_under(mShmview, "Stream", rb_cObject);
#endif
    rb_define_method(cStream, "take", stream_take, -1);
    rb_define_method(cStream, "latest", stream_latest, -1);
    rb_define_method(cStream, "each", stream_each, -1);
    rb_define_method(cStream, "loan", stream_loan, -1);
    rb_define_method(cStream, "finish", stream_finish, 0);
    rb_define_method(cStream, "join", stream_join, 0);
    rb_define_method(cStream, "leave", stream_leave, 0);
    rb_define_private_method(cStream, "_fd", stream_fd, 0);
}

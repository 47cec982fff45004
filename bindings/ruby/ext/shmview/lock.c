/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a segment.
 *
 * Each method first tries to take the lock with the GVL held, because that costs far less than
 * releasing the GVL, and usually succeeds. Only a call that must wait, or that must ask the daemon
 * (the first one of a forked child), releases the GVL.
 *
 * A method that raises holds nothing. So a death inside raises OwnerDied with the lock released,
 * and still marked as not repaired; only recover holds the lock in that case. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define PARTIES_MAX 256

/* --- Taking and releasing ------------------------------------------------ */

/* Returns the handle for a thread that holds the lock, so that close is refused. Another thread may
 * be in freeze_bytes. */
static struct shmview_segment *held_handle(const struct segment *segment)
{
    return LIKELY(segment->handle != NULL) ? segment->handle : segment->frozen;
}

static int try_take(struct shmview_segment *handle, int mode)
{
    return mode == SHMVIEW_SHARED ? shmview_trylock_shared(handle) : shmview_trylock(handle);
}

/* Stands for the result of an attempt that was not made, because it might have to ask the daemon.
 * An attempt without the GVL follows, as after an attempt that found the lock taken. */
#define NOT_TRIED (-SHMVIEW_ERR_TIMED_OUT)

static int wait_lock(struct shmview_segment *handle, int64_t deadline, void *arg)
{
    const int *mode = arg;
    return *mode == SHMVIEW_SHARED ? shmview_lock_shared_until(handle, deadline)
                                   : shmview_lock_until(handle, deadline);
}

/* Returns an OwnerDied for the last death. The caller must hold the lock. */
static VALUE describe_death(VALUE self)
{
    struct shmview_segment *handle = held_handle(segment_of(self));
    struct shmview_death death = {0};
    struct shmview_phase phase = {0};
    shmview_owner_died(handle, &death);
    shmview_phase_read(handle, &phase); /* does not call the daemon, because the lock is held */
    VALUE name = Qnil;
    if (phase.generation == death.phase &&
        phase.name[0]) /* otherwise another phase has begun since the death */
        name = rb_utf8_str_new_cstr(phase.name);
    return make_death(rb_utf8_str_new_cstr(shmview_name(handle)), &death, name);
}

/* Releases the lock, not repaired. The caller must hold it. */
static void give_back(VALUE self)
{
    struct segment *segment = segment_of(self);
    struct shmview_segment *handle = held_handle(segment);
    held_pop(segment, handle);
    shmview_unlock_not_repaired(handle);
}

/* Tries without the GVL until the deadline. Returns like wait_lock(). Raises the exceptions of
 * interrupts. The segment cannot be closed until the interrupts have run: another Thread may run
 * then, and would not see from held_push() yet that this one holds the lock. */
static int take_unlocked(VALUE self, int mode, int64_t deadline)
{
    struct segment *segment = segment_of(self);
    unsigned forks;
    int r, state;
    do {
        state = wait_unlocked(self, wait_lock, &mode, deadline, &r);
        if (!state && (r >= 0 || r == -SHMVIEW_ERR_TIMED_OUT))
            segment->entered = n_forks;
        forks = n_forks;
        if (state || r < 0)
            break;
        struct use use; /* a pending interrupt would raise before the block begins */
        use_begins(&use, self);
        state = use_interrupts(&use);
        if (state && forks == n_forks && r == 0)
            shmview_unlock(segment->handle);
        else if (state && forks == n_forks)
            shmview_unlock_not_repaired(segment->handle);
        use_ends(&use);
    } while (!state && forks != n_forks); /* a child does not hold what its parent took */
    if (state)
        rb_jump_tag(state);
    return r;
}

/* Takes the lock, waiting until deadline. Returns 0; SHMVIEW_OWNER_DIED, with the lock held
 * exclusively; or -SHMVIEW_ERR_TIMED_OUT. Raises all other errors. */
static int take(VALUE self, int mode, int64_t deadline)
{
    struct segment *segment = segment_use(self);
    held_begin();
    int r = is_entered(segment) ? try_take(segment->handle, mode) : NOT_TRIED;
    if (UNLIKELY(r == -SHMVIEW_ERR_TIMED_OUT && (deadline != 0 || !is_entered(segment))))
        r = take_unlocked(self, mode, deadline);
    if (LIKELY(r >= 0)) {
        /* after a death it is held exclusively, also if shared was requested */
        held_push(self, segment->handle, mode == SHMVIEW_SHARED && r == 0);
        return r;
    }
    if (r != -SHMVIEW_ERR_TIMED_OUT)
        raise_error(r, Qnil);
    return r;
}

/* Releases the lock, not repaired, and raises OwnerDied. */
NORETURN(static void raise_death(VALUE self));
static void raise_death(VALUE self)
{
    int state;
    VALUE died = rb_protect(describe_death, self, &state);
    give_back(self);
    if (state)
        rb_jump_tag(state);
    rb_exc_raise(died);
}

NORETURN(static void raise_timed_out(VALUE self));
static void raise_timed_out(VALUE self)
{
    raise_error(-SHMVIEW_ERR_TIMED_OUT,
                fact("name", rb_utf8_str_new_cstr(shmview_name(segment_of(self)->handle))));
}

/* Takes the lock, or raises and holds nothing. */
static void take_or_raise(VALUE self, int mode, int64_t deadline)
{
    int r = take(self, mode, deadline);
    if (LIKELY(r == 0))
        return;
    if (r == SHMVIEW_OWNER_DIED)
        raise_death(self);
    raise_timed_out(self);
}

static int unlock(struct shmview_segment *handle, bool repaired)
{
    return repaired ? shmview_unlock(handle) : shmview_unlock_not_repaired(handle);
}

/* The arguments and the result of unlock_unlocked() or query(). */
struct lock_call {
    struct shmview_segment *handle;
    bool repaired;
    struct shmview_lock_status status;
    struct shmview_lock_party *parties;
    int r;
};

static int unlock_unlocked(void *arg)
{
    struct lock_call *c = arg;
    return c->r = unlock(c->handle, c->repaired);
}

static int query(void *arg)
{
    struct lock_call *c = arg;
    return c->r = shmview_lock_query(c->handle, &c->status, c->parties, PARTIES_MAX);
}

/* Makes the first call of a forked child, which waits for the daemon. Raises the errors of the call
 * and the exceptions of interrupts. */
static void call_first(VALUE self, int (*call)(void *), struct lock_call *c)
{
    struct told told;
    int state = call_unlocked(self, call, c, &told);
    if (state)
        rb_jump_tag(state);
    if (c->r)
        raise_told(&told, Qnil);
}

/* Releases the lock once. Returns nil, or raises. */
static VALUE give(VALUE self, bool repaired)
{
    struct segment *segment = segment_of(self);
    struct shmview_segment *handle = held_handle(segment);
    if (UNLIKELY(!handle))
        handle = segment_use(self)->handle; /* raises */
    if (UNLIKELY(!is_entered(segment))) {
        struct lock_call c = {.handle = handle, .repaired = repaired};
        call_first(self, unlock_unlocked, &c); /* raises: a new child holds nothing */
        return Qnil;
    }
    int r = unlock(handle, repaired);
    if (LIKELY(r == 0) || r == -SHMVIEW_ERR_LOST)
        held_pop(segment, handle);
    if (UNLIKELY(r))
        raise_error(r, Qnil);
    return Qnil;
}

/* --- With a block -------------------------------------------------------- */

static int64_t timeout_option(int argc, const VALUE *argv)
{
    VALUE options, timeout;
    if (LIKELY(argc == 0))
        return SHMVIEW_FOREVER;
    rb_scan_args(argc, argv, "0:", &options);
    rb_get_kwargs(options, &id_timeout, 0, 1, &timeout);
    return timeout == Qundef ? SHMVIEW_FOREVER : parse_timeout(timeout);
}

/* These methods are in C because a method in Ruby can be interrupted between the call that takes
 * the lock and the begin of its block. The lock would then stay held. */
static VALUE give_repaired(VALUE self)
{
    return give(self, true);
}

/*
 * call-seq: synchronize(timeout: nil) { |segment| ... }
 *
 * Holds the lock exclusively while the block runs; returns the value of the block. The lock is
 * recursive for each thread. Waits without the GVL, at most +timeout+ seconds, or without limit if
 * that is nil. Signals, Thread#raise, Thread#kill and Timeout.timeout end the wait. The lock
 * belongs to the thread: all its Fibers hold it, and a Thread that ends inside has died inside.
 *
 * Raises OwnerDied, and holds nothing, if the last exclusive holder died inside: see recover.
 * Raises TimedOut, Deadlock (the thread holds it shared), NoLock, TooDeep, Closed.
 */
static VALUE segment_synchronize(int argc, VALUE *argv, VALUE self)
{
    rb_need_block();
    take_or_raise(self, SHMVIEW_EXCLUSIVE, timeout_option(argc, argv));
    return rb_ensure(rb_yield, self, give_repaired, self);
}

/*
 * call-seq: shared(timeout: nil) { |segment| ... }
 *
 * Like synchronize, but holds the lock together with other readers. Also raises Limit (the thread
 * holds 64 segments shared).
 */
static VALUE segment_shared(int argc, VALUE *argv, VALUE self)
{
    rb_need_block();
    take_or_raise(self, SHMVIEW_SHARED, timeout_option(argc, argv));
    return rb_ensure(rb_yield, self, give_repaired, self);
}

/* One call of recover. done stays false if anything but its end leaves the block. */
struct recovery {
    VALUE self, died; /* died: nil if no owner died */
    bool done;
};

static VALUE yield_recovery(VALUE arg)
{
    struct recovery *recovery = (struct recovery *)arg;
    VALUE found = rb_yield(recovery->died);
    recovery->done = true;
    return found;
}

static VALUE end_recovery(VALUE arg)
{
    const struct recovery *recovery = (const struct recovery *)arg;
    return give(recovery->self, NIL_P(recovery->died) || recovery->done);
}

/*
 * call-seq: recover(timeout: nil) { |died| ... }
 *
 * Like synchronize, but also takes the lock if its last exclusive holder died inside. The block
 * gets the OwnerDied that names the dead holder, or nil. A block that runs to its end counts as
 * having repaired the bytes. If the block got an OwnerDied, and an exception, break, throw or
 * Thread#kill leaves it, the next owner gets OwnerDied too.
 * Returns the value of the block. Raises the errors of synchronize except OwnerDied.
 */
static VALUE segment_recover(int argc, VALUE *argv, VALUE self)
{
    rb_need_block();
    struct recovery recovery = {self, Qnil, false};
    int state, r = take(self, SHMVIEW_EXCLUSIVE, timeout_option(argc, argv));
    if (r < 0)
        raise_timed_out(self);
    if (r == SHMVIEW_OWNER_DIED) {
        recovery.died = rb_protect(describe_death, self, &state);
        if (state) {
            give_back(self);
            rb_jump_tag(state);
        }
    }
    return rb_ensure(yield_recovery, (VALUE)&recovery, end_recovery, (VALUE)&recovery);
}

/* --- Without a block ----------------------------------------------------- */

/* Reads the keywords shared: and timeout:. deadline is NULL if the method has no timeout:. */
static void lock_options(int argc, const VALUE *argv, const char *spec, int *mode,
                         int64_t *deadline)
{
    const ID keywords[] = {id_shared, id_timeout};
    VALUE options, values[2];
    *mode = SHMVIEW_EXCLUSIVE;
    if (deadline)
        *deadline = SHMVIEW_FOREVER;
    if (LIKELY(argc == 0))
        return;
    rb_scan_args(argc, argv, spec, &options);
    rb_get_kwargs(options, keywords, 0, deadline ? 2 : 1, values);
    if (values[0] != Qundef && RTEST(values[0]))
        *mode = SHMVIEW_SHARED;
    if (deadline && values[1] != Qundef)
        *deadline = parse_timeout(values[1]);
}

/*
 * call-seq: lock(timeout: nil, shared: false)
 *
 * Takes the lock; returns self. The same thread owes unlock; a Thread that ends before it has died
 * inside. Waits and raises like synchronize.
 */
static VALUE segment_lock(int argc, VALUE *argv, VALUE self)
{
    int mode;
    int64_t deadline;
    lock_options(argc, argv, "0:", &mode, &deadline);
    take_or_raise(self, mode, deadline);
    return self;
}

/*
 * call-seq: try_lock(shared: false)
 *
 * Takes the lock if it is free; returns whether the caller holds it now. Does not wait for other
 * holders. The first call of a forked child, also of unlock and lock_status, attaches the segment
 * and waits for the daemon, without the GVL. Raises OwnerDied (the lock is not held then),
 * Deadlock, NoLock, Closed.
 */
static VALUE segment_try_lock(int argc, VALUE *argv, VALUE self)
{
    int mode;
    lock_options(argc, argv, "0:", &mode, NULL);
    int r = take(self, mode, 0);
    if (r == SHMVIEW_OWNER_DIED)
        raise_death(self);
    return r == 0 ? Qtrue : Qfalse;
}

/*
 * call-seq: unlock(repaired: true)
 *
 * Releases what this thread took last, exclusive or shared; returns self. With +repaired+ false the
 * next owner gets OwnerDied, because the bytes are not in order. Raises NotOwner, Lost, NoLock,
 * Closed.
 */
static VALUE segment_unlock(int argc, VALUE *argv, VALUE self)
{
    const ID keywords[] = {id_repaired};
    VALUE options, repaired = Qundef;
    if (LIKELY(argc == 0)) {
        give(self, true);
        return self;
    }
    rb_scan_args(argc, argv, "0:", &options);
    rb_get_kwargs(options, keywords, 0, 1, &repaired);
    give(self, repaired == Qundef || RTEST(repaired));
    return self;
}

/* --- Status -------------------------------------------------------------- */

static VALUE role_name(uint32_t role)
{
    static const char *const names[] = {"unknown", "holds", "holds shared", "waits",
                                        "waits to share"};
    return rb_utf8_str_new_cstr(names[role <= SHMVIEW_WAITS_TO_SHARE ? role : 0]);
}

static VALUE build_parties(const struct shmview_lock_party *parties, size_t n)
{
    VALUE class = rb_path2class("Shmview::LockParty"), list = rb_ary_new();
    for (size_t i = 0; i < n; i++) {
        const struct shmview_lock_party *p = &parties[i];
        VALUE command = rb_utf8_str_new(p->command, (long)strnlen(p->command, sizeof p->command));
        rb_ary_push(list, rb_struct_new(class, role_name(p->role), UINT2NUM(p->pid), command,
                                        UINT2NUM(p->slot), DBL2NUM((double)p->since_ns / 1e9)));
    }
    return list;
}

/*
 * Returns a LockStatus: the holders and the waiters, at about the same time. Does not take the lock
 * and does not block, except in a forked child: see try_lock. Raises NoLock, Closed.
 */
static VALUE segment_lock_status(VALUE self)
{
    struct lock_call c = {.handle = segment_use(self)->handle};
    struct shmview_lock_status *status = &c.status;
    VALUE room;
    c.parties = rb_alloc_tmp_buffer(&room, (long)(PARTIES_MAX * sizeof *c.parties));
    if (UNLIKELY(!is_entered(segment_of(self))))
        call_first(self, query, &c);
    else if (query(&c))
        raise_error(c.r, Qnil);
    size_t n = status->n_parties < PARTIES_MAX ? status->n_parties : PARTIES_MAX;
    VALUE list = build_parties(c.parties, n);
    rb_free_tmp_buffer(&room);
    return rb_struct_new(rb_path2class("Shmview::LockStatus"), truth(status->is_held),
                         truth(status->owner_is_dead), truth(status->is_dirty), list,
                         SIZET2NUM(status->n_parties));
}

void Init_lock(void)
{
#if 0 /* for RDoc, which looks at one file at a time */
    mShmview = rb_define_module("Shmview");
    cSegment = rb_define_class_under(mShmview, "Segment", rb_cObject);
#endif
    rb_define_method(cSegment, "synchronize", segment_synchronize, -1);
    rb_define_method(cSegment, "shared", segment_shared, -1);
    rb_define_method(cSegment, "recover", segment_recover, -1);
    rb_define_method(cSegment, "lock", segment_lock, -1);
    rb_define_method(cSegment, "try_lock", segment_try_lock, -1);
    rb_define_method(cSegment, "unlock", segment_unlock, -1);
    rb_define_method(cSegment, "lock_status", segment_lock_status, 0);
}

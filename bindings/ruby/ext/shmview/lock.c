/* SPDX-License-Identifier: Apache-2.0 */
/* The lock of a segment. What neither waits nor asks the daemon is done with the GVL held; a call
 * that raises holds nothing. */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define PARTIES_MAX 256

/* --- Taking and giving --------------------------------------------------- */

static int try_take(struct shmview_segment *handle, int mode)
{
    return mode == SHMVIEW_SHARED ? shmview_trylock_shared(handle) : shmview_trylock(handle);
}

/* In place of the result of such an attempt where none was made, because the daemon may have to be
 * asked first. One without the GVL comes next, as after an attempt in vain. */
#define NOT_TRIED (-SHMVIEW_ERR_TIMED_OUT)

static int wait_lock(struct shmview_segment *handle, int64_t deadline, void *arg)
{
    const int *mode = arg;
    return *mode == SHMVIEW_SHARED ? shmview_lock_shared_until(handle, deadline)
                                   : shmview_lock_until(handle, deadline);
}

static VALUE describe_death(VALUE self)
{
    struct shmview_segment *handle = segment_of(self)->handle;
    struct shmview_death death = {0};
    struct shmview_phase phase = {0};
    shmview_owner_died(handle, &death);
    shmview_phase_read(handle, &phase); /* asks nobody: the lock is held */
    VALUE name = Qnil;
    if (phase.generation == death.phase &&
        phase.name[0]) /* else another phase has begun since then */
        name = rb_utf8_str_new_cstr(phase.name);
    return make_death(rb_utf8_str_new_cstr(shmview_name(handle)), &death, name);
}

static void give_back(struct shmview_segment *handle, bool repaired)
{
    held_pop(handle);
    if (repaired)
        shmview_unlock(handle);
    else
        shmview_unlock_not_repaired(handle);
}

/* The attempt without the GVL. Returns what wait_lock() does; raises what interrupts it. */
static int take_unlocked(struct segment *segment, int mode, int64_t deadline)
{
    int r, state = wait_unlocked(segment, wait_lock, &mode, deadline, &r);
    if (!state && (r >= 0 || r == -SHMVIEW_ERR_TIMED_OUT))
        segment->entered = n_forks;
    if (!state && r >= 0) { /* what raises now would come between lock and the caller's begin */
        state = run_interrupts();
        if (state && r == 0)
            shmview_unlock(segment->handle);
        else if (state)
            shmview_unlock_not_repaired(segment->handle);
    }
    if (state)
        rb_jump_tag(state);
    return r;
}

/* Takes the lock until deadline. Returns 0; SHMVIEW_OWNER_DIED: it is held exclusively; or
 * -SHMVIEW_ERR_TIMED_OUT. Raises everything else. */
static int take(VALUE self, int mode, int64_t deadline)
{
    struct segment *segment = segment_use(self);
    held_check();
    int r = is_entered(segment) ? try_take(segment->handle, mode) : NOT_TRIED;
    if (UNLIKELY(r == -SHMVIEW_ERR_TIMED_OUT && (deadline != 0 || !is_entered(segment))))
        r = take_unlocked(segment, mode, deadline);
    if (LIKELY(r >= 0)) {
        /* of one who died it is held exclusively, whichever way it was asked for */
        held_push(self, segment->handle, mode == SHMVIEW_SHARED && r == 0);
        return r;
    }
    if (r != -SHMVIEW_ERR_TIMED_OUT)
        raise_error(r, Qnil);
    return r;
}

/* Raises OwnerDied, with the lock given back as it was. */
NORETURN(static void raise_death(VALUE self));
static void raise_death(VALUE self)
{
    int state;
    VALUE died = rb_protect(describe_death, self, &state);
    give_back(segment_of(self)->handle, false);
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

/* Takes it and holds it, or raises. */
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

/* The first call of a forked child, which asks the daemon. Raises what interrupts it, and its
 * failure. */
static void call_first(VALUE self, int (*call)(void *), struct lock_call *c)
{
    struct told told;
    int state = segment_call(self, call, c, &told);
    if (state)
        rb_jump_tag(state);
    if (c->r)
        raise_told(&told, Qnil);
}

/* Gives it back or raises. */
static VALUE give(VALUE self, bool repaired)
{
    struct segment *segment = segment_use(self);
    if (UNLIKELY(!is_entered(segment))) {
        struct lock_call c = {.handle = segment->handle, .repaired = repaired};
        call_first(self, unlock_unlocked, &c); /* which holds nothing yet, and fails */
        return Qnil;
    }
    int r = unlock(segment->handle, repaired);
    if (LIKELY(r == 0) || r == -SHMVIEW_ERR_LOST)
        held_pop(segment->handle);
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

/* The blocks are called from here, not from a method in Ruby: there an interrupt may come between
 * the call that takes the lock and the block, and the lock would stay held. */
static VALUE give_repaired(VALUE self)
{
    return give(self, true);
}

/*
 * call-seq: synchronize(timeout: nil) { |segment| ... }
 *
 * Holds the lock exclusively for the block; returns what the block returns. Recursive for each
 * thread. Waits without the GVL, at most +timeout+ seconds, then TimedOut is raised; nil: as long
 * as it takes; signals, Thread#raise, Thread#kill and Timeout.timeout end the wait. The lock
 * belongs to the thread: all Fibers of one hold it, and a Thread that ends inside has died inside.
 *
 * Raises OwnerDied where the last exclusive holder died inside, and holds nothing then: see
 * recover. Raises TimedOut, Deadlock (the thread holds it shared), NoLock, TooDeep, Closed.
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
 * Holds the lock among other readers for the block. As synchronize in everything else; also
 * raises Limit (a thread that holds 64 segments shared).
 */
static VALUE segment_shared(int argc, VALUE *argv, VALUE self)
{
    rb_need_block();
    take_or_raise(self, SHMVIEW_SHARED, timeout_option(argc, argv));
    return rb_ensure(rb_yield, self, give_repaired, self);
}

struct recovery {
    VALUE self, died;
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
 * Holds the lock exclusively for the block, also after a death inside. The block gets the OwnerDied
 * that names the dead owner, or nil. A block that runs to its end has repaired the bytes. After one
 * that is left by an exception, break, throw or Thread#kill the next owner gets OwnerDied again.
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
            give_back(segment_of(self)->handle, false);
            rb_jump_tag(state);
        }
    }
    return rb_ensure(yield_recovery, (VALUE)&recovery, end_recovery, (VALUE)&recovery);
}

/* --- Without a block ----------------------------------------------------- */

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
 * Takes the lock; returns self. The caller owes unlock, by the same thread; a Thread that ends
 * before has died inside. Raises what synchronize raises.
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
 * Takes the lock if nobody is in the way; returns whether it is held now. Does not wait for others;
 * the first call of a forked child, also of unlock and lock_status, attaches the segment and waits
 * for the daemon, without the GVL. Raises OwnerDied (it is not held then), Deadlock, NoLock,
 * Closed.
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
 * Gives back what this thread took last, exclusive or shared; returns self. +repaired+: false
 * tells the next one OwnerDied: the bytes are not in order. Raises NotOwner, Lost, NoLock, Closed.
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
 * Who holds the lock and who waits, at about the same time, without taking it: a LockStatus.
 * Waits for nobody, except for the daemon in a forked child: see try_lock. Raises NoLock, Closed.
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

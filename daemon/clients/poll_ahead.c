/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/poll_ahead.h"

#include <sched.h>

#include "common/base/util.h"

static void on_idle(uv_idle_t *idle)
{
    /* an active idle handle alone keeps the loop from sleeping */
    struct poll_ahead *l = idle->data;
    if (l->spin.looks || l->now_ns - l->yielded_ns > SPIN_YIELD_NS) {
        sched_yield();
        l->yielded_ns = l->now_ns = now_ns();
    }
}

void poll_ahead_init(struct poll_ahead *poll_ahead, uv_loop_t *loop)
{
    *poll_ahead =
        (struct poll_ahead){.spin = {.kind = SPIN_REQUEST}, .is_possible = spin_is_possible()};
    uv_idle_init(loop, &poll_ahead->idle);
    poll_ahead->idle.data = poll_ahead;
}

void poll_ahead_note(struct poll_ahead *poll_ahead)
{
    poll_ahead->was_asked = true;
}

/* Begins a poll after a request, unless polls were useless lately. */
static void begin(struct poll_ahead *l, int64_t now)
{
    l->ns = spin_begin(&l->spin);
    l->began_ns = l->yielded_ns = now;
    if (l->ns > 0) {
        l->given = spin_times_given();
        uv_idle_start(&l->idle, on_idle);
        return;
    }
    spin_missed(&l->spin, 0);
    uv_idle_stop(&l->idle);
}

void poll_ahead_before_wait(struct poll_ahead *poll_ahead, bool may)
{
    struct poll_ahead *l = poll_ahead;
    bool looks = uv_is_active((uv_handle_t *)&l->idle), was_asked = l->was_asked;
    l->was_asked = false;
    if (!l->is_possible || uv_is_closing((uv_handle_t *)&l->idle) || !(looks || was_asked))
        return;
    int64_t now = l->now_ns = now_ns();
    /* if another thread needed this processor, perhaps the client, the poll was useless */
    if (looks && was_asked && !l->spin.looks && spin_times_given() != l->given)
        spin_missed(&l->spin, l->ns);
    else if (looks && was_asked)
        spin_hit(&l->spin, l->ns, now - l->began_ns);
    if (!may) {
        uv_idle_stop(&l->idle);
    } else if (was_asked) {
        begin(l, now);
    } else if (now - l->began_ns >= l->ns) {
        spin_missed(&l->spin, l->ns);
        uv_idle_stop(&l->idle);
    }
}

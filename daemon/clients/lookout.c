/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/lookout.h"

#include <sys/resource.h>

#include "common/base/util.h"

static void on_idle(uv_idle_t *idle)
{
    (void)idle; /* that there is one is enough */
}

void lookout_init(struct lookout *lookout, uv_loop_t *loop)
{
    *lookout = (struct lookout){.is_possible = uv_available_parallelism() > 1};
    uv_idle_init(loop, &lookout->idle);
}

void lookout_note(struct lookout *lookout)
{
    lookout->was_asked = true;
}

/* How often somebody else got the processor who needed it. */
static long times_preempted(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_THREAD, &usage) ? 0 : usage.ru_nivcsw;
}

static void begin(struct lookout *l, int64_t now)
{
    l->ns = looking_ns(&l->looking);
    l->began_ns = now;
    if (l->ns > 0) {
        l->preempted = times_preempted();
        uv_idle_start(&l->idle, on_idle);
        return;
    }
    looking_in_vain(&l->looking, 0);
    uv_idle_stop(&l->idle);
}

void lookout_before_wait(struct lookout *lookout)
{
    struct lookout *l = lookout;
    bool looks = uv_is_active((uv_handle_t *)&l->idle), was_asked = l->was_asked;
    l->was_asked = false;
    if (!l->is_possible || uv_is_closing((uv_handle_t *)&l->idle) || !(looks || was_asked))
        return;
    int64_t now = now_ns();
    /* a client who had to take the processor from us first would rather have found us asleep */
    if (looks && was_asked && times_preempted() != l->preempted)
        looking_in_vain(&l->looking, l->ns);
    else if (looks && was_asked)
        looking_saw(&l->looking, l->ns, now - l->began_ns);
    if (was_asked) {
        begin(l, now);
    } else if (now - l->began_ns >= l->ns) {
        looking_in_vain(&l->looking, l->ns);
        uv_idle_stop(&l->idle);
    }
}

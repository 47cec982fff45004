/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/meter.h"

#include <time.h>

#define LONG_NS 300000 /* from here on the processor's time is read */
#define SAMPLED 16     /* it is also read at the beginning of every 16th turn */
#define EXACT   64     /* and of so many turns after a long one */

static int64_t cpu_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

void meter_init(struct meter *meter, uv_loop_t *loop)
{
    *meter = (struct meter){.loop = loop};
    uv_loop_configure(loop, UV_METRICS_IDLE_TIME);
}

void meter_end_turn(struct meter *meter)
{
    struct meter *m = meter;
    if (!m->began_ns)
        return;
    uint64_t waited = uv_metrics_idle_time(m->loop) - m->idle_ns;
    m->ended_ns = uv_hrtime();
    uint64_t took = m->ended_ns - m->began_ns - waited;
    if (took <= LONG_NS || took <= m->longest_ns) {
        m->since_ns += took;
        return;
    }
    int64_t now = cpu_ns();
    uint64_t used = (uint64_t)(now - m->cpu_ns);
    used -= used < m->since_ns ? used : m->since_ns;
    m->cpu_ns = now;
    m->since_ns = 0;
    m->n_exact = EXACT;
    if (used < took)
        took = used;
    if (took > m->longest_ns)
        m->longest_ns = took;
}

void meter_begin_turn(struct meter *meter)
{
    struct meter *m = meter;
    m->idle_ns = uv_metrics_idle_time(m->loop);
    m->began_ns = uv_hrtime();
    m->since_ns += m->began_ns - m->ended_ns;
    if (m->n_exact == 0 && m->n_turns++ % SAMPLED)
        return;
    m->n_exact -= m->n_exact > 0;
    m->cpu_ns = cpu_ns();
    m->since_ns = 0;
}

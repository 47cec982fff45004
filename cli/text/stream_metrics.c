/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/stream_metrics.h"

#include <inttypes.h>

#include "cli/text/bus_error.h"
#include "cli/text/streams.h"

/* Descriptions that are asked for; each takes the daemon some 10 us. */
#define DESCRIBED_MOST 1024

/* --- Figures ------------------------------------------------------------- */

static void add_reader(struct stream_figures *to, const struct shmview_stream_reader_status *r)
{
    if (r->stage >= to->n_stages || r->next == UINT64_MAX)
        return;
    to->stages[r->stage].readers++;
    to->stages[r->stage].missed += r->missed;
    if (r->lag > to->stages[r->stage].lag)
        to->stages[r->stage].lag = r->lag;
}

void stream_figures_of(const struct stream_facts *f, const char *name, struct stream_figures *ret)
{
    *ret = (struct stream_figures){
        .name = name,
        .n_stages = f->info.n_stages,
        .deaths = f->status.deaths,
        .sees_readers = f->sees_readers,
    };
    for (uint32_t k = 0; k < f->info.n_stages; k++)
        ret->stages[k].published = f->status.published[k];
    for (uint32_t state = 0; state < ARRAY_LEN(ret->slots); state++)
        ret->slots[state] = stream_count(f, state);
    for (size_t i = 0; i < f->n_readers; i++)
        add_reader(ret, &f->readers[i]);
}

/* One look at a segment, for bus_error_guard(). */
struct look {
    struct context *c;
    const char *name;
    struct stream_facts *facts; /* owned; NULL: it is no stream */
    int r;                      /* an error of the library */
};

static void look(void *arg)
{
    struct look *l = arg;
    l->r = stream_facts_of(l->c, l->name, &l->facts);
}

/* Gets the figures of one segment, within the limits. Returns 0, or an error of the library if
 * there is no daemon. */
static int add(struct context *c, const struct shmview_segment_stats *s, bool is_bounded,
               struct stream_metrics *m)
{
    struct look l = {.c = c, .name = s->name};
    bool may_be = false;
    if (!streams_is_candidate(s))
        return 0;
    if (is_bounded && (m->n_looks == STREAMS_MOST || m->n_described == DESCRIBED_MOST)) {
        m->n_omitted++;
        return 0;
    }
    m->n_described++;
    int r = streams_may_be(c, s, &may_be);
    if (!may_be)
        return r;
    m->n_looks++;
    if (!bus_error_guard(look, &l) || l.r)
        m->n_omitted++;
    else if (l.facts)
        stream_figures_of(l.facts, s->name, &m->figures[m->n++]);
    free(l.facts);
    return l.r == -SHMVIEW_ERR_DISCONNECTED ? l.r : 0;
}

int stream_metrics_get(struct context *c, const struct shmview_segment_stats *const *segments,
                       size_t n, bool is_bounded, struct stream_metrics *ret)
{
    int r = 0;
    *ret = (struct stream_metrics){.figures = calloc(n + 1, sizeof *ret->figures)};
    if (!ret->figures)
        return fail_memory(c);
    bus_error_catch();
    for (size_t i = 0; r == 0 && i < n; i++)
        r = add(c, segments[i], is_bounded, ret);
    return r ? fail_call(c, r) : 0;
}

/* --- Printing ------------------------------------------------------------ */

static void print_head(FILE *file, const char *name, const char *type, const char *help)
{
    fprintf(file, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

/* Prints a family with a value for each stage, at `offset` of the figures of a stage. Those of
 * readers are left out where no reader can be seen. Names of segments need no escapes. */
static void print_of_stages(FILE *file, const struct stream_figures *figures, size_t n,
                            size_t offset, bool of_readers, const char *name, const char *type,
                            const char *help)
{
    print_head(file, name, type, help);
    for (size_t i = 0; i < n; i++)
        for (uint32_t k = 0; k < figures[i].n_stages; k++) {
            const char *stage = (const char *)&figures[i].stages[k];
            if (!of_readers || figures[i].sees_readers)
                fprintf(file, "%s{segment=\"%s\",stage=\"%" PRIu32 "\"} %" PRIu64 "\n", name,
                        figures[i].name, k, *(const uint64_t *)(const void *)(stage + offset));
        }
}

static void print_slots(FILE *file, const struct stream_figures *figures, size_t n)
{
    static const char *const states[] = {"free", "loaned", "published", "held"};
    print_head(file, "shmview_stream_slots", "gauge", "Slots in each state.");
    for (size_t i = 0; i < n; i++)
        for (size_t s = 0; s < ARRAY_LEN(states); s++)
            fprintf(file, "shmview_stream_slots{segment=\"%s\",state=\"%s\"} %" PRIu32 "\n",
                    figures[i].name, states[s], figures[i].slots[s]);
}

static void print_deaths(FILE *file, const struct stream_figures *figures, size_t n)
{
    print_head(file, "shmview_stream_writer_deaths_total", "counter",
               "Writers that died at work, and from which another one took over.");
    for (size_t i = 0; i < n; i++)
        fprintf(file, "shmview_stream_writer_deaths_total{segment=\"%s\"} %" PRIu32 "\n",
                figures[i].name, figures[i].deaths);
}

void stream_metrics_print(FILE *file, const struct stream_metrics *m)
{
#define OF(member)                                                                                 \
    offsetof(struct stream_figures, stages[0].member) - offsetof(struct stream_figures, stages)
    if (m->n + m->n_omitted) {
        print_head(file, "shmview_streams_omitted", "gauge",
                   "Segments that may be streams, and are not looked into.");
        fprintf(file, "shmview_streams_omitted %zu\n", m->n_omitted);
    }
    if (m->n == 0)
        return;
    const struct stream_figures *figures = m->figures;
    const size_t n = m->n;
    print_of_stages(file, figures, n, OF(published), false, "shmview_stream_published_total",
                    "counter", "Published frames.");
    print_of_stages(file, figures, n, OF(readers), true, "shmview_stream_readers", "gauge",
                    "Readers that have joined.");
    print_of_stages(file, figures, n, OF(lag), true, "shmview_stream_lag_frames", "gauge",
                    "Frames that the slowest reader has not taken.");
    print_of_stages(file, figures, n, OF(missed), true, "shmview_stream_missed_frames", "gauge",
                    "Frames that the present readers have missed.");
#undef OF
    print_slots(file, figures, n);
    print_deaths(file, figures, n);
}

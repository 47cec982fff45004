/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/stream_metrics.h"

#include <inttypes.h>

#include "cli/text/streams.h"

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

static void summarize(const struct stream_facts *f, const char *name, struct stream_figures *ret)
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

int stream_metrics_get(struct context *c, const struct shmview_segment_stats *const *segments,
                       size_t n, struct stream_figures **ret, size_t *ret_n)
{
    CLEANUP_FREE uint32_t *modes = calloc(n + 1, sizeof *modes);
    struct stream_figures *figures = calloc(n + 1, sizeof *figures);
    int r = modes && figures ? streams_find(c, segments, n, modes) : 0;
    int status = !modes || !figures ? fail_memory(c) : r ? fail_call(c, r) : 0;
    size_t count = 0;
    for (size_t i = 0; status == 0 && i < n; i++) {
        struct stream_facts *f = NULL;
        /* a stream that ends at this moment has no figures; a lost connection is found by all */
        if (modes[i] && stream_facts_of(c, segments[i]->name, &f) == 0 && f)
            summarize(f, segments[i]->name, &figures[count++]);
        free(f);
    }
    if (status) {
        free(figures);
        return status;
    }
    *ret = figures;
    *ret_n = count;
    return 0;
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

void stream_metrics_print(FILE *file, const struct stream_figures *figures, size_t n)
{
#define OF(member)                                                                                 \
    offsetof(struct stream_figures, stages[0].member) - offsetof(struct stream_figures, stages)
    if (n == 0)
        return;
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

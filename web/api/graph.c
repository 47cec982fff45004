/* SPDX-License-Identifier: Apache-2.0 */
#include "web/api/graph.h"

/* The walk, depth first. */
struct walk {
    const struct shmview_stats *stats;
    const struct shmview_segment_stats *first;
    int64_t begun_us;
    struct graph *graph;
    struct graph_wait path[GRAPH_LEVELS]; /* the waits above the current line */
    int64_t followed[GRAPH_LINES];        /* the processes whose waits have been listed */
    size_t n_followed;
};

/* Returns a new line, or NULL if there is no room. */
static struct graph_line *add_line(struct walk *w, unsigned depth,
                                   const struct shmview_segment_stats *segment,
                                   const struct shmview_party_stats *party)
{
    struct graph *g = w->graph;
    if (g->n_lines == GRAPH_LINES) {
        g->is_cut = true;
        return NULL;
    }
    g->lines[g->n_lines] = (struct graph_line){.depth = depth, .segment = segment, .party = party};
    return &g->lines[g->n_lines++];
}

/* Adds the cycle of the waits from `from` up to, but not including, `to`. Returns whether all of
 * them lasted at the same moment. */
static bool add_cycle(struct walk *w, unsigned from, unsigned to)
{
    struct graph *g = w->graph;
    unsigned n = to - from, start = 0;
    for (unsigned i = from; i < to; i++) {
        int64_t since_us = w->path[i].party->since_us;
        if (since_us <= 0 || since_us >= w->begun_us)
            return false;
        if (w->path[i].segment == w->first)
            start = i - from;
    }
    if (g->n_cycles == GRAPH_CYCLES) {
        g->is_cut = true;
        return true;
    }
    struct graph_cycle *c = &g->cycles[g->n_cycles++];
    c->n = n;
    for (unsigned i = 0; i < n; i++) /* the wait for the first segment comes first */
        c->waits[i] = w->path[from + (start + i) % n];
    return true;
}

/* Returns the level at which a process waits above, or depth. */
static unsigned level_of(const struct walk *w, unsigned depth, int64_t pid)
{
    unsigned i = 0;
    while (i < depth && w->path[i].party->pid != pid)
        i++;
    return i;
}

/* Notes that the waits of a process are listed now. Returns false if they were before. */
static bool follow(struct walk *w, int64_t pid)
{
    for (size_t i = 0; i < w->n_followed; i++)
        if (w->followed[i] == pid)
            return false;
    w->followed[w->n_followed++] = pid; /* each has a line of its own, so there is room */
    return true;
}

static void visit_holders(struct walk *w, const struct shmview_segment_stats *s, unsigned depth);

/* Adds the locks that a holder waits for, and their holders. depth is the number of waits above. */
static void visit_waits(struct walk *w, int64_t pid, unsigned depth)
{
    for (size_t i = 0; i < w->stats->n_segments; i++) {
        const struct shmview_segment_stats *s = w->stats->segments[i];
        for (size_t k = 0; k < s->n_parties; k++) {
            const struct shmview_party_stats *p = s->parties[k];
            if (p->pid != pid || !p->waits)
                continue;
            if (depth == GRAPH_LEVELS) {
                w->graph->is_cut = true;
                return;
            }
            if (!add_line(w, 2 * depth + 1, s, p))
                return;
            w->path[depth] = (struct graph_wait){.segment = s, .party = p};
            visit_holders(w, s, depth + 1);
        }
    }
}

/* Adds the holders of a lock for which the process of the last level of the path waits. */
static void visit_holders(struct walk *w, const struct shmview_segment_stats *s, unsigned depth)
{
    for (size_t i = 0; i < s->n_parties; i++) {
        const struct shmview_party_stats *p = s->parties[i];
        if (!p->holds)
            continue;
        struct graph_line *line = add_line(w, 2 * depth, s, p);
        if (!line)
            return;
        line->is_holder = true;
        if (p->pid <= 0) /* of another pid namespace: nothing else is known of it */
            continue;
        unsigned level = level_of(w, depth, p->pid);
        /* A process that waits for itself has threads, of which another one is inside. */
        if (level + 1 < depth)
            line->is_closing = add_cycle(w, level, depth);
        if (level == depth && follow(w, p->pid))
            visit_waits(w, p->pid, depth);
        else
            line->is_repeated = !line->is_closing;
    }
}

void graph_make(const struct shmview_stats *stats, const struct shmview_segment_stats *segment,
                int64_t begun_us, struct graph *ret)
{
    struct walk w = {.stats = stats, .first = segment, .begun_us = begun_us, .graph = ret};
    ret->n_lines = ret->n_cycles = 0;
    ret->is_cut = false;
    for (size_t i = 0; i < segment->n_parties; i++)
        if (segment->parties[i]->waits)
            add_line(&w, 0, segment, segment->parties[i]);
    visit_holders(&w, segment, 0);
}

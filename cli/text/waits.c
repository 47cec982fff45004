/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/waits.h"

#include <inttypes.h>

#define DEPTH_MAX 8 /* levels of holders; bounds the recursion too */

/* The walk through the tree, depth first. */
struct walk {
    const struct shmview_stats *stats;
    int64_t now_us;
    struct waits_line *lines;
    size_t n, room;
    int64_t pids[DEPTH_MAX]; /* the holders above the current line, one for each level */
};

/* Returns a new line, or NULL if lines are full. */
static struct waits_line *add(struct walk *w, unsigned depth)
{
    if (w->n == w->room)
        return NULL;
    struct waits_line *line = &w->lines[w->n++];
    *line = (struct waits_line){.depth = depth};
    return line;
}

/* Writes "4711 python3 holds camera, exclusive, 3s". line may be NULL. */
static void say(const struct walk *w, struct waits_line *line, const struct shmview_party_stats *p,
                const char *does, const char *segment, uint32_t mode)
{
    char since[HUMAN_BYTES] = "";
    bool is_known = p->since_us > 0;
    if (!line)
        return;
    if (is_known)
        human_duration(since, w->now_us - p->since_us);
    const char *name = hold_name(mode);
    snprintf(line->text, sizeof line->text, "%" PRId64 "%s%s %s %s, %s%s%s", p->pid,
             p->command[0] ? " " : "", p->command, does, segment, name ? name : "",
             is_known ? ", " : "", since);
}

/* Whether a holder above is the process. */
static bool is_on_the_way(const struct walk *w, unsigned depth, int64_t pid)
{
    for (unsigned i = 0; i < depth; i++)
        if (w->pids[i] == pid)
            return true;
    return false;
}

static void visit_holders(struct walk *w, const struct shmview_segment_stats *s, unsigned depth);

/* Adds the locks that a holder waits for, and their holders. */
static void visit_waits(struct walk *w, int64_t pid, unsigned depth)
{
    for (size_t i = 0; i < w->stats->n_segments; i++) {
        const struct shmview_segment_stats *s = w->stats->segments[i];
        for (size_t j = 0; j < s->n_parties; j++) {
            const struct shmview_party_stats *p = s->parties[j];
            if (p->pid != pid || !p->waits)
                continue;
            say(w, add(w, depth), p, "waits for", s->name, p->waits);
            visit_holders(w, s, depth + 1);
        }
    }
}

/* Adds the holders of a segment's lock, and below each the locks that it waits for. */
static void visit_holders(struct walk *w, const struct shmview_segment_stats *s, unsigned depth)
{
    if (depth >= DEPTH_MAX)
        return;
    for (size_t i = 0; i < s->n_parties; i++) {
        const struct shmview_party_stats *p = s->parties[i];
        if (!p->holds)
            continue;
        struct waits_line *line = add(w, depth);
        say(w, line, p, "holds", s->name, p->holds);
        if (!line)
            return;
        if (p->pid <= 0) /* of another pid namespace: its other parties are not known */
            continue;
        line->is_cycle = is_on_the_way(w, depth, p->pid);
        w->pids[depth] = p->pid;
        if (!line->is_cycle)
            visit_waits(w, p->pid, depth + 1);
    }
}

size_t waits_tree(const struct shmview_stats *stats, const struct shmview_segment_stats *segment,
                  int64_t now_us, struct waits_line *lines, size_t room)
{
    struct walk w = {.stats = stats, .now_us = now_us, .lines = lines, .room = room};
    visit_holders(&w, segment, 0);
    for (size_t i = 0; i < segment->n_parties; i++)
        if (segment->parties[i]->waits)
            say(&w, add(&w, 0), segment->parties[i], "waits for", segment->name,
                segment->parties[i]->waits);
    return w.n;
}

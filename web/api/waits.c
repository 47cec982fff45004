/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/waits?name=NAME: the waiters for the lock of a segment, and the locks for which its
 * holder waits.
 *
 * The daemon has no list of what a process waits for. Therefore a pass through the figures of all
 * segments looks for those whose locks are awaited, and their names are remembered. Each answer is
 * made from the figures of these names, one request to the daemon. All pages share the passes, of
 * which one runs at a time, and which take at most a part of the time. Without a waiter there is
 * none. */
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "web/api/api.h"
#include "web/api/graph.h"

#define PASS_SEGMENTS 1000 /* in one request of a pass */
#define PASS_LEAST_NS 1000000000
#define PASS_PART     20 /* the next pass comes after this many times the time of the last */
#define MOST_AWAITED  (LIMIT_NAMES - 1) /* one name is that of the segment */
#define NAME_ROOM     160               /* a name has at most 128 bytes */

/* The names of segments whose locks are awaited. */
struct awaited {
    char names[MOST_AWAITED][NAME_ROOM];
    size_t n;
    bool is_cut; /* there are others */
};

/* What the passes have found. A process has one server. */
static struct {
    pthread_mutex_t mutex;
    struct awaited awaited;
    bool runs;      /* a thread makes a pass */
    int64_t due_ns; /* of the next pass, CLOCK_MONOTONIC */
} known = {.mutex = PTHREAD_MUTEX_INITIALIZER};

static int64_t clock_ns(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* --- Finding the segments ------------------------------------------------ */

static bool is_awaited(const struct shmview_segment_stats *s)
{
    for (size_t i = 0; i < s->n_parties; i++)
        if (s->parties[i]->waits)
            return true;
    return false;
}

/* Adds a segment. Figures are requested by name, so one without a name is left out. */
static void note(struct awaited *a, const struct shmview_segment_stats *s)
{
    if (!is_awaited(s))
        return;
    if (a->n == MOST_AWAITED || !s->is_named || strlen(s->name) >= NAME_ROOM)
        a->is_cut = true;
    else
        strcpy(a->names[a->n++], s->name);
}

/* Looks through all segments that the user may see. Returns 0 or an error of the library. */
static int find_awaited(struct shmview_connection *connection, struct awaited *ret)
{
    struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = PASS_SEGMENTS, .brief = 1};
    const struct shmview_stats *s;
    do {
        int r = shmview_stats_get(connection, &o, &s);
        if (r)
            return r;
        for (size_t i = 0; i < s->n_segments; i++)
            note(ret, s->segments[i]);
        o.after = s->next;
        shmview_stats_free(s);
    } while (o.after);
    return 0;
}

/* Makes a pass if it is time for one. Sets *ret_is_new if the names are others now. Returns 0 or an
 * error of the library. */
static int look_around(struct shmview_connection *connection, bool *ret_is_new)
{
    int64_t begun_ns = clock_ns(CLOCK_MONOTONIC);
    pthread_mutex_lock(&known.mutex);
    bool is_due = !known.runs && begun_ns >= known.due_ns;
    known.runs |= is_due;
    pthread_mutex_unlock(&known.mutex);
    *ret_is_new = false;
    if (!is_due)
        return 0;
    struct awaited found = {.n = 0};
    int r = find_awaited(connection, &found);
    int64_t ended_ns = clock_ns(CLOCK_MONOTONIC);
    int64_t pause_ns = (ended_ns - begun_ns) * PASS_PART;
    pthread_mutex_lock(&known.mutex);
    known.runs = false;
    known.due_ns = ended_ns + (pause_ns > PASS_LEAST_NS ? pause_ns : PASS_LEAST_NS);
    if (r == 0)
        known.awaited = found;
    pthread_mutex_unlock(&known.mutex);
    *ret_is_new = r == 0;
    return r;
}

/* --- The answer ---------------------------------------------------------- */

/* Figures, and the segment among them. */
struct figures {
    const struct shmview_stats *stats;
    const struct shmview_segment_stats *segment; /* NULL: there is none of that name */
    int64_t begun_us;                            /* before they were requested, CLOCK_REALTIME */
    bool is_cut;
};

/* Gets figures of the segment, and of those whose locks are awaited. Returns 0 or an error of the
 * library. The caller must free ret->stats. */
static int get_figures(struct shmview_connection *connection, const char *name, struct figures *ret)
{
    const char *names[LIMIT_NAMES] = {name};
    size_t n = 1;
    struct awaited copy;
    pthread_mutex_lock(&known.mutex);
    copy = known.awaited;
    pthread_mutex_unlock(&known.mutex);
    for (size_t i = 0; i < copy.n; i++)
        if (strcmp(copy.names[i], name) != 0)
            names[n++] = copy.names[i];
    const struct shmview_stats_options o = {.struct_bytes = sizeof o, .names = names, .n_names = n};
    ret->begun_us = clock_ns(CLOCK_REALTIME) / 1000;
    ret->is_cut = copy.is_cut;
    int r = shmview_stats_get(connection, &o, &ret->stats);
    if (r)
        return r;
    ret->segment = NULL;
    for (size_t i = 0; i < ret->stats->n_segments && !ret->segment; i++)
        if (strcmp(ret->stats->segments[i]->name, name) == 0)
            ret->segment = ret->stats->segments[i];
    return 0;
}

static void put_party(struct text *t, const struct shmview_segment_stats *s,
                      const struct shmview_party_stats *p, int64_t now_us)
{
    text_put(t, "\"segment\":");
    text_json(t, s->name);
    text_print(t, ",\"pid\":%" PRId64 ",\"command\":", p->pid);
    text_json(t, p->command);
    text_put(t, ",\"since_us\":");
    text_json_known(t, p->since_us > 0 ? now_us - p->since_us : -1);
}

static void put_graph(struct text *t, const struct graph *g, int64_t now_us)
{
    text_put(t, "\"lines\":[");
    for (size_t i = 0; i < g->n_lines; i++) {
        const struct graph_line *line = &g->lines[i];
        text_print(t,
                   "%s{\"depth\":%u,\"holds\":%u,\"waits\":%u,\"is_repeated\":%s,"
                   "\"is_closing\":%s,",
                   i ? ",\n" : "\n", line->depth, line->is_holder ? line->party->holds : 0,
                   line->is_holder ? 0 : line->party->waits, line->is_repeated ? "true" : "false",
                   line->is_closing ? "true" : "false");
        put_party(t, line->segment, line->party, now_us);
        text_put(t, "}");
    }
    text_put(t, "],\"deadlocks\":[");
    for (size_t i = 0; i < g->n_cycles; i++) {
        for (size_t k = 0; k < g->cycles[i].n; k++) {
            text_put(t, k ? ",{" : i ? ",\n[{" : "\n[{");
            put_party(t, g->cycles[i].waits[k].segment, g->cycles[i].waits[k].party, now_us);
            text_put(t, "}");
        }
        text_put(t, "]");
    }
    text_put(t, "]");
}

static void put_answer(struct text *t, const struct figures *f)
{
    struct graph graph;
    graph_make(f->stats, f->segment, f->begun_us, &graph);
    text_put(t, "{\"name\":");
    text_json(t, f->segment->name);
    text_print(t, ",\"is_complete\":%s,", graph.is_cut || f->is_cut ? "false" : "true");
    put_graph(t, &graph, clock_ns(CLOCK_REALTIME) / 1000);
    text_put(t, "}\n");
}

void api_waits(const struct request *q, struct reply *reply)
{
    const char *name = request_text(q, "name");
    struct figures f = {.stats = NULL};
    bool is_new = false;
    struct shmview_connection *connection = api_connect(q, reply);
    if (!connection)
        return;
    if (!name) {
        reply_error(reply, 400, "the parameter name is missing");
        return;
    }
    int r = get_figures(connection, name, &f);
    if (r == 0 && f.segment && is_awaited(f.segment))
        r = look_around(connection, &is_new);
    if (r == 0 && is_new) {
        shmview_stats_free(f.stats);
        f.stats = NULL;
        r = get_figures(connection, name, &f);
    }
    if (r)
        api_fail(reply, r);
    else if (!f.segment)
        reply_error(reply, 404, "there is no segment '%.140s'", name);
    else
        put_answer(&reply->body, &f);
    shmview_stats_free(f.stats);
}

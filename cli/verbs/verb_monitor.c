/* SPDX-License-Identifier: Apache-2.0 */
/* monitor: events as they come. */
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/text/event.h"

#define N_NAMES 64 /* as many as the daemon looks for */
#define LOOK_NS INT64_C(1000000000)

struct watch {
    uint32_t kinds; /* 0: all */
    char **patterns;
    bool json, has_since, is_away, is_open;
    int64_t since_us;
    int64_t count;    /* 0: no end */
    int64_t deadline; /* SHMVIEW_FOREVER: none */
    uint64_t after;
};

/* --- Which --------------------------------------------------------------- */

static bool is_about_monitoring(const struct shmview_event *e)
{
    return e->kind == SHMVIEW_EVENT_SUBSCRIBED || e->kind == SHMVIEW_EVENT_LOST;
}

static bool fits(const struct watch *w, const struct shmview_event *e)
{
    bool fits = !w->patterns[0] || !e->id;
    if (e->kind == SHMVIEW_EVENT_SUBSCRIBED && w->kinds)
        return w->kinds & SHMVIEW_EVENT_BIT(e->kind);
    if (!is_about_monitoring(e) && w->has_since && e->time_us < w->since_us)
        return false;
    for (size_t i = 0; w->patterns[i] && !fits; i++)
        fits = fnmatch(w->patterns[i], e->segment, 0) == 0;
    return fits;
}

static bool has_pattern(char **patterns)
{
    for (size_t i = 0; patterns[i]; i++)
        if (strpbrk(patterns[i], "*?[\\"))
            return true;
    return false;
}

/* --- Output -------------------------------------------------------------- */

/* What needs attention, what comes, what goes. */
static const char *color_of(uint32_t kind)
{
    switch (kind) {
    case SHMVIEW_EVENT_DIED:
    case SHMVIEW_EVENT_OWNER_DIED:
    case SHMVIEW_EVENT_LOST:
        return "\033[31m";
    case SHMVIEW_EVENT_QUOTA:
    case SHMVIEW_EVENT_RECOVERED:
        return "\033[33m";
    case SHMVIEW_EVENT_CREATED:
    case SHMVIEW_EVENT_ATTACHED:
        return "\033[32m";
    case SHMVIEW_EVENT_PHASE:
        return "\033[36m";
    default:
        return "";
    }
}

static int print_event(struct context *c, const struct watch *w, const struct shmview_event *e)
{
    char time[EVENT_TIME_BYTES], text[400];
    const char *color = wants_color() ? color_of(e->kind) : "";
    if (w->json) {
        json_auto_t *json = event_json(e);
        return print_json_line(c, json);
    }
    event_sentence(e, text, sizeof text);
    printf("%s %s%-14s%s %-16s%s%s\n", event_time(time, e->time_us, false), color,
           shmview_event_kind_name((int)e->kind), color[0] ? "\033[0m" : "", e->segment,
           text[0] ? " " : "", text);
    /* that nobody reads any more is said at the end, once */
    return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

/* --- Waiting ------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Waits for the next event, and says so when there is no daemon to send one. Returns what
 * shmview_monitor_next() does. */
static int next_event(struct context *c, struct watch *w, struct shmview_monitor *monitor,
                      const struct shmview_event **ret)
{
    for (;;) {
        int64_t look = earlier(w->deadline, shmview_deadline(LOOK_NS));
        int r = shmview_monitor_next(monitor, look, ret);
        if (r != -SHMVIEW_ERR_TIMED_OUT && r != -SHMVIEW_ERR_DISCONNECTED)
            return r;
        if (r == -SHMVIEW_ERR_DISCONNECTED && !w->is_away) {
            warn_text(c, "the daemon is gone; waiting for the next one");
            w->is_away = true;
        }
        if (look == w->deadline)
            return -SHMVIEW_ERR_TIMED_OUT;
    }
}

static int end_in_time(struct context *c, const struct watch *w, int64_t n)
{
    if (w->count == 0)
        return EXIT_OK;
    warn_text(c, "%" PRId64 " of %" PRId64 " events came in time: give --timeout more", n,
              w->count);
    return EXIT_TIMED_OUT;
}

static int tell_events(struct context *c, struct watch *w, struct shmview_monitor *monitor)
{
    const struct shmview_event *e;
    for (int64_t n = 0; w->count == 0 || n < w->count;) {
        int r = next_event(c, w, monitor, &e);
        if (r == -SHMVIEW_ERR_TIMED_OUT)
            return end_in_time(c, w, n);
        if (r)
            return fail_call(c, r);
        bool is_first = e->kind == SHMVIEW_EVENT_SUBSCRIBED && !w->is_open;
        if (e->kind == SHMVIEW_EVENT_SUBSCRIBED) {
            w->is_open = true;
            w->is_away = false;
        }
        /* people want to hear of the next daemon, not of this one, unless they ask for it */
        bool is_asked = w->json || w->kinds & SHMVIEW_EVENT_BIT(e->kind);
        if (!fits(w, e) || (is_first && !is_asked))
            continue;
        int status = print_event(c, w, e);
        if (status)
            return status;
        n += !is_about_monitoring(e);
    }
    return EXIT_OK;
}

/* --- The verb ------------------------------------------------------------ */

static int read_kinds(struct context *c, const char *value, void *to)
{
    return event_kinds(c, value, to);
}

static int read_after(struct context *c, const char *value, void *to)
{
    int64_t serial = SHMVIEW_MONITOR_REMEMBERED;
    int status =
        strcmp(value, "all") == 0 ? 0 : parse_number(c, "--after", value, 1, INT64_MAX, &serial);
    *(uint64_t *)to = (uint64_t)serial;
    return status;
}

static int read_since(struct context *c, const char *value, void *to)
{
    struct watch *w = to;
    w->has_since = true;
    w->after = SHMVIEW_MONITOR_REMEMBERED;
    return event_since(c, value, realtime_us(), &w->since_us);
}

static int run_monitor(struct context *c, int argc, char **argv)
{
    struct watch w = {.deadline = SHMVIEW_FOREVER};
    const struct verb_option options[] = {
        OPT_FLAG("json", 'J', &w.json),
        OPT_CALL("kind", 'k', &w.kinds, read_kinds),
        OPT_CALL("after", 'a', &w.after, read_after),
        OPT_CALL("since", 'S', &w, read_since),
        OPT_NUMBER("count", 'n', &w.count, 1, INT64_MAX),
        OPT_DEADLINE("timeout", 'w', &w.deadline),
        OPT_END,
    };
    struct shmview_monitor *monitor;
    if (!options_read(c, argc, argv, options, 0, N_NAMES))
        return c->status;
    w.patterns = argv + optind;
    bool is_local = has_pattern(w.patterns);
    struct shmview_monitor_options want = {
        .struct_bytes = sizeof want,
        .kinds = w.kinds,
        .names = (const char *const *)w.patterns,
        .n_names = is_local ? 0 : (size_t)(argc - optind),
        .after = w.after,
    };
    int status = connect_daemon(c);
    if (status)
        return status;
    int r = shmview_monitor_open(c->connection, &want, &monitor);
    if (r)
        return fail_call(c, r);
    status = tell_events(c, &w, monitor);
    shmview_monitor_close(monitor);
    return status;
}

const struct verb verb_monitor = {
    .name = "monitor",
    .arguments = "[PATTERN]...",
    .summary = "Print what happens to segments and their clients, as it happens",
    .help = "  -k, --kind KIND,...       only these: created, attached, detached, died,\n"
            "                            owner_died, removed, access_changed, phase,\n"
            "                            quota_refused, recovered, subscribed, lost\n"
            "  -S, --since TIME          also what is remembered since 10min, 12:00\n"
            "  -a, --after SERIAL        also what is remembered after that event; all\n"
            "  -n, --count N             end after so many events\n"
            "  -w, --timeout TIME        end after so long; status 124 where N have not come\n"
            "  -J, --json                a JSON object a line\n"
            "\nExample: shmviewctl monitor -k died,owner_died 'camera*'\n\n",
    .run = run_monitor,
};

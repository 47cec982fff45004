/* SPDX-License-Identifier: Apache-2.0 */
/* monitor: prints events as they happen.
 *
 * The daemon filters by kind and by up to 64 names. It knows no patterns: with one that has "*",
 * "?", "[" or a backslash, this program gets the events of all segments and filters by itself. The
 * names need not exist yet.
 *
 * The program survives the daemon. The library subscribes again at the next one and continues after
 * the last event that it returned. This program only prints a warning while no daemon runs. */
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/text/event.h"

#define N_NAMES 64                  /* the daemon's limit for one request */
#define LOOK_NS INT64_C(1000000000) /* between two tests whether a daemon runs */

/* The command line, and the state of the subscription: is_away is set while no daemon runs and that
 * was reported, is_open once the first SUBSCRIBED event has come. */
struct watch {
    uint32_t kinds; /* 0: all */
    char **patterns;
    bool json, has_since, is_away, is_open;
    int64_t since_us;
    int64_t count;    /* 0: no end */
    int64_t deadline; /* SHMVIEW_FOREVER: none */
    uint64_t after;   /* remembered events after this serial are wanted too */
};

/* --- Choosing events ----------------------------------------------------- */

/* Whether the event is about the subscription itself. Such events do not count for --count. */
static bool is_about_monitoring(const struct shmview_event *e)
{
    return e->kind == SHMVIEW_EVENT_SUBSCRIBED || e->kind == SHMVIEW_EVENT_LOST;
}

/* Whether the command line asks for the event. An event without a segment fits each pattern. An
 * event about the subscription is never too old, because a LOST one means that older ones are
 * missing. */
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

/* Whether an argument is more than a plain name, so that the daemon cannot filter by it. */
static bool has_pattern(char **patterns)
{
    for (size_t i = 0; patterns[i]; i++)
        if (strpbrk(patterns[i], "*?[\\"))
            return true;
    return false;
}

/* --- Output -------------------------------------------------------------- */

/* Returns the colour of a kind: red for deaths and lost events, yellow for warnings, green for
 * beginnings, cyan for phases; otherwise "". */
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

/* Prints one line and flushes it, because a reader of a pipe waits for it. Returns 0 or the exit
 * status. */
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
    /* main() reports an output that cannot be written, once */
    return fflush(stdout) ? EXIT_FAILED : EXIT_OK;
}

/* --- Waiting ------------------------------------------------------------- */

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Waits for the next event. If no daemon runs, warns once for each outage and continues to wait.
 * The wait has steps of LOOK_NS because shmview_monitor_next() returns DISCONNECTED only at a
 * deadline. Retries after TIMED_OUT and DISCONNECTED until w->deadline, then returns
 * -SHMVIEW_ERR_TIMED_OUT. Returns any other result of that call. */
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

/* Returns the exit status after --timeout: success, unless --count wanted more than n events. */
static int end_in_time(struct context *c, const struct watch *w, int64_t n)
{
    if (w->count == 0)
        return EXIT_OK;
    warn_text(c, "%" PRId64 " of %" PRId64 " events came in time: give a longer --timeout", n,
              w->count);
    return EXIT_TIMED_OUT;
}

/* Prints events until --count, --timeout or an error. Returns the exit status. */
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
        /* The first SUBSCRIBED is no news for people, later ones are. Programs get the first too:
         * it shows that no later event is missed. */
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

/* Reads a serial, or "all" for every remembered event. */
static int read_after(struct context *c, const char *value, void *to)
{
    int64_t serial = SHMVIEW_MONITOR_REMEMBERED;
    int status =
        strcmp(value, "all") == 0 ? 0 : parse_number(c, "--after", value, 1, INT64_MAX, &serial);
    *(uint64_t *)to = (uint64_t)serial;
    return status;
}

/* Reads a time. The daemon knows only serials, so all remembered events are requested, and fits()
 * drops the older ones. */
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
    .help = "  -k, --kind KIND,...       print only: created, attached, detached, died,\n"
            "                            owner_died, removed, access_changed, phase,\n"
            "                            quota_refused, recovered, subscribed, lost\n"
            "  -S, --since TIME          print remembered events too, since 10min, 12:00\n"
            "  -a, --after SERIAL        print remembered events after that one too; or all\n"
            "  -n, --count N             end after that many events\n"
            "  -w, --timeout TIME        end after that time; status 124 if N is not reached\n"
            "  -J, --json                print one JSON object on each line\n"
            "\nExample: shmviewctl monitor -k died,owner_died 'camera*'\n\n",
    .run = run_monitor,
};

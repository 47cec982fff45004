/* SPDX-License-Identifier: Apache-2.0 */
/* switch, wait: which layout is current. */
#include <inttypes.h>
#include <string.h>

#include <shmview/describe.h>
#include <shmview/monitor.h>

#include "cli/shell/suggest.h"
#include "cli/text/show.h"

/* --- switch -------------------------------------------------------------- */

static void suggest_layouts(struct context *c, const char *name, const char *typed)
{
    struct suggest s = {.typed = typed};
    const struct shmview_description *d;
    if (shmview_describe(c->connection, name, &d))
        return;
    for (size_t i = 0; i < d->n_layouts; i++)
        suggest_offer(&s, d->layouts[i]->name);
    shmview_description_free(d);
    suggest_print(&s);
}

/* Who is told that the last holder died leaves that for the next one: the bytes are not looked at
 * here. */
static int switch_locked(struct context *c, struct shmview_segment *segment, const char *layout,
                         bool owner_died)
{
    int r = shmview_switch(segment, layout);
    int status = r ? fail_call(c, r) : EXIT_OK;
    if (owner_died) {
        warn_text(c, "the last holder of the lock died inside, and the next one is told: look at "
                     "the bytes, then 'shmviewctl lock --owner-died=repair'");
        shmview_unlock_not_repaired(segment);
    } else {
        shmview_unlock(segment);
    }
    if (r == -SHMVIEW_ERR_NO_LAYOUT)
        suggest_layouts(c, shmview_name(segment), layout);
    return status;
}

static int run_switch(struct context *c, int argc, char **argv)
{
    int64_t deadline = SHMVIEW_FOREVER;
    bool json = false;
    const struct verb_option options[] = {
        OPT_DEADLINE("timeout", 't', &deadline),
        OPT_FLAG("json", 'J', &json),
        OPT_END,
    };
    struct shmview_segment *segment;
    if (!options_read(c, argc, argv, options, 2, 2))
        return c->status;
    const char *name = argv[optind], *layout = argv[optind + 1];
    int status = attach(c, name, SHMVIEW_WRITE, &segment);
    if (status)
        return status;
    int r = shmview_lock_until(segment, deadline);
    status = r < 0 ? fail_call(c, r) : switch_locked(c, segment, layout, r == SHMVIEW_OWNER_DIED);
    shmview_detach(segment);
    return status || !json ? status : describe_json(c, name);
}

const struct verb verb_switch = {
    .name = "switch",
    .arguments = "NAME LAYOUT",
    .summary = "Make another layout the current one, under the lock",
    .help = "  -t, --timeout TIME        wait for the lock at most so long (default: forever)\n"
            "  -J, --json                print the segment, as show does\n",
    .run = run_switch,
};

/* --- wait: for a segment ------------------------------------------------- */

struct wait_call {
    const char *name;
    const char *layout; /* --phase */
    bool change, removed, json;
    int64_t deadline;
};

static int fail_late(struct context *c, const struct wait_call *w, const char *what)
{
    warn_text(c, "time is up, and '%s' %s: give --timeout more, or look with 'shmviewctl list'",
              w->name, what);
    return EXIT_TIMED_OUT;
}

/* Returns 0 and its id; 0 and -1, there is none; or the exit status. */
static int find(struct context *c, const char *name, int64_t *ret_id)
{
    const struct shmview_description *d;
    int r = shmview_describe(c->connection, name, &d);
    if (r == -SHMVIEW_ERR_NOT_FOUND) {
        *ret_id = -1;
        return 0;
    }
    if (r)
        return fail_call(c, r);
    *ret_id = d->id;
    shmview_description_free(d);
    return 0;
}

/* Waits until there is a segment of that name, and *ret_id is its id; or, if that is not -1, until
 * the one with that id has it no more. */
static int wait_event(struct context *c, const struct wait_call *w, struct shmview_monitor *monitor,
                      int64_t *id)
{
    const struct shmview_event *event;
    int64_t old = *id, now = -1;
    for (;;) {
        int status = find(c, w->name, &now);
        if (status || now != old) {
            *id = now;
            return status;
        }
        int r = shmview_monitor_next(monitor, w->deadline, &event);
        if (r == -SHMVIEW_ERR_TIMED_OUT || r == -SHMVIEW_ERR_DISCONNECTED)
            return fail_late(c, w, old < 0 ? "is not there" : "is still there");
        if (r)
            return fail_call(c, r);
    }
}

/* The same for the kind of event that can make a difference. */
static int wait_presence(struct context *c, const struct wait_call *w, int64_t *id)
{
    const struct shmview_monitor_options options = {
        .struct_bytes = sizeof options,
        .kinds = *id < 0 ? SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_CREATED) |
                               SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_ACCESS)
                         : SHMVIEW_EVENT_BIT(SHMVIEW_EVENT_REMOVED),
        .names = &w->name,
        .n_names = 1,
    };
    struct shmview_monitor *monitor;
    int r = shmview_monitor_open(c->connection, &options, &monitor);
    if (r)
        return fail_call(c, r);
    int status = wait_event(c, w, monitor, id);
    shmview_monitor_close(monitor);
    return status;
}

/* --- wait: for what happens in it ---------------------------------------- */

/* The one who waits in memory looks up so often whether the segment is still there. */
#define LOOK_NS INT64_C(1000000000)

/* Goes on after a wait of at most LOOK_NS has ended with r. Returns GO_ON or the exit status. */
static int look_up(struct context *c, const struct wait_call *w, int64_t id, int r,
                   const char *late)
{
    int64_t now = -1;
    if (r != -SHMVIEW_ERR_TIMED_OUT)
        return fail_call(c, r);
    if (shmview_deadline(0) >= w->deadline)
        return fail_late(c, w, late);
    int status = find(c, w->name, &now);
    if (status)
        return status;
    if (now == id)
        return GO_ON;
    warn_text(c, "segment '%s' was removed: 'shmviewctl list' shows the segments that you may see",
              w->name);
    return EXIT_NOT_FOUND;
}

static int64_t next_look(const struct wait_call *w)
{
    int64_t next = shmview_deadline(LOOK_NS);
    return next < w->deadline ? next : w->deadline;
}

/* By its name, which nobody may have declared yet. */
static int wait_phase(struct context *c, const struct wait_call *w, struct shmview_segment *segment,
                      int64_t id)
{
    struct shmview_phase phase;
    int status = GO_ON;
    int r = shmview_phase_get(segment, &phase);
    if (r)
        return fail_call(c, r);
    while (status == GO_ON) {
        if (phase.generation && strcmp(phase.name, w->layout) == 0)
            return EXIT_OK;
        r = shmview_wait_phase(segment, NULL, phase.generation, next_look(w), &phase);
        status = r ? look_up(c, w, id, r, "is in another phase") : GO_ON;
    }
    return status;
}

static int wait_change(struct context *c, const struct wait_call *w,
                       struct shmview_segment *segment, int64_t id)
{
    uint32_t seen = shmview_change(segment);
    int status = GO_ON;
    while (status == GO_ON) {
        int r = shmview_wait_change(segment, seen, next_look(w), &seen);
        status = r ? look_up(c, w, id, r, "has not changed") : EXIT_OK;
    }
    return status;
}

/* --- wait ---------------------------------------------------------------- */

static int wait_for(struct context *c, const struct wait_call *w)
{
    struct shmview_segment *segment;
    int64_t id = -1;
    int status = find(c, w->name, &id);
    if (status == 0 && (id >= 0) == w->removed)
        status = wait_presence(c, w, &id);
    if (status || (!w->layout && !w->change))
        return status;
    status = attach(c, w->name, SHMVIEW_READ, &segment);
    if (status)
        return status;
    status = w->layout ? wait_phase(c, w, segment, id) : wait_change(c, w, segment, id);
    shmview_detach(segment);
    return status;
}

static int run_wait(struct context *c, int argc, char **argv)
{
    struct wait_call w = {.deadline = SHMVIEW_FOREVER};
    const struct verb_option options[] = {
        OPT_TEXT("phase", 'p', &w.layout),     OPT_FLAG("change", '\0', &w.change),
        OPT_FLAG("removed", '\0', &w.removed), OPT_DEADLINE("timeout", 't', &w.deadline),
        OPT_FLAG("json", 'J', &w.json),        OPT_END,
    };
    if (!options_read(c, argc, argv, options, 1, 1))
        return c->status;
    if ((w.layout != NULL) + w.change + w.removed > 1)
        return fail_usage(c, "--phase, --change and --removed: give one of them");
    if (w.removed && w.json)
        return fail_usage(c, "--json has nothing to show of what is removed");
    w.name = argv[optind];
    int status = connect_daemon(c);
    status = status ? status : wait_for(c, &w);
    return status || !w.json ? status : describe_json(c, w.name);
}

const struct verb verb_wait = {
    .name = "wait",
    .arguments = "NAME",
    .summary = "Wait until a segment is there, and for what happens in it",
    .help = "  -p, --phase LAYOUT        until that layout is current, declared or not yet\n"
            "      --change              until its counter of changes moves on: somebody has\n"
            "                            notified, or switched the phase\n"
            "      --removed             until the name is gone\n"
            "  -t, --timeout TIME        at most so long; the exit status is then 124\n"
            "  -J, --json                print the segment, as show does\n",
    .run = run_wait,
};

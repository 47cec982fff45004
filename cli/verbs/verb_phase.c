/* SPDX-License-Identifier: Apache-2.0 */
/* switch: makes another layout current. wait: waits for a segment, a phase or a change.
 *
 * wait combines two kinds of waiting. The daemon's events report that a segment appears or
 * disappears; a phase and a change are words in shared memory, for which the library waits without
 * the daemon. In the second case nothing wakes this process when the segment is removed, because
 * its own attachment keeps the memory. Therefore it asks the daemon once a second whether the name
 * still belongs to the same segment. */
#include <inttypes.h>
#include <string.h>

#include <shmview/describe.h>
#include <shmview/monitor.h>

#include "cli/shell/suggest.h"
#include "cli/text/show.h"

/* --- switch -------------------------------------------------------------- */

/* Prints the layouts whose names resemble the one that was typed. */
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

/* Switches under the lock, and gives the lock back. If the last owner died inside, the lock is
 * given back as not repaired, because this verb does not look at the bytes: the next owner gets the
 * report as well. Returns the exit status. */
static int switch_locked(struct context *c, struct shmview_segment *segment, const char *layout,
                         bool owner_died)
{
    int r = shmview_switch(segment, layout);
    int status = r ? fail_call(c, r) : EXIT_OK;
    if (owner_died) {
        warn_text(c, "the last holder of the lock died inside, and the next one gets this report "
                     "too: check the bytes, then run 'shmviewctl lock --owner-died=repair'");
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
    .help = "  -t, --timeout TIME        wait at most that long for the lock\n"
            "  -J, --json                print the segment, like show --json\n",
    .run = run_switch,
};

/* --- wait: for a segment ------------------------------------------------- */

/* The command line of wait. */
struct wait_call {
    const char *name;
    const char *layout; /* --phase, or NULL */
    bool change, removed, json;
    int64_t deadline;
};

/* Prints what has not happened before the deadline. Returns the exit status. */
static int fail_late(struct context *c, const struct wait_call *w, const char *what)
{
    warn_text(c, "time is up, and '%s' %s: give a longer --timeout, or look with 'shmviewctl list'",
              w->name, what);
    return EXIT_TIMED_OUT;
}

/* Asks the daemon for the id of the segment, -1 if this user can see none of that name. An id is
 * never used again; a name may be. Returns 0 or the exit status. */
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

/* Waits until the name belongs to another segment than *id, where -1 stands for none, and sets *id.
 * Thus it waits for a segment to appear, or for one to lose its name. The monitor is open before
 * the first look, so that no event is missed in between. Returns 0 or the exit status. */
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
            return fail_late(c, w, old < 0 ? "does not exist" : "still exists");
        if (r)
            return fail_call(c, r);
    }
}

/* Like wait_event(), but opens and closes the monitor, for the kinds of events that can end the
 * wait. A segment also appears if a change of its access lets this user see it. */
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

/* --- wait: for a phase or a change --------------------------------------- */

/* How often a wait in shared memory asks the daemon whether the segment still exists. */
#define LOOK_NS INT64_C(1000000000)

/* Called after a wait of at most LOOK_NS has ended with r: checks the deadline and the segment.
 * Returns GO_ON to wait again, or the exit status. */
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

/* Returns the deadline of the next wait. */
static int64_t next_look(const struct wait_call *w)
{
    int64_t next = shmview_deadline(LOOK_NS);
    return next < w->deadline ? next : w->deadline;
}

/* Waits for any next phase and compares its name, because shmview_wait_phase() refuses a layout
 * that is not declared yet. Generation 0 is no phase, and its name has no meaning. Returns the exit
 * status. */
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

/* Waits for the first change from now on. Returns the exit status. */
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

/* Waits for the segment, and then for what the user wants in it. Without --removed it does not wait
 * for a segment that exists; with --removed it does not wait for one that does not. */
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
        return fail_usage(c, "--json cannot describe a segment that is removed");
    w.name = argv[optind];
    int status = connect_daemon(c);
    status = status ? status : wait_for(c, &w);
    return status || !w.json ? status : describe_json(c, w.name);
}

const struct verb verb_wait = {
    .name = "wait",
    .arguments = "NAME",
    .summary = "Wait until a segment exists, or for a phase or a change in it",
    .help = "  -p, --phase LAYOUT        wait until that layout, declared or not, is current\n"
            "      --change              wait until the counter of changes moves: a program\n"
            "                            has notified, or switched the phase\n"
            "      --removed             wait until the name is gone\n"
            "  -t, --timeout TIME        wait at most that long; the exit status is then 124\n"
            "  -J, --json                print the segment, like show --json\n",
    .run = run_wait,
};

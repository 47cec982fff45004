/* SPDX-License-Identifier: Apache-2.0 */
/* watch - an event loop that waits for changes of a segment and for events of the daemon.
 *
 * A child process attaches the segment, counts in it, and notifies after each step. The parent
 * waits in one poll() for both descriptors: that of the segment's changes, and that of a monitor.
 * It also shows what else a program can ask about a segment without attaching it.
 *
 * Build with: cc watch.c $(pkg-config --cflags --libs shmview) */
#include <err.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/access.h>
#include <shmview/describe.h>
#include <shmview/monitor.h>
#include <shmview/shmview.h>
#include <shmview/stats.h>

#define STEPS 3

static int must(int result, const char *what)
{
    if (result < 0)
        errx(1, "%s: %s", what, shmview_error_text());
    return result;
}

/* --- The child ----------------------------------------------------------- */

/* Adds 1 and notifies, and waits each time until the parent has answered with a change of its own.
 * Both changes count, so the counter shows whose turn it is. */
static void count(struct shmview_connection *connection, const char *name)
{
    struct shmview_segment *segment;
    must(shmview_attach(connection, name, SHMVIEW_WRITE, 0, &segment), "attach in the child");
    volatile int *number = shmview_data(segment);
    for (int i = 0; i < STEPS; i++) {
        must(shmview_lock(segment), "lock");
        ++*number;
        must(shmview_unlock(segment), "unlock");
        uint32_t mine = shmview_change(segment) + 1;
        must(shmview_notify(segment), "notify");
        must(shmview_wait_change(segment, mine, SHMVIEW_FOREVER, &mine), "the parent's answer");
    }
    must(shmview_detach(segment), "detach in the child");
}

/* --- The event loop ------------------------------------------------------ */

/* Reads the bytes that woke poll(), and then looks at the counter, which alone decides whether
 * there was a change. Answers each change of the child. */
static void on_change(struct shmview_segment *segment, int fd, uint32_t *seen)
{
    char bytes[64];
    while (read(fd, bytes, sizeof bytes) > 0)
        continue;
    uint32_t now = shmview_change(segment);
    if (now == *seen)
        return;
    must(shmview_lock_shared(segment), "shared lock");
    printf("the number is %d\n", *(const int *)shmview_data(segment));
    must(shmview_unlock(segment), "unlock");
    *seen = now + 1;
    must(shmview_notify_one(segment), "notify");
}

/* Takes all events that are there. Returns whether the child has left, in order or by its death. */
static int on_events(struct shmview_monitor *monitor)
{
    const struct shmview_event *event;
    int result, left = 0;
    while ((result = shmview_monitor_next(monitor, 0, &event)) == 0) {
        printf("event: %s\n", shmview_event_kind_name((int)event->kind));
        left |= event->kind == SHMVIEW_EVENT_DETACHED || event->kind == SHMVIEW_EVENT_DIED;
    }
    if (result != -SHMVIEW_ERR_TIMED_OUT)
        must(result, "events");
    return left;
}

static void loop(struct shmview_segment *segment, struct shmview_monitor *monitor)
{
    int fd;
    uint32_t seen = 0;
    must(shmview_change_fd(segment, &fd), "a descriptor for changes");
    on_change(segment, fd, &seen); /* for changes before there was a descriptor */
    for (int left = on_events(monitor); !left; left = on_events(monitor)) {
        struct pollfd wait[] = {
            {.fd = fd, .events = POLLIN},
            {.fd = shmview_monitor_fd(monitor), .events = POLLIN},
        };
        if (poll(wait, 2, -1) < 0)
            err(1, "poll");
        if (wait[0].revents)
            on_change(segment, fd, &seen);
    }
}

/* --- Questions ----------------------------------------------------------- */

/* Lets the group read the segment, and reads that back. */
static void show_rights(struct shmview_connection *connection, const char *name)
{
    const struct shmview_description *d;
    const struct shmview_access_change change = {
        .struct_bytes = sizeof change, .set = SHMVIEW_SET_MODE, .mode = 0640};
    must(shmview_set_access(connection, name, &change), "set access");
    must(shmview_describe(connection, name, &d), "describe");
    printf("mode 0%" PRIo64 ", %" PRId64 " bytes\n", d->mode, d->size);
    shmview_description_free(d);
}

static void show_figures(struct shmview_connection *connection, const char *name)
{
    const struct shmview_stats *stats;
    const struct shmview_stats_options options = {
        .struct_bytes = sizeof options, .names = &name, .n_names = 1};
    must(shmview_stats_get(connection, &options, &stats), "stats");
    if (stats->n_segments == 1)
        printf("%" PRId64 " changes\n", stats->segments[0]->changes);
    shmview_stats_free(stats);
}

/* Starts the child, which inherits the monitor and does not use it, and returns after its end. */
static void share(struct shmview_connection *connection, struct shmview_segment *segment,
                  struct shmview_monitor *monitor)
{
    int status;
    fflush(stdout);
    pid_t child = fork();
    if (child < 0)
        err(1, "fork");
    if (child == 0) {
        count(connection, shmview_name(segment));
        _exit(0);
    }
    loop(segment, monitor);
    if (waitpid(child, &status, 0) != child || status != 0)
        errx(1, "the child failed");
}

static void run(struct shmview_connection *connection, const char *name)
{
    const struct shmview_create_options options = {
        .struct_bytes = sizeof options, .lifetime = SHMVIEW_CREATOR, .flags = SHMVIEW_POPULATE};
    const struct shmview_monitor_options only = {
        .struct_bytes = sizeof only, .names = &name, .n_names = 1};
    struct shmview_segment *segment;
    struct shmview_monitor *monitor;
    must(shmview_create(connection, name, sizeof(int), &options, &segment), "create");
    /* The segment now ends with this process, not with the connection. A worker would name its
     * parent. */
    must(shmview_entrust(segment, (uint32_t)getpid()), "entrust");
    must(shmview_monitor_open(connection, &only, &monitor), "monitor");
    share(connection, segment, monitor);
    show_rights(connection, name);
    show_figures(connection, name);
    must(shmview_monitor_close(monitor), "close the monitor");
    must(shmview_remove(connection, name), "remove");
    must(shmview_detach(segment), "detach");
}

int main(void)
{
    struct shmview_connection *connection;
    char name[32];
    snprintf(name, sizeof name, "watch-%d", getpid());
    must(shmview_connect(NULL, 0, &connection), "connect");
    must(shmview_ping(connection), "ping");
    printf("shmview %s at %s\n", shmview_version(), shmview_socket_path(connection));
    run(connection, name);
    must(shmview_disconnect(connection), "disconnect");
    return 0;
}

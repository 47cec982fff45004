/* SPDX-License-Identifier: Apache-2.0 */
/* The longest turn of the daemon's loop under a storm. The daemon measures it, in processor time.
 *
 * Each storm has a daemon of its own, five times. The least of the five counts, because what
 * disturbs the machine only adds. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "bench.h"
#include "storm.h"

#define REPEATS     5
#define VIEWS       256
#define ATTACHMENTS 4000
#define CLIENTS     300
#define MESSAGE     (256 * 1024) /* the most that the daemon reads */

struct storm {
    const struct bench *bench;
    int (*blow)(struct shmview_connection *connection, const char *socket);
};

/* --- Layouts ------------------------------------------------------------- */

#define FORMAT_PARTS 52

/* Defines layouts that are nearly as long as a request may be, with as many components as fit. */
static int blow_layouts(struct shmview_connection *c, const char *socket)
{
    static char names[VIEWS][16], format[FORMAT_PARTS * 16];
    static struct shmview_view_spec views[VIEWS];
    static const int64_t shape[] = {1};
    struct shmview_segment *segment;
    char layout[16], *at = stpcpy(format, "T{");
    (void)socket;
    for (unsigned i = 0; i < FORMAT_PARTS; i++)
        at += sprintf(at, "d:component%02u:", i);
    strcpy(at, "}");
    for (unsigned i = 0; i < VIEWS; i++) {
        snprintf(names[i], sizeof names[i], "view%u", i);
        views[i] = (struct shmview_view_spec){
            .name = names[i], .format = format, .ndim = 1, .shape = shape};
    }
    int r = storm_check(shmview_create(c, "long", 1 << 20, NULL, &segment), "create");
    for (unsigned i = 0; r == 0 && i < 20; i++) {
        snprintf(layout, sizeof layout, "layout%u", i);
        r = storm_check(shmview_define(segment, layout, views, VIEWS), "define");
    }
    return r;
}

/* --- Deaths -------------------------------------------------------------- */

static void attach_all(void *arg)
{
    struct shmview_connection *c;
    struct shmview_segment *s;
    const char *socket = arg;
    char name[32];
    if (storm_check(shmview_connect(socket, SHMVIEW_CONNECT_NO_START, &c), "connect"))
        return;
    for (unsigned i = 0; i < ATTACHMENTS; i++) {
        snprintf(name, sizeof name, "mortal%u", i);
        if (storm_check(shmview_create(c, name, 4096, NULL, &s), "create"))
            return;
    }
    kill(getpid(), SIGKILL);
}

/* A process dies with 4,000 segments that nobody else has. */
static int blow_death(struct shmview_connection *c, const char *socket)
{
    const struct shmview_stats *stats;
    pid_t child = child_start(attach_all, (void *)(uintptr_t)socket);
    size_t left = 1, most = 0;
    for (int64_t deadline = now_ns() + 60000000000; (left || most < ATTACHMENTS);) {
        if (now_ns() > deadline)
            return failed("4000 segments: %zu of %zu are left", left, most);
        usleep(20000);
        if (storm_check(shmview_stats_get(c, NULL, &stats), "stats"))
            return -1;
        left = (size_t)stats->attachments;
        most = left > most ? left : (size_t)stats->total_created;
        shmview_stats_free(stats);
    }
    child_end(child);
    return 0;
}

/* --- Messages ------------------------------------------------------------ */

static int blow_clients(struct shmview_connection *c, const char *socket)
{
    static const char ping[] = "{\"method\":\"io.shmview.Ping\"}";
    int fds[CLIENTS], r = 0;
    unsigned n = 0;
    for (; n < CLIENTS && (fds[n] = storm_connect(socket)) >= 0; n++)
        for (int i = 0; i < 20; i++)
            if (send(fds[n], ping, sizeof ping, MSG_NOSIGNAL) < 0)
                r = failed("cannot send");
    if (n == CLIENTS && r == 0)
        r = storm_check(shmview_ping(c), "ping");
    for (unsigned i = 0; i < n; i++)
        close(fds[i]);
    return n == CLIENTS && r == 0 ? storm_check(shmview_ping(c), "ping") : -1;
}

/* Sends a message of the text between two brackets, and `unit` again and again, up to the limit of
 * its bytes. The daemon refuses it and hangs up. */
static int send_garbage(const char *socket, const char *head, const char *unit, const char *tail)
{
    char *text = malloc(MESSAGE), *at = text;
    int fd = text ? storm_connect(socket) : failed("out of memory"), r = fd < 0 ? -1 : 0;
    if (r == 0) {
        at = stpcpy(at, head);
        while (at + strlen(unit) + strlen(tail) + 1 < text + MESSAGE)
            at = stpcpy(at, unit);
        at = stpcpy(at, tail) + 1;
        for (const char *from = text; from < at && r == 0;) {
            ssize_t sent = send(fd, from, (size_t)(at - from), MSG_NOSIGNAL);
            from += sent > 0 ? sent : at - from;
        }
        recv(fd, text, MESSAGE, 0); /* until it has been read */
        close(fd);
    }
    free(text);
    return r;
}

static int blow_garbage(struct shmview_connection *c, const char *socket)
{
    for (int i = 0; i < 10; i++)
        if (send_garbage(socket, "{\"a\":\"", "xxxxxxxxxxxxxxxx", "\"}") ||
            send_garbage(socket, "{\"a\":\"", "\\u00e9", "\"}") ||
            send_garbage(socket, "{\"a\":[{}", ",{}", "]}") ||
            send_garbage(socket, "{\"a\":[{}", ",{\"b\":1}", "]}") ||
            send_garbage(socket, "{\"a\":[1", ",1e300", "]}") ||
            send_garbage(socket, "{\"a\":", "                ", "1}"))
            return -1;
    return storm_check(shmview_ping(c), "ping");
}

/* --- The contest --------------------------------------------------------- */

static int blow_once(const struct storm *storm, double *ret)
{
    struct instance instance;
    struct shmview_connection *c = NULL;
    const struct shmview_stats *stats;
    if (instance_start_beside(&instance, storm->bench->instance, "storm", 0))
        return -1;
    int r = storm_check(shmview_connect(instance.socket, SHMVIEW_CONNECT_NO_START, &c), "connect");
    if (r == 0 && (r = storm->blow(c, instance.socket)) == 0 &&
        (r = storm_check(shmview_stats_get(c, NULL, &stats), "stats")) == 0) {
        *ret = (double)stats->longest_turn_us;
        shmview_stats_free(stats);
    }
    shmview_disconnect(c);
    instance_stop(&instance);
    return r;
}

static int blow_again(const struct storm *storm, double *ret)
{
    double one;
    *ret = 0;
    for (unsigned i = 0; i < (storm->bench->quick ? 1 : REPEATS); i++) {
        if (blow_once(storm, &one))
            return -1;
        *ret = i == 0 || one < *ret ? one : *ret;
    }
    return 0;
}

static double cpu_ms(void)
{
    struct timespec t = {0};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

/* Returns the milliseconds of the processor that it takes to touch 64 new pages of an object in
 * memory, the least of REPEATS times: how dear a page fault is here. Returns -1 after failed(). */
static double touch_ms(void)
{
    const size_t page = 4096, bytes = 64 * page;
    double least = -1;
    for (int i = 0; i < REPEATS; i++) {
        int fd = memfd_create("bench", MFD_CLOEXEC);
        char *p = fd >= 0 && posix_fallocate(fd, 0, (off_t)bytes) == 0
                      ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                      : MAP_FAILED;
        close(fd);
        if (p == MAP_FAILED) {
            failed("no object of %zu bytes", bytes);
            return -1;
        }
        double before = cpu_ms();
        for (size_t at = 0; at < bytes; at += page)
            *(volatile char *)(p + at) = 1;
        double ms = cpu_ms() - before;
        least = i == 0 || ms < least ? ms : least;
        munmap(p, bytes);
    }
    return least;
}

void bench_storm(struct bench *bench)
{
    static const struct {
        const char *what;
        int (*blow)(struct shmview_connection *connection, const char *socket);
    } storms[] = {
        {"longest turn, all methods", blow_methods},
        {"longest turn, death with 4000 segments", blow_death},
        {"longest turn, 300 clients come and go", blow_clients},
        {"longest turn, messages of 256 KiB", blow_garbage},
        {"longest turn, layouts of 256 KiB", blow_layouts},
    };
    for (size_t i = 0; i < ARRAY_LEN(storms); i++) {
        struct storm storm = {bench, storms[i].blow};
        struct row row = {.unit = "ms", .target = {TARGET_VALUE, 1}};
        snprintf(row.what, sizeof row.what, "%s", storms[i].what);
        if (!bench_wants(bench, row.what))
            continue;
        if (blow_again(&storm, &row.ours) || (row.reference = touch_ms()) < 0) {
            bench->n_failed++;
            continue;
        }
        row.ours *= 1e-3;
        snprintf(row.reference_name, sizeof row.reference_name, "64 page faults");
        row.ratio = row.ratio_min = row.ratio_max = row.ours / row.reference;
        table_add(&bench->table, &row);
    }
}

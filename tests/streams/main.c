/* SPDX-License-Identifier: Apache-2.0 */
/* Writers and readers of a stream are killed at random steps, and others take their places.
 * Violations are: a frame that is half written or changes while it is held, a frame that a reader
 * of a lossless stream misses, a wrong count of missed frames, a slot that is lost at the end, an
 * error of a call, and a living party that does not finish a call for too long.
 *
 *     streams [--deaths N] [--stall MS] [--seed N] [--plant] [-v]
 *
 * It kills N parties of each of six kinds of streams in turn, N in all. With --plant writers change
 * frames that they have published, so that the run must report a violation. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shmview/stream.h>

#include "streams/world.h"

struct world *world;

static struct options {
    unsigned deaths, stall_ms;
    bool verbose, plant;
} options = {.deaths = 600, .stall_ms = 20000};

/* The kinds of streams. Each has at least one slot more than its stages keep and its readers hold
 * while they wait for a frame. */
static const struct kind {
    const char *name;
    uint32_t mode, flags, n_slots;
    unsigned n_writers, n_readers;
    bool passes;
} kinds[] = {
    {"lossless", SHMVIEW_LOSSLESS, 0, 5, 1, 3, false},
    {"lossless, many writers", SHMVIEW_LOSSLESS, SHMVIEW_MANY_WRITERS, 5, 2, 2, false},
    {"lossless, passed on", SHMVIEW_LOSSLESS, 0, 6, 1, 3, true},
    {"latest", SHMVIEW_LATEST, 0, 6, 1, 3, false},
    {"latest, many writers", SHMVIEW_LATEST, SHMVIEW_MANY_WRITERS, 6, 2, 2, false},
    {"latest, passed on", SHMVIEW_LATEST, 0, 8, 1, 3, true},
};
#define N_KINDS (sizeof kinds / sizeof *kinds)

static char directory[] = "/tmp/shmview-streams.XXXXXX";
static pid_t daemon_pid;
static pid_t pids[PARTIES_MAX]; /* of the parties; not in the world, which they inherit */
static int64_t longest_ns;      /* between two calls that a living party has finished */

void violation(const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    if (atomic_fetch_add(&world->n_violations, 1) == 0)
        vsnprintf(world->first, sizeof world->first, format, ap);
    va_end(ap);
    atomic_store(&world->over, true);
}

static int64_t now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000000) + t.tv_nsec;
}

static void nap(long ns)
{
    struct timespec t = {.tv_nsec = ns};
    nanosleep(&t, NULL);
}

/* --- The daemon ---------------------------------------------------------- */

/* Returns whether a daemon runs, with a connection to it. */
static bool start_daemon(const char *program, struct shmview_connection **ret_connection)
{
    if (!mkdtemp(directory))
        return false;
    snprintf(world->socket, sizeof world->socket, "%s/socket", directory);
    daemon_pid = fork();
    if (daemon_pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGINT);
        fclose(stderr);
        execl(program, program, "--socket", world->socket, "--config", "/dev/null", (char *)NULL);
        _exit(127);
    }
    for (int i = 0; i < 10000; i++) {
        if (shmview_connect(world->socket, SHMVIEW_CONNECT_NO_START, ret_connection) == 0)
            return true;
        nap(1000000);
    }
    return false;
}

static void stop_daemon(void)
{
    char log[160];
    kill(daemon_pid, SIGINT);
    waitpid(daemon_pid, NULL, 0);
    snprintf(log, sizeof log, "%s/socket", directory);
    unlink(log);
    rmdir(directory);
}

/* --- Parties ------------------------------------------------------------- */

static void start_party(int i)
{
    atomic_store(&world->parties[i].progress, now());
    pid_t pid = fork();
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        party_run(i);
        _exit(0);
    }
    pids[i] = pid;
    if (pid < 0)
        violation("no process for party %d: %s", i, strerror(errno));
}

/* Notes how long the living parties are at their present call. */
static void watch_progress(int n)
{
    for (int i = 0; i < n; i++) {
        int64_t since = now() - atomic_load(&world->parties[i].progress);
        if (since > longest_ns)
            longest_ns = since;
        if (since > options.stall_ms * INT64_C(1000000)) {
            violation("party %d has not finished a call for %" PRId64 " ms", i, since / 1000000);
            atomic_store(&world->parties[i].progress, now());
        }
    }
}

/* Replaces parties that have died. Returns how many. */
static unsigned bury(int n)
{
    unsigned died = 0;
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (int i = 0; i < n; i++)
            if (pids[i] == pid) {
                if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL)
                    violation("party %d ended with status 0x%x", i, status);
                died++;
                pids[i] = 0;
                if (!atomic_load(&world->over))
                    start_party(i);
            }
    return died;
}

static void kill_all(int n)
{
    for (int i = 0; i < n; i++)
        if (pids[i] > 0) {
            kill(pids[i], SIGKILL);
            waitpid(pids[i], NULL, 0);
        }
}

/* --- One stream ---------------------------------------------------------- */

/* All parties are dead: every slot must be free for the next writer. */
static void count_slots(struct shmview_stream *stream, const struct kind *kind)
{
    struct shmview_frame frames[8];
    uint32_t kept = HISTORY + (kind->mode == SHMVIEW_LATEST);
    uint32_t n = kind->n_slots - kept * (kind->passes ? 2 : 1);
    for (uint32_t i = 0; i < n; i++)
        if (shmview_stream_loan(stream, shmview_deadline(INT64_C(20000000000)), &frames[i])) {
            violation("%u slots are lost: %s", n - i, shmview_error_text());
            return;
        }
    for (uint32_t i = 0; i < n; i++)
        shmview_frame_discard(&frames[i]);
}

/* Creates the stream. One of the same name may still be there for a moment: the daemon can read
 * this request before it has seen that all who were attached to the former stream are dead. */
static int create(struct shmview_connection *connection, const struct shmview_stream_spec *spec,
                  struct shmview_stream **ret_stream)
{
    int64_t deadline = now() + INT64_C(20000000000);
    int r;
    while ((r = shmview_stream_create(connection, "s", spec, ret_stream)) == -SHMVIEW_ERR_EXISTS &&
           now() < deadline)
        nap(1000000);
    return r;
}

static unsigned run_kind(struct shmview_connection *connection, const struct kind *kind,
                         unsigned deaths)
{
    static const int64_t shape[] = {64};
    static const struct shmview_view_spec view = {
        .name = "words", .format = "uint64", .ndim = 1, .shape = shape};
    struct shmview_stream_spec spec = {
        .struct_bytes = sizeof spec,
        .mode = kind->mode,
        .flags = kind->flags,
        .n_slots = kind->n_slots,
        .history = HISTORY,
        .n_stages = kind->passes ? 2 : 1,
        .views = &view,
        .n_views = 1,
    };
    struct shmview_stream *stream;
    int n = (int)(kind->n_writers + kind->n_readers);
    unsigned died = 0;
    if (create(connection, &spec, &stream)) {
        violation("creating: %s", shmview_error_text());
        return 0;
    }
    world->mode = kind->mode;
    world->flags = kind->flags;
    world->passes = kind->passes;
    world->n_writers = kind->n_writers;
    world->n_readers = kind->n_readers;
    atomic_store(&world->over, false);
    for (int i = 0; i < n; i++)
        start_party(i);
    while (died < deaths && !atomic_load(&world->over)) {
        died += bury(n);
        watch_progress(n);
        nap(500000);
    }
    atomic_store(&world->over, true);
    kill_all(n);
    if (world->n_violations == 0)
        count_slots(stream, kind);
    shmview_stream_close(stream);
    return died;
}

static void read_options(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "-v") == 0)
            options.verbose = true;
        else if (strcmp(argv[i], "--plant") == 0)
            options.plant = true;
        else if (strcmp(argv[i], "--deaths") == 0 && i + 1 < argc)
            options.deaths = (unsigned)strtoul(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--stall") == 0 && i + 1 < argc)
            options.stall_ms = (unsigned)strtoul(argv[++i], NULL, 10);
        else {
            fprintf(stderr, "streams: '%s'?\n", argv[i]);
            exit(2);
        }
    }
}

static void run_all(struct shmview_connection *connection)
{
    unsigned all = 0;
    for (size_t k = 0; k < N_KINDS && world->n_violations == 0; k++) {
        for (int i = 0; i < PARTIES_MAX; i++)
            atomic_store(&world->parties[i].n, 0);
        unsigned died = run_kind(connection, &kinds[k], options.deaths / N_KINDS + 1);
        uint64_t written = 0, taken = 0;
        for (unsigned i = 0; i < PARTIES_MAX; i++)
            *(i < kinds[k].n_writers ? &written : &taken) += atomic_load(&world->parties[i].n);
        all += died;
        if (options.verbose)
            printf("%-24s %7u deaths, %9" PRIu64 " frames published, %9" PRIu64 " taken\n",
                   kinds[k].name, died, written, taken);
    }
    printf("%u deaths, %u reports of dead writers, %u violations, longest call %.1f ms\n", all,
           atomic_load(&world->n_writer_deaths_seen), world->n_violations,
           (double)longest_ns / 1e6);
    if (world->n_violations)
        printf("first: %s\n", world->first);
}

int main(int argc, char **argv)
{
    struct shmview_connection *connection;
    const char *program = getenv("SHMVIEWD");
    read_options(argc, argv);
    world = mmap(NULL, sizeof *world, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!program || world == MAP_FAILED || !start_daemon(program, &connection)) {
        fprintf(stderr, "streams: no daemon ($SHMVIEWD): %s\n", shmview_error_text());
        return 2;
    }
    world->plant = options.plant;
    world->period = 4000;
    setvbuf(stdout, NULL, _IOLBF, 0);
    run_all(connection);
    shmview_disconnect(connection);
    stop_daemon();
    return world->n_violations ? 1 : 0;
}

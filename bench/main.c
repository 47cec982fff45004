/* SPDX-License-Identifier: Apache-2.0 */
/* The bench: its arguments, and a parent that cleans up in every case. The rows run in a child with
 * a process group of its own, so that the parent can end the group and remove the files after a row
 * that crashes or hangs. */
#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bench.h"

#define RUN_SECONDS 1800

static const char help[] =
    "Usage: bench [OPTION]...\n"
    "Measure shmview beside what it is compared with; print one table.\n"
    "\n"
    "  --quick         fewer rounds\n"
    "  --rounds N      exactly N rounds for every row\n"
    "  --only PATTERN  only rows whose name holds this shell pattern\n"
    "  --json          print one JSON object\n"
    "  --markdown      print a table of Markdown\n"
    "  --check         exit with 1 if a target is missed\n"
    "  --help          show this and exit\n"
    "\n"
    "It starts a daemon of its own: $SHMVIEWD, $SHMVIEW_DAEMON or the one built\n"
    "beside it. Exit status: 0 if every row ran, 1 if one did not, 2 for a wrong\n"
    "argument.\n";

static int read_rounds(const char *text, unsigned *ret)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);
    if (*end || n < 1 || n > 100000) {
        fprintf(stderr, "bench: --rounds takes 1 to 100000, not '%s'\n", text);
        return 2;
    }
    *ret = (unsigned)n;
    return -1;
}

/* Returns -1 to go on, else the exit status. */
static int read_options(struct bench *bench, bool *ret_check, int argc, char **argv)
{
    static const struct option table[] = {
        {"quick", no_argument, NULL, 'q'},      {"rounds", required_argument, NULL, 'r'},
        {"only", required_argument, NULL, 'o'}, {"json", no_argument, NULL, 'j'},
        {"markdown", no_argument, NULL, 'm'},   {"check", no_argument, NULL, 'c'},
        {"help", no_argument, NULL, 'h'},       {NULL, 0, NULL, 0},
    };
    for (int o; (o = getopt_long(argc, argv, "", table, NULL)) != -1;)
        switch (o) {
        case 'q':
            bench->quick = true;
            break;
        case 'r':
            if (read_rounds(optarg, &bench->rounds) == 2)
                return 2;
            break;
        case 'o':
            bench->only = optarg;
            break;
        case 'j':
            bench->table.form = FORM_JSON;
            break;
        case 'm':
            bench->table.form = FORM_MARKDOWN;
            break;
        case 'c':
            *ret_check = true;
            break;
        case 'h':
            fputs(help, stdout);
            return 0;
        default:
            fputs("Try 'bench --help'.\n", stderr);
            return 2;
        }
    if (optind == argc)
        return -1;
    fprintf(stderr, "bench: unexpected argument '%s'\nTry 'bench --help'.\n", argv[optind]);
    return 2;
}

static int run_rows(struct bench *bench, bool check)
{
    cpus_read(&bench->cpus);
    if (shmview_connect(bench->instance->socket, SHMVIEW_CONNECT_NO_START, &bench->connection))
        return failed("%s", shmview_error_text());
    table_begin(&bench->table);
    bench_create(bench);
    bench_pool(bench);
    bench_calls(bench);
    bench_views(bench);
    bench_floor(bench);
    bench_scale(bench);
    bench_storm(bench);
    bench_greed(bench);
    bench_large(bench);
    bench_lock(bench);
    bench_hammer(bench);
    bench_handoff(bench);
    bench_change(bench);
    bench_busy(bench);
    bench_idle(bench);
    bench_death(bench);
    bench_slots(bench);
    bench_readers(bench);
    bench_many(bench);
    bench_many_notified(bench);
    bench_streams(bench);
    bench_elements(bench);
    bench_bulk(bench);
    bench_files(bench);
    bench_watched(bench);
    bench_touch(bench);
    unsigned missed = bench->table.n_missed;
    bool empty = bench->table.n == 0 && bench->n_failed == 0;
    table_end(&bench->table);
    shmview_disconnect(bench->connection);
    if (empty)
        return failed("no row is called like '%s'", bench->only);
    return bench->n_failed || (check && missed) ? 1 : 0;
}

/* Returns the child's exit status, or 1 if it had to be ended. */
static int supervise(pid_t child, const sigset_t *signals)
{
    struct timespec limit = {.tv_sec = RUN_SECONDS};
    int status, number;
    do
        number = sigtimedwait(signals, NULL, &limit);
    while ((number < 0 && errno == EINTR) ||
           (number == SIGCHLD && waitpid(child, &status, WNOHANG) != child));
    kill(-child, SIGKILL); /* what its rows started and did not end */
    if (number == SIGCHLD) {
        if (WIFEXITED(status))
            return WEXITSTATUS(status);
        failed("a row died of signal %d", WTERMSIG(status));
    } else {
        waitpid(child, NULL, 0);
        failed("%s", number < 0 ? "a row hangs" : "interrupted");
    }
    return 1;
}

int main(int argc, char **argv)
{
    struct bench bench = {0};
    struct instance instance;
    bool check = false;
    sigset_t signals, before;
    int status = read_options(&bench, &check, argc, argv);
    if (status != -1)
        return status;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    status = 1;
    if (instance_start(&instance) == 0) {
        bench.instance = &instance;
        pid_t child = fork();
        if (child == 0) {
            prctl(PR_SET_PDEATHSIG, SIGKILL);
            setpgid(0, 0);
            sigprocmask(SIG_SETMASK, &before, NULL);
            exit(run_rows(&bench, check) ? 1 : 0);
        }
        if (child > 0) {
            setpgid(child, child); /* in both, so that it holds before either goes on */
            status = supervise(child, &signals);
        }
    }
    instance_stop(&instance);
    return status;
}

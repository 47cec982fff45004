/* SPDX-License-Identifier: Apache-2.0 */
/* Shows that the lock excludes, reports every death inside and never leaves a thread asleep.
 *
 * A supervisor (supervisor.h) spawns processes that use one lock in every way, and kills them at
 * every step of it. Each owner checks the data (block.h), and watch.h finds threads that wait
 * although the lock is free. Prints one line with the verdict. */
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/util.h"
#include "stress/arena.h"
#include "stress/instance.h"
#include "stress/verdict.h"

static const char help[] =
    "Usage: stress [OPTION]...\n"
    "Let processes use one lock in every way, and kill them in every place.\n"
    "$SHMVIEWD names the daemon.\n"
    "\n"
    "  --seconds S    for so long (20)\n"
    "  --processes N  so many at a time, 1 to 32, beside those that they fork (6)\n"
    "  --threads N    up to so many in each, 1 to 4 (3)\n"
    "  --seed N       begin here; what happens depends on the machine as well\n"
    "  --steps        list the places where one may die, and exit\n"
    "  -v             print what happened there\n"
    "\n"
    "Exits with 0 if all went well, 1 after a violation or a stall, 2 if it could\n"
    "not begin.\n";

struct choice {
    double seconds;
    unsigned long processes, threads, seed;
    bool verbose;
};

static int usage(void)
{
    fputs("Try 'stress --help'.\n", stderr);
    return 2;
}

/* Reads the options. Returns -1 to go on, otherwise the exit status. */
static int read_choice(struct choice *choice, int argc, char **argv)
{
    static const struct option table[] = {
        {"seconds", required_argument, NULL, 's'},
        {"processes", required_argument, NULL, 'p'},
        {"threads", required_argument, NULL, 't'},
        {"seed", required_argument, NULL, 'r'},
        {"steps", no_argument, NULL, 'l'},
        {"help", no_argument, NULL, 'h'},
        {NULL, 0, NULL, 0},
    };
    for (int o; (o = getopt_long(argc, argv, "v", table, NULL)) != -1;) {
        switch (o) {
        case 's':
            choice->seconds = strtod(optarg, NULL);
            break;
        case 'p':
            choice->processes = strtoul(optarg, NULL, 10);
            break;
        case 't':
            choice->threads = strtoul(optarg, NULL, 10);
            break;
        case 'r':
            choice->seed = strtoul(optarg, NULL, 0);
            break;
        case 'l':
            verdict_list_places();
            return 0;
        case 'h':
            fputs(help, stdout);
            return 0;
        case 'v':
            choice->verbose = true;
            break;
        default:
            return usage();
        }
    }
    if (optind < argc || choice->processes < 1 || choice->processes > WORKERS_MAX ||
        choice->threads < 1 || choice->threads > THREADS_MAX || !(choice->seconds >= 3) ||
        choice->seconds > 1e6)
        return usage();
    return -1;
}

int main(int argc, char **argv)
{
    struct choice choice = {20, 6, 3, 0, false};
    struct instance instance;
    struct supervisor_result result;
    const char *program = getenv("SHMVIEWD");
    choice.seed = (unsigned long)now_ns();
    int status = read_choice(&choice, argc, argv);
    if (status != -1)
        return status;
    if (!program || !program[0]) {
        fputs("stress: SHMVIEWD must name the daemon\n", stderr);
        return 2;
    }
    if (arena_open(choice.seed, (int)choice.threads) || instance_start(&instance, program))
        return 2;
    int r = supervisor_run(choice.seconds, (unsigned)choice.processes, &instance.pid, &result);
    instance_stop(&instance);
    return r ? 2 : verdict_print(&result, choice.verbose);
}

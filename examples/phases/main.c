/* SPDX-License-Identifier: Apache-2.0 */
/* phases - one shared buffer, several worker processes, two phases.
 *
 * A sound gets its treble lifted. The work is done in one segment by processes
 * that share nothing else: first the segment holds three arrays of floats, then
 * the same bytes hold the 16-bit result and its histogram. See plan.h for where
 * everything lies, step.h for what is computed, and parts.h for how the work is
 * divided and how it goes on after the death of a worker.
 *
 * The parent makes a layout current, starts the workers of a step, and waits for
 * all of them before it goes on to the next step. After any error this program
 * simply ends: the segment ends with the last process that has attached it. */
#include <err.h>
#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shmview/shmview.h>

#include "chart.h"
#include "check.h"
#include "crew.h"
#include "parts.h"
#include "plan.h"
#include "sound.h"
#include "step.h"
#include "worker.h"

struct options {
    const char *input;
    const char *output;
    int n_workers;
    enum step kill; /* N_STEPS: in no step */
};

static const char usage[] =
    "usage: phases INPUT OUTPUT.wav [--workers N] [--kill STEP]\n"
    "\n"
    "Lifts the treble of a sound file (WAV, FLAC, AIFF, ...), mixed to one channel.\n"
    "\n"
    "  --workers N   processes that work at the same time, 1 to 64 (4)\n"
    "  --kill STEP   kill a worker in this step while it holds the lock: peak, scale,\n"
    "                filter or quantise; the others repair the result and do its work\n";

static void refuse_usage(const char *why)
{
    fprintf(stderr, "phases: %s\n%s", why, usage);
    exit(2);
}

static struct options parse(int argc, char **argv)
{
    static const struct option known[] = {{"workers", required_argument, NULL, 'w'},
                                          {"kill", required_argument, NULL, 'k'},
                                          {"help", no_argument, NULL, 'h'},
                                          {0}};
    struct options options = {.n_workers = 4, .kill = N_STEPS};
    char *end = NULL;
    int option;
    while ((option = getopt_long(argc, argv, "", known, NULL)) != -1) {
        if (option == 'h') {
            fputs(usage, stdout);
            exit(0);
        } else if (option == 'w') {
            long n = strtol(optarg, &end, 10);
            if (end == optarg || *end || n < 1 || n > CREW_MAX)
                refuse_usage("--workers takes a number from 1 to 64");
            options.n_workers = (int)n;
        } else if (option == 'k') {
            options.kill = step_find(optarg);
            if (options.kill == N_STEPS)
                refuse_usage("--kill takes the name of a step");
        } else {
            exit(2); /* getopt_long() has printed the reason */
        }
    }
    if (argc - optind != 2)
        refuse_usage("an input and an output file are needed");
    options.input = argv[optind];
    options.output = argv[optind + 1];
    return options;
}

static void must(int result, const char *what)
{
    if (result < 0)
        errx(1, "%s: %s", what, shmview_error_text());
}

static void print_memory(const struct plan *plan, const struct shmview_segment *segment)
{
    double shared = (double)shmview_size(segment);
    double apart = (double)plan->apart_bytes;
    printf(
        "memory    %.1f KiB shared as '%s'; arrays of their own would take %.1f KiB (%+.0f %%)\n",
        shared / 1024, shmview_name(segment), apart / 1024, 100 * (apart - shared) / shared);
}

/* Makes a layout current. Views of another layout are stale after that. */
static void enter_phase(struct shmview_segment *segment, const char *layout)
{
    struct shmview_phase phase;
    must(shmview_lock(segment), "lock");
    must(shmview_switch(segment, layout), "switch");
    must(shmview_phase_get(segment, &phase), "phase");
    must(shmview_unlock(segment), "unlock");
    printf("phase     %u: layout %s\n", phase.generation, phase.name);
}

/* Runs one step. If parts are left, because no worker has survived, tries once more. */
static void run_step(const struct options *options, enum step step, const struct arrays *arrays,
                     struct shmview_segment *segment)
{
    step_prepare(step, arrays);
    memset((void *)arrays->parts, PART_TO_DO, arrays->n_parts);
    for (int trial = 0; trial < 2 && parts_left(arrays) > 0; trial++) {
        parts_assign(arrays, options->n_workers);
        crew_run(shmview_name(segment), arrays, step, options->n_workers,
                 trial == 0 && step == options->kill);
        parts_lock("parent", step, segment, arrays);
        must(shmview_unlock(segment), "unlock");
    }
    if (parts_left(arrays) > 0)
        errx(1, "step %s failed: no result, nothing is written", step_name(step));
}

/* All steps, one after the other, in arrays of the shared segment. */
static void compute(const struct options *options, const struct arrays *arrays,
                    struct shmview_segment *segment)
{
    const char *layout = "";
    for (enum step step = 0; step < N_STEPS; step++) {
        if (strcmp(layout, step_layout(step)) != 0)
            enter_phase(segment, layout = step_layout(step));
        printf("%-9s %-8s  %s\n", step_layout(step), step_name(step), step_text(step));
        run_step(options, step, arrays, segment);
    }
}

static void work(const struct options *options, struct sound *sound,
                 struct shmview_connection *connection)
{
    const struct plan plan = plan_make(sound->n, options->n_workers * PARTS_PER_WORKER);
    struct shmview_segment *segment;
    struct arrays arrays = {0};
    char name[32];
    snprintf(name, sizeof name, "phases-%d", getpid());
    must(shmview_create(connection, name, plan.bytes, NULL, &segment), "create");
    must(plan_define(&plan, segment), "define the layouts");
    must(plan_open(segment, "float", &arrays), "open layout float");
    must(plan_open(segment, "int", &arrays), "open layout int");
    print_memory(&plan, segment);

    sound_load(sound, arrays.a);
    compute(options, &arrays, segment);
    const char *differs = check_against(sound, &arrays);
    if (differs)
        errx(1, "%s differs from that of a single process, nothing is written", differs);
    printf("check     identical to a single process in private memory, bit by bit\n");

    sound_save(options->output, sound->info.samplerate, arrays.d, arrays.n);
    printf("output    %s\n\nHow many samples are how loud:\n", options->output);
    chart_print(arrays.e);
    must(shmview_detach(segment), "detach");
}

int main(int argc, char **argv)
{
    struct shmview_connection *connection;
    struct sound sound;
    setvbuf(stdout, NULL, _IOLBF, 0); /* so that its lines are in order with those of the workers */
    if (argc == 7 && strcmp(argv[1], WORKER_OPTION) == 0)
        return worker_main(argv + 2);

    struct options options = parse(argc, argv);
    sound_open(&sound, options.input);
    printf("input     %s: %zu samples, %d per second, %d channel%s\n", options.input, sound.n,
           sound.info.samplerate, sound.info.channels, sound.info.channels == 1 ? "" : "s");
    must(shmview_connect(NULL, 0, &connection), "connect");
    printf("workers   %d processes at a time\n", options.n_workers);
    work(&options, &sound, connection);
    must(shmview_disconnect(connection), "disconnect");
    sound_close(&sound);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the bench share: where processes run, how two sides are compared, and the table
 * of results.
 *
 * A figure alone means little, because a virtual machine can be twice as slow an hour later. So
 * each row is a contest: ours and the references take turns, and the ratio is computed from pairs
 * that ran one after the other. README.md explains the rows. */
#ifndef BENCH_H
#define BENCH_H

#include <limits.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include <shmview/shmview.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* --- process.c: placement of processes ----------------------------------- */

/* TWO: the measuring process is on one CPU, its peer on another.
 * SAME: both are on one CPU. FREE: the scheduler places them. */
enum place {
    PLACE_TWO,
    PLACE_SAME,
    PLACE_FREE,
};

#define CPUS_MAX 64

struct cpus {
    cpu_set_t all;
    unsigned cpu[CPUS_MAX]; /* the first ones that this process may use */
    int n;
};

void cpus_read(struct cpus *ret);
const char *place_name(enum place place);
/* Returns false for PLACE_TWO on a machine with one CPU. */
bool place_exists(const struct cpus *cpus, enum place place);
/* Pins all threads of pid (0: the caller) to the CPUs of one side: 0 is the measuring process, 1
 * its peer, and in PLACE_TWO further peers have further CPUs, as long as there are any. */
void place_process(const struct cpus *cpus, enum place place, int side, pid_t pid);

int64_t now_ns(void);
/* Waits until *word is at least value. Returns 0, or -1 after 10 s. */
int wait_for(const volatile uint32_t *word, uint32_t value);

/* Runs run(arg) in a child that dies with its parent. Returns its pid or -1. */
pid_t child_start(void (*run)(void *), void *arg);
/* Kills the child if it still runs, and waits for it. Does nothing for -1. */
void child_end(pid_t pid);

/* Prints on standard error why a row cannot be measured. Returns -1. */
__attribute__((format(printf, 1, 2))) int failed(const char *format, ...);

/* --- instance.c: the daemon under test ----------------------------------- */

/* A daemon that only the bench uses, and the directory of its socket and registry. */
struct instance {
    char directory[PATH_MAX - 64];
    char socket[PATH_MAX];
    char program[PATH_MAX];
    pid_t daemon;
    unsigned descriptors; /* its limit of open descriptors; 0: that of this process */
    bool pool;            /* it makes objects ahead */
};

/* Starts shmviewd in a new temporary directory. Returns 0 or -1. */
int instance_start(struct instance *instance);
/* Starts another one in the directory of the first. Returns 0 or -1. */
int instance_start_beside(struct instance *instance, const struct instance *first, const char *name,
                          unsigned descriptors);
/* Like instance_start_beside(), with a pool of 64 MiB (shmviewd.json(5)). */
int instance_start_with_pool(struct instance *instance, const struct instance *first,
                             const char *name);
/* Ends the daemon by a signal after which it keeps its segments, and starts it again. Returns 0 or
 * -1. */
int instance_restart(struct instance *instance);
/* Ends the daemon, and removes all files and objects of the daemon and the rows. The instance may
 * be only half started. */
void instance_stop(struct instance *instance);
/* Writes a name for shm_open(), for objects that a row itself creates. instance_stop() removes
 * them. */
void instance_object_name(char *ret, size_t bytes, const char *what);

/* --- table.c ------------------------------------------------------------- */

/* A figure that --check requires of a row. */
struct target {
    enum {
        TARGET_NONE,
        TARGET_RATIO, /* ours is at most so many times the reference */
        TARGET_VALUE, /* ours is at most so much, in the row's unit */
        TARGET_LEAST, /* ours is at least so much, in the row's unit */
    } kind;
    double bound;
};

/* One line of the table. */
struct row {
    char what[64];
    char reference_name[40]; /* "": none; reference and ratio are then undefined */
    const char *unit;
    double ours, reference;
    double ratio, ratio_min, ratio_max;
    struct target target;
};

struct table {
    struct row *rows;
    size_t n;
    unsigned n_missed;
    enum {
        FORM_TEXT,     /* row by row, in columns */
        FORM_MARKDOWN, /* row by row, as a table of Markdown */
        FORM_JSON,     /* at the end, as one object */
    } form;
};

void table_begin(const struct table *table);
int table_add(struct table *table, const struct row *row);
void table_end(struct table *table);

/* --- contest.c: interleaved runs ----------------------------------------- */

/* One run of the bench: its options, its daemon, and its results. */
struct bench {
    struct cpus cpus;
    const struct instance *instance;
    struct shmview_connection *connection;
    struct table table;
    const char *only; /* NULL: every row */
    unsigned rounds;  /* 0: the number of each row */
    unsigned n_failed;
    bool quick;
};

/* One side of a contest. run() measures once and returns 0 with the figure in *ret, or -1 after
 * failed(). */
struct contestant {
    const char *name;
    int (*run)(void *arg, double *ret);
    void *arg;
    struct target target; /* of ours against this reference; unused for list[0] */
};

#define CONTESTANTS_MAX 8

/* A comparison. list[0] is ours, the others are references; each reference gives one row. A round
 * runs every contestant once, in turn, so that all of them see the same disturbances. */
struct contest {
    char what[64];
    const char *unit;
    double scale; /* figures are multiplied by it */
    unsigned rounds, rounds_quick;
    size_t n;
    struct contestant list[CONTESTANTS_MAX];
};

/* Returns the median of v, and sorts its n values. */
double median(double *v, size_t n);

/* Returns whether --only selects rows of this name. */
bool bench_wants(const struct bench *bench, const char *what);
/* Like bench_wants(), but for "what, place" with any place. */
bool bench_wants_placed(const struct bench *bench, const char *what);
/* Runs the contest and adds its rows. A failure is reported and counted, and the bench continues.
 */
void contest_run(struct bench *bench, const struct contest *contest);

/* --- The groups of rows -------------------------------------------------- */

/* calls.c */
void bench_calls(struct bench *bench);
/* create.c */
void bench_create(struct bench *bench);
void bench_pool(struct bench *bench);
/* floor.c */
void bench_floor(struct bench *bench);
/* scale.c */
void bench_scale(struct bench *bench);
/* storm.c */
void bench_storm(struct bench *bench);
/* greed.c */
void bench_greed(struct bench *bench);
/* large.c */
void bench_large(struct bench *bench);
/* lock.c */
void bench_lock(struct bench *bench);
/* hammer.c */
void bench_hammer(struct bench *bench);
/* handoff.c */
void bench_handoff(struct bench *bench);
/* change.c */
void bench_change(struct bench *bench);
/* busy.c */
void bench_busy(struct bench *bench);
/* idle.c */
void bench_idle(struct bench *bench);
/* death.c */
void bench_death(struct bench *bench);
/* views.c */
void bench_views(struct bench *bench);
/* slots.c */
void bench_slots(struct bench *bench);
/* readers.c */
void bench_readers(struct bench *bench);
/* many.c */
void bench_many(struct bench *bench);
/* many_notified.c */
void bench_many_notified(struct bench *bench);
/* streams.c, streams_cost.c */
void bench_streams(struct bench *bench);
/* elements.c */
void bench_elements(struct bench *bench);
/* bulk.c */
void bench_bulk(struct bench *bench);
/* files.c */
void bench_files(struct bench *bench);
/* watched.c */
void bench_watched(struct bench *bench);
/* touch.c */
void bench_touch(struct bench *bench);

#endif

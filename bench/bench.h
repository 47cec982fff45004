/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the bench share: where things run, how two things are
 * compared, and the one table that comes out. */
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

/* --- process.c: who runs where ------------------------------------------- */

/* TWO: the measuring process on one CPU, whom it talks to on another.
 * SAME: all of them on one CPU. FREE: where the scheduler wants them. */
enum place {
    PLACE_TWO,
    PLACE_SAME,
    PLACE_FREE,
};

struct cpus {
    cpu_set_t all;
    unsigned cpu[2]; /* the first two that this process may use */
    int n;
};

void cpus_read(struct cpus *ret);
const char *place_name(enum place place);
/* False for PLACE_TWO on a machine with one CPU. */
bool place_exists(const struct cpus *cpus, enum place place);
/* Puts all threads of pid (0: the caller) where place has its side 0, the
 * measuring one, or side 1, the other one. */
void place_process(const struct cpus *cpus, enum place place, int side, pid_t pid);

int64_t now_ns(void);
/* Waits for *word to become at least value. Returns 0, or -1 after 10 s. */
int wait_for(const volatile uint32_t *word, uint32_t value);

/* Runs run(arg) in a child that dies with its parent. Returns its pid or -1. */
pid_t child_start(void (*run)(void *), void *arg);
/* Kills it if it still runs, and waits for it. Takes -1. */
void child_end(pid_t pid);

/* Says on standard error why a row cannot be measured. Returns -1. */
__attribute__((format(printf, 1, 2))) int failed(const char *format, ...);

/* --- instance.c: a daemon of our own ------------------------------------- */

struct instance {
    char directory[PATH_MAX - 64];
    char socket[PATH_MAX];
    char program[PATH_MAX];
    pid_t daemon;
    unsigned descriptors; /* that the daemon may have; 0: as many as this process */
};

/* Starts shmviewd in a new temporary directory. Returns 0 or -1. */
int instance_start(struct instance *instance);
/* Starts another one in the directory of the first. Returns 0 or -1. */
int instance_start_beside(struct instance *instance, const struct instance *first, const char *name,
                          unsigned descriptors);
/* Ends the daemon in such a way that all is kept, and starts it again. Returns 0 or -1. */
int instance_restart(struct instance *instance);
/* Ends it and removes what it and the rows left behind. Takes a half-started one. */
void instance_stop(struct instance *instance);
/* The name for shm_open() of an object of the rows' own. */
void instance_object_name(char *ret, size_t bytes, const char *what);

/* --- table.c ------------------------------------------------------------- */

struct target {
    enum {
        TARGET_NONE,
        TARGET_RATIO, /* ours is at most so many times the reference */
        TARGET_VALUE, /* ours is at most so much, in the row's unit */
        TARGET_LEAST, /* ours is at least so much, in the row's unit */
    } kind;
    double bound;
};

struct row {
    char what[64];
    char reference_name[40]; /* "" for none; then reference and ratio mean nothing */
    const char *unit;
    double ours, reference;
    double ratio, ratio_min, ratio_max;
    struct target target;
};

struct table {
    struct row *rows;
    size_t n;
    unsigned n_missed;
    bool json; /* printed at the end, as one object; else row by row */
};

void table_begin(const struct table *table);
int table_add(struct table *table, const struct row *row);
void table_end(struct table *table);

/* --- contest.c: interleaved runs ----------------------------------------- */

struct bench {
    struct cpus cpus;
    const struct instance *instance;
    struct shmview_connection *connection;
    struct table table;
    const char *only; /* NULL: every row */
    unsigned rounds;  /* 0: as the row says */
    unsigned n_failed;
    bool quick;
};

/* Measures once: 0 and the figure in *ret, or -1 after failed(). */
struct contestant {
    const char *name;
    int (*run)(void *arg, double *ret);
    void *arg;
    struct target target; /* of ours against this one; nothing for number 0 */
};

#define CONTESTANTS_MAX 8

/* The first contestant is ours, the others are what it is compared with. A round
 * runs each once, in turn. Each reference gives one row. */
struct contest {
    char what[64];
    const char *unit;
    double scale; /* figures are multiplied by it */
    unsigned rounds, rounds_quick;
    size_t n;
    struct contestant list[CONTESTANTS_MAX];
};

/* Sorts the n values of v. */
double median(double *v, size_t n);

/* Whether the user asked for rows of this name. */
bool bench_wants(const struct bench *bench, const char *what);
/* The same for "what, place" with any place. */
bool bench_wants_placed(const struct bench *bench, const char *what);
/* Runs it and adds its rows. A failure is told, counted, and the next goes on. */
void contest_run(struct bench *bench, const struct contest *contest);

/* --- The groups of rows -------------------------------------------------- */

/* calls.c */
void bench_calls(struct bench *bench);
/* create.c */
void bench_create(struct bench *bench);
/* floor.c */
void bench_floor(struct bench *bench);
/* scale.c */
void bench_scale(struct bench *bench);
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
/* death.c */
void bench_death(struct bench *bench);
/* slots.c */
void bench_slots(struct bench *bench);
/* readers.c */
void bench_readers(struct bench *bench);
/* elements.c */
void bench_elements(struct bench *bench);
/* bulk.c */
void bench_bulk(struct bench *bench);
/* files.c */
void bench_files(struct bench *bench);

#endif

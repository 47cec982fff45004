/* SPDX-License-Identifier: Apache-2.0 */
/* The time from the kill of a process that holds the lock until a waiting process has it. The
 * kernel frees the memory of the process before it reports the end, so it takes longer for a large
 * one. */
#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/stream.h>

#include "bench.h"
#include "locks.h"
#include "streams.h"

struct shared {
    volatile uint32_t held, waiting, done;
    volatile int64_t got_ns;
    volatile bool told; /* that the owner died */
    uint32_t watched;   /* WATCHED_* */
};

/* How one of the locks is taken; lock returns 1 for "the owner died". */
struct mortal {
    int (*hold)(void *lock);    /* as the holder does it; NULL: by lock */
    int (*prepare)(void *lock); /* by the waiter; NULL: nothing */
    int (*lock)(void *lock);
    int (*unlock)(void *lock); /* of an owner that puts things in order */
    void *of;
    struct shared *shared;
    const struct cpus *cpus;
    enum place place;
    size_t heap; /* bytes that the holder has touched */
    /* A process that watches the holder, if not NULL: returns when the holder ends. */
    void (*watch)(const struct mortal *m);
    int ends[2]; /* then: a socket pair, of the holder and of that process */
    pid_t holder;
};

static void run_holder(void *arg)
{
    struct mortal *m = arg;
    if (m->watch)
        close(m->ends[1]);
    place_process(m->cpus, m->place, 0, 0);
    /* not malloc() and memset(), which a compiler leaves out because nothing reads the bytes */
    if (m->heap && mmap(NULL, m->heap, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0) == MAP_FAILED)
        return;
    if (m->hold ? m->hold(m->of) : m->lock(m->of))
        return;
    m->shared->held = 1;
    for (;;)
        pause();
}

static void run_waiter(void *arg)
{
    struct mortal *m = arg;
    struct shared *s = m->shared;
    place_process(m->cpus, m->place, 1, 0);
    if (m->prepare && m->prepare(m->of))
        return;
    s->waiting = 1;
    int r = m->lock(m->of);
    s->got_ns = now_ns();
    s->told = r == 1;
    m->unlock(m->of);
    s->done = 1;
}

/* --- A process that watches ---------------------------------------------- */

/* What a process that is not the kernel can do: it watches the holder, and wakes the waiter when
 * the holder ends. */
enum {
    WATCHED_FREE,
    WATCHED_HELD,
    WATCHED_DEAD
};

static int lock_watched(void *lock)
{
    struct shared *s = lock;
    if (s->watched == WATCHED_FREE) {
        s->watched = WATCHED_HELD;
        return 0;
    }
    while (__atomic_load_n(&s->watched, __ATOMIC_ACQUIRE) == WATCHED_HELD)
        syscall(SYS_futex, &s->watched, FUTEX_WAIT, WATCHED_HELD, NULL, NULL, 0);
    return 1;
}

static int unlock_watched(void *lock)
{
    (void)lock;
    return 0;
}

/* The kernel closes the sockets of a process after it has freed the memory. */
static void watch_socket(const struct mortal *m)
{
    struct pollfd p = {.fd = m->ends[1], .events = POLLIN};
    poll(&p, 1, -1);
}

/* PF_EXITING of the kernel, in the ninth field of stat: set before the memory is freed. */
#define FLAG_EXITING 0x4u

/* Uses a processor for nothing else, so that nobody notices a death in /proc earlier. */
static void watch_proc(const struct mortal *m)
{
    char path[64], text[512];
    unsigned flags = 0;
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", m->holder, m->holder);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (!(flags & FLAG_EXITING)) {
        ssize_t n = pread(fd, text, sizeof text - 1, 0);
        text[n < 0 ? 0 : n] = '\0';
        const char *name_end = strrchr(text, ')');
        if (!name_end || sscanf(name_end, ") %*c %*d %*d %*d %*d %*d %u", &flags) != 1)
            break;
    }
}

/* A waiter of a priority-inheriting futex wakes when the thread that the word names begins to end,
 * whatever that thread knows of the word. The word is not private, because the kernel refuses to
 * wait for a thread of another process on a private one. */
static void watch_thread(const struct mortal *m)
{
    uint32_t word = (uint32_t)m->holder;
    while (syscall(SYS_futex, &word, FUTEX_LOCK_PI, 0, NULL, NULL, 0) && errno == EINTR)
        continue;
}

static void run_watcher(void *arg)
{
    struct mortal *m = arg;
    close(m->ends[0]);
    place_process(m->cpus, m->place, 1, 0);
    m->watch(m);
    __atomic_store_n(&m->shared->watched, WATCHED_DEAD, __ATOMIC_RELEASE);
    syscall(SYS_futex, &m->shared->watched, FUTEX_WAKE, 1, NULL, NULL, 0);
    for (;;)
        pause();
}

/* --- A kill -------------------------------------------------------------- */

/* Returns whether the kernel reports the process as sleeping. */
static bool is_asleep(pid_t pid)
{
    char path[64], state = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (f)
        fclose(f);
    return state == 'S';
}

/* The waiter must have attached and parked before the kill counts. */
static int wait_parked(const struct mortal *m, pid_t waiter)
{
    if (wait_for(&m->shared->waiting, 1))
        return -1;
    int64_t limit = now_ns() + 10000000000;
    do {
        usleep(5000);
        if (now_ns() > limit)
            return -1;
    } while (!is_asleep(waiter));
    usleep((useconds_t)random() % 20000); /* at no fixed time after a report of the waiter */
    return 0;
}

/* Starts the holder, and the process that watches it if there is one. */
static void start_holder(struct mortal *m, pid_t *holder, pid_t *watcher)
{
    if (m->watch && socketpair(AF_UNIX, SOCK_STREAM, 0, m->ends))
        return;
    *holder = m->holder = child_start(run_holder, m);
    if (!m->watch)
        return;
    *watcher = child_start(run_watcher, m);
    close(m->ends[0]);
    close(m->ends[1]);
}

static int kill_once(struct mortal *m, pid_t *holder, pid_t *waiter, pid_t *watcher, double *ret)
{
    struct shared *s = m->shared;
    start_holder(m, holder, watcher);
    if (wait_for(&s->held, 1))
        return failed("the holder does not get the lock");
    *waiter = child_start(run_waiter, m);
    if (wait_parked(m, *waiter))
        return failed("the waiter does not wait");
    int64_t start = now_ns();
    kill(*holder, SIGKILL);
    child_end(*holder); /* sleeps, because spinning would disturb what is measured */
    *holder = -1;
    if (wait_for(&s->done, 1) || !s->told)
        return failed("the next owner %s",
                      s->done ? "gets no report of the death" : "does not get the lock");
    *ret = (double)(s->got_ns - start);
    return 0;
}

static int run_kill(void *arg, double *ret)
{
    struct mortal *m = arg;
    pid_t holder = -1, waiter = -1, watcher = -1;
    memset(m->shared, 0, sizeof *m->shared);
    int r = kill_once(m, &holder, &waiter, &watcher, ret);
    child_end(holder);
    child_end(waiter);
    child_end(watcher);
    return r;
}

/* --- The locks ----------------------------------------------------------- */

static int lock_shmview(void *lock)
{
    return shmview_lock(lock);
}

static int unlock_shmview(void *lock)
{
    return shmview_unlock(lock);
}

static int lock_mutex(void *lock)
{
    int r = pthread_mutex_lock(lock);
    return r == EOWNERDEAD ? 1 : r ? -1 : 0;
}

static int unlock_mutex(void *lock)
{
    pthread_mutex_consistent(lock);
    return pthread_mutex_unlock(lock);
}

/* --- A slot of a stream -------------------------------------------------- */

/* A stream of mode latest with two slots. The holder is a reader with the frame of one of them, and
 * the other one has the newest frame. */
struct slots {
    struct shmview_stream *stream;
    struct shmview_frame frame; /* of the waiter */
};

static int hold_frame(void *of)
{
    struct slots *slots = of;
    return shmview_stream_take_latest(slots->stream, shmview_deadline(1000000000), &slots->frame);
}

/* Publishes into the slot that is free. */
static int fill_other(void *of)
{
    struct slots *slots = of;
    return shmview_stream_loan(slots->stream, shmview_deadline(1000000000), &slots->frame) ||
           shmview_frame_publish(&slots->frame);
}

static int loan_slot(void *of)
{
    struct slots *slots = of;
    return shmview_stream_loan(slots->stream, SHMVIEW_FOREVER, &slots->frame) ? -1 : 1;
}

/* The next holder takes this frame. */
static int publish_slot(void *of)
{
    struct slots *slots = of;
    return shmview_frame_publish(&slots->frame);
}

/* Leaves a frame in the stream, and nobody who writes. */
static int fill_slot(struct bench *bench, struct slots *slots)
{
    struct shmview_stream *reader = NULL;
    if (stream_make(bench, "death-stream", SHMVIEW_LATEST, 2, 64, &slots->stream) ||
        shmview_stream_open(bench->connection, "death-stream", SHMVIEW_WRITE, &reader) ||
        shmview_stream_loan(slots->stream, 0, &slots->frame) ||
        shmview_frame_publish(&slots->frame)) {
        shmview_stream_close(reader);
        return failed("no stream: %s", shmview_error_text());
    }
    shmview_stream_close(slots->stream);
    slots->stream = reader;
    return 0;
}

/* --- The rows ------------------------------------------------------------ */

#define MANY_KILLS 100

/* Many kills of one contest: the figure is one of the worst, and their median is the reference. */
struct kills {
    struct mortal *mortal;
    double took[MANY_KILLS];
};

static int run_many_kills(void *arg, double *ret)
{
    struct kills *k = arg;
    for (int i = 0; i < MANY_KILLS; i++)
        if (run_kill(k->mortal, &k->took[i]))
            return -1;
    median(k->took, MANY_KILLS); /* sorts them */
    *ret = k->took[MANY_KILLS - 2];
    return 0;
}

static int run_median(void *arg, double *ret)
{
    const struct kills *k = arg;
    *ret = k->took[MANY_KILLS / 2];
    return 0;
}

#define HEAP_BYTES ((size_t)256 << 20)

static void run_row(struct bench *bench, struct contest *contest, const char *what,
                    enum place place)
{
    contest->unit = "ms";
    contest->scale = 1e-6;
    snprintf(contest->what, sizeof contest->what, "%s, %s", what, place_name(place));
    contest_run(bench, contest);
}

/* The first two contestants are ours and the robust mutex, the others watch. */
#define N_WATCHERS 3

static void run_size(struct bench *bench, const char *what, size_t heap, const struct mortal *ours,
                     struct locks *locks)
{
    static const struct {
        const char *name;
        void (*watch)(const struct mortal *m);
    } watchers[N_WATCHERS] = {{"reads /proc without pause", watch_proc},
                              {"a PI futex of its thread", watch_thread},
                              {"poll() of its socket", watch_socket}};
    struct mortal list[2 + N_WATCHERS];
    struct contest contest = {
        .rounds = heap ? 15 : 51, .rounds_quick = heap ? 3 : 15, .n = ARRAY_LEN(list)};
    for (size_t i = 0; i < ARRAY_LEN(list); i++) {
        list[i] = *ours;
        list[i].heap = heap;
        contest.list[i] = (struct contestant){"shmview", run_kill, &list[i], {0}};
    }
    list[1].lock = lock_mutex;
    list[1].unlock = unlock_mutex;
    list[1].of = &locks->mutex[MUTEX_ROBUST].mutex;
    contest.list[1].name = mutex_name(MUTEX_ROBUST);
    contest.list[1].target = (struct target){heap ? TARGET_VALUE : TARGET_RATIO, heap ? 1 : 2};
    for (size_t i = 0; i < N_WATCHERS; i++) {
        list[2 + i].lock = lock_watched;
        list[2 + i].unlock = unlock_watched;
        list[2 + i].of = ours->shared;
        list[2 + i].watch = watchers[i].watch;
        contest.list[2 + i].name = watchers[i].name;
    }
    run_row(bench, &contest, what, ours->place);
}

static void run_place(struct bench *bench, enum place place, struct shmview_segment *segment,
                      struct locks *locks, struct shared *shared)
{
    struct mortal ours = {.lock = lock_shmview,
                          .unlock = unlock_shmview,
                          .of = segment,
                          .shared = shared,
                          .cpus = &bench->cpus,
                          .place = place};
    struct mortal again = ours;
    struct kills kills = {.mortal = &again};
    struct contest worst = {
        .rounds = 3,
        .rounds_quick = 1,
        .n = 2,
        .list = {{"shmview", run_many_kills, &kills, {0}},
                 {"their median", run_median, &kills, {TARGET_RATIO, 5}}},
    };
    place_process(&bench->cpus, place, 0, 0);
    place_process(&bench->cpus, place, 1, bench->instance->daemon);
    run_size(bench, "kill to next owner", 0, &ours, locks);
    run_row(bench, &worst, "kill to next owner, 99th of 100", place);
    run_size(bench, "kill to next owner, 256 MiB", HEAP_BYTES, &ours, locks);
}

static void run_slot(struct bench *bench, enum place place, struct slots *slots,
                     struct locks *locks, struct shared *shared)
{
    struct mortal ours = {.hold = hold_frame,
                          .prepare = fill_other,
                          .lock = loan_slot,
                          .unlock = publish_slot,
                          .of = slots,
                          .shared = shared,
                          .cpus = &bench->cpus,
                          .place = place};
    struct mortal mutex = ours, watched;
    mutex.hold = mutex.prepare = NULL;
    mutex.lock = lock_mutex;
    mutex.unlock = unlock_mutex;
    mutex.of = &locks->mutex[MUTEX_ROBUST].mutex;
    watched = mutex;
    watched.lock = lock_watched;
    watched.unlock = unlock_watched;
    watched.of = shared;
    watched.watch = watch_socket;
    struct contest contest = {
        .rounds = 51,
        .rounds_quick = 15,
        .n = 3,
        .list = {{"shmview", run_kill, &ours, {0}},
                 {mutex_name(MUTEX_ROBUST), run_kill, &mutex, {TARGET_VALUE, 0.2}},
                 {"poll() of its socket", run_kill, &watched, {0}}},
    };
    place_process(&bench->cpus, place, 0, 0);
    place_process(&bench->cpus, place, 1, bench->instance->daemon);
    run_row(bench, &contest, "kill to next slot", place);
}

void bench_death(struct bench *bench)
{
    struct shmview_segment *segment = NULL;
    struct slots slots = {0};
    if (!bench_wants_placed(bench, "kill to next owner") &&
        !bench_wants_placed(bench, "kill to next owner, 99th of 100") &&
        !bench_wants_placed(bench, "kill to next owner, 256 MiB") &&
        !bench_wants_placed(bench, "kill to next slot"))
        return;
    struct locks *locks = locks_new();
    void *shared = mmap(NULL, sizeof(struct shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!locks || shared == MAP_FAILED ||
        shmview_create(bench->connection, "death", 4096, NULL, &segment) ||
        fill_slot(bench, &slots)) {
        failed("no locks to measure: %s", shmview_error_text());
        bench->n_failed++;
    } else {
        for (enum place place = PLACE_TWO; place <= PLACE_FREE; place++)
            if (place_exists(&bench->cpus, place)) {
                run_place(bench, place, segment, locks, shared);
                run_slot(bench, place, &slots, locks, shared);
            }
    }
    shmview_stream_close(slots.stream);
    shmview_detach(segment);
    if (shared != MAP_FAILED)
        munmap(shared, sizeof(struct shared));
    locks_free(locks);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
    place_process(&bench->cpus, PLACE_FREE, 1, bench->instance->daemon);
}

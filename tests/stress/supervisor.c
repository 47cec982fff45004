/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/supervisor.h"

#include <limits.h>
#include <linux/futex.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/util.h"
#include "stress/arena.h"
#include "stress/block.h"
#include "stress/siege.h"
#include "stress/watch.h"
#include "stress/worker.h"

#define SECOND_NS 1000000000
/* On average: kills by the supervisor, and deaths at all places together. */
#define KILL_EVERY_NS      1500000
#define PLACE_DEATHS_PER_S 400
#define STOP_EVERY_NS      30000000
#define STOPPED_NS         6000000 /* at most */
#define LOOK_EVERY_NS      100000000
/* A cycle has chaos first, then turns with lulls, then sieges. A run has at least two cycles. */
#define CYCLE_NS    10000000000
#define TURNS_PART  6 /* of the cycle: one sixth */
#define SIEGES_PART 8
#define BUSTLE_NS   5000000 /* between two lulls */
#define HANDLES_MAX (PARTIES_MAX * 4)

struct supervisor {
    unsigned workers;
    pid_t *daemon;
    struct actor actor; /* the supervisor takes part as well, rarely */
    struct worker_handle handle;
    struct supervisor_result result;
    struct watch watch;
    int64_t until;
    int64_t next_kill, next_stop, next_look;
    struct {
        struct party *party; /* NULL: none is stopped */
        uint64_t who;        /* its state at that time, without the low byte */
        int64_t until;
    } stopped;
    uint64_t reached[N_PLACES];
    double rate[N_PLACES];
};

static bool is_over(const struct supervisor *v)
{
    return v->result.interrupted || atomic_load(&arena->over);
}

/* --- Births and deaths --------------------------------------------------- */

static void note_end(struct supervisor *v, pid_t pid, int status)
{
    bool known = party_end(pid);
    if (pid == *v->daemon) {
        report(VIOLATION_CRASH, "shmviewd ended with status 0x%x", (unsigned)status);
        atomic_store(&arena->over, true);
        *v->daemon = 0;
    } else if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) {
        v->result.deaths++;
    } else if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        v->result.exits += known;
    } else {
        report(VIOLATION_CRASH, "pid %d ended with status 0x%x", pid, (unsigned)status);
    }
}

static void reap(struct supervisor *v)
{
    int status;
    pid_t pid;
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        note_end(v, pid, status);
}

static void spawn_missing(struct supervisor *v, unsigned workers)
{
    for (unsigned i = 0; i < workers; i++) {
        uint64_t reservation;
        struct party *party = NULL;
        if (party_state(&arena->parties[i]) == PARTY_FREE)
            party = party_reserve(i, i + 1, &reservation);
        if (!party)
            continue;
        pid_t pid = fork();
        if (pid == 0)
            worker_live(party, reservation, v->handle.segment);
        if (pid < 0)
            party_unreserve(party, reservation);
    }
}

static bool is_empty(void)
{
    for (int i = 0; i < PARTIES_MAX; i++)
        if (party_state(&arena->parties[i]) != PARTY_FREE)
            return false;
    return true;
}

static void kill_party(struct party *party)
{
    pid_t pid = party_doom(party);
    if (pid)
        kill(pid, SIGKILL);
}

static struct party *pick(void)
{
    struct party *living[PARTIES_MAX];
    uint32_t n = 0;
    for (int i = 0; i < PARTIES_MAX; i++)
        if (party_state(&arena->parties[i]) == PARTY_LIVING)
            living[n++] = &arena->parties[i];
    return n ? living[me_random() % n] : NULL;
}

/* Kills all parties at once, and waits until they are gone. */
static void massacre(struct supervisor *v)
{
    while (!is_empty()) {
        for (int i = 0; i < PARTIES_MAX; i++)
            kill_party(&arena->parties[i]);
        usleep(200);
        reap(v);
    }
}

/* --- Chaos --------------------------------------------------------------- */

static int64_t draw(int64_t mean)
{
    double u = (double)(me_random() % 65536 + 1) / 65537;
    return (int64_t)(-log(u) * (double)mean);
}

/* Kills a living party; one time in four the one that is inside, if there is one. */
static void kill_one(struct supervisor *v, int64_t now)
{
    struct party *party = pick();
    const struct block *block = shmview_data(v->handle.segment);
    uint32_t inside = me_chance(4) ? token_incarnation(block->token) : 0;
    for (int i = 0; inside && i < PARTIES_MAX; i++)
        if ((uint32_t)(atomic_load(&arena->parties[i].state) >> 8) == inside)
            party = &arena->parties[i];
    if (party)
        kill_party(party);
    v->next_kill = now + draw(KILL_EVERY_NS);
}

static void continue_stopped(struct supervisor *v)
{
    struct party *party = v->stopped.party;
    v->stopped.party = NULL;
    if (!party || atomic_load(&party->state) >> 8 != v->stopped.who)
        return;
    atomic_store(&party->awake_since, now_ns());
    party->stopped = false;
    kill(party_pid(party), SIGCONT);
}

static void stop_one(struct supervisor *v, int64_t now)
{
    struct party *party = pick();
    v->next_stop = now + draw(STOP_EVERY_NS);
    if (!party || v->stopped.party)
        return;
    v->stopped.party = party;
    v->stopped.who = atomic_load(&party->state) >> 8;
    v->stopped.until = now + (int64_t)(me_random() % STOPPED_NS);
    party->stopped = true;
    kill(party_pid(party), SIGSTOP);
    v->result.stops++;
}

/* Chooses how often a visit of each place is a death, so that each place gets as many deaths:
 * where threads come rarely, they die often. */
static void set_periods(struct supervisor *v)
{
    double share = (double)PLACE_DEATHS_PER_S * LOOK_EVERY_NS / SECOND_NS / (int)N_PLACES;
    for (int i = 0; i < N_PLACES; i++) {
        uint64_t reached = arena_reached(i);
        v->rate[i] += 0.2 * ((double)(reached - v->reached[i]) - v->rate[i]);
        v->reached[i] = reached;
        double period = v->rate[i] / share;
        uint32_t rounded = period < 3 ? 3 : period > 1e9 ? 1000000000 : (uint32_t)period;
        atomic_store_explicit(&arena->period[i], rounded, memory_order_relaxed);
    }
}

/* Waits until a child ends or a signal comes, at most until next. */
static void wait_for(struct supervisor *v, int64_t next)
{
    sigset_t set;
    int64_t now = now_ns();
    int64_t left = next > now ? next - now : 0;
    struct timespec t = {left / SECOND_NS, left % SECOND_NS};
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    int sig = sigtimedwait(&set, NULL, &t);
    if (sig > 0 && sig != SIGCHLD)
        v->result.interrupted = sig;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

static void chaos(struct supervisor *v, int64_t until)
{
    int64_t now = now_ns();
    v->next_kill = v->next_stop = now;
    while (!is_over(v) && (now = now_ns()) < until) {
        reap(v);
        spawn_missing(v, v->workers);
        if (now >= v->next_kill)
            kill_one(v, now);
        if (now >= v->next_stop)
            stop_one(v, now);
        if (v->stopped.party && now >= v->stopped.until)
            continue_stopped(v);
        if (now >= v->next_look) {
            watch_look(&v->watch, v->handle.segment);
            set_periods(v);
            v->next_look = now + LOOK_EVERY_NS;
        }
        int64_t next = least(least(v->next_kill, v->next_stop), least(v->next_look, until));
        if (v->stopped.party)
            next = least(next, v->stopped.until);
        wait_for(v, next);
    }
    continue_stopped(v);
}

/* --- Quiet --------------------------------------------------------------- */

/* Lets parties run for so long without deaths, or in a lull until all are idle. */
static void keep_quiet(struct supervisor *v, int64_t for_ns)
{
    int64_t until = now_ns() + for_ns;
    while (!is_over(v) && now_ns() < until) {
        reap(v);
        spawn_missing(v, v->workers);
        watch_look(&v->watch, v->handle.segment);
        if (atomic_load(&arena->lull)) {
            if (watch_all_idle())
                return;
            shmview_notify(v->handle.segment); /* no other thread may be left to notify */
        }
        wait_for(v, least(until, now_ns() + 200000));
    }
}

/* One turn: first the threads act, then comes a lull in which no thread begins an action. A
 * thread that still waits must get the lock from those that hold it, until all are idle. Parks
 * have no bound now, so a lost wake-up shows as a stall. */
static void take_turn(struct supervisor *v)
{
    bool one_each = !me_chance(16);
    v->result.turns++;
    atomic_store(&arena->one_each, one_each);
    atomic_fetch_add(&arena->turn, 1);
    atomic_store(&arena->lull, false);
    syscall(SYS_futex, &arena->turn, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    keep_quiet(v, one_each ? me_random() % 600000 : BUSTLE_NS);
    atomic_store(&arena->lull, true);
    keep_quiet(v, INT64_MAX / 2);
}

/* Attaches until the slots of the parties that were just killed, one of them perhaps with the
 * lock, have new users, before anybody looks at the lock. Returns the number of handles. */
static size_t take_slots(struct supervisor *v, struct worker_handle *handles)
{
    uint32_t n = v->handle.segment->lock.live->high;
    if (n > HANDLES_MAX)
        n = HANDLES_MAX;
    for (uint32_t i = 0; i < n; i++)
        if (worker_attach(&handles[i], v->handle.connection))
            return i;
    return n;
}

/* Kills one holder after the other, at once or when the others have parked. No new party comes,
 * so only the death itself can wake the others. */
static void besiege(struct supervisor *v)
{
    struct party *holder;
    bool duel = v->workers > 1 && me_chance(2);
    atomic_store(&arena->duel, duel);
    spawn_missing(v, duel ? 2 : v->workers);
    while ((holder = siege_await_holder(v->handle.segment))) {
        usleep(me_chance(4) ? 1000 + me_random() % 1000 : me_random() % 300);
        reap(v);
        if (siege_living() < 2)
            break;
        atomic_store(&arena->siege_killed_ns, now_ns());
        kill_party(holder);
        v->result.holders_killed++;
    }
    v->result.sieges++;
    massacre(v);
}

static void quiet(struct supervisor *v, int64_t cycle)
{
    static struct worker_handle handles[HANDLES_MAX];
    int64_t siege = now_ns() + cycle / TURNS_PART;
    int64_t until = siege + cycle / SIEGES_PART;
    atomic_store(&arena->quiet, true);
    massacre(v);
    size_t n = take_slots(v, handles);
    while (!is_over(v) && now_ns() < siege)
        take_turn(v);
    massacre(v);
    atomic_store(&arena->siege, true);
    atomic_store(&arena->one_each, false);
    atomic_store(&arena->lull, false);
    while (!is_over(v) && now_ns() < until)
        besiege(v);
    massacre(v);
    atomic_store(&arena->siege, false);
    atomic_store(&arena->quiet, false);
    while (n-- > 0)
        worker_detach(&handles[n]);
}

/* --- From beginning to end ----------------------------------------------- */

static int begin(struct supervisor *v)
{
    sigset_t set;
    int r = shmview_connect(NULL, SHMVIEW_CONNECT_NO_START, &v->handle.connection);
    if (r == 0)
        r = shmview_create(v->handle.connection, WORKER_SEGMENT, sizeof(struct block), NULL,
                           &v->handle.segment);
    if (r == 0)
        r = block_create(v->handle.segment);
    if (r) {
        fprintf(stderr, "stress: cannot begin: %s\n", shmview_error_text());
        return r;
    }
    sigemptyset(&set);
    sigaddset(&set, SIGCHLD);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGHUP);
    sigprocmask(SIG_BLOCK, &set, NULL);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    me.actor = &v->actor;
    me.random = arena->seed | 1;
    v->watch.looked = v->watch.advanced = now_ns();
    return 0;
}

/* When all parties are dead, the lock must be free or report the death. */
static void take_last(struct supervisor *v)
{
    int r = shmview_lock_until(v->handle.segment, shmview_deadline(SECOND_NS));
    if (r == -SHMVIEW_ERR_TIMED_OUT) {
        atomic_fetch_add(&arena->stalls, 1);
        fprintf(stderr, "stress: all are dead, and the lock is not free\n");
    } else if (r < 0) {
        report(VIOLATION_CALL, "after all: %d %s", r, shmview_error_text());
    } else {
        block_enter(v->handle.segment, r);
        block_leave(v->handle.segment);
        r = shmview_unlock(v->handle.segment);
        if (r)
            report(VIOLATION_UNLOCK, "after all: %d %s", r, shmview_error_text());
    }
}

int supervisor_run(double seconds, unsigned workers, pid_t *daemon, struct supervisor_result *ret)
{
    static struct supervisor v;
    v = (struct supervisor){.workers = workers, .daemon = daemon};
    int r = begin(&v);
    if (r)
        return r;
    int64_t now = now_ns();
    int64_t end = now + (int64_t)(seconds * SECOND_NS);
    int64_t cycle = least(CYCLE_NS, (end - now) / 2);
    while (!is_over(&v) && (now = now_ns()) + cycle / 2 < end) {
        chaos(&v, now + cycle - cycle / TURNS_PART - cycle / SIEGES_PART);
        if (!is_over(&v))
            quiet(&v, cycle);
    }
    atomic_store(&arena->over, true);
    massacre(&v);
    if (*daemon) {
        take_last(&v);
        worker_detach(&v.handle);
    }
    *ret = v.result;
    return 0;
}

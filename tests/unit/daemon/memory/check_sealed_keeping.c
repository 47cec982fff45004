/* SPDX-License-Identifier: Apache-2.0 */
/* Checks how sealed.c gives its objects to a place where they outlive the daemon, and takes them
 * over from there. The test stands in for keeping.c. */
#include "daemon/memory/sealed.h"

#include "unit/unit.h"

#include <limits.h>

#include "common/base/util.h"
#include "daemon/memory/keeping.h"
#include "unit/faults_memfd.h"

#define SIZE_SEALS (F_SEAL_SHRINK | F_SEAL_GROW)
#define MANY       32

struct kept {
    int fd;
    uint64_t number;
};

/* The place, and the calls of sealed.c. */
static struct {
    int offer, forget;      /* results */
    unsigned refusals;      /* how many calls get these results; later ones succeed */
    unsigned lost, lost_at; /* lost: for keeping_has_lost(); lost_at: set at this offer (from 1) */
    unsigned slow_us;       /* how long a call takes */
    int64_t events[MANY];   /* accepted: number of an offer, or -number of one forgotten */
    unsigned n_events, n_calls, n_reports, n_ends;
    struct kept kept[4]; /* objects that an earlier daemon has left */
    unsigned n_kept;
} place;

void keeping_init(const char *socket)
{
    (void)socket;
}

static int serve(int result, int64_t event)
{
    place.n_calls++;
    if (place.slow_us)
        usleep(place.slow_us);
    if (place.refusals && result) {
        place.refusals--;
        return result;
    }
    ck_assert_uint_lt(place.n_events, MANY);
    place.events[place.n_events++] = event;
    return 0;
}

int keeping_offer(int fd, uint64_t number)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_uint_eq(st.st_ino, number);
    int r = serve(place.offer, (int64_t)number);
    if (place.lost_at && place.n_calls == place.lost_at)
        place.lost = 1;
    return r;
}

int keeping_forget(uint64_t number)
{
    return serve(place.forget, -(int64_t)number);
}

bool keeping_has_lost(void)
{
    bool lost = place.lost;
    place.lost = 0;
    return lost;
}

int keeping_recover(int (*take)(int fd, uint64_t number))
{
    int r = 0;
    for (unsigned i = 0; i < place.n_kept; i++)
        if (r)
            close(place.kept[i].fd);
        else
            r = take(place.kept[i].fd, place.kept[i].number);
    return r;
}

void keeping_report(void)
{
    place.n_reports++;
}

void keeping_end(void)
{
    place.n_ends++;
}

/* Begins a new list of events. */
static void restart(void)
{
    place.n_events = place.n_calls = 0;
}

/* Asserts that these were the events, and forgets them. */
static void assert_events(unsigned n, const int64_t *events)
{
    ck_assert_uint_eq(place.n_events, n);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(place.events[i], events[i]);
    restart();
}

#define EVENTS(...)                                                                                \
    assert_events(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), (int64_t[]){__VA_ARGS__})
#define NO_EVENTS() assert_events(0, NULL)

/* Settles all. On a busy machine one call has perhaps no time left for anything. */
static int settle(void)
{
    int r;
    do
        r = sealed_settle();
    while (r == SEALED_MORE);
    return r;
}

static int64_t create(void)
{
    struct stat st;
    int fd = sealed_create(1, false, &st);
    ck_assert_int_ge(fd, 0);
    close(fd);
    settle();
    return (int64_t)st.st_ino;
}

static void drop(int64_t inode)
{
    ck_assert_int_eq(close(sealed_take((ino_t)inode)), 0);
    settle();
}

/* Returns a memfd with these seals, as an earlier daemon may have left it, and its inode. */
static int make(int seals, int64_t *ret_inode)
{
    struct stat st;
    int fd = memfd_create("unit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seals), 0);
    ck_assert_int_eq(fstat(fd, &st), 0);
    *ret_inode = (int64_t)st.st_ino;
    return fd;
}

/* --- Giving -------------------------------------------------------------- */

START_TEST(offered_once_and_forgotten)
{
    int64_t a = create(), b = create();
    EVENTS(a, b);
    ck_assert_int_eq(settle(), SEALED_SETTLED);
    NO_EVENTS();
    drop(a);
    EVENTS(-a);
    drop(b);
    EVENTS(-b);
    ck_assert_int_eq(settle(), SEALED_SETTLED);
    NO_EVENTS();
}
END_TEST

/* A place that accepts nothing refuses no creation. All is given later, in order. */
START_TEST(refused_and_given_later)
{
    place.offer = -EAGAIN;
    place.refusals = UINT_MAX;
    int64_t a = create(), b = create(), c = create();
    ck_assert_int_eq(settle(), -EAGAIN);
    drop(b); /* nobody has it, so nobody must forget it */
    NO_EVENTS();
    place.refusals = 0;
    ck_assert_int_eq(settle(), SEALED_SETTLED);
    EVENTS(a, c);
    drop(a);
    drop(c);
    EVENTS(-a, -c);
}
END_TEST

/* A new object can have the number of an ended one. So the ended one must be forgotten first. */
START_TEST(forgotten_before_the_next_is_offered)
{
    int64_t a = create();
    EVENTS(a);
    place.forget = place.offer = -EAGAIN;
    place.refusals = UINT_MAX;
    drop(a);
    int64_t b = create();
    ck_assert_int_eq(settle(), -EAGAIN);
    NO_EVENTS();
    place.refusals = 0;
    ck_assert_int_eq(settle(), SEALED_SETTLED);
    EVENTS(-a, b);
    drop(b);
}
END_TEST

START_TEST(a_new_keeper_gets_all)
{
    int64_t a = create(), b = create(), c = create();
    EVENTS(a, b, c);
    place.lost = 1;
    ck_assert_int_eq(settle(), SEALED_SETTLED);
    ck_assert_uint_eq(place.n_events, 3);
    ck_assert_int_eq(place.events[0] + place.events[1] + place.events[2], a + b + c);
    restart();
    ck_assert_int_eq(settle(), SEALED_SETTLED);
    NO_EVENTS();
    drop(a);
    drop(b);
    drop(c);
}
END_TEST

/* A keeper ends, and the next one before it has accepted anything. An object that ends
 * until then was given to nobody. */
START_TEST(a_new_keeper_accepts_nothing)
{
    int64_t a = create(), b = create(), c = create();
    restart();
    place.offer = -EAGAIN;
    place.refusals = UINT_MAX;
    for (int i = 0; i < 2; i++) {
        place.lost = 1;
        ck_assert_int_eq(settle(), -EAGAIN);
    }
    drop(b);
    NO_EVENTS();
    place.refusals = 0;
    ck_assert_int_eq(settle(), SEALED_SETTLED);
    ck_assert_uint_eq(place.n_events, 2);
    ck_assert_int_eq(place.events[0] + place.events[1], a + c);
    drop(a);
    drop(c);
}
END_TEST

/* An offer finds that the keeper has ended. Whether a new one accepts that object or not, it gets
 * each object once. */
START_TEST(lost_while_offering)
{
    for (unsigned refused = 0; refused < 2; refused++) {
        memset(&place, 0, sizeof place);
        int64_t a = create(), b = create();
        restart();
        place.lost_at = 1;
        place.offer = -EAGAIN;
        place.refusals = refused;
        int64_t c = create();
        place.lost_at = 0;
        ck_assert_int_eq(settle(), SEALED_SETTLED);
        ck_assert_uint_eq(place.n_events, 3);
        ck_assert_int_eq(place.events[0], c);
        ck_assert_int_eq(place.events[1] + place.events[2], a + b);
        restart();
        drop(a);
        drop(b);
        drop(c);
        EVENTS(-a, -b, -c);
    }
}
END_TEST

/* --- The end ------------------------------------------------------------- */

START_TEST(the_end_waits_until_all_is_given)
{
    place.offer = -EAGAIN;
    place.refusals = UINT_MAX;
    int64_t a = create();
    place.refusals = 4;
    NO_EVENTS();
    sealed_end();
    EVENTS(a);
    ck_assert(place.n_reports == 1 && place.n_ends == 1);
    drop(a);
}
END_TEST

/* A slice may take a millisecond only; the end takes as many as it needs. */
START_TEST(the_end_takes_several_slices)
{
    int64_t inodes[5];
    place.offer = -EAGAIN;
    place.refusals = UINT_MAX;
    for (int i = 0; i < 5; i++)
        inodes[i] = create();
    place.refusals = 0;
    place.slow_us = 1000;
    ck_assert_int_eq(sealed_settle(), SEALED_MORE);
    ck_assert_uint_lt(place.n_events, 5);
    sealed_end();
    assert_events(5, inodes);
    place.slow_us = 0;
    for (int i = 0; i < 5; i++)
        drop(inodes[i]);
}
END_TEST

START_TEST(the_end_gives_up)
{
    place.offer = -EAGAIN;
    place.refusals = UINT_MAX;
    int64_t a = create(), begin = now_ns();
    sealed_end();
    ck_assert_int_ge(now_ns() - begin, 1900000000);
    ck_assert_uint_lt(place.n_calls, 1000); /* it does not spin */
    ck_assert(place.n_reports == 1 && place.n_ends == 1);
    NO_EVENTS();
    drop(a);
}
END_TEST

/* --- Recovery ------------------------------------------------------------ */

static void leave(int fd, int64_t number)
{
    place.kept[place.n_kept++] = (struct kept){fd, (uint64_t)number};
}

/* Returns the inode. The place has the object under that number and `more`. */
static int64_t leave_new(int seals, int more)
{
    int64_t inode;
    int fd = make(seals, &inode);
    leave(fd, inode + more);
    return inode;
}

START_TEST(recovered_and_claimed)
{
    int64_t c = create();
    restart();
    int64_t a = leave_new(SIZE_SEALS, 0), b = leave_new(SIZE_SEALS | F_SEAL_SEAL, 0);
    ck_assert_int_eq(sealed_recover(), 0);
    NO_EVENTS(); /* the place has them */
    ck_assert(sealed_has((ino_t)a) && sealed_has((ino_t)b));
    sealed_claim((ino_t)a);
    ck_assert_uint_eq(sealed_drop_unclaimed(NULL), 1);
    settle();
    EVENTS(-b);
    ck_assert(sealed_has((ino_t)a) && !sealed_has((ino_t)b) && sealed_has((ino_t)c));
    ck_assert_uint_eq(sealed_drop_unclaimed(NULL), 0);
    drop(a);
    drop(c);
    EVENTS(-a, -c);
}
END_TEST

/* An object that was kept under a wrong number, lacks a seal, or is here already, is dropped. A
 * place has one object of a number, so the last of these is harmless. */
START_TEST(what_is_not_recovered)
{
    int64_t a, b, c;
    int ends[2], first = make(SIZE_SEALS, &a);
    b = leave_new(SIZE_SEALS, 1);
    c = leave_new(F_SEAL_SHRINK, 0);
    leave(fcntl(first, F_DUPFD_CLOEXEC, 0), a);
    leave(first, a);
    ck_assert_int_eq(sealed_recover(), 0);
    EVENTS(-(b + 1), -c, -a);
    ck_assert(sealed_has((ino_t)a) && !sealed_has((ino_t)b) && !sealed_has((ino_t)c));
    drop(a);
    restart();
    place.n_kept = 0;
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0); /* has no seals */
    leave(ends[0], 5);
    leave(ends[1], 6);
    c = leave_new(F_SEAL_GROW, 0);
    ck_assert_int_eq(sealed_recover(), 0);
    EVENTS(-5, -6, -c);
    place.n_kept = 0;
    a = leave_new(SIZE_SEALS, 0);
    faults_begin_call("fstat", 1, EIO, false);
    ck_assert_int_eq(sealed_recover(), 0);
    ck_assert(faults_end());
    EVENTS(-a);
}
END_TEST

/* Without room the recovery ends with an error, and the place keeps all for a later daemon. */
START_TEST(no_room_to_recover)
{
    sealed_limit(1);
    int64_t a = leave_new(SIZE_SEALS, 0);
    leave_new(SIZE_SEALS, 0);
    leave_new(SIZE_SEALS, 0);
    ck_assert_int_eq(sealed_recover(), -EMFILE);
    NO_EVENTS();
    drop(a);
    sealed_limit(UINT_MAX);
    restart();
    place.n_kept = 0;
    a = leave_new(SIZE_SEALS, 0);
    faults_begin_call("malloc", 1, ENOMEM, false);
    ck_assert_int_eq(sealed_recover(), -ENOMEM);
    ck_assert(faults_end());
    ck_assert(!sealed_has((ino_t)a));
    NO_EVENTS();
}
END_TEST

/* The keeper that had an adopted object has ended. So the object is offered again. */
START_TEST(adopted_and_offered)
{
    int64_t a;
    ck_assert_int_eq(sealed_adopt(make(SIZE_SEALS, &a)), 0);
    ck_assert(sealed_has((ino_t)a));
    ck_assert_int_eq(settle(), SEALED_SETTLED);
    EVENTS(a);
    ck_assert_uint_eq(sealed_drop_unclaimed(NULL), 1);
    settle();
    EVENTS(-a);
}
END_TEST

/* sealed_adopt() closes each descriptor that it does not take. */
START_TEST(what_is_not_adopted)
{
    int64_t a, b;
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    ck_assert_int_eq(sealed_adopt(ends[0]), 0);
    ck_assert_int_eq(sealed_adopt(ends[1]), 0);
    ck_assert_int_eq(sealed_adopt(open("/dev/null", O_RDWR | O_CLOEXEC)), 0);
    ck_assert_int_eq(sealed_adopt(make(F_SEAL_GROW, &b)), 0);
    ck_assert(!sealed_has((ino_t)b));
    ck_assert_uint_eq(unit_fds(), unit_fds_before);
    int fd = make(SIZE_SEALS, &a), again = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    ck_assert_int_eq(sealed_adopt(fd), 0);
    ck_assert_int_eq(sealed_adopt(again), 0);
    ck_assert_uint_eq(unit_fds(), unit_fds_before + 1);
    sealed_limit(1);
    ck_assert_int_eq(sealed_adopt(make(SIZE_SEALS, &b)), -EMFILE);
    sealed_limit(UINT_MAX);
    fd = make(SIZE_SEALS, &b);
    faults_begin_call("malloc", 1, ENOMEM, false);
    ck_assert_int_eq(sealed_adopt(fd), -ENOMEM);
    ck_assert(faults_end());
    ck_assert(!sealed_has((ino_t)b));
    ck_assert_uint_eq(unit_fds(), unit_fds_before + 1);
    drop(a);
}
END_TEST

UNIT_MAIN("sealed_keeping", UNIT_TEST(offered_once_and_forgotten),
          UNIT_TEST(refused_and_given_later), UNIT_TEST(forgotten_before_the_next_is_offered),
          UNIT_TEST(a_new_keeper_gets_all), UNIT_TEST(a_new_keeper_accepts_nothing),
          UNIT_TEST(lost_while_offering), UNIT_TEST(the_end_waits_until_all_is_given),
          UNIT_TEST(the_end_takes_several_slices), UNIT_TEST(the_end_gives_up),
          UNIT_TEST(recovered_and_claimed), UNIT_TEST(what_is_not_recovered),
          UNIT_TEST(no_room_to_recover), UNIT_TEST(adopted_and_offered),
          UNIT_TEST(what_is_not_adopted))

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks keeping.c with the keeper of the last daemon, whose part the tests play. */
#include "daemon/memory/keeping.h"

#include "unit/keeping.h"

#include <sys/resource.h>
#include <sys/time.h>

#include "unit/faults.h"

/* The acts of the keeper right before the daemon receives, a letter for each:
 * a: accepts; h: sends HELD with the next thing; r: sends READY; c: closes the connection;
 * l: closes the listening socket; f: sends a message that a daemon must not get; s: a message that
 * is too short; a point: waits until the daemon receives again. */
static const char *acts;
static int listener = -1, served = -1;
static unsigned n_held;

static void act(void)
{
    for (; *acts && *acts != '.'; acts++)
        if (*acts == 'a') {
            close_fdp(&served);
            served = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
            ck_assert_int_ge(served, 0);
            n_held = 0;
        } else if (*acts == 'h') {
            keeper_send(served, KEEPER_HELD, numbers[n_held], things[n_held].fd, 0);
            n_held++;
        } else if (*acts == 'r') {
            keeper_send(served, KEEPER_READY, n_held, -1, 0);
        } else if (*acts == 'f') {
            keeper_send(served, KEEPER_KEEP, 9, things[3].fd, 0);
        } else if (*acts == 's') {
            ck_assert_int_eq(send(served, "short", 5, 0), 5);
        } else {
            close_fdp(*acts == 'c' ? &served : &listener);
        }
    acts += *acts == '.';
    if (*acts)
        faults_hook("recvmsg", act);
}

static unsigned n_taken;
static unsigned refuses; /* the number of the thing that take() refuses; 0: none */
static bool forgets;     /* all that it takes, as the daemon does with what it cannot use */

static int take(int fd, uint64_t number)
{
    n_taken++;
    if (n_taken == refuses) {
        close(fd);
        return -EMFILE;
    }
    ck_assert_uint_eq(number, numbers[n_taken - 1]);
    ck_assert(thing_is(&things[n_taken - 1], fd));
    if (forgets)
        ck_assert_int_eq(keeping_forget(number), 0);
    return 0;
}

/* Recovers from a keeper that acts so. */
static int recover(const char *script)
{
    acts = script;
    n_taken = 0;
    if (acts[0])
        faults_hook("recvmsg", act);
    int r = keeping_recover(take);
    ck_assert_str_eq(acts, "");
    return r;
}

/* Asserts that the keeper receives this next. */
static void expect(enum keeper_kind kind, unsigned i)
{
    struct keeper_message m;
    int fd;
    ck_assert_int_eq(keeper_receive(served, &m, &fd), 0);
    ck_assert_uint_eq(m.kind, kind);
    ck_assert_uint_eq(m.number, numbers[i]);
    if (kind == KEEPER_KEEP)
        ck_assert(thing_is(&things[i], fd));
}

/* Asserts that the daemon has closed the connection. */
static void expect_end(void)
{
    struct keeper_message m;
    int fd, r;
    do
        r = keeper_receive(served, &m, &fd);
    while (r == 0);
    ck_assert(r == -EPIPE || r == -ECONNRESET); /* the latter if it has not read all */
    close_fdp(&served);
}

START_TEST(all_that_was_kept_comes)
{
    begin();
    listener = kept_listen(8);
    ck_assert_int_eq(recover("ahhhr"), 0);
    ck_assert_uint_eq(n_taken, 3);
    ck_assert(!keeping_has_lost());
    ck_assert_int_eq(keeping_forget(numbers[1]), 0);
    ck_assert_int_eq(keeping_offer(things[3].fd, numbers[3]), 0);
    expect(KEEPER_FORGET, 1);
    expect(KEEPER_KEEP, 3);
    keeping_end();
    expect_end();
    ck_assert(has_socket());
    close(listener);
    end();
}
END_TEST

START_TEST(a_keeper_of_nothing_leaves_no_socket)
{
    begin();
    listener = kept_listen(8);
    ck_assert_int_eq(recover("ahr"), 0);
    ck_assert_int_eq(keeping_forget(numbers[0]), 0);
    expect(KEEPER_FORGET, 0);
    keeping_end();
    expect_end();
    ck_assert(!has_socket());
    close(listener);
    end();
}
END_TEST

START_TEST(without_a_keeper_nothing_comes)
{
    begin();
    ck_assert_int_eq(recover(""), 0);
    close(kept_listen(8));
    ck_assert(has_socket());
    ck_assert_int_eq(recover(""), 0); /* the keeper has ended */
    ck_assert(!has_socket());
    ck_assert_uint_eq(n_taken, 0);
    ck_assert(!keeping_has_lost());
    ck_assert_int_eq(keeping_forget(numbers[0]), 0);
    log_begin();
    ck_assert_str_eq(report(), "");
    log_end();
    end();
}
END_TEST

START_TEST(a_keeper_that_ends_has_handed_over_what_came)
{
    static const struct {
        const char *acts;
        unsigned n;
    } tries[] = {
        {"l", 0},        /* before it has accepted */
        {"alc", 0},      /* before it has sent anything */
        {"ahhlc", 2},    /* before READY */
        {"ahhc...l", 2}, /* the kernel closes its connection first */
        {"ahhrlc", 2},   /* after READY */
    };
    begin();
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++) {
        for (int f = 0; f < 2; f++) {
            forgets = f;
            listener = kept_listen(8);
            ck_assert_msg(recover(tries[i].acts) == 0, "%s", tries[i].acts);
            ck_assert_uint_eq(n_taken, tries[i].n);
            ck_assert_msg(keeping_has_lost(), "%s", tries[i].acts);
            ck_assert(!keeping_has_lost());
            ck_assert_int_eq(keeping_forget(numbers[0]), 0);
            ck_assert(!has_socket() || strchr(tries[i].acts, 'r'));
        }
    }
    log_begin();
    ck_assert_str_eq(report(), "");
    log_end();
    ck_assert_int_eq(keeping_offer(things[0].fd, numbers[0]), 0); /* to another one */
    ck_assert(!keeping_has_lost());
    ck_assert_int_eq(keeping_forget(numbers[0]), 0);
    end();
}
END_TEST

START_TEST(a_keeper_that_closes_and_lives_is_left_for_later)
{
    const char *const tries[] = {
        "ahc..ah",       /* it could not send the second one */
        "ahc..ac.ac.ac", /* nor anything else */
        "ac.ar",
    };
    begin();
    listener = kept_listen(8);
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++) {
        for (int f = 0; f < 2; f++) {
            forgets = f;
            ck_assert_msg(recover(tries[i]) == -EPIPE, "%s", tries[i]);
            ck_assert(!keeping_has_lost());
            ck_assert(has_socket());
        }
    }
    forgets = false;
    ck_assert_int_eq(recover("ahhr"), 0); /* by a later daemon */
    ck_assert_uint_eq(n_taken, 2);
    close_fdp(&served);
    close(listener);
    end();
}
END_TEST

START_TEST(what_cannot_be_taken_stays_with_the_keeper)
{
    begin();
    listener = kept_listen(8);
    refuses = 2;
    ck_assert_int_eq(recover("ahhhr"), -EMFILE);
    ck_assert_uint_eq(n_taken, 2);
    expect_end();
    ck_assert(!keeping_has_lost());
    refuses = 0;
    ck_assert_int_eq(recover("ahhhr"), 0);
    ck_assert_uint_eq(n_taken, 3);
    close_fdp(&served);
    close(listener);
    end();
}
END_TEST

START_TEST(what_may_pass_is_an_error)
{
    static const struct {
        const char *call;
        int error_number;
        const char *acts;
    } tries[] = {
        {"socket", EMFILE, ""},    {"socket", ENFILE, ""},  {"connect", ENOMEM, ""},
        {"connect", ENOBUFS, ""},  {"connect", EAGAIN, ""}, {"recvmsg", ENOMEM, "ah"},
        {"recvmsg", EAGAIN, "ah"}, {"", EPROTO, "as"},      {"", EPROTO, "ahf"},
    };
    begin();
    listener = kept_listen(8);
    for (unsigned i = 0; i < ARRAY_LEN(tries); i++) {
        if (tries[i].call[0])
            faults_begin_call(tries[i].call, 1, tries[i].error_number, false);
        int r = recover(tries[i].acts);
        ck_assert(!tries[i].call[0] || faults_end());
        ck_assert_msg(r == -tries[i].error_number, "%u: %d", i, r);
        ck_assert(!keeping_has_lost());
        ck_assert(has_socket());
    }
    close_fdp(&served);
    ck_assert_int_eq(recover("ahr"), 0);
    ck_assert_uint_eq(n_taken, 1);
    close_fdp(&served);
    close(listener);
    end();
}
END_TEST

START_TEST(two_descriptors_are_needed)
{
    struct rlimit limit, low;
    begin();
    listener = kept_listen(8);
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    int next = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0);
    close(next);
    low = limit;
    low.rlim_cur = (rlim_t)next + 1;
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    int r = keeping_recover(take);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    ck_assert_int_eq(r, -EMFILE);
    ck_assert(has_socket());
    close(listener);
    end();
}
END_TEST

static void on_alarm(int signal)
{
    (void)signal;
}

START_TEST(a_keeper_that_hangs_delays_some_seconds)
{
    struct itimerval soon = {.it_value.tv_usec = 50000}, never = {0};
    struct sigaction action = {.sa_handler = on_alarm};
    begin();
    listener = kept_listen(0);
    int waiting = kept_connect(); /* fills its queue */
    ck_assert_int_ge(waiting, 0);
    ck_assert_int_eq(sigaction(SIGALRM, &action, NULL), 0);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &soon, NULL), 0); /* interrupts connect() */
    int64_t before = now_ns();
    ck_assert_int_eq(recover(""), -EAGAIN);
    ck_assert_int_ge(now_ns() - before, 4000000000);
    ck_assert_int_eq(setitimer(ITIMER_REAL, &never, NULL), 0);
    ck_assert(has_socket());
    close(waiting);
    close(listener);
    end();
}
END_TEST

START_TEST(a_keeper_of_another_user_is_none)
{
    begin();
    listener = kept_listen(8);
    faults_begin_call("getsockopt", 1, EIO, false);
    ck_assert_int_eq(recover(""), 0);
    ck_assert(faults_end());
    if (geteuid() == 0) { /* the kernel notes who listens */
        ck_assert_int_eq(seteuid(65534), 0);
        ck_assert_int_eq(listen(listener, 8), 0);
        ck_assert_int_eq(seteuid(0), 0);
        ck_assert_int_eq(recover(""), 0);
    }
    ck_assert_uint_eq(n_taken, 0);
    ck_assert(!keeping_has_lost());
    close(listener);
    end();
}
END_TEST

KEPT_MAIN("keeping_recover", keeper_run, UNIT_TEST(all_that_was_kept_comes),
          UNIT_TEST(a_keeper_of_nothing_leaves_no_socket),
          UNIT_TEST(without_a_keeper_nothing_comes),
          UNIT_TEST(a_keeper_that_ends_has_handed_over_what_came),
          UNIT_TEST(a_keeper_that_closes_and_lives_is_left_for_later),
          UNIT_TEST(what_cannot_be_taken_stays_with_the_keeper),
          UNIT_TEST(what_may_pass_is_an_error), UNIT_TEST(two_descriptors_are_needed),
          UNIT_TEST(a_keeper_that_hangs_delays_some_seconds),
          UNIT_TEST(a_keeper_of_another_user_is_none))

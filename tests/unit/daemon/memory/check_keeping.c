/* SPDX-License-Identifier: Apache-2.0 */
/* Checks keeping.c with a keeper that it starts, which is this program. */
#include "daemon/memory/keeping.h"

#include "unit/keeping.h"

#include "unit/faults.h"

/* --- The keeper's program ------------------------------------------------- */

/* A file of this suffix makes keepers fail: it has the way. Each of them adds a byte. */
#define FAILING ".fails"

static int run(void)
{
    struct sockaddr_un address = {0};
    socklen_t n = sizeof address;
    char path[120], way = 0;
    if (getsockname(STDIN_FILENO, (struct sockaddr *)&address, &n))
        return 1;
    snprintf(path, sizeof path, "%.100s" FAILING, address.sun_path);
    int fd = open(path, O_RDWR | O_APPEND | O_CLOEXEC);
    if (fd < 0)
        return keeper_run();
    if (read(fd, &way, 1) != 1 || write(fd, "+", 1) != 1)
        return 1;
    close(fd);
    if (way == 's')
        raise(SIGKILL);
    _exit(way == 'e' ? 0 : 1); /* 0: it ends as soon as it is in the background */
}

static void let_keepers_fail(char way)
{
    int fd = open(kept_path(FAILING), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    ck_assert_int_eq(write(fd, &way, 1), 1);
    close(fd);
}

static int n_failed(void)
{
    struct stat st;
    ck_assert_int_eq(stat(kept_path(FAILING), &st), 0);
    return (int)st.st_size - 1;
}

/* --- The tests ------------------------------------------------------------ */

/* Nothing was kept before. */
static int take(int fd, uint64_t number)
{
    close(fd);
    return number ? -EIO : -EINVAL;
}

static int offer(unsigned i)
{
    return keeping_offer(things[i].fd, numbers[i]);
}

/* Ends as a daemon that is killed does, connects as the next one, and asserts that the keeper holds
 * the first n things. Then they are forgotten, and it must end. */
static void expect_kept(unsigned n)
{
    keeping_end();
    int daemon = kept_connect();
    ck_assert_int_ge(daemon, 0);
    kept_expect(daemon, n, numbers, things);
    for (unsigned i = 0; i < n; i++)
        ck_assert_int_eq(keeper_send(daemon, KEEPER_FORGET, numbers[i], -1, 0), 0);
    close(daemon);
    kept_reap();
    for (unsigned i = 0; i < n; i++) {
        thing_pass(&things[i]);
        ck_assert(thing_is_free(&things[i], 0));
    }
}

START_TEST(an_offer_starts_a_keeper)
{
    begin();
    ck_assert_int_eq(keeping_recover(take), 0);
    ck_assert_int_eq(kept_pid(), 0);
    ck_assert_int_eq(offer(0), 0);
    pid_t pid = kept_pid();
    ck_assert_int_gt(pid, 0);
    ck_assert_int_eq(offer(1), 0);
    ck_assert_int_eq(kept_pid(), pid); /* no second keeper was started */
    ck_assert(!keeping_has_lost());
    expect_kept(2);
    end();
}
END_TEST

START_TEST(what_is_forgotten_is_free)
{
    begin();
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_int_eq(offer(i), 0);
        thing_pass(&things[i]);
    }
    ck_assert_int_eq(keeping_forget(numbers[2]), 0);
    ck_assert(thing_is_free(&things[2], KEPT_WAIT_MS));
    ck_assert(!thing_is_free(&things[1], 0));
    ck_assert_int_eq(keeping_forget(numbers[1]), 0);
    ck_assert_int_eq(keeping_forget(numbers[0]), 0);
    keeping_end();
    ck_assert(!has_socket());
    kept_reap();
    ck_assert(thing_is_free(&things[0], 0));
    end();
}
END_TEST

START_TEST(a_keeper_that_is_killed_is_replaced)
{
    begin();
    ck_assert_int_eq(offer(0), 0);
    kept_kill();
    ck_assert(keeping_has_lost());
    ck_assert(!keeping_has_lost());
    ck_assert_int_eq(offer(0), 0);
    ck_assert(!keeping_has_lost());
    kept_kill();
    ck_assert_int_eq(offer(1), 0); /* finds it */
    ck_assert_int_gt(kept_pid(), 0);
    ck_assert(keeping_has_lost());
    ck_assert(!keeping_has_lost());
    kept_kill();
    ck_assert_int_eq(keeping_forget(numbers[1]), 0); /* finds it, too */
    ck_assert_int_eq(kept_pid(), 0);
    ck_assert(keeping_has_lost());
    ck_assert(!keeping_has_lost());
    ck_assert_int_eq(offer(0), 0);
    expect_kept(1);
    end();
}
END_TEST

START_TEST(a_keeper_that_cannot_start_is_tried_once_in_a_second)
{
    begin();
    log_begin();
    let_keepers_fail('1');
    int64_t before = now_ns();
    ck_assert_int_eq(offer(0), -ECHILD);
    ck_assert(!has_socket());
    int r = offer(0);
    if (now_ns() - before < 900000000) { /* otherwise the machine is too busy to see it */
        ck_assert_int_eq(r, -ECHILD);
        ck_assert_int_eq(n_failed(), 1);
    }
    const char *text = report();
    unit_assert_holds(text, "the memory of sealed segments cannot be kept for the next daemon: ");
    unit_assert_holds(text, strerror(ECHILD));
    ck_assert_str_eq(report(), "");
    usleep(1100000);
    let_keepers_fail('s');
    ck_assert_int_eq(offer(0), -ECHILD);
    ck_assert_int_eq(n_failed(), 1);
    usleep(1100000);
    let_keepers_fail('e');
    ck_assert_int_eq(offer(0), -ECONNRESET);
    ck_assert_str_eq(report(), ""); /* only the first one */
    ck_assert(!keeping_has_lost());
    unlink(kept_path(FAILING));
    usleep(1100000);
    ck_assert_int_eq(offer(0), 0);
    ck_assert(!keeping_has_lost());
    log_end();
    expect_kept(1);
    end();
}
END_TEST

/* Asserts that an offer fails if this call does, and that no descriptor is left. */
static void offer_fails(const char *call, unsigned n)
{
    unsigned fds = unit_fds();
    faults_begin_call(call, n, EMFILE, false);
    int r = offer(0);
    ck_assert_msg(faults_end(), "%s", call);
    ck_assert_msg(r == -EMFILE, "%s: %d", call, r);
    ck_assert_uint_eq(unit_fds(), fds);
    ck_assert(!has_socket());
    kept_reap();
    usleep(1100000);
}

START_TEST(without_a_socket_no_keeper_starts)
{
    begin();
    offer_fails("socket", 1);
    offer_fails("bind", 1);
    offer_fails("listen", 1);
    offer_fails("connect", 1);
    ck_assert_int_eq(offer(0), 0);
    expect_kept(1);
    end();
}
END_TEST

START_TEST(a_keeper_that_accepts_nothing_delays_one_call)
{
    int r;
    uint64_t n = 100;
    begin();
    log_begin();
    ck_assert_int_eq(offer(0), 0);
    pid_t pid = kept_stop();
    int64_t before, took;
    do {
        before = now_ns();
        r = keeping_offer(things[1].fd, n++);
        took = now_ns() - before;
    } while (r == 0);
    ck_assert_int_eq(r, -EAGAIN);
    ck_assert_int_ge(took, 19000000);
    before = now_ns();
    for (int i = 0; i < 200; i++) {
        ck_assert_int_eq(keeping_offer(things[1].fd, n), -EAGAIN);
        ck_assert_int_eq(keeping_forget(numbers[0]), -EAGAIN);
    }
    ck_assert_int_lt(now_ns() - before, 4000000000); /* not 20 ms each */
    ck_assert(!keeping_has_lost());
    unit_assert_holds(report(), "the keeper of sealed segments accepts nothing");
    ck_assert_str_eq(report(), "");
    ck_assert_int_eq(kill(pid, SIGCONT), 0);
    before = now_ns();
    while ((r = keeping_forget(numbers[0])) == -EAGAIN && now_ns() - before < 20000000000)
        usleep(100);
    ck_assert_int_eq(r, 0);
    unit_assert_holds(report(), "the keeper of sealed segments accepts descriptors again");
    ck_assert_str_eq(report(), "");
    log_end();
    keeping_end();
    kept_kill();
    end();
}
END_TEST

START_TEST(a_failed_call_leaves_the_keeper)
{
    begin();
    log_begin();
    ck_assert_int_eq(offer(0), 0);
    pid_t pid = kept_pid();
    faults_begin_call("sendmsg", 1, EAGAIN, false);
    ck_assert_int_eq(offer(1), 0); /* there was room a moment later */
    ck_assert(faults_end());
    faults_begin_call("sendmsg", 1, ETOOMANYREFS, false);
    ck_assert_int_eq(offer(2), -EAGAIN);
    ck_assert(faults_end());
    unit_assert_holds(report(), "accepts nothing");
    ck_assert_int_eq(offer(2), 0);
    unit_assert_holds(report(), "accepts descriptors again");
    faults_begin_call("sendmsg", 1, ENOMEM, false);
    ck_assert_int_eq(offer(3), -ENOMEM);
    ck_assert(faults_end());
    const char *text = report();
    unit_assert_holds(text, "cannot be kept for the next daemon: ");
    unit_assert_holds(text, strerror(ENOMEM));
    ck_assert(!keeping_has_lost());
    ck_assert_int_eq(offer(3), 0);
    ck_assert_int_eq(kept_pid(), pid);
    log_end();
    expect_kept(4);
    end();
}
END_TEST

START_TEST(too_long_a_path_has_no_keeper)
{
    char path[200];
    begin();
    log_begin();
    snprintf(path, sizeof path, "%s/%0101d", unit_directory(), 0);
    keeping_init(path);
    unit_assert_holds(report(), "the path of the socket is too long for that of a keeper");
    ck_assert_int_eq(keeping_recover(take), 0);
    ck_assert_int_eq(offer(0), 0);
    ck_assert_int_eq(keeping_forget(numbers[0]), 0);
    ck_assert(!keeping_has_lost());
    ck_assert_int_eq(kept_pid(), 0);
    ck_assert_str_eq(report(), "");
    log_end();
    end();
}
END_TEST

KEPT_MAIN("keeping", run, UNIT_TEST(an_offer_starts_a_keeper), UNIT_TEST(what_is_forgotten_is_free),
          UNIT_TEST(a_keeper_that_is_killed_is_replaced),
          UNIT_TEST(a_keeper_that_cannot_start_is_tried_once_in_a_second),
          UNIT_TEST(without_a_socket_no_keeper_starts),
          UNIT_TEST(a_keeper_that_accepts_nothing_delays_one_call),
          UNIT_TEST(a_failed_call_leaves_the_keeper), UNIT_TEST(too_long_a_path_has_no_keeper))

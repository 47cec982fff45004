/* SPDX-License-Identifier: Apache-2.0 */
/* Checks door.c: which clients it admits, and when. */
#include "daemon/clients/door.h"

#include <sys/socket.h>
#include <sys/un.h>

#include "common/base/util.h"
#include "unit/faults.h"
#include "unit/turns.h"
#include "unit/unit.h"

#define KNOCKS 40

static uv_loop_t loop;
static struct turns turns;
static struct door door;
static struct quota_user user;
static int listener, knocks[KNOCKS];
static unsigned n_admitted;
static int64_t admission_ns; /* how long one admission takes */

/* The first loop of a process opens a pipe that libuv keeps. */
__attribute__((constructor)) static void warm_up(void)
{
    uv_loop_init(&loop);
    uv_loop_close(&loop);
}

static struct quota quota;

static struct quota_user *admit(void *arg, int fd)
{
    int64_t until = now_ns() + admission_ns;
    ck_assert_ptr_eq(arg, &door);
    close(fd);
    n_admitted++;
    while (now_ns() < until)
        ;
    return &user;
}

static void begin(void)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/door", unit_directory());
    listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    ck_assert_int_eq(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    ck_assert_int_eq(listen(listener, KNOCKS), 0);
    ck_assert_int_eq(uv_loop_init(&loop), 0);
    ck_assert_int_eq(turns_init(&turns, &loop), 0);
    ck_assert_int_eq(door_init(&door, &loop, &turns, listener, admit, &door), 0);
    ck_assert_int_eq(door_open(&door), 0);
    for (int i = 0; i < KNOCKS; i++) {
        knocks[i] = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
        ck_assert_int_eq(connect(knocks[i], (struct sockaddr *)&address, sizeof address), 0);
    }
    turns_own_user(&user);
    user.quota = &quota;
    n_admitted = 0;
    admission_ns = 0;
}

static void end(void)
{
    door_close(&door);
    end_turns(&turns);
    uv_run(&loop, UV_RUN_DEFAULT);
    ck_assert_int_eq(uv_loop_close(&loop), 0);
    close_fdp(&door.reserve);
    close(listener);
    ck_assert_int_eq(unit_sweep(unit_directory(), "door"), 1);
    for (int i = 0; i < KNOCKS; i++)
        close(knocks[i]);
}

/* Runs one pass of the loop. */
static void look(void)
{
    turns_round(&turns);
    uv_run(&loop, UV_RUN_NOWAIT);
}

START_TEST(one_after_the_other_is_let_in)
{
    begin();
    admission_ns = 300000; /* longer than a turn */
    look();
    ck_assert_uint_eq(n_admitted, 1);
    ck_assert_int_gt(turns.round_ns, 0);      /* other clients of this pass wait for it */
    ck_assert_int_gt(user.share_until_ns, 0); /* the user who pays for it */
    admission_ns = 0;
    for (int i = 0; i < 1000 && n_admitted < KNOCKS; i++)
        look();
    ck_assert_uint_eq(n_admitted, KNOCKS);
    end();
}
END_TEST

/* They wait while another client, which is quick, is active. */
START_TEST(many_wait_for_slices)
{
    struct turn other = {.payer = &user, .who = &other};
    begin();
    admission_ns = 300000;
    for (int i = 0; i < KNOCKS / 2; i++) {
        turns_round(&turns);
        if (turns_begin(&turns, &other))
            turns_end(&turns, &other);
        turns_cancel(&turns, &other);
        uv_run(&loop, UV_RUN_NOWAIT);
    }
    ck_assert_uint_lt(n_admitted, KNOCKS / 2);
    end();
}
END_TEST

static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
}

/* Otherwise each poll would report again the client that could not be admitted. */
START_TEST(is_shut_where_nobody_can_be_let_in)
{
    static const int errors[] = {ENOMEM, ENOBUFS};
    hush();
    for (size_t i = 0; i < ARRAY_LEN(errors); i++) {
        begin();
        faults_begin_call("accept4", 1, errors[i], false);
        look();
        ck_assert(faults_end());
        ck_assert_uint_eq(n_admitted, 0);
        ck_assert(uv_is_active((uv_handle_t *)&door.retry));
        ck_assert(!uv_is_active((uv_handle_t *)&door.poll));
        int64_t until = now_ns() + 20000000000;
        while (n_admitted < KNOCKS && now_ns() < until)
            look();
        ck_assert_uint_eq(n_admitted, KNOCKS);
        end();
    }
}
END_TEST

/* Sends a byte with the descriptor, and closes the descriptor here. */
static void send_descriptor(int socket, int fd)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(int))];
    } control = {0};
    struct iovec iov = {.iov_base = "", .iov_len = 1};
    struct msghdr msg = {.msg_iov = &iov,
                         .msg_iovlen = 1,
                         .msg_control = control.bytes,
                         .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
    ck_assert_int_eq(sendmsg(socket, &msg, MSG_NOSIGNAL), 1);
    close(fd);
}

static bool has_thread;

static void on_thread(void)
{
    has_thread = true;
}

/* Closing the socket on the loop could block it, as on a kernel before 6.16. */
START_TEST(a_thread_closes_what_has_descriptors)
{
    char byte;
    int ends[2];
    hush();
    begin();
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    send_descriptor(knocks[0], ends[1]);
    faults_begin_call("accept4", 1, EMFILE, false);
    faults_hook("pthread_create", on_thread);
    look();
    ck_assert(faults_end());
    ck_assert(has_thread);
    ck_assert_int_eq(read(ends[0], &byte, 1), 0);      /* it has closed the descriptor */
    ck_assert_int_le(recv(knocks[0], &byte, 1, 0), 0); /* it has hung up */
    for (int i = 0; i < 1000 && n_admitted < KNOCKS - 1; i++)
        look();
    ck_assert_uint_eq(n_admitted, KNOCKS - 1);
    close(ends[0]);
    end();
}
END_TEST

UNIT_MAIN("door", UNIT_TEST(one_after_the_other_is_let_in), UNIT_TEST(many_wait_for_slices),
          UNIT_TEST(is_shut_where_nobody_can_be_let_in),
          UNIT_TEST(a_thread_closes_what_has_descriptors))

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks own.c and handover.c of the library against daemons that refuse, hang up, or send what
 * they should not. */
#include "client/segment/own.h"

#include "client/base/error.h"
#include "common/base/util.h"
#include "unit/faults.h"
#include "unit/stub.h"

static struct stub stub;
static struct shmview_connection *conn;

#define HANDED "{'parameters':{'descriptors':1,'socket':0}}"
#define NO     "{'error':'io.shmview.SegmentExists','parameters':{'name':'s','reason':'taken'}}"

/* Steps of the stub. */
#define STEP(called, answer)                                                                       \
    {                                                                                              \
        .method = (called), .reply = (answer)                                                      \
    }
#define HAND(answer, n, ...)                                                                       \
    {                                                                                              \
        .method = "HandOver", .reply = (answer), .fds = {__VA_ARGS__}, .n_fds = (n)                \
    }

static const struct shmview_create_options own = {
    .struct_bytes = sizeof own,
    .flags = SHMVIEW_OWN_MEMORY,
};

/* One end of a socket pair for the library; what it sends stays in *ret_kept. */
static int handover(int *ret_kept)
{
    int ends[2];
    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    *ret_kept = ends[0];
    return ends[1];
}

static void create_fails(const struct stub_step *steps, size_t n, int error, const char *part)
{
    struct shmview_segment *s = NULL;
    stub_start(&stub, steps, n);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    int r = shmview_create(conn, "s", 5000, &own, &s);
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    ck_assert_ptr_null(s);
    unit_assert_holds(shmview_error_text(), part);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}

START_TEST(the_request)
{
    int kept, fd = handover(&kept);
    char byte;
    struct frame_descriptors got = {0};
    struct frame frame = {0};
    struct stat st;
    const struct stub_step steps[] = {STUB_GREETING, HAND(HANDED, 1, fd), STEP("Create", NO)};
    create_fails(steps, 3, SHMVIEW_ERR_EXISTS, "taken");
    ck_assert_ptr_nonnull(strstr(stub.requests[2], "\"memory\":\"client\""));
    ck_assert_int_eq(frame_receive(&frame, kept, 100, &got), 1);
    ck_assert_uint_eq(got.n, 1);
    ck_assert_int_eq(fstat(got.fd[0], &st), 0);
    ck_assert_int_eq(st.st_size, 5000);
    ck_assert_int_ge(st.st_blocks * 512, 5000);
    ck_assert_uint_eq(st.st_mode & 0777, 0644);
    ck_assert_int_eq(fcntl(got.fd[0], F_GET_SEALS) & 0xf, F_SEAL_SHRINK | F_SEAL_GROW);
    close(fd);
    ck_assert_int_eq(recv(kept, &byte, 1, 0), 0); /* the library has closed its end */
    frame_descriptors_close(&got);
    frame_deinit(&frame);
    close(kept);
}
END_TEST

START_TEST(older_daemons)
{
    const struct stub_step steps[] = {
        STUB_GREETING,
        STEP("HandOver",
             "{'error':'org.varlink.service.MethodNotFound','parameters':{'method':'x'}}")};
    create_fails(steps, 2, SHMVIEW_ERR_UNSUPPORTED, "memory cannot be handed over");
}
END_TEST

START_TEST(refused_handovers)
{
    const struct stub_step steps[] = {
        STUB_GREETING,
        STEP("HandOver",
             "{'error':'io.shmview.QuotaExceeded','parameters':{'what':'connections','asked':1,"
             "'used':1,'limit':1,'reason':'too many'}}")};
    create_fails(steps, 2, SHMVIEW_ERR_QUOTA, "too many");
}
END_TEST

START_TEST(wrong_replies)
{
    int kept, fd = handover(&kept);
    const struct stub_step none[] = {STUB_GREETING, STEP("HandOver", HANDED)};
    const struct stub_step two[] = {STUB_GREETING, HAND(HANDED, 2, fd, fd)};
    const struct stub_step index[] = {STUB_GREETING,
                                      HAND("{'parameters':{'descriptors':1,'socket':1}}", 1, fd)};
    const struct stub_step file[] = {STUB_GREETING, HAND(HANDED, 1, 2)};
    create_fails(none, 2, SHMVIEW_ERR_PROTOCOL, "has 0 descriptors");
    create_fails(two, 2, SHMVIEW_ERR_PROTOCOL, "has 2 descriptors");
    create_fails(index, 2, SHMVIEW_ERR_PROTOCOL, "HandOver");
    create_fails(file, 2, SHMVIEW_ERR_SYSTEM, "memory of a segment");
    close(kept);
    close(fd);
}
END_TEST

/* A Create that was sent may have been carried out; a HandOver is repeated with another daemon. */
START_TEST(daemons_that_hang_up)
{
    int kept, fd = handover(&kept);
    const struct stub_step before[] = {STUB_GREETING, STEP("HandOver", NULL), HAND(HANDED, 1, fd),
                                       STEP("Create", NO)};
    const struct stub_step after[] = {STUB_GREETING, HAND(HANDED, 1, fd), STEP("Create", NULL)};
    create_fails(before, 4, SHMVIEW_ERR_EXISTS, "taken");
    create_fails(after, 3, SHMVIEW_ERR_DISCONNECTED, "hung up");
    int ended, its = handover(&ended); /* of a daemon that ends before the memory comes */
    close(ended);
    const struct stub_step between[] = {STUB_GREETING, HAND(HANDED, 1, its), HAND(HANDED, 1, fd),
                                        STEP("Create", NO)};
    create_fails(between, 4, SHMVIEW_ERR_EXISTS, "taken");
    close(its);
    close(kept);
    close(fd);
}
END_TEST

/* Ends the stub whatever was asked for: requests that were not sent are repeated. */
static void end_early(void)
{
    shutdown(stub.listener, SHUT_RDWR);
    pthread_join(stub.thread, NULL);
    close(stub.listener);
}

static void create_failing(unsigned class)
{
    bool failed = true;
    for (unsigned n = 1; failed; n++) {
        int kept, fd = handover(&kept);
        const struct stub_step steps[] = {STUB_GREETING, HAND(HANDED, 1, fd), STEP("Create", NO)};
        struct shmview_segment *s = NULL;
        stub_start(&stub, steps, 3);
        ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
        faults_begin(class, n);
        int r = shmview_create(conn, "s", 1, &own, &s);
        failed = faults_end();
        ck_assert_int_lt(r, 0);
        ck_assert_int_eq(shmview_disconnect(conn), 0);
        if (failed)
            end_early();
        else
            stub_end(&stub);
        close(kept);
        close(fd);
    }
}

START_TEST(without_memory)
{
    create_failing(FAULTS_MEMORY);
}
END_TEST

START_TEST(without_descriptors)
{
    create_failing(FAULTS_SYSTEM);
}
END_TEST

static int one_question(void *arg)
{
    return ++*(int *)arg > 1;
}

START_TEST(the_caller_ends_the_wait)
{
    struct shmview_segment *s = NULL;
    const struct stub_step steps[] = {STUB_GREETING};
    int asked = 0;
    stub_start(&stub, steps, 1);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    shmview_on_wait(one_question, &asked);
    ck_assert_int_eq(shmview_create(conn, "s", (uint64_t)129 << 20, &own, &s),
                     -SHMVIEW_ERR_INTERRUPTED);
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(asked, 2);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}
END_TEST

/* A signal undoes a step of the allocation. */
START_TEST(signals_only_delay_it)
{
    int kept, fd = handover(&kept);
    const struct stub_step steps[] = {STUB_GREETING, HAND(HANDED, 1, fd), STEP("Create", NO)};
    faults_begin_call("posix_fallocate", 1, EINTR, false);
    create_fails(steps, 3, SHMVIEW_ERR_EXISTS, "taken");
    ck_assert(faults_end());
    close(kept);
    close(fd);
}
END_TEST

UNIT_MAIN("client_own", UNIT_TEST(the_request), UNIT_TEST(older_daemons),
          UNIT_TEST(refused_handovers), UNIT_TEST(wrong_replies), UNIT_TEST(daemons_that_hang_up),
          UNIT_TEST(without_memory), UNIT_TEST(without_descriptors),
          UNIT_TEST(the_caller_ends_the_wait), UNIT_TEST(signals_only_delay_it))

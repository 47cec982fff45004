/* SPDX-License-Identifier: Apache-2.0 */
/* Checks HandOver and a Create with memory of the client when memory or a system call fails: each
 * is refused or carried out, and nothing leaks. */
#include "daemon/clients/handover.h"

#include <sys/mman.h>

#include "unit/faults.h"
#include "unit/house.h"

static struct house house;
static struct guest *guest;

static void begin(void)
{
    house_open(&house);
    house.state.max_connections = 100;
    guest = house_admit(&house);
}

/* A thread closes the descriptors that were handed over and not accepted. */
static void end(void)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    house_close(&house);
    while (unit_fds() > unit_fds_before && now_ns() < deadline)
        usleep(100);
}

/* Discards what is logged. */
static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
}

/* Hands good memory over. */
static void hand_over(void)
{
    json_t *p = house_call(guest, "HandOver", "{}");
    int fd = memfd_create("shmview:unit", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    ck_assert_int_eq(posix_fallocate(fd, 0, 10), 0);
    ck_assert_int_eq(fchmod(fd, 0644), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
    ck_assert_int_eq(frame_send(guest->fds.fd[house_int(p, NULL, "socket")], "m", 1, &fd, 1), 1);
    close(fd);
}

/* Calls the method while the n-th call fails. Returns whether one did. */
static bool call_failing(const char *method, const char *parameters, unsigned classes, unsigned n,
                         int *ret_error)
{
    struct answer answer = {0};
    json_t *p = json_loads(unit_json(parameters), 0, NULL);
    struct wire_call call = {.method = method, .parameters = p};
    faults_begin(classes, n);
    methods_call(&house.state, guest->connection, &call, &answer);
    bool failed = faults_end();
    *ret_error = answer.error;
    if (answer.fds_borrowed)
        answer.fds.n = 0;
    answer_deinit(&answer);
    json_decref(p);
    return failed;
}

static void hand_over_failing(unsigned classes)
{
    int error;
    bool failed = true;
    for (unsigned n = 1; failed; n++) {
        begin();
        failed = call_failing("io.shmview.HandOver", "{}", classes, n, &error);
        if (failed && !error)
            hand_over(); /* replaces it */
        end();
    }
    ck_assert_int_eq(error, 0);
}

static void create_failing(unsigned classes)
{
    static const char parameters[] =
        "{'name':'s','size':10,'access':'write','lifetime':'manual','memory':'client'}";
    int error;
    bool failed = true;
    for (unsigned n = 1; failed; n++) {
        begin();
        hand_over();
        failed = call_failing("io.shmview.Create", parameters, classes, n, &error);
        ck_assert_int_eq(handover_receive(guest->connection), -ENOTCONN); /* it has ended */
        const struct segment *s = registry_find(&house.state.registry, "s");
        ck_assert_int_eq(s && s->allocated, error == 0);
        end();
    }
    ck_assert_int_eq(error, 0);
}

START_TEST(hand_over_without_memory)
{
    hush();
    hand_over_failing(FAULTS_MEMORY);
}
END_TEST

START_TEST(hand_over_without_descriptors)
{
    hush();
    faults_errno(EMFILE);
    hand_over_failing(FAULTS_SYSTEM);
}
END_TEST

START_TEST(create_without_memory)
{
    hush();
    create_failing(FAULTS_MEMORY);
}
END_TEST

START_TEST(create_without_descriptors)
{
    hush();
    faults_errno(EMFILE);
    create_failing(FAULTS_SYSTEM);
}
END_TEST

/* The failed allocation of the lock has taken the client's memory with it. So it is not tried again
 * on a thread. */
START_TEST(create_without_space)
{
    hush();
    faults_errno(ENOSPC);
    create_failing(FAULTS_SYSTEM);
}
END_TEST

START_TEST(a_connection_more)
{
    begin();
    house.state.max_connections = 1;
    hand_over();
    struct guest *other = house_admit(&house);
    house_refused(other, "HandOver", "{}", "QuotaExceeded", "connections");
    house_refused(guest, "Create", "{'name':'s','size':11,'memory':'client'}", INVALID,
                  "has 10 bytes, not 11");
    end();
}
END_TEST

UNIT_MAIN("own_requests", UNIT_TEST(hand_over_without_memory),
          UNIT_TEST(hand_over_without_descriptors), UNIT_TEST(create_without_memory),
          UNIT_TEST(create_without_descriptors), UNIT_TEST(create_without_space),
          UNIT_TEST(a_connection_more))

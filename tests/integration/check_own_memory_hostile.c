/* SPDX-License-Identifier: Apache-2.0 */
/* Hostile clients that hand over memory for a segment: what they pass is checked, each refusal
 * names its cause, nothing stays with the daemon, and nobody waits. */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>

#include "integration/own_memory.h"
#include "support/backing.h"
#include "support/person.h"

/* Creates with these descriptors, which it closes; the reason must have `part`. */
static void try_several(struct raw *raw, const int *fds, size_t n, const char *part)
{
    ck_assert(pass(hand_over(raw), 1, fds, n));
    for (size_t i = 0; i < n; i++)
        close(fds[i]);
    raw_send_call(raw, "Create", CREATE);
    json_t *p = raw_receive_error(raw, WRONG, part);
    ck_assert_str_eq(json_string_value(json_object_get(p, "parameter")), "memory");
    json_decref(p);
    raw_close_fds(raw);
}

static void try(struct raw *raw, int fd, const char *part)
{
    ck_assert_int_ge(fd, 0);
    try_several(raw, &fd, 1, part);
}

static int pipe_end(void)
{
    int ends[2];
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    return ends[1];
}

/* A file of /dev/shm, which has F_SEAL_SEAL. */
static int shm_file(void)
{
    char name[64];
    snprintf(name, sizeof name, "/shmview-own-%d", (int)getpid());
    int fd = shm_open(name, O_CREAT | O_EXCL | O_RDWR, 0600);
    shm_unlink(name);
    ck_assert_int_eq(ftruncate(fd, BYTES), 0);
    ck_assert_int_eq(posix_fallocate(fd, 0, BYTES), 0);
    return fd;
}

static int opened(int fd, int flags)
{
    char path[64];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, flags | O_CLOEXEC);
    close(fd);
    return again;
}

static int writable_by_all(void)
{
    int fd = good();
    ck_assert_int_eq(fchmod(fd, 0666), 0);
    return fd;
}

static int with_excess(void)
{
    int fd = memory(0, BYTES, BYTES, 0);
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_KEEP_SIZE, BYTES, 1 << 20), 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, SEALS), 0);
    return fd;
}

static int with_hole(void)
{
    int fd = good();
    ck_assert_int_eq(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 8192, 4096), 0);
    return fd;
}

/* Memory of huge pages, or -1 where there are none. */
static int huge(void)
{
    int fd = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
    if (fd >= 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
        return fd;
    puts("skipped: no memfds of huge pages");
    return -1;
}

static void try_all(struct raw *raw)
{
    try(raw, memory(0, BYTES - 1, BYTES - 1, SEALS), "has 999999 bytes, not 1000000");
    try(raw, memory(0, BYTES + 1, BYTES + 1, SEALS), "has 1000001 bytes, not 1000000");
    try(raw, memory(0, BYTES, BYTES, 0), "has not the seals");
    try(raw, memory(0, BYTES, BYTES, F_SEAL_SHRINK), "has not the seals");
    try(raw, memory(0, BYTES, BYTES, SEALS | F_SEAL_WRITE), "has seals (0xe)");
    try(raw, memory(0, BYTES, BYTES, SEALS | F_SEAL_FUTURE_WRITE), "has seals (0x16)");
    try(raw, memory(0, BYTES, BYTES, SEALS | F_SEAL_SEAL), "has seals (0x7)");
    try(raw, memory(0, BYTES, 0, SEALS), "has 0 of 1000000 bytes committed");
    try(raw, with_hole(), "bytes committed");
    try(raw, with_excess(), "has memory beyond its end");
    try(raw, writable_by_all(), "has the mode 0666");
    try(raw, opened(good(), O_RDONLY), "is not open for reading and writing");
    try(raw, opened(good(), O_WRONLY), "is not open for reading and writing");
    try(raw, opened(good(), O_PATH), "is not a memfd");
    try(raw, pipe_end(), "is not a memfd");
    try(raw, open("/dev/null", O_RDWR | O_CLOEXEC), "is not a memfd");
    try(raw, open("/proc/self/exe", O_RDONLY | O_CLOEXEC), "is not a memfd");
    try(raw, shm_file(), "is not a memfd of ordinary pages");
    int fd = huge();
    if (fd >= 0)
        try(raw, fd, "is not a memfd of ordinary pages");
    try_several(raw, (int[]){good(), good()}, 2, "several were handed over");
    try_several(raw, NULL, 0, "a byte came without a descriptor");
}

START_TEST(wrong_memory_is_refused_and_closed)
{
    struct raw raw;
    begin();
    drop(make_own("first", 1), "first"); /* the daemon has a keeper from now on */
    raw_connect(&raw, d.socket);
    raw_do(&raw, "Ping", NULL);
    AWAIT(backing_objects(d.pid) == 0); /* a thread closes those of the first segment */
    unsigned before = process_descriptors(d.pid);
    try_all(&raw);
    AWAIT(process_descriptors(d.pid) == before);
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(memory_of_a_segment_is_not_taken_again)
{
    struct raw raw;
    begin();
    raw_connect(&raw, d.socket);
    int fd = good(), copy = dup(fd);
    ck_assert(pass(hand_over(&raw), 1, &fd, 1));
    raw_do(&raw, "Create", CREATE);
    raw_close_fds(&raw);
    close(fd);
    ck_assert(pass(hand_over(&raw), 1, &copy, 1));
    raw_refused(&raw, "Create", "{'name':'t','size':1000000,'memory':'client'}", WRONG,
                "is the memory of a segment already");
    raw_close_fds(&raw);
    close(copy);
    json_t *a =
        raw_call(&raw, "Create", "{'name':'u','size':1000000,'access':'write','backing':'sealed'}");
    fd = dup(raw.fds[raw_int(a, "attachment.data")]);
    json_decref(a);
    raw_close_fds(&raw);
    try(&raw, fd, "is the memory of a segment already");
    raw_close(&raw);
    end();
}
END_TEST

START_TEST(handovers_in_the_wrong_order)
{
    struct raw raw;
    int fd = good();
    begin();
    raw_connect(&raw, d.socket);
    raw_refused(&raw, "Create", CREATE, WRONG, "needs a HandOver before");
    hand_over(&raw);
    raw_refused(&raw, "Create", CREATE, WRONG, "nothing was sent");
    raw_close_fds(&raw);
    /* a refusal for another reason ends the handover too */
    ck_assert(pass(hand_over(&raw), 1, &fd, 1));
    raw_refused(&raw, "Create", "{'name':'.','size':1000000,'memory':'client'}", WRONG, "");
    raw_close_fds(&raw);
    raw_refused(&raw, "Create", CREATE, WRONG, "needs a HandOver before");
    ck_assert(pass(hand_over(&raw), 1, &fd, 1));
    raw_refused(&raw, "Create", "{'name':'s','size':1000000,'memory':'client','backing':'file'}",
                WRONG, "memory of the client is sealed");
    raw_close_fds(&raw);
    /* the second one is in force */
    ck_assert(pass(hand_over(&raw), 1, &fd, 1));
    raw_close_fds(&raw);
    hand_over(&raw);
    raw_refused(&raw, "Create", CREATE, WRONG, "nothing was sent");
    raw_close_fds(&raw);
    /* with a creation that does not want it, it stays */
    ck_assert(pass(hand_over(&raw), 1, &fd, 1));
    raw_do(&raw, "Create", "{'name':'file','size':1}");
    raw_close_fds(&raw);
    raw_do(&raw, "Create", CREATE);
    raw_close(&raw);
    close(fd);
    end();
}
END_TEST

START_TEST(what_is_sent_too_late_or_never_used)
{
    struct raw raw;
    int fd = good(), many[8];
    begin();
    drop(make_own("first", 1), "first");
    AWAIT(backing_objects(d.pid) == 0); /* a thread closes those of the first segment */
    unsigned before = process_descriptors(d.pid);
    for (int i = 0; i < 8; i++)
        many[i] = pipe_end();
    for (int round = 0; round < 3; round++) { /* hangs up with a handover, which may be full */
        raw_connect(&raw, d.socket);
        int socket = hand_over(&raw);
        for (int i = 0; round && i < 4; i++)
            ck_assert(pass(socket, round == 1 ? 1 : 4000, many, 8));
        if (round == 2)
            raw_send(&raw, "{\"method\":\"io.shmview.Create\",\"par", 30); /* half a request */
        raw_close(&raw);
    }
    raw_connect(&raw, d.socket);
    int socket = hand_over(&raw);
    ck_assert(pass(socket, 1, &fd, 1));
    ck_assert(pass(socket, 1, many, 8)); /* after the right one */
    raw_do(&raw, "Create", CREATE);
    ck_assert(!pass(socket, 1, many, 8));
    raw_close(&raw);
    AWAIT(process_descriptors(d.pid) == before);
    for (int i = 0; i < 8; i++)
        close(many[i]);
    close(fd);
    end();
}
END_TEST

/* Makes a segment that stays of this memory. */
static void create_of(struct raw *raw, int fd, const char *call)
{
    ck_assert(pass(hand_over(raw), 1, &fd, 1));
    raw_do(raw, "Create", call);
    raw_close_fds(raw);
}

/* Attaches x, whose trylock() must return `result`, and detaches it. Returns where its data are. */
static void *use(int result)
{
    struct shmview_segment *s = client_attach(conn, "x", SHMVIEW_READ);
    void *data = shmview_data(s);
    int r = shmview_trylock(s);
    ck_assert_msg(r == result, "%d: %s", r, shmview_error_text());
    if (r == 0)
        OK(shmview_unlock(s));
    OK(shmview_detach(s)); /* the mapping stays for the next attachment */
    return data;
}

/* The library shares the mapping of a segment only with handles of that segment, not with those of
 * a later one of its memory. */
START_TEST(memory_handed_over_again_has_another_lock)
{
    static const char *const with_lock =
        "{'name':'x','size':1000000,'memory':'client','lifetime':'manual'}";
    static const char *const without =
        "{'name':'x','size':1000000,'memory':'client','lifetime':'manual','lock':false}";
    struct raw raw;
    int fd = good();
    begin();
    raw_connect(&raw, d.socket);
    create_of(&raw, fd, with_lock);
    void *data = use(0);
    ck_assert_ptr_eq(use(0), data);
    OK(shmview_remove(conn, "x"));
    create_of(&raw, fd, without);
    data = use(-SHMVIEW_ERR_NO_LOCK);
    ck_assert_ptr_eq(use(-SHMVIEW_ERR_NO_LOCK), data);
    OK(shmview_remove(conn, "x"));
    create_of(&raw, fd, with_lock);
    use(0);
    OK(shmview_remove(conn, "x"));
    raw_close(&raw);
    close(fd);
    end();
}
END_TEST

/* Returns a socket whose last close waits, or -1 where there is no loopback. */
static int lingering(int *ret_other)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t n = sizeof address;
    static const char bytes[65536];
    const struct linger linger = {1, 10};
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) || listen(listener, 1) ||
        getsockname(listener, (struct sockaddr *)&address, &n) ||
        connect(fd, (struct sockaddr *)&address, sizeof address)) {
        close(listener);
        close(fd);
        puts("skipped: no loopback");
        return -1;
    }
    *ret_other = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    close(listener);
    while (send(fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0)
        continue;
    ck_assert_int_eq(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger), 0);
    return fd;
}

/* The last close of what a client passes can block. It must not block the loop. */
START_TEST(descriptors_that_take_long_to_close)
{
    struct raw raw;
    int other[3], fd, n = 0;
    begin();
    int64_t start = await_now_ns();
    for (; n < 3 && (fd = lingering(&other[n])) >= 0; n++) {
        raw_connect(&raw, d.socket);
        if (n == 0) {
            try(&raw, fd, "is not a memfd");
        } else if (n == 1) {
            try_several(&raw, (int[]){good(), fd}, 2, "several");
        } else {
            ck_assert(pass(hand_over(&raw), 1, &fd, 1));
            close(fd);
        }
        raw_close(&raw);
        for (int i = 0; i < 10; i++)
            OK(shmview_ping(conn));
    }
    ck_assert_int_lt(await_now_ns() - start, 5000000000);
    while (n > 0)
        close(other[--n]);
    end();
}
END_TEST

static bool connects(struct raw *raw)
{
    raw_connect(raw, d.socket);
    raw_send_call(raw, "Ping", NULL);
    char *reply = raw_receive(raw);
    bool good = reply && !strstr(reply, "error");
    free(reply);
    if (!good)
        raw_close(raw);
    return good;
}

/* A user who may have four connections. */
static void be_charged(struct child *me, void *arg)
{
    struct raw raw[4], one;
    (void)me;
    (void)arg;
    for (int i = 0; i < 2; i++) {
        raw_connect(&raw[i], d.socket);
        hand_over(&raw[i]);
        raw_close_fds(&raw[i]);
        hand_over(&raw[i]); /* in place of the first */
        raw_close_fds(&raw[i]);
    }
    raw_connect(&one, d.socket);
    json_decref(raw_receive_error(&one, "QuotaExceeded", "connections"));
    raw_close(&one);
    raw_refused(&raw[0], "Create", CREATE, WRONG, "nothing was sent");
    raw_connect(&raw[2], d.socket); /* in place of that handover */
    raw_do(&raw[2], "Ping", NULL);
    raw_refused(&raw[2], "HandOver", NULL, "QuotaExceeded", "connections");
    for (int i = 0; i < 3; i++)
        raw_close(&raw[i]);
    for (int i = 0; i < 4; i++)
        AWAIT(connects(&raw[i]));
    for (int i = 0; i < 4; i++)
        raw_close(&raw[i]);
}

START_TEST(handovers_are_charged)
{
    static const struct person person = {.uid = 65531, .gid = 65531};
    struct child child;
    daemon_configure("{'quotas':{'user':{'connections':4}}}");
    daemon_start_configured(&d, daemon_config_path());
    if (geteuid() != 0) {
        child_start(&child, be_charged, NULL);
        child_wait(&child);
    } else if (person_possible()) {
        person_open_door(&d);
        person_start(&child, &person, be_charged, NULL);
        child_wait(&child);
    }
    unlink(daemon_config_path());
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(wrong_memory_is_refused_and_closed),
        SUITE_TEST(memory_of_a_segment_is_not_taken_again),
        SUITE_TEST(memory_handed_over_again_has_another_lock),
        SUITE_TEST(handovers_in_the_wrong_order),
        SUITE_TEST(what_is_sent_too_late_or_never_used),
        SUITE_TEST(descriptors_that_take_long_to_close),
        SUITE_TEST(handovers_are_charged),
        SUITE_END,
    };
    return suite_main("own_memory_hostile", tests);
}

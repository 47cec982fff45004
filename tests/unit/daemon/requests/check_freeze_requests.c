/* SPDX-License-Identifier: Apache-2.0 */
/* Checks Freeze: whom it refuses, and that nothing has begun if it fails. */
#include "daemon/requests/freeze.h"

#include <sys/wait.h>

#include "daemon/segments/use.h"
#include "unit/faults_memfd.h"
#include "unit/house.h"

static struct house frozen;
static struct guest *owner;
static char request[64]; /* the parameters that begin to freeze "s" */

/* Begins with a sealed segment "s" that its owner has attached for writing. */
static void begin(void)
{
    house_open(&frozen);
    owner = house_admit(&frozen);
    const json_t *p =
        house_call(owner, "Create", "{'name':'s','size':10,'access':'write','backing':'sealed'}");
    snprintf(request, sizeof request, "{'attachment':%d}", (int)house_int(p, "attachment", "id"));
}

static struct segment *get(void)
{
    return registry_find(&frozen.state.registry, "s");
}

/* Admits a client of that pid, which attaches the segment for writing. */
static struct attachment *attach_writer(pid_t pid)
{
    struct guest *g = house_admit(&frozen);
    house_call(g, "Attach", "{'name':'s','access':'write'}");
    struct attachment *a = LIST_FIRST(&g->connection->attachments);
    a->pid = pid;
    return a;
}

/* Asserts that nobody freezes the segment. */
static void assert_nothing_begun(void)
{
    ck_assert_ptr_null(get()->use->freezer);
    struct guest *g = house_admit(&frozen);
    house_call(g, "Attach", "{'name':'s','access':'write'}");
    house_end(g);
}

/* The error names another process if there is one, because the client knows its own. */
START_TEST(other_writers)
{
    begin();
    struct attachment *first = attach_writer(getpid());
    json_t *p = house_refused(owner, "Freeze", request, "SegmentBusy",
                              "1 other attachment may write to it, that of process ");
    ck_assert_int_eq(house_int(p, NULL, "pid"), getpid());
    attach_writer(getppid());
    attach_writer(getpid());
    p = house_refused(owner, "Freeze", request, "SegmentBusy",
                      "3 other attachments may write to it, one of process ");
    ck_assert_int_eq(house_int(p, NULL, "pid"), getppid());
    ck_assert_int_eq(house_int(p, NULL, "attachments"), 3);
    first->pid = getppid();
    p = house_refused(owner, "Freeze", request, "SegmentBusy", "3 other attachments");
    ck_assert_int_eq(house_int(p, NULL, "pid"), getppid());
    ck_assert_ptr_null(get()->use->freezer);
    house_close(&frozen);
}
END_TEST

START_TEST(a_writer_without_a_name)
{
    begin();
    struct attachment *a = attach_writer(0);
    json_t *p = house_refused(owner, "Freeze", request, "SegmentBusy",
                              "that of a process of another pid namespace");
    ck_assert_int_eq(house_int(p, NULL, "pid"), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    a->pid = pid; /* a process without a command */
    char text[64];
    snprintf(text, sizeof text, "that of process %d", (int)pid);
    p = house_refused(owner, "Freeze", request, "SegmentBusy", text);
    const char *reason = json_string_value(json_object_get(p, "reason"));
    ck_assert_str_eq(strstr(reason, text), text); /* it ends there */
    ck_assert_str_eq(json_string_value(json_object_get(p, "command")), "");
    house_close(&frozen);
}
END_TEST

/* The segment was given to others after it was attached. */
START_TEST(a_user_who_may_not_write_any_longer)
{
    begin();
    owner->connection->peer.uid = 12345;
    house_refused(owner, "Freeze", request, SERVICE "PermissionDenied",
                  "uid 12345 may not write to segment 's'");
    assert_nothing_begun();
    house_close(&frozen);
}
END_TEST

/* Discards the log. */
static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
    close(null);
}

/* Freezing needs both descriptors of the data. */
START_TEST(no_descriptors_left)
{
    hush();
    for (int i = 1; i <= 2; i++) {
        begin();
        use_close(get()->use);
        faults_begin_call("open", (unsigned)i, EMFILE, false);
        house_refused(owner, "Freeze", request, "Failed", "a segment cannot be frozen");
        ck_assert(faults_end());
        assert_nothing_begun();
        house_call(owner, "Freeze", request);
        house_close(&frozen);
    }
}
END_TEST

/* Calls Freeze while the n-th allocation fails. Returns whether one did. */
static bool freeze_without_memory(unsigned n, struct answer *answer)
{
    json_t *p = json_loads(unit_json(request), 0, NULL);
    struct wire_call call = {.method = "io.shmview.Freeze", .parameters = p};
    *answer = (struct answer){0};
    faults_begin(FAULTS_MEMORY, n);
    methods_call(&frozen.state, owner->connection, &call, answer);
    bool failed = faults_end();
    json_decref(p);
    return failed;
}

START_TEST(no_memory_left)
{
    bool failed = true;
    unsigned n_refused = 0;
    hush();
    for (unsigned n = 1; failed; n++) {
        struct answer answer;
        begin();
        failed = freeze_without_memory(n, &answer);
        ck_assert_int_eq(answer.error == 0, get()->use->freezer != NULL);
        n_refused += answer.error != 0;
        if (answer.error)
            assert_nothing_begun();
        else
            ck_assert_uint_eq(answer.fds.n, 2);
        answer.fds.n = 0; /* borrowed */
        answer_deinit(&answer);
        house_close(&frozen);
    }
    ck_assert_uint_ge(n_refused, 1);
}
END_TEST

/* Lets the owner add a seal as a client does. */
static void add_seal(int seal)
{
    struct object object;
    segment_object(get(), DATA, &object);
    int fd = object_open(&object, O_RDWR);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fcntl(fd, F_ADD_SEALS, seal), 0);
    close(fd);
}

/* An earlier daemon has begun it, and this one has let others write until the seal was there. */
START_TEST(the_end_of_what_an_earlier_daemon_began)
{
    char done[64];
    begin();
    snprintf(done, sizeof done, "%.*s,'done':true}", (int)strlen(request) - 1, request);
    struct attachment *other = attach_writer(getpid());
    house_call(owner, "Freeze", done); /* without a seal it has no effect */
    other->access = SHMVIEW_READ;
    add_seal(F_SEAL_FUTURE_WRITE);
    house_call(owner, "Freeze", done); /* nobody else writes */
    other->access = SHMVIEW_WRITE;
    house_refused(owner, "Freeze", done, "SegmentBusy", "1 other attachment may write to it");
    other->access = SHMVIEW_READ;
    house_call(owner, "Attach", "{'name':'s','access':'read'}");
    house_refused(owner, "Attach", "{'name':'s','access':'write'}", "SegmentFrozen",
                  "nobody else can begin to write to it");
    add_seal(F_SEAL_WRITE);
    house_call(owner, "Freeze", done);
    ck_assert_int_eq(
        attachment_find(&owner->connection->attachments, (uint64_t)strtoull(request + 14, NULL, 10))
            ->access,
        SHMVIEW_READ);
    house_close(&frozen);
}
END_TEST

/* The client gets an error and asks for nothing more. So the segment must not stay reserved. */
START_TEST(a_reply_that_cannot_be_sent_begins_nothing)
{
    struct house house;
    char freeze[64];
    house_open(&house);
    struct guest *guest = house_admit(&house), *other = house_admit(&house);
    const json_t *p =
        house_call(guest, "Create", "{'name':'s','size':10,'access':'write','backing':'sealed'}");
    snprintf(freeze, sizeof freeze, "{'attachment':%d}", (int)house_int(p, "attachment", "id"));
    faults_begin_call("sendmsg", 1, ETOOMANYREFS, false);
    house_refused(guest, "Freeze", freeze, "Failed", "too many descriptors");
    ck_assert(faults_end());
    house_call(other, "Attach", "{'name':'s','access':'write'}");
    house_close(&house);
}
END_TEST

/* Until the second call nobody else can write. */
START_TEST(others_wait_for_the_end)
{
    struct house house;
    char freeze[64];
    house_open(&house);
    struct guest *guest = house_admit(&house), *other = house_admit(&house);
    const json_t *p =
        house_call(guest, "Create", "{'name':'s','size':10,'access':'write','backing':'sealed'}");
    int id = (int)house_int(p, "attachment", "id");
    snprintf(freeze, sizeof freeze, "{'attachment':%d}", id);
    house_call(guest, "Freeze", freeze);
    house_refused(other, "Attach", "{'name':'s','access':'write'}", "SegmentBusy",
                  "is being frozen");
    snprintf(freeze, sizeof freeze, "{'attachment':%d,'done':true}", id);
    house_call(guest, "Freeze", freeze);
    house_call(other, "Attach", "{'name':'s','access':'write'}");
    house_close(&house);
}
END_TEST

UNIT_MAIN("freeze_requests", UNIT_TEST(a_reply_that_cannot_be_sent_begins_nothing),
          UNIT_TEST(others_wait_for_the_end), UNIT_TEST(other_writers),
          UNIT_TEST(a_writer_without_a_name), UNIT_TEST(a_user_who_may_not_write_any_longer),
          UNIT_TEST(no_descriptors_left), UNIT_TEST(no_memory_left),
          UNIT_TEST(the_end_of_what_an_earlier_daemon_began))

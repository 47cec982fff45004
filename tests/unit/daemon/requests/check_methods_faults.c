/* SPDX-License-Identifier: Apache-2.0 */
/* Checks methods.c when memory or a system call fails: each request is refused or answered in full,
 * and nothing leaks. */
#include "daemon/requests/methods.h"
#include "unit/faults.h"
#include "unit/house.h"

#include <stdatomic.h>
#include <sys/resource.h>

static struct house house;
static struct guest *guest;

/* Begins with a guest that has attached segment "s", with two layouts, for writing. */
static void begin(void)
{
    house_open(&house);
    guest = house_admit(&house);
    house_call(guest, "Create", "{'name':'s','size':4000,'access':'write'}");
    house_call(guest, "DefineLayout",
               "{'name':'s','layout':{'name':'l','views':[{'name':'v',"
               "'format':'i','shape':[2,3]}]}}");
    house_call(guest, "DefineLayout", "{'name':'s','layout':{'name':'m','views':[]}}");
}

/* Calls the method while the n-th call fails. Returns whether one did; *answer is the method's
 * answer. */
static bool call_failing(const char *method, json_t *parameters, unsigned classes, unsigned n,
                         struct answer *answer)
{
    char full[64];
    snprintf(full, sizeof full, "%s%s", strchr(method, '.') ? "" : "io.shmview.", method);
    struct wire_call call = {.method = full, .parameters = parameters};
    *answer = (struct answer){0};
    faults_begin(classes, n);
    methods_call(&house.state, guest->connection, &call, answer);
    return faults_end();
}

/* Discards what is logged. */
static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
}

static const struct {
    const char *method, *parameters;
} calls[] = {
    {"Ping", "{}"},
    {"Ping", "{'x':1}"},
    {"List", "{}"},
    {"Describe", "{'name':'s'}"},
    {"Describe", "{'name':'none'}"},
    {"Attach", "{'name':'s','access':'write'}"},
    {"Attach", "{'name':'s','access':'peek'}"},
    {"Detach", "{'attachment':987654321}"},
    {"DefineLayout", "{'name':'s','layout':{'name':'l','views':[]}}"},
    {"DefineLayout", "{'name':'s','layout':{'name':'x','views':[{'name':'v','format':'?',"
                     "'shape':[]}]}}"},
    {"DefineLayout", "{'name':'s','layout':{'name':'x','views':[{'name':'v','format':'d',"
                     "'shape':[2]},{'name':'w','format':'d','shape':[2]}]}}"},
    {"Entrust", "{'name':'s','pid':1}"},
    {"Remove", "{'name':'none'}"},
    {"Create", "{'name':'s','size':1}"},
    {"Create", "{'name':'.','size':1}"},
    {SERVICE "GetInfo", "{}"},
    {SERVICE "GetInterfaceDescription", "{'interface':'io.shmview'}"},
    {"Nothing", "{}"},
};

/* Fails each call in a new house, so that the effect of one failure cannot help the next. */
static void every_call(unsigned classes, void (*judge)(const char *, const struct answer *))
{
    hush();
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        bool failed = true;
        for (unsigned n = 1; failed; n++) {
            struct answer answer;
            begin();
            json_t *parameters = json_loads(unit_json(calls[i].parameters), 0, NULL);
            failed = call_failing(calls[i].method, parameters, classes, n, &answer);
            if (!answer.pending)
                judge(calls[i].method, &answer);
            answer_deinit(&answer);
            json_decref(parameters);
            house_close(&house);
            ck_assert_uint_eq(unit_objects(), 0);
            ck_assert_uint_eq(unit_fds(), unit_fds_before);
        }
    }
}

static void judge_nothing(const char *method, const struct answer *answer)
{
    (void)method;
    (void)answer;
}

START_TEST(memory_runs_out)
{
    every_call(FAULTS_MEMORY, judge_nothing);
}
END_TEST

START_TEST(system_fails)
{
    faults_errno(EMFILE);
    every_call(FAULTS_SYSTEM, judge_nothing);
}
END_TEST

/* A success must be complete, so that a client can read it. */
static void judge_success(const char *method, const struct answer *answer)
{
    if (answer->error)
        return;
    const char *text = house_text_of(&method);
    json_t *parameters = house_parameters(answer);
    varlink_check_reply(text, method, parameters);
    json_decref(parameters);
}

START_TEST(memory_runs_out_and_no_half_answer_is_given)
{
    every_call(FAULTS_MEMORY, judge_success);
}
END_TEST

/* Fails each call from Create to its reply, also those of the worker. A small creation has no
 * worker. */
static void every_failure_of_a_creation(unsigned classes, int error_number, json_int_t size)
{
    bool failed = true;
    hush();
    faults_errno(error_number);
    for (unsigned n = 1; failed; n++) {
        house_open(&house);
        guest = house_admit(&house);
        json_t *parameters =
            json_pack("{s:s, s:I, s:s}", "name", "s", "size", size, "access", "write");
        struct wire_call call = {.method = "io.shmview.Create", .parameters = parameters};
        struct answer answer = {0};
        faults_begin(classes, n);
        methods_call(&house.state, guest->connection, &call, &answer);
        guest->connection->answering = answer.pending;
        int64_t deadline = now_ns() + HOUSE_WAIT_NS;
        while (house.state.n_jobs && now_ns() < deadline)
            uv_run(&house.loop, UV_RUN_NOWAIT);
        failed = faults_end();
        json_decref(parameters);
        answer_deinit(&answer);
        ck_assert_uint_eq(house.state.n_jobs, 0);
        struct segment *s = registry_find(&house.state.registry, "s");
        ck_assert_uint_eq(unit_objects(), s ? 3 : 0);
        if (s)
            ck_assert_uint_eq(s->n_attachments, 1);
        house_close(&house);
        ck_assert_uint_eq(unit_objects(), 0);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
}

START_TEST(creation_fails)
{
    for (json_int_t size = 100; size <= 1000000; size += 999900) {
        every_failure_of_a_creation(FAULTS_SYSTEM, EMFILE, size);
        every_failure_of_a_creation(FAULTS_SYSTEM, ENOSPC, size);
        every_failure_of_a_creation(FAULTS_MEMORY, 0, size);
    }
}
END_TEST

static atomic_bool allocating, left;

static void wait_in_worker(void)
{
    allocating = true;
    while (!left)
        usleep(100);
}

/* A creation commits no further step after its client has gone. */
START_TEST(creation_stops_when_its_client_leaves)
{
    house_open(&house);
    guest = house_admit(&house);
    faults_hook("posix_fallocate", wait_in_worker);
    faults_begin_call("posix_fallocate", 2, EIO, true);
    house_send(guest, "{'method':'io.shmview.Create','parameters':{'name':'a','size':300000000}}");
    while (!allocating)
        house_run(&house);
    house_leave(guest);
    while (guest->connection)
        house_run(&house);
    left = true;
    house_close(&house);
    ck_assert_msg(!faults_end(), "a second step was committed");
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

static struct rlimit all_descriptors;

static void take_descriptors(void)
{
    getrlimit(RLIMIT_NOFILE, &all_descriptors);
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){1, all_descriptors.rlim_max});
}

/* The descriptors of the reply cannot be sent, so nothing may be left of the creation. With EAGAIN
 * nothing may be kept for later either. */
static void creation_without_a_reply(int error_number, unsigned size, const char *lifetime)
{
    char parameters[128];
    house_open(&house);
    guest = house_admit(&house);
    snprintf(parameters, sizeof parameters,
             "{'name':'s','size':%u,'access':'write','lifetime':'%s'}", size, lifetime);
    if (error_number == EAGAIN)
        faults_hook("sendmsg", take_descriptors);
    faults_begin_call("sendmsg", 1, error_number, false);
    json_t *reply = house_exchange(guest, "Create", parameters);
    ck_assert(faults_end());
    if (error_number == EAGAIN)
        setrlimit(RLIMIT_NOFILE, &all_descriptors);
    ck_assert_str_eq(json_string_value(json_object_get(reply, "error")), "io.shmview.Failed");
    ck_assert_uint_eq(registry_count(&house.state.registry), 0);
    ck_assert_uint_eq(house.state.registry.by_name.n, 0);
    for (int kind = 0; kind < N_QUOTA_KINDS; kind++)
        ck_assert_uint_eq(house.state.quota.used[kind], 0);
    house_call(guest, "Create", "{'name':'s','size':4000,'access':'write'}");
    house_close(&house);
}

START_TEST(a_creation_whose_reply_cannot_be_sent)
{
    static const char *const lifetimes[] = {"attached", "manual", "creator"};
    hush();
    for (size_t i = 0; i < ARRAY_LEN(lifetimes); i++) {
        creation_without_a_reply(ETOOMANYREFS, 4096, lifetimes[i]);
        creation_without_a_reply(ETOOMANYREFS, 1 << 20, lifetimes[i]);
        creation_without_a_reply(EAGAIN, 4096, lifetimes[i]);
    }
}
END_TEST

UNIT_MAIN("methods_faults", UNIT_TEST(memory_runs_out), UNIT_TEST(system_fails),
          UNIT_TEST(memory_runs_out_and_no_half_answer_is_given), UNIT_TEST(creation_fails),
          UNIT_TEST(creation_stops_when_its_client_leaves),
          UNIT_TEST(a_creation_whose_reply_cannot_be_sent))

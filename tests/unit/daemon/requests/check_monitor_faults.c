/* SPDX-License-Identifier: Apache-2.0 */
/* Checks Monitor and Stats when memory or a system call fails. A monitor receives every event, or a
 * report that some are lost, or a hang-up. */
#include "unit/house.h"

#include "daemon/segments/events.h"
#include "unit/faults.h"

static struct house house;
static struct guest *doer, *hearer;

static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
}

static void begin(void)
{
    house_open(&house);
    doer = house_admit(&house);
    hearer = house_admit(&house);
    house_call(doer, "Create", "{'name':'s','size':10,'access':'write','lifetime':'manual'}");
    house_call(doer, "DefineLayout", "{'name':'s','layout':{'name':'l','views':[]}}");
}

static void call(struct guest *g, const char *method, json_t *parameters, bool more,
                 struct answer *answer)
{
    struct wire_call c = {.method = method, .parameters = parameters, .more = more};
    g->connection->more = more;
    methods_call(&house.state, g->connection, &c, answer);
}

/* After a refusal nothing is left, and an answer is complete. */
static void every_call(const char *method, const char *text, bool more, unsigned classes, int error)
{
    bool failed = true;
    faults_errno(error);
    for (unsigned n = 1; failed; n++) {
        struct answer answer = {0};
        begin();
        json_t *parameters = json_loads(unit_json(text), 0, NULL);
        faults_begin(classes, n);
        call(hearer, method, parameters, more, &answer);
        failed = faults_end();
        json_decref(parameters);
        if (answer.error && hearer->connection && !hearer->connection->closing)
            ck_assert_msg(!hearer->connection->monitor && !house.state.monitors, "%s",
                          faults_name());
        if (!answer.error && !answer.pending) {
            const char *name = method, *idl = house_text_of(&name);
            json_t *reply = house_parameters(&answer);
            varlink_check_reply(idl, name, reply);
            ck_assert_uint_eq(json_array_size(json_object_get(reply, "segments")), 1);
            json_decref(reply);
        }
        answer_deinit(&answer);
        house_close(&house);
        ck_assert_ptr_null(house.state.monitors);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
}

START_TEST(monitor)
{
    hush();
    every_call("io.shmview.Monitor", "{}", true, FAULTS_MEMORY, ENOMEM);
    every_call("io.shmview.Monitor", "{'kinds':['died'],'names':['s','x'],'after':0}", true,
               FAULTS_MEMORY, ENOMEM);
    every_call("io.shmview.Monitor", "{}", true, FAULTS_SYSTEM, EMFILE);
}
END_TEST

START_TEST(stats)
{
    hush();
    every_call("io.shmview.Stats", "{'limit':10}", false, FAULTS_MEMORY, ENOMEM);
    every_call("io.shmview.Stats", "{'limit':10}", false, FAULTS_SYSTEM, EMFILE);
    every_call("io.shmview.Stats", "{'names':['s']}", false, FAULTS_MEMORY, ENOMEM);
}
END_TEST

/* Reads events up to serial number `last`. None may be missing unless the daemon hangs up. */
static void hear(uint64_t last)
{
    int64_t next = -1;
    for (const char *text; (text = house_receive(hearer));) {
        json_t *reply = json_loads(text, 0, NULL);
        const json_t *event = json_object_get(json_object_get(reply, "parameters"), "event");
        ck_assert_msg(event, "%s: %s", faults_name(), text);
        int64_t serial = house_int(event, NULL, "serial");
        ck_assert(next < 0 || serial == next);
        next = serial + 1;
        json_decref(reply);
        if ((uint64_t)serial == last)
            return;
    }
}

static void every_telling(unsigned classes, int error)
{
    bool failed = true;
    faults_errno(error);
    for (unsigned n = 1; failed; n++) {
        begin();
        house_send(hearer, "{'method':'io.shmview.Monitor','parameters':{},'more':true}");
        house_receive(hearer);
        house_call(doer, "Attach", "{'name':'s','access':'read'}");
        house_call(doer, "Remove", "{'name':'s'}");
        uint64_t last = house.state.registry.home.events.last;
        faults_begin(classes, n);
        for (int i = 0; i < 5; i++)
            uv_run(&house.loop, UV_RUN_NOWAIT);
        failed = faults_end();
        hear(last);
        house_close(&house);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
}

START_TEST(telling)
{
    hush();
    every_telling(FAULTS_MEMORY, ENOMEM);
    every_telling(FAULTS_SYSTEM, EIO);
}
END_TEST

UNIT_MAIN("monitor_faults", UNIT_TEST(monitor), UNIT_TEST(stats), UNIT_TEST(telling))

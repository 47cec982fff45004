/* SPDX-License-Identifier: Apache-2.0 */
/* Creates declared segments while calls fail: each is there completely or not at all. */
#include "unit/house_config.h"

#include "daemon/reload.h"
#include "daemon/requests/declared.h"
#include "unit/faults.h"

static struct house house;
static unsigned n_done;

static void done(struct state *state)
{
    (void)state;
    n_done++;
}

/* Discards what is logged. */
static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
    close(null);
}

static void open_house(const char *text)
{
    house_open(&house);
    house_configure(&house, text);
    house.state.declared.done = done;
    n_done = 0;
}

/* Creates or updates all declared segments. It asserts nothing, because check allocates for that
 * and must not fail. */
static void run(void)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    declared_start(&house.state);
    while ((house.state.declared.n_pending || house.state.n_jobs) && now_ns() < deadline)
        uv_run(&house.loop, UV_RUN_NOWAIT);
}

static void declare(void)
{
    n_done = 0;
    run();
    ck_assert_uint_eq(n_done, 1);
    ck_assert_uint_eq(house.state.n_jobs, 0);
}

static const char two[] =
    "{'segments':[{'name':'a','size':8,'owner':7,'layouts':[{'name':'l','views':["
    "{'name':'v','format':'i','shape':[2]}]},{'name':'m','views':[]}]},"
    "{'name':'b','size':1,'lock':false,'lifetime':'attached'}]}";

static const struct segment *get(const char *name)
{
    return registry_find(&house.state.registry, name);
}

START_TEST(made_once)
{
    open_house(two);
    declare();
    uint64_t id = get("a")->id;
    ck_assert_uint_eq(get("a")->size, 8);
    ck_assert(get("a")->lock && get("a")->lifetime == SHMVIEW_MANUAL);
    ck_assert_uint_eq(get("a")->layouts.n, 2);
    ck_assert(!get("b")->lock && get("b")->lifetime == SHMVIEW_ATTACHED);
    ck_assert_uint_eq(unit_objects(), 4);
    declare();
    ck_assert_uint_eq(get("a")->id, id);
    ck_assert_uint_eq(get("a")->layouts.n, 2);
    house_close(&house);
}
END_TEST

START_TEST(nothing_to_do)
{
    open_house("{}");
    declare();
    house_close(&house);
}
END_TEST

START_TEST(a_client_is_at_it)
{
    hush();
    open_house(two);
    struct guest *g = house_admit(&house);
    struct wire_call call = {.method = "io.shmview.Create",
                             .parameters = json_pack("{s:s, s:i}", "name", "a", "size", 100)};
    struct answer answer = {0};
    methods_call(&house.state, g->connection, &call, &answer);
    ck_assert(answer.pending); /* the name is taken, but the memory is not committed yet */
    declare();
    ck_assert_uint_eq(get("a")->size, 100);
    json_decref(call.parameters);
    house_close(&house);
}
END_TEST

/* SIGHUP arrives while the first segments are being made. Their configuration must stay until they
 * are complete. */
START_TEST(replaced_while_they_are_made)
{
    struct reload reload;
    char file[100];
    hush();
    open_house(two);
    snprintf(file, sizeof file, "%s/c.json", unit_directory());
    FILE *f = fopen(file, "we");
    fputs("{\"segments\":[{\"name\":\"c\",\"size\":1}]}", f);
    fclose(f);
    reload_init(&reload, &house.state, file, true);
    const struct config *config = house.state.config;
    declared_start(&house.state);
    ck_assert_uint_eq(house.state.declared.n_pending, 2);
    reload_start(&reload);
    while (house.state.n_jobs) {
        ck_assert_ptr_eq(house.state.config, config);
        uv_run(&house.loop, UV_RUN_ONCE);
    }
    ck_assert_uint_eq(house.state.declared.n_pending, 0);
    ck_assert(get("a") && get("b") && !get("c"));
    reload_open(&reload);
    for (int i = 0; i < 3; i++)
        reload_start(&reload);
    while (house.state.n_jobs || house.state.declared.n_pending)
        uv_run(&house.loop, UV_RUN_ONCE);
    ck_assert(get("a") && get("b") && get("c"));
    ck_assert(!reload.active && !reload.again);
    house_close(&house);
    unlink(file);
}
END_TEST

/* Each of the two is complete or absent, and a later call completes what failed. */
static void every_failure(unsigned classes, int error_number)
{
    bool failed = true;
    hush();
    faults_errno(error_number);
    for (unsigned n = 1; failed; n++) {
        open_house(two);
        faults_begin(classes, n);
        run();
        failed = faults_end();
        ck_assert_uint_eq(n_done, 1);
        ck_assert_uint_eq(unit_objects(), (get("a") ? 3u : 0) + (get("b") ? 1 : 0));
        if (!failed)
            ck_assert(get("a") && get("b"));
        declare();
        ck_assert(get("b") && get("a")->layouts.n == 2);
        house_close(&house);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
}

START_TEST(one_fails)
{
    every_failure(FAULTS_SYSTEM, EMFILE);
    every_failure(FAULTS_SYSTEM, ENOSPC);
    every_failure(FAULTS_MEMORY, 0);
}
END_TEST

static const char a_stream[] =
    "{'segments':[{'name':'a','stream':{'mode':'latest','slots':3,'views':["
    "{'name':'v','format':'i','shape':[2]}]}}]}";

/* Reads the first bytes of the stream. */
static struct shmview_stream_header header_of(const struct segment *s)
{
    struct shmview_stream_header h;
    struct object object;
    segment_object(s, DATA, &object);
    int fd = object_open(&object, O_RDONLY);
    ck_assert_int_eq(pread(fd, &h, sizeof h, 0), sizeof h);
    close(fd);
    return h;
}

static void assert_whole_stream(void)
{
    const struct config_segment *want = &house.state.config->segments[0];
    struct shmview_stream_header h = header_of(get("a"));
    ck_assert_uint_eq(h.magic, SHMVIEW_STREAM_MAGIC);
    ck_assert_mem_eq(&h, &want->stream, sizeof h);
    ck_assert_uint_eq(get("a")->size, want->size);
    ck_assert_uint_eq(get("a")->layouts.n, 1);
}

/* The first bytes of a stream are written as a whole or have no magic number; a later call writes
 * what is missing. */
START_TEST(streams_are_completed)
{
    unsigned n_unfinished = 0;
    bool failed = true;
    hush();
    faults_errno(EIO);
    for (unsigned n = 1; failed; n++) {
        open_house(a_stream);
        faults_begin(FAULTS_SYSTEM, n);
        run();
        failed = faults_end();
        if (get("a") && header_of(get("a")).magic == 0)
            n_unfinished++;
        else if (get("a"))
            ck_assert_uint_eq(header_of(get("a")).n_slots, 3);
        declare();
        assert_whole_stream();
        house_close(&house);
    }
    ck_assert_uint_ge(n_unfinished, 2); /* each of the writes failed once */
}
END_TEST

START_TEST(cancelled)
{
    open_house(two);
    atomic_store(&house.state.declared.cancel, true);
    declare();
    ck_assert_uint_eq(unit_objects(), 0);
    house_close(&house);
}
END_TEST

START_TEST(layouts_are_limited)
{
    char text[8000] = "{'segments':[{'name':'a','size':1,'layouts':[";
    for (int i = 0; i < LIMIT_LAYOUTS; i++)
        sprintf(text + strlen(text), "%s{'name':'l%d','views':[]}", i ? "," : "", i);
    strcat(text, "]}]}");
    hush();
    open_house(text);
    declare();
    ck_assert_uint_eq(get("a")->layouts.n, LIMIT_LAYOUTS);
    house_configure(&house,
                    "{'segments':[{'name':'a','size':1,'layouts':[{'name':'more','views':[]}]}]}");
    declare();
    ck_assert_uint_eq(get("a")->layouts.n, LIMIT_LAYOUTS);
    house_close(&house);
}
END_TEST

/* The quota does not limit what the administrator declares. */
START_TEST(layouts_beyond_the_quota)
{
    open_house("{'quotas':{'user':{'layout_bytes':1,'bytes':1}},'segments':[{'name':'a','size':8,"
               "'owner':7,'layouts':[{'name':'l','views':[]}]}]}");
    declare();
    ck_assert_uint_eq(get("a")->layouts.n, 1);
    ck_assert_uint_eq(get("a")->payer->used[QUOTA_LAYOUT_BYTES], get("a")->layouts.text_bytes);
    ck_assert_uint_gt(get("a")->layouts.text_bytes, 1);
    declare(); /* it has it */
    ck_assert_uint_eq(get("a")->layouts.n, 1);
    ck_assert_uint_eq(get("a")->payer->used[QUOTA_LAYOUT_BYTES], get("a")->layouts.text_bytes);
    house_close(&house);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_LAYOUT_BYTES], 0);
}
END_TEST

/* The segment of a dead client is about to end, and has the name. */
START_TEST(after_a_dead_client)
{
    char text[100];
    open_house("{'segments':[{'name':'s9','size':8}]}");
    struct guest *dead = house_admit(&house);
    for (int i = 0; i < 10; i++) {
        snprintf(text, sizeof text, "{'name':'s%d','size':1,'access':'write'}", i);
        house_call(dead, "Create", text);
    }
    house.state.departures.used_ns = INT64_MAX / 2; /* so that it ends in later slices */
    house_leave(dead);
    while (dead->connection)
        uv_run(&house.loop, UV_RUN_NOWAIT);
    ck_assert_ptr_nonnull(get("s9"));
    ck_assert_uint_eq(get("s9")->size, 1);
    declare();
    departures_finish(&house.state);
    ck_assert_ptr_nonnull(get("s9"));
    ck_assert_uint_eq(get("s9")->size, 8);
    house_close(&house);
}
END_TEST

UNIT_MAIN("declared", UNIT_TEST(after_a_dead_client), UNIT_TEST(made_once),
          UNIT_TEST(nothing_to_do), UNIT_TEST(a_client_is_at_it),
          UNIT_TEST(replaced_while_they_are_made), UNIT_TEST(one_fails),
          UNIT_TEST(streams_are_completed), UNIT_TEST(cancelled), UNIT_TEST(layouts_are_limited),
          UNIT_TEST(layouts_beyond_the_quota))

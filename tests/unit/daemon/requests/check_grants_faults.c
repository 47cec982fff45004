/* SPDX-License-Identifier: Apache-2.0 */
/* Creates, changes access and attaches while memory, the system or LMDB fails. Users must be
 * charged for exactly what exists, and the registry must agree. */
#include "unit/house.h"

#include "daemon/segments/use.h"
#include "unit/faults.h"
#include "unit/faults_store.h"

static struct house house;
static struct guest *guest;
static struct store *store;

static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
}

static void open_store(void)
{
    char path[100];
    bool was_bad;
    snprintf(path, sizeof path, "%s/registry", unit_directory());
    ck_assert_int_eq(store_open(AT_FDCWD, path, NULL, &store, &was_bad), 0);
}

/* Begins with "s", which is attached and has a lock and a layout, and "o", which belongs to uid
 * 7. */
static void begin(void)
{
    house_open(&house);
    house.state.registry.home.store = store;
    guest = house_admit(&house);
    house_call(guest, "Claim", "{'client':1,'held':[]}");
    guest->connection->peer.uid = 0;
    house_call(guest, "Create", "{'name':'s','size':4000,'access':'write','lifetime':'manual'}");
    house_call(guest, "DefineLayout", "{'name':'s','layout':{'name':'l','views':[]}}");
    house_call(guest, "Create", "{'name':'o','size':9000,'lock':false,'owner':7}");
}

#define N_KINDS (QUOTA_LAYOUT_BYTES + 1) /* the kinds that segments and attachments use */

/* Compares the charges of one user with what exists. */
static void check_user(uid_t uid, const uint64_t expected[N_KINDS])
{
    const struct quota_user *u;
    LIST_FOREACH (u, &house.state.quota.all, sibling)
        if (u->uid == uid)
            break;
    for (int kind = 0; kind < N_KINDS; kind++)
        ck_assert_msg((u ? u->used[kind] : 0) == expected[kind],
                      "%s: uid %u: %ju of kind %d, not %ju", faults_name(), uid,
                      (uintmax_t)(u ? u->used[kind] : 0), kind, (uintmax_t)expected[kind]);
}

static void check_charges(void)
{
    static const uid_t users[] = {0, 7, 8};
    uint64_t all[N_KINDS] = {0};
    for (size_t i = 0; i < ARRAY_LEN(users); i++) {
        uint64_t used[N_KINDS] = {0};
        const struct registry *registry = &house.state.registry;
        for (struct segment *s = registry_next(registry, 0); s;
             s = registry_next(registry, s->id)) {
            if (s->access->uid != users[i])
                continue;
            used[QUOTA_SEGMENTS]++;
            used[QUOTA_BYTES] += quota_bytes(s->size);
            used[QUOTA_LAYOUT_BYTES] += s->layouts.text_bytes;
        }
        struct attachment *a;
        LIST_FOREACH (a, &guest->connection->attachments, link)
            used[QUOTA_ATTACHMENTS] += users[i] == 0;
        check_user(users[i], used);
        for (int kind = 0; kind < N_KINDS; kind++)
            all[kind] += used[kind];
    }
    for (int kind = 0; kind < N_KINDS; kind++)
        ck_assert_uint_eq(house.state.quota.used[kind], all[kind]);
}

static void check_record(void *arg, uint64_t id, const struct store_segment *record)
{
    const struct segment *s = registry_find_id(&house.state.registry, id);
    ck_assert_msg(s, "%s: the registry's '%s' is no more", faults_name(), record->name);
    ck_assert_uint_eq(record->access.uid, s->access->uid);
    ck_assert_uint_eq(record->access.mode, s->access->mode);
    ++*(unsigned *)arg;
}

static void check_attached(void *arg, uint64_t id, const struct store_attachment *record)
{
    ck_assert_ptr_nonnull(attachment_find(&guest->connection->attachments, record->id));
    ck_assert_uint_eq(id, record->id);
    ++*(unsigned *)arg;
}

static void count_layout(void *arg, uint32_t index, const char *text)
{
    (void)index, (void)text;
    ++*(unsigned *)arg;
}

/* Compares the registry with what exists. */
static void check_store(void)
{
    unsigned segments = 0, attachments = 0, layouts = 0, held = 0, objects = 0;
    struct segment *s;
    struct attachment *a;
    ck_assert_int_eq(store_each_segment(store, check_record, &segments), 0);
    ck_assert_uint_eq(segments, registry_count(&house.state.registry));
    ck_assert_int_eq(store_each_attachment(store, check_attached, &attachments), 0);
    LIST_FOREACH (a, &guest->connection->attachments, link)
        held++;
    ck_assert_uint_eq(attachments, held);
    for (s = NULL; (s = registry_next(&house.state.registry, s ? s->id : 0));)
        objects += s->lock ? 3 : 1;
    ck_assert_uint_eq(unit_objects(), objects);
    s = registry_find(&house.state.registry, "s");
    if (!s)
        return;
    ck_assert_int_eq(store_each_layout(store, s->id, count_layout, &layouts), 0);
    ck_assert_uint_eq(layouts, s->layouts.n);
}

/* Calls the method, and lets the worker do its part, while the n-th call fails. Returns whether one
 * did. */
static bool call_failing(const char *method, json_t *parameters, unsigned classes, unsigned n)
{
    char full[64];
    struct wire_call call = {.method = full, .parameters = parameters};
    struct answer answer = {0};
    snprintf(full, sizeof full, "io.shmview.%s", method);
    faults_begin(classes, n);
    methods_call(&house.state, guest->connection, &call, &answer);
    guest->connection->answering = answer.pending;
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (house.state.n_jobs && now_ns() < deadline)
        uv_run(&house.loop, UV_RUN_NOWAIT);
    bool failed = faults_end();
    answer_deinit(&answer);
    return failed;
}

static void every_failure(const char *method, const char *parameters, unsigned classes, int error)
{
    bool failed = true;
    faults_errno(error);
    for (unsigned n = 1; failed; n++) {
        begin();
        json_t *p = json_loads(unit_json(parameters), 0, NULL);
        failed = call_failing(method, p, classes, n);
        json_decref(p);
        if (guest->connection) { /* a reply that cannot be allocated ends the connection */
            check_charges();
            check_store();
        }
        house_close(&house);
        for (int kind = 0; kind < N_QUOTA_KINDS; kind++)
            ck_assert_uint_eq(house.state.quota.used[kind], 0);
        ck_assert_uint_eq(store_tell(store)->n, 0);
        ck_assert_uint_eq(unit_objects(), 0);
        ck_assert_uint_eq(unit_fds(), unit_fds_before + 2); /* the store's */
    }
}

static void in_every_way(const char *method, const char *parameters)
{
    hush();
    open_store();
    every_failure(method, parameters, FAULTS_MEMORY, ENOMEM);
    every_failure(method, parameters, FAULTS_SYSTEM, EMFILE);
    every_failure(method, parameters, FAULTS_SYSTEM, ENOSPC);
    every_failure(method, parameters, FAULTS_STORE, ENOSPC);
    store = store_close(store, true);
}

START_TEST(create)
{
    in_every_way("Create", "{'name':'x','size':4097,'access':'write','lifetime':'creator',"
                           "'owner':8,'acl':[{'user':9,'permissions':'r'}]}");
}
END_TEST

/* A creation that commits its memory in several steps. */
START_TEST(create_in_steps)
{
    in_every_way("Create", "{'name':'x','size':67108865,'lock':false}");
}
END_TEST

START_TEST(set_access)
{
    in_every_way("SetAccess", "{'name':'s','mode':438}");
}
END_TEST

START_TEST(set_owner)
{
    in_every_way("SetAccess", "{'name':'s','owner':8}");
    in_every_way("SetAccess", "{'name':'o','owner':0,'mode':0}");
}
END_TEST

START_TEST(attach)
{
    in_every_way("Attach", "{'name':'s','access':'read'}");
    in_every_way("Attach", "{'name':'o','access':'write'}");
}
END_TEST

START_TEST(define)
{
    in_every_way("DefineLayout", "{'name':'s','layout':{'name':'m','views':[{'name':'v',"
                                 "'format':'i','shape':[2]}]}}");
}
END_TEST

START_TEST(claim)
{
    in_every_way("Claim", "{'client':1,'held':[]}");
}
END_TEST

/* A list is complete or refused. */
START_TEST(list)
{
    bool failed = true;
    hush();
    for (unsigned n = 1; failed; n++) {
        struct wire_call call = {.method = "io.shmview.List", .parameters = json_object()};
        struct answer answer = {0};
        begin();
        faults_begin(FAULTS_MEMORY, n);
        methods_call(&house.state, guest->connection, &call, &answer);
        failed = faults_end();
        if (!answer.error) {
            json_t *p = house_parameters(&answer);
            ck_assert_uint_eq(json_array_size(json_object_get(p, "segments")), 2);
            json_decref(p);
        }
        answer_deinit(&answer);
        json_decref(call.parameters);
        house_close(&house);
    }
}
END_TEST

/* There are so many users that those without charges are forgotten during the call. */
START_TEST(owner_among_many)
{
    for (unsigned n_users = 60; n_users < 70; n_users++) {
        begin();
        for (uid_t uid = 1000; uid < 1000 + n_users; uid++) {
            struct quota_user *u = quota_restore(&house.state.quota, uid, QUOTA_BUFFERS, 1);
            quota_refund(u, QUOTA_BUFFERS, 1);
        }
        house_call(guest, "SetAccess", "{'name':'o','owner':8}");
        house.state.config->limits.user.segments = 0;
        house_refused(guest, "SetAccess", "{'name':'o','owner':900}", "QuotaExceeded", "uid 900");
        check_charges();
        house_close(&house);
    }
}
END_TEST

UNIT_MAIN("grants_faults", UNIT_TEST(create), UNIT_TEST(create_in_steps), UNIT_TEST(set_access),
          UNIT_TEST(set_owner), UNIT_TEST(attach), UNIT_TEST(define), UNIT_TEST(claim),
          UNIT_TEST(list), UNIT_TEST(owner_among_many))

/* SPDX-License-Identifier: Apache-2.0 */
/* A daemon takes over while memory, the system or LMDB fails. It must serve everything, or it must
 * not start and must keep everything that was acknowledged. */
#include "unit/house.h"

#include <sys/mman.h>
#include <sys/wait.h>

#include "daemon/memory/sealed.h"
#include "daemon/recovery.h"
#include "daemon/segments/control_peek.h"
#include "daemon/segments/segment_repair.h"
#include "daemon/segments/use.h"
#include "unit/faults.h"
#include "unit/faults_store.h"

static struct house house;
static struct store *store;
static struct shmview_liveness *live; /* of "s" */
static uint64_t s_id;

static const char *path(void)
{
    static char text[100];
    snprintf(text, sizeof text, "%s/registry", unit_directory());
    return text;
}

static void hush(void)
{
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, 2);
    close(null);
}

static void open_house(void)
{
    house_open(&house);
    house.state.registry.home.store = store;
}

/* Ends the daemon, which leaves everything to the next one. */
static void leave(void)
{
    for (unsigned i = 0; i < house.n_guests; i++)
        if (house.guests[i].connection)
            methods_abandon(house.guests[i].connection);
    clients_abandon(&house.state.clients);
    registry_abandon(&house.state.registry);
    house_close(&house);
}

/* Returns the pid of a process that has ended. */
static uint32_t dead_pid(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return (uint32_t)pid;
}

static struct segment *get(const char *name)
{
    return registry_find(&house.state.registry, name);
}

static void look_at(struct segment *s)
{
    struct object o;
    segment_object(s, LIVENESS, &o);
    int fd = object_open(&o, O_RDONLY);
    live = mmap(NULL, sizeof *live, PROT_READ, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(live, MAP_FAILED);
    close(fd);
    s_id = s->id;
}

/* "s" has three slots: two of this process, one of a dead one. "t" has layouts. "c" ends with its
 * creator, this process. "a" ends with its last attachment. "u" is removed and still attached. */
/* Replaces the record of an attachment by that of a client that has died. */
static void bury(const struct attachment *a)
{
    struct store_attachment dead = {
        .id = a->id,
        .segment = a->segment->id,
        .holder = {.birth = 1, .pid = dead_pid()},
        .access = (uint32_t)a->access,
        .slot = a->slot,
        .generation = a->generation,
        .uid = a->uid,
    };
    ck_assert_int_eq(store_put_attachment(store, &dead), 0);
}

static struct guest *open_store(void)
{
    bool was_bad;
    ck_assert_int_eq(store_open(AT_FDCWD, path(), NULL, &store, &was_bad), 0);
    open_house();
    struct guest *g = house_admit(&house);
    house_call(g, "Claim", "{'client':1,'held':[]}");
    return g;
}

static void build(void)
{
    struct guest *g = open_store();
    house_call(g, "Create", "{'name':'s','size':10,'access':'write','lifetime':'manual'}");
    house_call(g, "Attach", "{'name':'s','access':'read'}");
    house_call(g, "Attach", "{'name':'s','access':'read'}");
    bury(LIST_FIRST(&g->connection->attachments));
    house_call(g, "Attach", "{'name':'s','access':'peek'}");
    house_call(g, "Create", "{'name':'t','size':10,'access':'write','lifetime':'manual'}");
    house_call(g, "DefineLayout",
               "{'name':'t','layout':{'name':'l','views':[{'name':'v',"
               "'format':'i','shape':[2]}]}}");
    house_call(g, "DefineLayout", "{'name':'t','layout':{'name':'m','views':[]}}");
    house_call(g, "Create", "{'name':'c','size':10,'lifetime':'creator'}");
    house_call(g, "Create", "{'name':'a','size':10,'lock':false,'access':'read'}");
    house_call(g, "Create", "{'name':'u','size':10,'access':'write'}");
    house_call(g, "Remove", "{'name':'u'}");
    look_at(get("s"));
    leave();
}

static void unbuild(void)
{
    munmap(live, sizeof *live);
    store_close(store, true);
    unit_sweep(unit_object_directory(), "");
}

/* Returns the first client with number 1. */
static struct client *survivor(void)
{
    return LIST_FIRST(&house.state.clients.chains[1]);
}

/* Asserts that everything is served and that the dead client's slot is free. */
static void check_world(void)
{
    struct registry *r = &house.state.registry;
    struct client *who = survivor();
    unsigned n = 0;
    struct attachment *a;
    ck_assert_uint_eq(registry_count(r), 5);
    ck_assert(get("s") && get("t") && get("c") && get("a") && !get("u"));
    ck_assert_uint_eq(get("t")->layouts.n, 2);
    ck_assert_uint_eq(get("s")->n_attachments, 3);
    ck_assert(get("c")->has_creator);
    ck_assert_ptr_nonnull(who);
    ck_assert_ptr_null(LIST_NEXT(who, link));
    LIST_FOREACH (a, &who->attachments, link)
        n++;
    ck_assert_uint_eq(n, 6);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_ATTACHMENTS], 6);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_SEGMENTS], 5);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_BYTES], 5 * 4096);
    ck_assert_uint_gt(get("t")->layouts.text_bytes, 0);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_LAYOUT_BYTES], get("t")->layouts.text_bytes);
    ck_assert_uint_eq(live->generation[0], 1);
    ck_assert_uint_eq(live->generation[1], 1);
    ck_assert_uint_eq(live->generation[2], 1 | SHMVIEW_GENERATION_DEAD);
    ck_assert_uint_eq(unit_objects(), 4 * 3 + 1);
}

/* Fails each call in turn. A daemon that does not start must have changed nothing, and the next one
 * tries again. */
static void every_failure(unsigned classes, int error)
{
    bool failed = true;
    unsigned n_refused = 0;
    hush();
    faults_errno(error);
    build();
    for (unsigned n = 1; failed; n++) {
        const struct store_text *before = store_tell(store);
        unsigned fds = unit_fds(), objects = unit_objects();
        open_house();
        faults_begin(classes, n);
        int r = recovery_run(&house.state);
        failed = faults_end();
        if (r) {
            n_refused++;
            ck_assert_msg(r == (classes == FAULTS_MEMORY ? -ENOMEM : -error), "%s: %d",
                          faults_name(), r);
            ck_assert_msg(strcmp(store_tell(store)->text, before->text) == 0, "%s %u: %s",
                          faults_name(), n, store_tell(store)->text);
            ck_assert_uint_eq(unit_objects(), objects);
            for (int slot = 0; slot < 3; slot++)
                ck_assert_msg(live->generation[slot] == 1, "%s %u", faults_name(), n);
            leave();
            ck_assert_uint_eq(unit_fds(), fds);
            continue;
        }
        check_world();
        leave();
        ck_assert_uint_eq(unit_fds(), fds);
        unbuild();
        build();
    }
    ck_assert_uint_gt(n_refused, 5);
    unbuild();
}

START_TEST(memory)
{
    every_failure(FAULTS_MEMORY, ENOMEM);
}
END_TEST

START_TEST(descriptors)
{
    every_failure(FAULTS_SYSTEM, EMFILE);
}
END_TEST

START_TEST(system_calls)
{
    every_failure(FAULTS_SYSTEM, EIO);
}
END_TEST

START_TEST(registry)
{
    every_failure(FAULTS_STORE, ENOMEM);
}
END_TEST

/* Lets a daemon take over. Returns the segment with that name. */
static struct segment *restored(const char *name)
{
    open_house();
    ck_assert_int_eq(recovery_run(&house.state), 0);
    return get(name);
}

/* --- Damage -------------------------------------------------------------- */

static void truncate_control(void)
{
    struct object o;
    segment_object(get("s"), CONTROL, &o);
    CLEANUP_FD int fd = object_open(&o, O_RDWR);
    ck_assert_int_eq(ftruncate(fd, 0), 0);
}

/* A client truncates the control object after its repair, before the claims of its slots. */
START_TEST(truncated_during_the_recovery)
{
    hush();
    build();
    open_house();
    faults_hook("mmap", truncate_control); /* of the liveness object */
    ck_assert_int_eq(recovery_run(&house.state), 0);
    check_world();
    ck_assert_int_eq(segment_repair(get("s")), 0);
    struct guest *g = house_admit(&house);
    house_call(g, "Attach", "{'name':'s','access':'write'}");
    leave();
    unbuild();
}
END_TEST

/* A later version of the daemon may allow more. */
START_TEST(more_layouts_than_the_limit)
{
    hush();
    build();
    open_house();
    ck_assert_int_eq(recovery_run(&house.state), 0);
    uint64_t id = get("t")->id;
    leave();
    for (uint32_t i = 2; i < LIMIT_LAYOUTS + 4; i++) {
        char text[64];
        snprintf(text, sizeof text, "{\"name\":\"x%u\",\"views\":[]}", i);
        ck_assert_int_eq(store_put_layout(store, id, i, text), 0);
    }
    open_house();
    ck_assert_int_eq(recovery_run(&house.state), 0);
    ck_assert_uint_eq(get("t")->layouts.n, LIMIT_LAYOUTS);
    leave();
    unbuild();
}
END_TEST

/* The next daemon must not take the removed segment for the one that has its name. */
START_TEST(a_removal_without_a_record)
{
    static const char create[] =
        "{'name':'x','size':10,'access':'write','lifetime':'manual','backing':'sealed'}";
    hush();
    build();
    open_house();
    ck_assert_int_eq(recovery_run(&house.state), 0);
    struct guest *g = house_admit(&house);
    house_call(g, "Create", create);
    uint64_t first = get("x")->id;
    faults_begin_call("mdb_put", 1, ENOSPC, true);
    house_call(g, "Remove", "{'name':'x'}");
    ck_assert(faults_end());
    house_call(g, "Create", create);
    uint64_t second = get("x")->id;
    leave();
    open_house();
    ck_assert_int_eq(recovery_run(&house.state), 0);
    ck_assert_ptr_nonnull(get("x"));
    ck_assert_uint_eq(get("x")->id, second);
    ck_assert(!registry_find_id(&house.state.registry, first)->named); /* still attached */
    ck_assert_uint_eq(sealed_drop_unclaimed(NULL), 0);
    for (uint64_t id = first; id <= second; id++)
        for (int part = 0; part < N_SEGMENT_PARTS; part++)
            close(sealed_take(registry_find_id(&house.state.registry, id)->inodes[part]));
    leave();
    unbuild();
}
END_TEST

/* The earlier daemon died when it had marked one of the slots of "s", in order to remove all
 * segments. Its clients keep their memory, and the name is free. */
START_TEST(ended_in_part)
{
    struct object o;
    hush();
    build();
    segment_object(restored("s"), LIVENESS, &o);
    CLEANUP_FD int fd = object_open(&o, O_RDWR);
    leave();
    uint32_t ended = 1 | SHMVIEW_GENERATION_ENDED;
    ck_assert_int_eq(pwrite(fd, &ended, 4, offsetof(struct shmview_liveness, generation[1])), 4);
    uint32_t deaths = live->deaths;
    ck_assert_ptr_null(restored("s"));
    struct segment *s = registry_find_id(&house.state.registry, s_id);
    ck_assert_uint_eq(s->n_attachments, 3);
    ck_assert_uint_eq(live->generation[0], ended);
    ck_assert_uint_eq(live->generation[1], ended);
    ck_assert(live->generation[2] & SHMVIEW_GENERATION_DEAD);
    ck_assert_uint_gt(live->deaths, deaths);
    ck_assert(get("t") && get("c") && get("a"));
    leave();
    ck_assert_ptr_null(restored("s")); /* the next one has the same state */
    ck_assert_uint_eq(registry_find_id(&house.state.registry, s_id)->n_attachments, 3);
    leave();
    unbuild();
}
END_TEST

/* Likewise, and then its only client has died. */
START_TEST(ended_and_dead)
{
    uint32_t ended = 1 | SHMVIEW_GENERATION_ENDED;
    struct object o;
    hush();
    struct guest *g = open_store();
    house_call(g, "Create", "{'name':'s','size':10,'access':'write','lifetime':'manual'}");
    bury(LIST_FIRST(&g->connection->attachments));
    look_at(get("s"));
    segment_object(get("s"), LIVENESS, &o);
    CLEANUP_FD int fd = object_open(&o, O_RDWR);
    leave();
    ck_assert_int_eq(pwrite(fd, &ended, 4, offsetof(struct shmview_liveness, generation[0])), 4);
    ck_assert_ptr_null(restored("s"));
    ck_assert_ptr_null(registry_find_id(&house.state.registry, s_id));
    leave();
    unbuild();
}
END_TEST

/* The earlier daemon has given out so many numbers of attachments that this one would give a number
 * out again. */
START_TEST(many_attachments_before)
{
    hush();
    struct guest *g = open_store();
    house_call(g, "Create", "{'name':'s','size':10,'access':'write','lifetime':'manual'}");
    uint64_t next = house.state.registry.home.last_attachment + (UINT64_C(1) << 52);
    house.state.registry.home.last_attachment = next;
    house_call(g, "Attach", "{'name':'s','access':'write'}");
    leave();
    store_close(store, false);
    bool was_bad;
    ck_assert_int_eq(store_open(AT_FDCWD, path(), NULL, &store, &was_bad), 0);
    look_at(restored("s"));
    struct attachment *old = attachment_find(&survivor()->attachments, next + 1);
    ck_assert_ptr_nonnull(old);
    g = house_admit(&house);
    house_call(g, "Attach", "{'name':'s','access':'write'}");
    ck_assert_uint_gt(LIST_FIRST(&g->connection->attachments)->id, old->id);
    ck_assert_ptr_eq(attachment_find(&survivor()->attachments, old->id), old);
    leave();
    unbuild();
}
END_TEST

/* --- Survivors ----------------------------------------------------------- */

static json_t *claim(struct guest *g, const char *held)
{
    char text[300];
    snprintf(text, sizeof text, "{'client':1,'held':[%s]}", held);
    return house_call(g, "Claim", text);
}

/* While a client claims, it keeps everything that it names, whichever call fails. */
static void every_claim(unsigned classes, int error)
{
    bool failed = true;
    faults_errno(error);
    for (unsigned n = 1; failed; n++) {
        build();
        open_house();
        ck_assert_int_eq(recovery_run(&house.state), 0);
        struct guest *g = house_admit(&house);
        char held[200] = "";
        struct attachment *a;
        LIST_FOREACH (a, &survivor()->attachments, link)
            if (a->segment == get("s"))
                sprintf(held + strlen(held), "%s%ju", held[0] ? "," : "", (uintmax_t)a->id);
        char text[300];
        snprintf(text, sizeof text, "{\"client\":1,\"held\":[%s]}", held);
        json_t *parameters = json_loads(text, 0, NULL);
        struct wire_call call = {.method = "io.shmview.Claim", .parameters = parameters};
        struct answer answer = {0};
        faults_begin(classes, n);
        methods_call(&house.state, g->connection, &call, &answer);
        failed = faults_end();
        json_decref(parameters);
        if (!answer.error) {
            json_t *reply = house_parameters(&answer);
            ck_assert_uint_eq(json_array_size(json_object_get(reply, "held")), 3);
            json_decref(reply);
        }
        answer_deinit(&answer);
        /* a repeated claim has the effect of one */
        ck_assert_uint_eq(json_array_size(json_object_get(claim(g, held), "held")), 3);
        departures_finish(&house.state); /* otherwise a busy machine may need several slices */
        ck_assert_uint_eq(get("s")->n_attachments, 3);
        ck_assert(!get("a"));
        ck_assert_ptr_eq(survivor()->connection, g->connection);
        ck_assert_ptr_null(LIST_NEXT(survivor(), link));
        ck_assert_uint_eq(house.state.quota.used[QUOTA_ATTACHMENTS], 3);
        leave();
        unbuild();
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
}

START_TEST(claims)
{
    hush();
    every_claim(FAULTS_MEMORY, ENOMEM);
    every_claim(FAULTS_SYSTEM, EMFILE);
}
END_TEST

UNIT_MAIN("recovery_faults", UNIT_TEST(memory), UNIT_TEST(descriptors), UNIT_TEST(system_calls),
          UNIT_TEST(registry), UNIT_TEST(truncated_during_the_recovery),
          UNIT_TEST(more_layouts_than_the_limit), UNIT_TEST(a_removal_without_a_record),
          UNIT_TEST(ended_in_part), UNIT_TEST(ended_and_dead), UNIT_TEST(many_attachments_before),
          UNIT_TEST(claims))

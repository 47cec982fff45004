/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that make the memory of their segments (SHMVIEW_OWN_MEMORY): they and others use it, the
 * next daemon takes it over, and the rights of users hold. */
#include <errno.h>
#include <stdio.h>

#include <shmview/describe.h>
#include <shmview/many.h>
#include <shmview/stats.h>

#include "integration/own_memory.h"
#include "support/person.h"
#include "support/place.h"

static void use(struct shmview_segment *segment)
{
    volatile char *data = shmview_data(segment);
    OK(shmview_lock(segment));
    for (size_t i = 0; i < BYTES; i += 4096)
        data[i] = (char)(data[i] + 1);
    OK(shmview_unlock(segment));
}

static int64_t payer(const char *name)
{
    const struct shmview_description *told;
    OK(shmview_describe(conn, name, &told));
    ck_assert_uint_eq(told->backing, SHMVIEW_BACKING_SEALED);
    int64_t by = told->paid_by;
    shmview_description_free(told);
    return by;
}

/* --- Good memory ----------------------------------------------------------- */

START_TEST(a_client_makes_the_memory)
{
    const struct shmview_stats *stats;
    const struct shmview_description *told;
    struct shmview_create_options bare = own;
    begin();
    struct shmview_segment *s = make_own("s", BYTES), *r = client_attach(conn, "s", SHMVIEW_READ);
    use(s);
    ck_assert_int_eq(*(const char *)shmview_data(r), 1);
    OK(shmview_lock_shared(r));
    OK(shmview_unlock(r));
    ck_assert_int_eq(payer("s"), geteuid());
    const struct shmview_stats_options one = {
        .struct_bytes = sizeof one, .names = (const char *[]){"s"}, .n_names = 1};
    OK(shmview_stats_get(conn, &one, &stats));
    ck_assert_int_eq(stats->segments[0]->paid_by, geteuid());
    ck_assert_int_ge(stats->segments[0]->resident, BYTES);
    shmview_stats_free(stats);
    OK(shmview_detach(r));
    drop(s, "s");
    bare.flags |= SHMVIEW_NO_LOCK | SHMVIEW_POPULATE;
    OK(shmview_create(conn, "s", 1, &bare, &s));
    drop(s, "s");
    s = client_create_with(conn, "s", 1, SHMVIEW_MANUAL, 0);
    OK(shmview_describe(conn, "s", &told));
    ck_assert_int_eq(told->paid_by, -1);
    shmview_description_free(told);
    drop(s, "s");
    end();
}
END_TEST

START_TEST(many_at_once)
{
    const char *names[] = {"a", "b", "c"};
    const uint64_t sizes[] = {1, BYTES, 4096};
    struct shmview_segment *s[3], *b;
    begin();
    OK(shmview_create_many(conn, names, sizes, 3, &own, s));
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(payer(names[i]), geteuid());
        ((char *)shmview_data(s[i]))[sizes[i] - 1] = 1;
        drop(s[i], names[i]);
    }
    b = client_create(conn, "b", 1);
    REFUSED(shmview_create_many(conn, names, sizes, 3, &own, s), EXISTS, "'b'");
    REFUSED(shmview_attach(conn, "a", SHMVIEW_READ, 0, &s[0]), NOT_FOUND, ""); /* undone */
    OK(shmview_detach(b));
    end();
}
END_TEST

START_TEST(options_that_cannot_be)
{
    struct shmview_create_options file = own;
    struct shmview_segment *s;
    begin();
    file.backing = SHMVIEW_BACKING_FILE;
    REFUSED(shmview_create(conn, "s", 1, &file, &s), INVALID, "backing file");
    REFUSED(shmview_create(conn, "s", (uint64_t)1 << 50, &own, &s), NO_SPACE,
            "asks for 1125899906842624 bytes");
    REFUSED(shmview_create(conn, "", 1, &own, &s), INVALID, "");
    end();
}
END_TEST

static int stop_at_once(void *arg)
{
    ++*(int *)arg;
    return 1;
}

START_TEST(a_wait_for_memory_ends)
{
    struct shmview_segment *s;
    int asked = 0;
    begin();
    shmview_on_wait(stop_at_once, &asked);
    REFUSED(shmview_create(conn, "s", (uint64_t)96 << 20, &own, &s), INTERRUPTED, "");
    shmview_on_wait(NULL, NULL);
    ck_assert_int_eq(asked, 1);
    drop(make_own("s", 1), "s");
    end();
}
END_TEST

/* --- Restarts -------------------------------------------------------------- */

START_TEST(the_next_daemon_has_it)
{
    begin();
    struct shmview_segment *s = make_own("s", BYTES), *again;
    use(s);
    for (int round = 0; round < 2; round++) {
        if (round)
            daemon_kill(&d);
        else
            daemon_leave(&d);
        daemon_restart(&d);
        use(s);
        ck_assert_int_eq(payer("s"), geteuid());
        again = client_attach(conn, "s", SHMVIEW_WRITE);
        ck_assert_ptr_eq(shmview_data(again), shmview_data(s)); /* one mapping of one object */
        OK(shmview_detach(again));
    }
    ck_assert(!daemon_said(&d, "is lost"));
    ck_assert_int_eq(*(const char *)shmview_data(s), 3);
    drop(s, "s");
    end();
}
END_TEST

/* --- Users ----------------------------------------------------------------- */

#define MAKER 65531
#define HOST  65530
#define GUEST 65529

/* Runs the daemon as another user. The struct is not in shared memory while it is started, because
 * the daemon's process writes it too. Each cue but the last restarts it. */
static void serve(struct child *me, struct daemon *shared, int n_restarts)
{
    struct daemon mine;
    daemon_start(&mine);
    person_open_door(&mine);
    *shared = mine;
    child_tell(me, 1);
    child_pause(me);
    for (int i = 0; i < n_restarts; i++) {
        daemon_leave(&mine);
        daemon_restart(&mine);
        person_open_door(&mine);
        child_tell(me, 2);
        child_pause(me);
    }
    daemon_stop(&mine);
}

static void host(struct child *me, void *shared)
{
    serve(me, shared, 0);
}

static void restarting_host(struct child *me, void *shared)
{
    serve(me, shared, 1);
}

static void be_maker(struct child *me, void *daemon)
{
    struct shmview_create_options open_to_all = own;
    struct shmview_access_change access = {
        .struct_bytes = sizeof access, .set = SHMVIEW_SET_MODE, .mode = 0666};
    struct shmview_segment *s;
    open_to_all.access = &access;
    conn = client_connect(daemon);
    OK(shmview_create(conn, "s", BYTES, &open_to_all, &s));
    ck_assert_int_eq(payer("s"), MAKER);
    use(s);
    child_tell(me, 1);
    child_pause(me);
    ck_assert_int_eq(*(const char *)shmview_data(s), 2); /* the guest has written */
    use(s);
    drop(s, "s");
    OK(shmview_disconnect(conn));
}

/* Reads, and cannot write; then attaches for writing. */
static void be_guest(struct child *me, void *arg)
{
    const struct daemon *daemon = arg;
    struct raw raw;
    char path[64];
    (void)me;
    raw_connect(&raw, daemon->socket);
    json_t *a = raw_call(&raw, "Attach", "{'name':'s','access':'read'}");
    int fd = raw.fds[raw_int(a, "attachment.data")];
    json_decref(a);
    ck_assert_int_eq(fcntl(fd, F_GETFL) & O_ACCMODE, O_RDONLY);
    ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0), MAP_FAILED);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    ck_assert_int_eq(open(path, O_RDWR), -1);
    ck_assert_int_eq(errno, EACCES);
    ck_assert_int_eq(fchmod(fd, 0666), -1);
    raw_close(&raw);
    conn = client_connect(daemon);
    struct shmview_segment *s = client_attach(conn, "s", SHMVIEW_WRITE);
    use(s);
    OK(shmview_detach(s));
    OK(shmview_disconnect(conn));
}

static int roots_memory;

/* Memory of one user is not taken from another one. */
static void be_thief(struct child *me, void *arg)
{
    const struct daemon *daemon = arg;
    struct raw raw;
    (void)me;
    raw_connect(&raw, daemon->socket);
    ck_assert(pass(hand_over(&raw), 1, &roots_memory, 1));
    raw_refused(&raw, "Create", CREATE, WRONG, "belongs to uid 0, not to 65529");
    raw_close(&raw);
}

static void three_users(void (*run)(struct child *me, void *arg), bool restarts)
{
    static const struct person host_is = {.uid = HOST, .gid = HOST};
    static const struct person maker_is = {.uid = MAKER, .gid = MAKER};
    static const struct person guest_is = {.uid = GUEST, .gid = GUEST};
    struct child server, maker, guest;
    if (!person_possible())
        return;
    struct daemon *shared =
        mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(shared, MAP_FAILED);
    ck_assert_int_eq(chown(place_directory(), HOST, HOST), 0);
    person_start(&server, &host_is, run, shared);
    child_hear(&server, 1);
    person_start(&maker, &maker_is, be_maker, shared);
    child_hear(&maker, 1);
    if (restarts) {
        child_cue(&server);
        child_hear(&server, 2);
    }
    person_start(&guest, &guest_is, be_guest, shared);
    child_wait(&guest);
    child_cue(&maker);
    child_wait(&maker);
    roots_memory = good();
    person_start(&guest, &guest_is, be_thief, shared);
    child_wait(&guest);
    child_cue(&server);
    child_wait(&server);
    close(roots_memory);
    munmap(shared, sizeof *shared);
}

START_TEST(daemon_maker_and_guest_are_three_users)
{
    three_users(host, false);
}
END_TEST

START_TEST(and_the_daemon_restarts)
{
    three_users(restarting_host, true);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_client_makes_the_memory), SUITE_TEST(many_at_once),
        SUITE_TEST(options_that_cannot_be),    SUITE_TEST(a_wait_for_memory_ends),
        SUITE_TEST(the_next_daemon_has_it),    SUITE_TEST(daemon_maker_and_guest_are_three_users),
        SUITE_TEST(and_the_daemon_restarts),   SUITE_END,
    };
    return suite_main("own_memory", tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks Entrust: to which processes a segment can be tied, and that a failure changes nothing. */
#include "daemon/requests/entrust.h"

#include <signal.h>
#include <sys/wait.h>

#include "unit/faults.h"
#include "unit/faults_store.h"
#include "unit/house.h"

static struct house house;
static struct guest *guest;
static struct store *store;
static struct segment *segment; /* "s" of the guest */

static void survivor_died(struct client *client)
{
    (void)client;
    ck_abort_msg("no process of this test dies while it has a segment");
}

static void begin(void)
{
    char path[100];
    bool was_bad;
    house_open(&house);
    house.state.clients.loop = &house.loop;
    house.state.clients.registry = &house.state.registry;
    house.state.clients.died = survivor_died;
    TAILQ_INIT(&house.state.clients.doubted);
    snprintf(path, sizeof path, "%s/registry", unit_directory());
    ck_assert_int_eq(store_open(AT_FDCWD, path, NULL, &store, &was_bad), 0);
    house.state.registry.home.store = store;
    guest = house_admit(&house);
    house_call(guest, "Create", "{'name':'s','size':10,'lifetime':'creator'}");
    house_call(guest, "Create", "{'name':'t','size':10,'lifetime':'creator'}");
    segment = registry_find(&house.state.registry, "s");
    ck_assert_ptr_nonnull(segment);
}

static void end(void)
{
    if (guest->connection)
        house_end(guest);
    clients_abandon(&house.state.clients);
    house_close(&house);
    store_close(store, true);
}

/* Returns the number of clients without a connection. */
static unsigned survivors(void)
{
    unsigned n = 0;
    for (unsigned i = 0; i < CLIENT_CHAINS; i++) {
        const struct client *c;
        LIST_FOREACH (c, &house.state.clients.chains[i], link)
            n += !c->connection;
    }
    return n;
}

static bool has(const struct created_segments *list, const struct segment *s)
{
    const struct segment *other;
    LIST_FOREACH (other, list, created)
        if (other == s)
            return true;
    return false;
}

/* Asserts that the segment still belongs to the guest, and to nobody else. */
static void assert_unchanged(const struct store_holder *before)
{
    ck_assert_mem_eq(&segment->holder, before, sizeof *before);
    ck_assert(has(&guest->connection->created, segment));
}

/* Closes the handles that end on the loop. */
static void run_loop(void)
{
    for (int i = 0; i < 3; i++)
        uv_run(&house.loop, UV_RUN_NOWAIT);
}

/* Returns a process of this user that has ended. */
static pid_t ended(void)
{
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
    return pid;
}

/* The segment ends with the other process and not with its creator. */
START_TEST(tied_to_an_ancestor)
{
    char text[64];
    begin();
    snprintf(text, sizeof text, "{'name':'t','pid':%d}", (int)getppid());
    house_call(guest, "Entrust", text); /* "s" follows it in the list */
    struct segment *t = registry_find(&house.state.registry, "t");
    ck_assert_uint_eq(t->holder.pid, (uint32_t)getppid());
    ck_assert_uint_ne(t->holder.birth, 0);
    ck_assert(!has(&guest->connection->created, t) && has(&guest->connection->created, segment));
    ck_assert_uint_eq(survivors(), 1);
    house_end(guest);
    ck_assert_ptr_null(registry_find(&house.state.registry, "s"));
    ck_assert_ptr_eq(registry_find(&house.state.registry, "t"), t);
    end();
}
END_TEST

/* The daemon watches no process that has no segment any longer. */
START_TEST(idle_processes_are_forgotten)
{
    begin();
    house_call(guest, "Claim", "{'client':1,'held':[]}"); /* a client with a connection stays */
    ck_assert_int_eq(entrust(&house.state, segment, getppid(), geteuid()), ENTRUSTED);
    ck_assert_uint_eq(survivors(), 1);
    struct segment *t = registry_find(&house.state.registry, "t");
    ck_assert_int_eq(entrust(&house.state, t, getppid(), geteuid() + 1), ENTRUST_DENIED);
    ck_assert_uint_eq(survivors(), 1); /* it has "s" */
    house_call(guest, "Remove", "{'name':'s'}");
    unsigned n = unit_fds();
    ck_assert_int_eq(entrust(&house.state, t, getppid(), geteuid() + 1), ENTRUST_DENIED);
    run_loop();
    ck_assert_uint_eq(survivors(), 0);
    ck_assert_uint_eq(unit_fds(), n - 1);
    ck_assert(guest->connection && LIST_FIRST(&guest->connection->created) == t);
    end();
}
END_TEST

static pid_t doomed;

static void end_doomed(void)
{
    kill(doomed, SIGKILL);
    waitpid(doomed, NULL, 0);
}

START_TEST(denied)
{
    begin();
    const struct store_holder before = segment->holder;
    unsigned n = unit_fds();
    ck_assert_int_eq(entrust(&house.state, segment, ended(), geteuid()), ENTRUST_DENIED);
    ck_assert_int_eq(entrust(&house.state, segment, -1, geteuid()), ENTRUST_DENIED);
    ck_assert_int_eq(entrust(&house.state, segment, getppid(), geteuid() + 1), ENTRUST_DENIED);
    /* it ends while the daemon asks about it */
    doomed = fork();
    if (doomed == 0)
        for (;;)
            pause();
    faults_hook("fstat", end_doomed);
    ck_assert_int_eq(entrust(&house.state, segment, doomed, geteuid()), ENTRUST_DENIED);
    faults_hook("none", NULL);
    kill(doomed, SIGKILL); /* a kernel before 6.9 has no such call */
    waitpid(doomed, NULL, 0);
    ck_assert_uint_eq(survivors(), 0);
    ck_assert_uint_eq(unit_fds(), n);
    assert_unchanged(&before);
    end();
}
END_TEST

/* A process that ends during the call is denied; any other error is passed on. */
START_TEST(failures_change_nothing)
{
    static const struct {
        const char *call;
        unsigned n;
        int error, result;
    } calls[] = {
        {"syscall", 1, ESRCH, ENTRUST_DENIED}, {"syscall", 1, EINVAL, ENTRUST_DENIED},
        {"syscall", 1, EMFILE, -EMFILE},       {"syscall", 2, ESRCH, ENTRUST_DENIED},
        {"syscall", 2, EMFILE, -EMFILE},       {"calloc", 1, ENOMEM, -ENOMEM},
        {"mdb_put", 1, ENOSPC, -ENOSPC},       {"mdb_txn_commit", 1, EIO, -EIO},
        {"mdb_txn_begin", 1, ENOMEM, -ENOMEM},
    };
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC); /* for the log */
    dup2(null, STDERR_FILENO);
    close(null);
    for (size_t i = 0; i < ARRAY_LEN(calls); i++) {
        begin();
        const struct store_holder before = segment->holder;
        unsigned n = unit_fds();
        faults_begin_call(calls[i].call, calls[i].n, calls[i].error, false);
        int r = entrust(&house.state, segment, getppid(), geteuid());
        ck_assert_msg(faults_end(), "%s is not called", calls[i].call);
        ck_assert_msg(r == calls[i].result, "%s: %d", calls[i].call, r);
        assert_unchanged(&before);
        r = entrust(&house.state, segment, getpid(), geteuid()); /* another one goes on */
        run_loop();
        ck_assert_int_eq(r, ENTRUSTED);
        ck_assert_uint_eq(survivors(), 1);
        ck_assert_uint_eq(unit_fds(), n + 1);
        end();
    }
}
END_TEST

/* The kernel names no birth, because the process ends or because of another error. */
START_TEST(a_birth_that_is_unknown)
{
    static const int errors[] = {ESRCH, EIO};
    begin();
    const struct store_holder before = segment->holder;
    for (int i = 0; i < 2; i++) {
        faults_begin_call("fstat", 1, errors[i], false);
        int r = entrust(&house.state, segment, getppid(), geteuid());
        if (faults_end()) { /* a kernel before 6.9 has no such call */
            ck_assert_int_eq(r, i == 0 ? ENTRUST_DENIED : -EIO);
            assert_unchanged(&before);
        }
    }
    end();
}
END_TEST

UNIT_MAIN("entrust_requests", UNIT_TEST(tied_to_an_ancestor),
          UNIT_TEST(idle_processes_are_forgotten), UNIT_TEST(denied),
          UNIT_TEST(failures_change_nothing), UNIT_TEST(a_birth_that_is_unknown))

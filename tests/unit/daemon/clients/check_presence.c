/* SPDX-License-Identifier: Apache-2.0 */
/* Checks client.c and presence.c of the daemon: the evidence that clients live, with inotify and
 * without. */
#include "unit/house.h"

#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/mman.h>

#include "daemon/clients/client.h"
#include "unit/faults.h"

static struct house house;

/* Opens the house; polls: without inotify. */
static void open_house(bool polls)
{
    house_open(&house);
    ck_assert_int_eq(clients_open(&house.state.clients, 10), 0);
    ck_assert_str_ne(house.state.clients.presence.path, "");
    ck_assert_int_ge(house.state.clients.presence.news, 0);
    if (!polls)
        return;
    uv_close((uv_handle_t *)&house.state.clients.news, NULL);
    uv_run(&house.loop, UV_RUN_NOWAIT);
    close_fdp(&house.state.clients.presence.news);
}

/* Closes the handle of the exit watches, which nobody else knows. */
static void close_watches(uv_handle_t *handle, void *watches)
{
    if (watches && handle->data == watches && !uv_is_closing(handle))
        uv_close(handle, NULL);
}

static void close_house(void)
{
    struct clients *clients = &house.state.clients;
    for (unsigned i = 0; i < house.n_guests; i++)
        house_leave(&house.guests[i]);
    if (clients->presence.news >= 0)
        uv_close((uv_handle_t *)&clients->news, NULL);
    alarm_close(&clients->alarm, NULL);
    uv_walk(&house.loop, close_watches, clients->exits);
    house_close(&house);
    clients_close(&house.state.clients, true);
}

static struct client *first_client(void)
{
    return LIST_FIRST(&house.state.clients.chains[7]);
}

/* Claims as a client. Returns its presence. */
static int claim_as(struct guest *g, int client, const char *presence, const char *held)
{
    char text[200];
    snprintf(text, sizeof text, "{'client':%d,'held':[%s],'presence':'%s'}", client, held,
             presence);
    json_t *p = house_call(g, "Claim", text);
    if (!json_object_get(p, "presence"))
        return -1;
    ck_assert_int_eq(house_int(p, NULL, "presence"), 0);
    ck_assert_int_eq(house_int(p, NULL, "descriptors"), 1);
    ck_assert_uint_eq(g->fds.n, 1);
    int fd = fcntl(g->fds.fd[0], F_DUPFD_CLOEXEC, 0);
    frame_descriptors_close(&g->fds);
    return fd;
}

static int claim(struct guest *g, const char *presence, const char *held)
{
    return claim_as(g, 7, presence, held);
}

static void await_end_of(const char *name)
{
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    while (registry_find(&house.state.registry, name) && now_ns() < deadline)
        house_run(&house);
    ck_assert_ptr_null(registry_find(&house.state.registry, name));
}

/* Begins with one attachment, to a segment that ends with it. */
static int begin(struct guest **ret_g)
{
    struct guest *g = house_admit(&house);
    int fd = claim(g, "wanted", "");
    ck_assert_int_ge(fd, 0);
    house_call(g, "Create", "{'name':'s','size':10,'access':'write'}");
    house_call(g, "Create", "{'name':'c','size':10,'lifetime':'creator'}");
    ck_assert_int_eq(first_client()->presence, PRESENCE_HELD);
    *ret_g = g;
    return fd;
}

static void survive_and_end(bool polls)
{
    struct guest *g;
    open_house(polls);
    int fd = begin(&g);
    house_end(g);
    for (int i = 0; i < 20; i++)
        house_run(&house);
    ck_assert_ptr_null(first_client()->connection);
    ck_assert_uint_eq(registry_find(&house.state.registry, "s")->n_attachments, 1);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_ATTACHMENTS], 1);
    close(fd);
    await_end_of("c");
    await_end_of("s");
    ck_assert_ptr_null(first_client());
    close_house();
}

START_TEST(survives)
{
    survive_and_end(false);
}
END_TEST

START_TEST(survives_and_is_polled)
{
    survive_and_end(true);
}
END_TEST

/* Three processes have one number. The last one, whose birth is unknown, has taken over the second
 * one's, and then the first one claims again. */
START_TEST(a_connection_has_one_client)
{
    struct guest *g[3];
    int fd[4];
    open_house(false);
    for (int i = 0; i < 3; i++) {
        g[i] = house_admit(&house);
        g[i]->connection->holder.pid = 100;
        g[i]->connection->holder.birth = i == 2 ? 0 : (uint64_t)i + 1;
        fd[i] = claim(g[i], "wanted", "");
    }
    struct client *first = g[0]->connection->client;
    fd[3] = claim(g[0], "wanted", "");
    ck_assert_ptr_eq(g[0]->connection->client, first);
    ck_assert_ptr_eq(first->connection, g[0]->connection);
    for (int i = 0; i < 4; i++)
        close_fdp(&fd[i]);
    house_end(g[0]);
    house_end(g[2]);
    close_house();
}
END_TEST

/* A forked child may still hold the socket. */
START_TEST(ends_while_its_connection_is_open)
{
    struct guest *g;
    open_house(false);
    int fd = begin(&g);
    close(fd);
    await_end_of("s");
    ck_assert_ptr_null(g->connection);
    close_house();
}
END_TEST

/* The client had no memory for the mapping. */
START_TEST(never_mapped)
{
    open_house(false);
    struct guest *g = house_admit(&house);
    close(claim(g, "wanted", ""));
    for (int i = 0; i < 20; i++)
        house_run(&house);
    house_call(g, "Create", "{'name':'s','size':10,'access':'write'}");
    ck_assert_ptr_nonnull(g->connection);
    ck_assert_int_eq(first_client()->presence, PRESENCE_NONE);
    house_end(g);
    ck_assert_ptr_null(registry_find(&house.state.registry, "s"));
    close_house();
}
END_TEST

/* It claims over a second connection, before and after the daemon knows that the first is
 * closed. */
START_TEST(claims_again)
{
    for (int closed = 0; closed < 2; closed++) {
        struct guest *g, *again;
        char held[60];
        open_house(false);
        int fd = begin(&g);
        const struct attachment *a = LIST_FIRST(&g->connection->attachments);
        snprintf(held, sizeof held, "%ju", (uintmax_t)a->id);
        house_call(g, "Attach", "{'name':'s','access':'read'}"); /* it reads no reply */
        if (closed)
            house_end(g);
        again = house_admit(&house);
        ck_assert_int_eq(claim(again, "kept", held), -1);
        while (g->connection)
            house_run(&house);
        ck_assert_ptr_eq(first_client()->connection, again->connection);
        ck_assert_ptr_eq(LIST_FIRST(&again->connection->attachments), a);
        /* the attachment that was not claimed ends in a later turn, if this one took too long */
        const struct segment *s = registry_find(&house.state.registry, "s");
        int64_t deadline = now_ns() + HOUSE_WAIT_NS;
        while (s->n_attachments != 1 && now_ns() < deadline)
            house_run(&house);
        ck_assert_uint_eq(s->n_attachments, 1);

        close(fd);
        close_house();
    }
}
END_TEST

START_TEST(claims_what_is_not_there)
{
    struct guest *g;
    open_house(false);
    g = house_admit(&house);
    int fd = claim(g, "kept", ""); /* to a daemon that has removed everything */
    ck_assert_int_ge(fd, 0);
    close(fd);
    house_refused(g, "Claim", "{'client':8,'held':[]}", SERVICE "PermissionDenied",
                  "is client 7 already");
    house_refused(g, "Claim", "{'client':7,'held':[],'presence':'x'}", INVALID, "");
    close_house();
}
END_TEST

/* Too many descriptors are in flight, so the client does without. */
START_TEST(goes_without)
{
    open_house(false);
    struct guest *g = house_admit(&house);
    house_send(g, "{'method':'io.shmview.Claim','parameters':{'client':7,'held':[],"
                  "'presence':'wanted'}}");
    faults_begin_call("sendmsg", 1, ETOOMANYREFS, false);
    const char *reply = house_receive(g);
    ck_assert(faults_end());
    ck_assert_str_eq(reply, "{\"parameters\":{\"held\":[]}}");
    ck_assert_uint_eq(g->fds.n, 0);
    house_call(g, "Ping", "{}");
    ck_assert_int_eq(first_client()->presence, PRESENCE_NONE);
    close_house();
}
END_TEST

/* No end was reported, but inotify reports that it has lost some. A pipe stands for it. */
START_TEST(reports_are_lost)
{
    const struct inotify_event lost = {.wd = -1, .mask = IN_Q_OVERFLOW};
    struct guest *g[3];
    int ends[2], fd[2];
    open_house(false);
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
    ck_assert_int_ge(dup2(ends[0], house.state.clients.presence.news), 0);
    fd[0] = begin(&g[0]); /* this one ends */
    g[1] = house_admit(&house);
    fd[1] = claim_as(g[1], 8, "wanted", "");
    house_call(g[1], "Create", "{'name':'t','size':10,'access':'write'}");
    g[2] = house_admit(&house); /* and this one has no presence */
    house_call(g[2], "Claim", "{'client':9,'held':[]}");
    house_call(g[2], "Create", "{'name':'u','size':10,'access':'write'}");
    house_end(g[0]);
    while (first_client()->doubted) /* and tested for a while, after the loss of its connection */
        house_run(&house);
    close(fd[0]);
    for (int i = 0; i < 20; i++)
        house_run(&house);
    ck_assert_ptr_nonnull(registry_find(&house.state.registry, "s"));
    ck_assert_int_eq(write(ends[1], &lost, sizeof lost), sizeof lost);
    await_end_of("s");
    await_end_of("c");
    for (int i = 0; i < 20; i++)
        house_run(&house);
    ck_assert_ptr_null(first_client());
    ck_assert_ptr_nonnull(g[1]->connection);
    ck_assert_ptr_nonnull(g[2]->connection);
    ck_assert_uint_eq(registry_find(&house.state.registry, "t")->n_attachments, 1);
    ck_assert_uint_eq(registry_find(&house.state.registry, "u")->n_attachments, 1);
    house_end(g[1]);
    close(fd[1]);
    ck_assert_int_eq(write(ends[1], &lost, sizeof lost), sizeof lost);
    await_end_of("t");
    close(ends[0]);
    close(ends[1]);
    close_house();
}
END_TEST

UNIT_MAIN("presence", UNIT_TEST(reports_are_lost), UNIT_TEST(survives),
          UNIT_TEST(a_connection_has_one_client), UNIT_TEST(survives_and_is_polled),
          UNIT_TEST(ends_while_its_connection_is_open), UNIT_TEST(never_mapped),
          UNIT_TEST(claims_again), UNIT_TEST(claims_what_is_not_there), UNIT_TEST(goes_without))

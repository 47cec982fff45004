/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/client.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/base/log.h"
#include "daemon/base/loop.h"
#include "daemon/base/slice.h"
#include "daemon/clients/connection.h"
#include "daemon/clients/exit_watch.h"
#include "daemon/clients/exiting.h"

/* The kernel releases the lock of a presence a moment after inotify has reported its end, and
 * perhaps a moment after its client hung up. So a presence that is held is tested again after 1 ms,
 * 2 ms, and so on. The tests end when the lock is free, or after TESTS_OF_HELD of them if inotify
 * works and has reported nothing: it will report the end later. */
#define PACE_MOST_MS  50
#define TESTS_A_TURN  32
#define TESTS_OF_HELD 8
#define READS_A_TURN  8 /* of the reports of inotify */
#define SLICE_NS      250000

/* --- Finding ------------------------------------------------------------- */

static unsigned chain_of(const struct store_holder *holder)
{
    return (unsigned)(holder->client ? holder->client : holder->pid) % CLIENT_CHAINS;
}

static struct presence_key key_of(const struct client *client)
{
    return (struct presence_key){.uid = client->holder.uid, .client = client->holder.client};
}

/* Whether both mean the same client. A birth of 0 is unknown and matches any other. */
static bool is_same(const struct store_holder *a, const struct store_holder *b)
{
    if (a->client != b->client || a->uid != b->uid)
        return false;
    /* the pid of one with a number, which is random, may differ between pid namespaces */
    return a->client == 0 ? a->pid == b->pid && a->birth == b->birth
                          : a->birth == b->birth || a->birth == 0 || b->birth == 0;
}

static struct client *find(const struct clients *clients, const struct store_holder *holder)
{
    struct client *c = LIST_FIRST(&clients->chains[chain_of(holder)]);
    while (c && !is_same(&c->holder, holder))
        c = LIST_NEXT(c, link);
    return c;
}

bool client_is_known(void *arg, struct presence_key key)
{
    const struct store_holder any = {.client = key.client, .uid = key.uid};
    return key.client && find(arg, &any);
}

/* --- Beginning and end --------------------------------------------------- */

static struct client *client_new(struct clients *clients, const struct store_holder *holder)
{
    struct client *c = calloc(1, sizeof *c);
    if (!c)
        return NULL;
    c->clients = clients;
    c->holder = *holder;
    c->pidfd = -1;
    LIST_INIT(&c->attachments);
    LIST_INIT(&c->created);
    LIST_INSERT_HEAD(&clients->chains[chain_of(holder)], c, link);
    return c;
}

static void undoubt(struct client *c)
{
    if (!c->doubted)
        return;
    c->doubted = false;
    TAILQ_REMOVE(&c->clients->doubted, c, doubt);
    c->clients->n_doubted--;
}

static void on_closed(uv_handle_t *handle)
{
    struct client *c = CONTAINER_OF((uv_poll_t *)handle, struct client, poll);
    close(c->pidfd);
    free(c);
}

void client_free(struct client *client, bool keeps)
{
    if (!client)
        return;
    undoubt(client);
    LIST_REMOVE(client, link);
    if (client->presence != PRESENCE_NONE && !keeps)
        presence_remove(&client->clients->presence, key_of(client));
    if (client->pidfd < 0) {
        free(client);
        return;
    }
    client->clients->n_watched -= client->presence != PRESENCE_NONE;
    uv_close((uv_handle_t *)&client->poll, on_closed);
}

bool client_depart(struct client *client, struct presence_key *ret_key)
{
    bool has_presence = client->presence != PRESENCE_NONE;
    *ret_key = key_of(client);
    client_free(client, true);
    return has_presence;
}

static void on_death(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    struct client *c = CONTAINER_OF(poll, struct client, poll);
    if (!slice_is_late() && peer_has_ended(c->pidfd))
        c->clients->died(c);
}

/* Takes pidfd over and waits for the death of the process. Leaves the pidfd to the caller if
 * max_watched is reached: a presence reports a death as well, a moment later. */
static void watch_process(struct client *c, int *pidfd)
{
    struct clients *clients = c->clients;
    bool is_spare = c->presence != PRESENCE_NONE;
    if (*pidfd < 0 || (is_spare && clients->n_watched >= clients->max_watched) ||
        loop_poll_init(c->clients->loop, &c->poll, *pidfd))
        return;
    c->pidfd = steal_fd(pidfd);
    clients->n_watched += is_spare;
    uv_poll_start(&c->poll, UV_READABLE, on_death); /* fails only for handles that are closed */
}

/* Moves what the connection has to the client. */
static void take_lists(struct client *c, struct connection *from)
{
    struct attachment *a;
    struct segment *segment;
    while ((a = LIST_FIRST(&from->attachments)))
        attachment_move(&c->attachments, a);
    while ((segment = LIST_FIRST(&from->created))) {
        LIST_REMOVE(segment, created);
        LIST_INSERT_HEAD(&c->created, segment, created);
    }
}

/* --- Doubt --------------------------------------------------------------- */

/* Lets the presence of the client be tested again, from 1 ms on. */
static void doubt(struct client *c)
{
    struct clients *clients = c->clients;
    if (c->doubted)
        return;
    c->doubted = true;
    c->n_tests = 0;
    TAILQ_INSERT_HEAD(&clients->doubted, c, doubt);
    clients->n_doubted++;
    clients->pace_ms = 1;
    alarm_set(&clients->alarm, 1, 0);
}

/* Tests the presence of a client and acts on the result: ends the client, or its connection, if the
 * lock is free; otherwise decides whether to test again. */
static void judge(struct client *c)
{
    int r = presence_test(&c->clients->presence, key_of(c));
    if (r == PRESENCE_FREE && !c->connection)
        c->clients->died(c);
    else if (r == PRESENCE_FREE && c->presence == PRESENCE_HELD)
        connection_end(c->connection); /* this frees the client */
    else if (r == PRESENCE_FREE || r == PRESENCE_ABSENT)
        undoubt(c); /* it was never mapped, or the file was removed */
    else if (r == PRESENCE_LOCKED && !c->released && c->n_tests++ == TESTS_OF_HELD &&
             c->clients->presence.news >= 0)
        undoubt(c);
    else
        doubt(c);
}

static void on_alarm(struct alarm *alarm)
{
    struct clients *clients = alarm->data;
    unsigned n = clients->n_doubted < TESTS_A_TURN ? clients->n_doubted : TESTS_A_TURN;
    unsigned pace = clients->pace_ms < PACE_MOST_MS / 2 ? clients->pace_ms * 2 : PACE_MOST_MS;
    int64_t until = slice_end(SLICE_NS);
    struct client *c;
    do {
        if (n-- == 0 || !(c = TAILQ_FIRST(&clients->doubted)))
            break;
        TAILQ_REMOVE(&clients->doubted, c, doubt);
        TAILQ_INSERT_TAIL(&clients->doubted, c, doubt);
        judge(c);
    } while (now_ns() < until);
    if (TAILQ_EMPTY(&clients->doubted))
        return;
    clients->pace_ms = pace;
    alarm_set(alarm, pace, 0);
}

static void on_release(void *arg, struct presence_key key)
{
    const struct clients *clients = arg;
    const struct store_holder any = {.client = key.client, .uid = key.uid};
    struct client *c;
    LIST_FOREACH (c, &clients->chains[chain_of(&any)], link)
        if (c->presence != PRESENCE_NONE && is_same(&c->holder, &any)) {
            c->released = true;
            judge(c);
            return;
        }
}

/* inotify has lost reports, so any presence may have ended. */
static void doubt_all(struct clients *clients)
{
    struct client *c;
    for (unsigned i = 0; i < CLIENT_CHAINS; i++)
        LIST_FOREACH (c, &clients->chains[i], link)
            if (c->presence != PRESENCE_NONE)
                doubt(c);
}

static void on_news(uv_poll_t *poll, int status, int events)
{
    struct clients *clients = poll->data;
    enum presence_news news = NEWS_READ;
    (void)status, (void)events;
    for (int64_t i = 0, until = slice_end(SLICE_NS);
         i < READS_A_TURN && news == NEWS_READ && (i == 0 || now_ns() < until); i++)
        news = presence_read(&clients->presence, on_release, clients);
    if (news == NEWS_LOST)
        doubt_all(clients);
}

/* --- Processes that are exiting ------------------------------------------- */

static int pidfd_of(const struct client *c)
{
    return c->connection ? c->connection->peer.pidfd : c->pidfd;
}

struct client *client_look(const struct client *own, const struct store_holder *holder)
{
    struct client *c = find(own->clients, holder);
    if (!c || c == own || process_is_exiting(pidfd_of(c)))
        return c == own ? NULL : c; /* the end of own, which has sent a report, is noticed */
    exit_watch_keep(own->clients->exits, &c->holder, pidfd_of(c));
    return NULL;
}

void client_end_exiting(struct client *client)
{
    client->exiting = true; /* its presence is still held */
    if (client->connection) {
        attachments_announce_first(&client->connection->attachments);
        connection_end(client->connection);
    } else {
        client->clients->died(client);
    }
}

/* A thread of a process that is watched has ended, and perhaps all of them. find() takes an unknown
 * birth for any, so only a birth shows that the process of the client is still the watched one. */
static void on_exit_noticed(void *arg, const struct store_holder *holder, bool is_exiting)
{
    struct client *c = find(arg, holder);
    bool is_watched = c && holder->birth && c->holder.birth == holder->birth;
    if (c && ((is_exiting && is_watched) || process_is_exiting(pidfd_of(c))))
        client_end_exiting(c);
}

int clients_open(struct clients *clients, unsigned max_watched)
{
    TAILQ_INIT(&clients->doubted);
    clients->max_watched = max_watched;
    int r = alarm_init(&clients->alarm, clients->loop, on_alarm, clients);
    if (r)
        return r;
    clients->exits = exit_watches_open(clients->loop, on_exit_noticed, clients);
    r = presence_open(&clients->presence);
    if (r) {
        log_warning("clients cannot prove that they live, and lose what they have when their "
                    "connections end: no directory: %s",
                    strerror(-r));
        return 0;
    }
    clients->news.data = clients;
    if (clients->presence.news >= 0 &&
        (loop_poll_init(clients->loop, &clients->news, clients->presence.news) ||
         uv_poll_start(&clients->news, UV_READABLE, on_news)))
        close_fdp(&clients->presence.news);
    if (clients->presence.news < 0)
        log_warning("inotify is not available: the presence of clients is polled instead");
    return 0;
}

void clients_close(struct clients *clients, bool remove)
{
    exit_watches_close(clients->exits);
    presence_close(&clients->presence, remove);
}

/* --- Survivors ----------------------------------------------------------- */

/* Returns a pidfd of the holder, or -errno; -ESRCH if the process is dead, or in a pid namespace
 * that the daemon cannot see. A process with the same pid but another birth is not the holder. */
static int open_process(const struct store_holder *holder)
{
    CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)holder->pid, 0);
    if (pidfd < 0)
        return errno == EINVAL ? -ESRCH : -errno; /* EINVAL: no process can have that pid */
    uint64_t birth = peer_birth(pidfd, (pid_t)holder->pid);
    if (birth != holder->birth)
        return birth ? -ESRCH : -errno;
    return steal_fd(&pidfd);
}

struct client *client_find_survivor(struct clients *clients, const struct store_holder *holder)
{
    struct client *c = find(clients, holder);
    if (c)
        return c;
    struct presence_key key = {.uid = holder->uid, .client = holder->client};
    int held = holder->client ? presence_test(&clients->presence, key) : PRESENCE_ABSENT;
    if (held < 0 || held == PRESENCE_FREE) {
        errno = held < 0 ? -held : ESRCH;
        return NULL;
    }
    int r = open_process(holder);
    CLEANUP_FD int pidfd = r;
    if (r < 0 && held != PRESENCE_LOCKED) {
        errno = -r;
        return NULL;
    }
    c = client_new(clients, holder);
    if (!c)
        return NULL;
    c->presence = held == PRESENCE_LOCKED ? PRESENCE_HELD : PRESENCE_NONE;
    watch_process(c, &pidfd);
    if (c->pidfd < 0 && held != PRESENCE_LOCKED) {
        client_free(c, true);
        errno = ENOMEM;
        return NULL;
    }
    if (held == PRESENCE_LOCKED)
        doubt(c);
    return c;
}

bool client_lives(const struct connection *connection)
{
    const struct client *c = connection->client;
    if (!c || c->presence == PRESENCE_NONE || c->exiting ||
        (LIST_EMPTY(&connection->attachments) && LIST_EMPTY(&connection->created)) ||
        process_is_exiting(connection->peer.pidfd))
        return false;
    int r = presence_test(&c->clients->presence, key_of(c));
    return r != PRESENCE_FREE && r != PRESENCE_ABSENT; /* after an error a doubt counts as alive */
}

void client_survive(struct connection *connection)
{
    struct client *c = STEAL(connection->client);
    c->connection = NULL;
    take_lists(c, connection);
    watch_process(c, &connection->peer.pidfd);
    doubt(c);
}

void clients_abandon(struct clients *clients)
{
    struct client *c;
    for (unsigned i = 0; i < CLIENT_CHAINS; i++)
        while ((c = LIST_FIRST(&clients->chains[i]))) {
            struct attachment *a;
            struct segment *segment;
            while ((a = LIST_FIRST(&c->attachments)))
                attachment_abandon(a);
            while ((segment = LIST_FIRST(&c->created))) {
                LIST_REMOVE(segment, created);
                segment->has_creator = false;
            }
            client_free(c, true);
        }
}

/* --- Claiming ------------------------------------------------------------ */

/* Gives the connection what its client had before. Attachments that the claim does not name are
 * ended in turns, because ending thousands of them here would delay other clients. */
static void give_lists(struct client *from, struct connection *to, const struct wire_claim *claim)
{
    struct attachment *a, *next;
    struct segment *segment;
    wire_held_sort(claim->held, claim->n_held);
    for (a = LIST_FIRST(&from->attachments); a; a = next) {
        next = LIST_NEXT(a, link);
        a->unclaimed = !wire_held_has(claim->held, claim->n_held, (int64_t)a->id);
        if (a->unclaimed)
            continue;
        attachment_move(&to->attachments, a);
    }
    while ((segment = LIST_FIRST(&from->created))) {
        LIST_REMOVE(segment, created);
        LIST_INSERT_HEAD(&to->created, segment, created);
    }
    from->clients->unclaimed(from->clients, &from->attachments);
}

/* Makes the client a survivor and closes its connection, if it has one: the daemon has not noticed
 * the end of that connection yet. */
static void disconnect(struct client *c)
{
    struct connection *connection = c->connection;
    if (!connection)
        return;
    if (connection->gone && !client_lives(connection))
        connection->events->gone(connection); /* its client has died; it only waited for a turn */
    take_lists(c, connection);
    c->connection = NULL;
    connection->client = NULL;
    connection_close(connection);
}

/* Whether another process of the same user has the same number, and thus the same file. That
 * process must keep its presence, so the client gets none. */
static bool has_rival(const struct client *client)
{
    const struct client *c;
    LIST_FOREACH (c, &client->clients->chains[chain_of(&client->holder)], link)
        if (c != client && c->holder.client == client->holder.client &&
            c->holder.uid == client->holder.uid && c->presence != PRESENCE_NONE)
            return true;
    return false;
}

/* Gives the client a new presence, unless it wants none or its old one still holds. Returns the
 * descriptor to send, or -1. */
static int renew_presence(struct client *c, int64_t want)
{
    const struct presence *presence = &c->clients->presence;
    if (has_rival(c))
        return -1;
    if (want == WIRE_PRESENCE_KEPT && presence_test(presence, key_of(c)) == PRESENCE_LOCKED) {
        c->presence = PRESENCE_HELD;
        return -1;
    }
    presence_remove(presence, key_of(c));
    int fd = want ? presence_create(presence, key_of(c)) : -1;
    c->presence = fd >= 0 ? PRESENCE_OFFERED : PRESENCE_NONE;
    return fd >= 0 ? fd : -1;
}

int client_claim(struct clients *clients, struct connection *connection,
                 const struct wire_claim *claim, int *ret_fd)
{
    struct store_holder holder = connection->holder;
    if (connection->client && holder.client != (uint64_t)claim->client)
        return -EEXIST;
    holder.client = (uint64_t)claim->client;
    /* a connection that has a client keeps it, even if another process claims the same number */
    struct client *old = connection->client ? connection->client : find(clients, &holder), *c = old;
    if (old && old->connection && old != connection->client && connection_hung_up(connection))
        return -EEXIST; /* a late Claim of a connection that hung up: the client has a newer one */
    if (!old || old != connection->client) {
        c = client_new(clients, &holder);
        if (!c)
            return -ENOMEM;
    }
    if (old && old != c) {
        disconnect(old);
        give_lists(old, connection, claim);
        client_free(old, true);
    }
    c->connection = connection;
    connection->client = c;
    connection->holder = holder;
    *ret_fd = renew_presence(c, claim->presence);
    return 0;
}

void client_settle(struct client *client)
{
    int r = presence_test(&client->clients->presence, key_of(client));
    if (r == PRESENCE_LOCKED) {
        client->presence = PRESENCE_HELD;
    } else if (r == PRESENCE_FREE || r == PRESENCE_ABSENT) {
        presence_remove(&client->clients->presence, key_of(client));
        client->presence = PRESENCE_NONE;
    }
}

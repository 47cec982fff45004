/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that have sent Claim, and processes that hold something without a connection.
 *
 *   claims by a connection -> connected -> hangs up -> survivor -> claims again, or dies
 *   found in the store     -> survivor
 *   entrusted              -> survivor, until it dies
 *
 * A client that hangs up has died, unless its presence (presence.h) is held. The daemon keeps
 * the attachments and segments of a survivor until the client claims them, or is known to be
 * dead: its pidfd is readable, or its presence is free. A process may have several connections;
 * each is a client with a number of its own. A client with number 0 is a process to which
 * segments are entrusted, or one that never sent Claim. */
#ifndef DAEMON_CLIENT_H
#define DAEMON_CLIENT_H

#include <sys/queue.h>
#include <uv.h>

#include "common/wire/wire.h"
#include "daemon/base/alarm.h"
#include "daemon/clients/presence.h"
#include "daemon/segments/attachment.h"

#define CLIENT_CHAINS 1024

struct clients;
struct connection;
struct peer;
struct registry;

enum client_presence {
    PRESENCE_NONE,
    PRESENCE_OFFERED, /* sent; the client may not have been able to map it */
    PRESENCE_HELD,
};

struct client {
    struct clients *clients;
    struct store_holder holder;
    struct connection *connection; /* NULL: a survivor */
    enum client_presence presence;
    bool doubted;  /* on the list of those to be tested again */
    bool released; /* inotify has reported the end of its presence */
    unsigned n_tests;
    int pidfd; /* of a survivor, owned; -1: none */
    uv_poll_t poll;
    struct attachments attachments; /* of a survivor; else they are its connection's */
    struct created_segments created;
    LIST_ENTRY(client) link;
    TAILQ_ENTRY(client) doubt;
};

/* Zeroed, and the first four set by the owner. */
struct clients {
    uv_loop_t *loop;
    struct registry *registry;
    void (*died)(struct client *client); /* without a connection: owes client_free() */
    /* that client has not named these attachments in a claim: ends them, and empties the list */
    void (*unclaimed)(struct clients *clients, struct attachments *attachments);
    LIST_HEAD(, client) chains[CLIENT_CHAINS]; /* by number, or by pid */
    TAILQ_HEAD(clients_doubted, client) doubted;
    unsigned n_doubted, pace_ms;
    unsigned n_watched, max_watched; /* survivors with a presence that also have a pidfd */
    struct presence presence;
    uv_poll_t news;
    struct alarm alarm;
};

/* Lets clients have a presence; where there is no directory for it, none has. Returns 0 or
 * -errno. */
int clients_open(struct clients *clients, unsigned max_watched);
void clients_close(struct clients *clients, bool remove);

/* The survivor who is holder, new if need be. Returns NULL with errno: ESRCH if it is dead. */
struct client *client_find_survivor(struct clients *clients, const struct store_holder *holder);

/* Whether there is one of that number; for presence_sweep(), with the struct clients. */
bool client_is_known(void *arg, struct presence_key key);

/* Makes the connection that of the client with the number in claim, and gives it the segments
 * that this client created and those of its attachments that claim names, whose order it changes.
 * The other attachments are unclaimed. If the client has another connection, closes that.
 * *ret_fd is a new presence to send, or -1. Returns 0; -EEXIST if the connection is another
 * client's already; -ENOMEM. */
int client_claim(struct clients *clients, struct connection *connection,
                 const struct wire_claim *claim, int *ret_fd);

/* The connection has sent a request after Claim: whether the client has mapped its presence is
 * known now. */
void client_settle(struct client *client);

/* Whether the client of a connection that has hung up lives on and holds something. */
bool client_lives(const struct connection *connection);
/* Makes it a survivor, which has what the connection had. */
void client_survive(struct connection *connection);

/* Frees it; keeps: its presence is for the next daemon. Takes NULL. */
void client_free(struct client *client, bool keeps);
/* Frees one that is dead. Returns whether *ret_key, its presence, is yet to be removed: when all
 * that it had is ended, because until then it tells a next daemon that the client is dead. */
bool client_depart(struct client *client, struct presence_key *ret_key);

/* Frees all survivors; what they hold stays for the next daemon. */
void clients_abandon(struct clients *clients);

#endif

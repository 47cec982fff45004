/* SPDX-License-Identifier: Apache-2.0 */
/* Clients that have sent Claim, and processes that hold something without a connection. Such a
 * process is called a survivor.
 *
 *   sends Claim              -> connected -> hangs up -> survivor -> sends Claim again, or dies
 *   found in the store       -> survivor
 *   gets segments by Entrust -> survivor, until it dies
 *
 * A client that hangs up has died, unless its presence (presence.h) is held. A hang-up alone is no
 * evidence, because a stray close() or an exceeded quota ends the connection of a living process.
 * The daemon keeps the attachments and segments of a survivor until the client claims them or is
 * dead: its pidfd is readable, or its presence is free, or its process is exiting.
 *
 * A process may have several connections. Each is a client with a number of its own, which it
 * chooses at random. A client with number 0 is a process to which segments are entrusted, or one
 * that never sent Claim.
 *
 * Loop only. Nothing here blocks for long: tests of presences are spread over turns. */
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
struct exit_watches;
struct peer;
struct registry;

/* What the daemon knows of the presence of a client. */
enum client_presence {
    PRESENCE_NONE,
    PRESENCE_OFFERED, /* the descriptor was sent; the client may have failed to map it */
    PRESENCE_HELD,    /* the client has mapped it, and had the lock when that was last tested */
};

/* One client. struct clients finds it by number or pid. While it has a connection, the attachments
 * and segments are in the lists of the connection, and its end frees or changes the client. */
struct client {
    struct clients *clients;
    struct store_holder holder;
    struct connection *connection; /* borrowed; NULL: a survivor */
    enum client_presence presence;
    bool doubted;                   /* in the list `doubted`: its presence must be tested again */
    bool released;                  /* inotify has reported the end of its presence */
    bool exiting;                   /* its process is being ended by the kernel (exiting.h) */
    unsigned n_tests;               /* tests since it was doubted that found the lock held */
    int pidfd;                      /* of a survivor, owned; -1: none */
    uv_poll_t poll;                 /* of pidfd; in use only if there is one */
    struct attachments attachments; /* of a survivor; otherwise the connection has them */
    struct created_segments created;
    LIST_ENTRY(client) link;
    TAILQ_ENTRY(client) doubt;
};

/* All clients of the instance. The owner zeroes it and sets the first four members. */
struct clients {
    uv_loop_t *loop;
    struct registry *registry;
    /* Called when a survivor has died. The owner ends what it had, and owes client_free() or
     * client_depart(). */
    void (*died)(struct client *client);
    /* Called with attachments that a client did not name in its claim. The owner ends them and
     * empties the list. */
    void (*unclaimed)(struct clients *clients, struct attachments *attachments);
    LIST_HEAD(, client) chains[CLIENT_CHAINS];   /* by number, or by pid */
    TAILQ_HEAD(clients_doubted, client) doubted; /* presences to test again, at each alarm */
    unsigned n_doubted, pace_ms;                 /* pace_ms: until the next alarm */
    unsigned n_watched, max_watched;             /* survivors with a presence and also a pidfd */
    struct presence presence;
    struct exit_watches *exits; /* owned; NULL: none can be watched */
    uv_poll_t news;             /* reports of inotify */
    struct alarm alarm;
};

/* Prepares the struct, and lets clients have a presence. If there can be no directory for
 * presences, logs a warning, and no client gets one. max_watched limits the pidfds that are a
 * second evidence beside a presence. Returns 0 or -errno. The caller owes clients_close() after 0,
 * and may call it in any case.
 */
int clients_open(struct clients *clients, unsigned max_watched);
/* Closes the directory of presences. If remove is true, removes all of them first; otherwise the
 * next daemon finds them. */
void clients_close(struct clients *clients, bool remove);

/* Returns the survivor that the holder in a record means; makes one if there is none yet. Returns
 * NULL with errno: ESRCH if the process is dead, or another one if that is unknown. */
struct client *client_find_survivor(struct clients *clients, const struct store_holder *holder);

/* Whether there is a client with that number. For presence_sweep(); arg is the struct clients. */
bool client_is_known(void *arg, struct presence_key key);

/* Connects the client with the number in claim by this connection. The connection gets the segments
 * that the client created, and those attachments that claim names; sorts the list in claim for
 * that. The other attachments are passed to unclaimed(). If the client has another connection,
 * closes it.
 *
 * *ret_fd is the descriptor of a new presence to send, which the caller owns, or -1. Returns 0;
 * -EEXIST if the connection belongs to another client, or has hung up after its client had
 * connected again; or -ENOMEM. */
int client_claim(struct clients *clients, struct connection *connection,
                 const struct wire_claim *claim, int *ret_fd);

/* Call at the first request after Claim: the client maps its presence before that. Tests whether it
 * did. If not, the client has no presence. */
void client_settle(struct client *client);

/* Looks at a holder for which the client `own` waits. Returns its client if its process is exiting
 * (exiting.h): such a process gives up its locks only after its memory is freed. Otherwise returns
 * NULL, and lets the process be watched (exit_watch.h). Returns NULL also for `own` itself. */
struct client *client_look(const struct client *own, const struct store_holder *holder);
/* Ends a client that client_look() has returned, as after its death. May free it. */
void client_end_exiting(struct client *client);

/* Whether the client of a connection that has hung up lives on and holds something. */
bool client_lives(const struct connection *connection);
/* Makes the client of the connection a survivor. Its attachments and segments, and the pidfd of the
 * connection, move from the connection to it. */
void client_survive(struct connection *connection);

/* Frees the client, which may be NULL. If keeps is false, removes its presence; otherwise the file
 * remains, for a claim that goes on or for the next daemon. */
void client_free(struct client *client, bool keeps);
/* Frees a client that is dead. Returns whether it had a presence: *ret_key. The caller removes that
 * after it has ended all that the client had. Until then the file must remain, because a next
 * daemon would learn from it that the client is dead. */
bool client_depart(struct client *client, struct presence_key *ret_key);

/* Frees all survivors because the daemon exits. Their attachments and segments remain for the next
 * daemon. */
void clients_abandon(struct clients *clients);

#endif

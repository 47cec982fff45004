/* SPDX-License-Identifier: Apache-2.0 */
/* The connection to the daemon, and the limit of work, that all requests share.
 *
 * The page's server may start before the daemon, and survives it: the library connects again. */
#ifndef WEB_BACKEND_H
#define WEB_BACKEND_H

#include <shmview/shmview.h>

#include "web/base/bucket.h"

struct pool;

struct backend {
    const char *socket; /* of the daemon; NULL: the usual search */
    bool allow_changes;
    pthread_mutex_t mutex;
    struct shmview_connection *connection; /* NULL until the first request that finds a daemon */
    struct bucket work; /* seconds of processor time that may go into reading memory */
    struct pool *pool;
    unsigned n_streams; /* of events; under the mutex */
};

/* Makes a backend that has no connection yet. percent is the share of one processor that reading
 * memory may take in the long run. Returns 0 or a negative errno. The caller owes
 * backend_deinit(). */
int backend_init(struct backend *b, const char *socket, double percent);
/* Detaches all segments and disconnects. */
void backend_deinit(struct backend *b);

/* Returns the connection, which lives as long as the backend. Blocks until there is one, or until
 * the library gives up. Any thread. Returns 0 or an error of shmview_connect(). */
int backend_connection(struct backend *b, struct shmview_connection **ret);

#endif

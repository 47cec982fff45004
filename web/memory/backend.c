/* SPDX-License-Identifier: Apache-2.0 */
#include "web/memory/backend.h"

#include <errno.h>

#include "web/memory/pool.h"

#define WORK_BURST_S 4.0 /* of the share: so much may be used at once after a pause */

int backend_init(struct backend *b, const char *socket, double percent)
{
    *b = (struct backend){.socket = socket};
    pthread_mutex_init(&b->mutex, NULL);
    bucket_init(&b->work, percent / 100, percent / 100 * WORK_BURST_S);
    b->pool = pool_new();
    return b->pool ? 0 : -ENOMEM;
}

void backend_deinit(struct backend *b)
{
    pool_free(b->pool);
    shmview_disconnect(b->connection);
    bucket_deinit(&b->work);
    pthread_mutex_destroy(&b->mutex);
}

int backend_connection(struct backend *b, struct shmview_connection **ret)
{
    int r = 0;
    pthread_mutex_lock(&b->mutex);
    if (!b->connection)
        r = shmview_connect(b->socket, SHMVIEW_CONNECT_NO_START, &b->connection);
    *ret = b->connection;
    pthread_mutex_unlock(&b->mutex);
    return r;
}

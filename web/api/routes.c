/* SPDX-License-Identifier: Apache-2.0 */
#include "web/api/api.h"

const struct route api_routes[] = {
    {.path = "/api/daemon", .handle = api_daemon},
    {.path = "/api/segments", .handle = api_segments},
    {.path = "/api/events", .handle = api_events},
    {.path = "/api/segment", .handle = api_segment},
    {.path = "/api/waits", .handle = api_waits},
    {.path = "/api/stream", .handle = api_stream},
    {.path = "/api/npy", .handle = api_npy},
    {.path = "/api/line", .handle = api_line},
    {.path = "/api/image", .handle = api_image},
    {.path = "/api/grid", .handle = api_grid},
    {.path = "/api/histogram", .handle = api_histogram},
    {.path = "/api/set", .is_post = true, .is_change = true, .handle = api_set},
    {.path = NULL},
};

unsigned api_status(int error)
{
    switch (-error) {
    case SHMVIEW_ERR_NOT_FOUND:
    case SHMVIEW_ERR_NO_LAYOUT:
        return 404;
    case SHMVIEW_ERR_DENIED:
    case SHMVIEW_ERR_READ_ONLY:
        return 403;
    case SHMVIEW_ERR_STALE:
    case SHMVIEW_ERR_BUSY:
    case SHMVIEW_ERR_TIMED_OUT:
    case SHMVIEW_ERR_LOST:
        return 409;
    case SHMVIEW_ERR_QUOTA:
    case SHMVIEW_ERR_LIMIT:
        return 429;
    case SHMVIEW_ERR_NO_DAEMON:
    case SHMVIEW_ERR_DISCONNECTED:
    case SHMVIEW_ERR_NO_MEMORY:
        return 503;
    case SHMVIEW_ERR_SYSTEM:
    case SHMVIEW_ERR_PROTOCOL:
    case SHMVIEW_ERR_LAYOUT_VERSION:
        return 500;
    default:
        return 400;
    }
}

void api_fail(struct reply *reply, int error)
{
    /* of the library, or of this server, and then the text is that of an earlier failure */
    const char *text = error == -SHMVIEW_ERR_NO_MEMORY ? "" : shmview_error_text();
    reply_error(reply, api_status(error), "%s", text[0] ? text : shmview_strerror(error));
}

struct shmview_connection *api_connect(const struct request *q, struct reply *reply)
{
    struct shmview_connection *connection;
    int r = backend_connection(api_backend(q), &connection);
    if (r == 0)
        return connection;
    api_fail(reply, r);
    return NULL;
}

bool api_may_work(const struct request *q, struct reply *reply)
{
    if (bucket_take(&api_backend(q)->work, 0))
        return true;
    reply->retry_after_s = 1;
    reply_error(reply, 429,
                "reading memory has taken the share of a processor that --work gives: "
                "update more slowly, or look at less");
    return false;
}

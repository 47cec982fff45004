/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the paths below /api/, and what they share. */
#ifndef WEB_API_H
#define WEB_API_H

#include "web/http/server.h"
#include "web/memory/backend.h"

/* All paths; ends with path NULL. Their context is a struct backend. */
extern const struct route api_routes[];

void api_daemon(const struct request *q, struct reply *reply);
void api_segments(const struct request *q, struct reply *reply);
void api_events(const struct request *q, struct reply *reply);
void api_segment(const struct request *q, struct reply *reply);
void api_waits(const struct request *q, struct reply *reply);
void api_stream(const struct request *q, struct reply *reply);
void api_npy(const struct request *q, struct reply *reply);
void api_line(const struct request *q, struct reply *reply);
void api_image(const struct request *q, struct reply *reply);
void api_grid(const struct request *q, struct reply *reply);
void api_histogram(const struct request *q, struct reply *reply);
void api_set(const struct request *q, struct reply *reply);

static inline struct backend *api_backend(const struct request *q)
{
    return q->context;
}

/* Returns the status of HTTP for an error of the library. */
unsigned api_status(int error);

/* Makes the reply the error that a call of the library has returned to this thread. */
void api_fail(struct reply *reply, int error);

/* Returns the connection, or NULL after making the reply an error. */
struct shmview_connection *api_connect(const struct request *q, struct reply *reply);

/* Whether reading memory may go on; otherwise the reply is an error. */
bool api_may_work(const struct request *q, struct reply *reply);

#endif

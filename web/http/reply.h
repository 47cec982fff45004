/* SPDX-License-Identifier: Apache-2.0 */
/* What a handler answers: a body in memory, a file of the page, or a stream of events. */
#ifndef WEB_REPLY_H
#define WEB_REPLY_H

#include "web/base/text.h"
#include "web/http/files.h"

#define TYPE_JSON   "application/json"
#define TYPE_HTML   "text/html; charset=utf-8"
#define TYPE_BINARY "application/octet-stream"
#define TYPE_EVENTS "text/event-stream"

/* A body that comes in pieces. */
struct reply_stream {
    /* Writes up to `room` bytes, and blocks until there are some. Returns their number, or -1 at
     * the end. */
    ptrdiff_t (*read)(void *arg, char *buffer, size_t room);
    void (*free)(void *arg);
    void *arg; /* owned; NULL: there is no stream */
};

/* An answer. A struct of zeroes is an empty one. */
struct reply {
    unsigned status;  /* 0: 200 */
    const char *type; /* static */
    struct text body; /* owned */
    const struct file *file;
    struct reply_stream stream;
    char cookie[160];       /* of Set-Cookie; "": none */
    char save_as[200];      /* the name of a file to save; "": none */
    const char *allow;      /* the methods of this path; static, NULL: none given */
    unsigned retry_after_s; /* 0: no header */
};

void reply_free(struct reply *r);
#define CLEANUP_REPLY CLEANUP(reply_free)

/* Makes the reply an error: {"error": text} for programs and for our page. What the reply had is
 * dropped. */
__attribute__((format(printf, 3, 4))) void reply_error(struct reply *r, unsigned status,
                                                       const char *format, ...);
/* Makes the reply a page for people: why they do not see what they wanted. */
void reply_page(struct reply *r, unsigned status, const char *title, const char *text);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Small things that every module of the page's server uses, and its limits. */
#ifndef WEB_BASE_H
#define WEB_BASE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))
#define CLEANUP(f)   __attribute__((cleanup(f)))
#define CLEANUP_FREE CLEANUP(free_pp)

static inline void free_pp(void *pp)
{
    free(*(void **)pp);
}

static inline int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* Limits of one server. Each connection has a thread, so their number bounds the threads too. A
 * browser opens at most 6 connections to one server. */
#define LIMIT_CONNECTIONS    64
#define LIMIT_MEMORY_BYTES   32768 /* of a connection: the request line and its headers */
#define LIMIT_BODY_BYTES     65536 /* of a POST */
#define LIMIT_IDLE_S         60    /* a connection without a request is closed */
#define LIMIT_STACK_BYTES    (512 * 1024)
#define LIMIT_REQUESTS_PER_S 500
#define LIMIT_REQUESTS_BURST 1000
#define LIMIT_EVENT_STREAMS  16
#define LIMIT_SESSIONS       16    /* browsers that are let in at once; the oldest is put out */
#define LIMIT_PAGE_SEGMENTS  10000 /* of one answer */
#define LIMIT_NAMES          64    /* segments that a request can name */
#define LIMIT_ANSWERS_BYTES  ((size_t)512 << 20) /* of all answers together, until they are sent */
#define LIMIT_ANSWER_FREE    ((size_t)1 << 20)   /* an answer up to this size does not count */

#endif

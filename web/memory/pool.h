/* SPDX-License-Identifier: Apache-2.0 */
/* The segments that pages look at now, attached once and kept between two updates.
 *
 * To attach for each update would cost a request, and a page fault for each part of the memory. A
 * segment that nobody has looked at for POOL_IDLE_NS is detached, so that the server keeps nobody's
 * memory alive for long; so is one whose name belongs to another segment now. Any thread may
 * call. */
#ifndef WEB_POOL_H
#define WEB_POOL_H

#include <shmview/shmview.h>

#include "web/base/base.h"
#include "web/memory/newest.h"

#define POOL_IDLE_NS  INT64_C(3000000000)
#define POOL_CHECK_NS INT64_C(500000000) /* between two looks whether the name is another's now */
#define POOL_MOST     32                 /* segments at once */
#define POOL_FULL     1                  /* result: there are POOL_MOST */

struct pool;

/* A segment of the pool; its members are read only, but for those of newest_take(). */
struct held {
    char name[129];
    int64_t id;
    int access; /* enum shmview_access: WRITE if it was taken for a change, else READ, or PEEK */
    struct shmview_segment *segment;
    struct newest newest; /* if it is a stream */
    /* --- of the pool --- */
    unsigned users;
    bool is_gone; /* detach it when nobody uses it */
    int64_t used_ns, checked_ns;
    struct held *next;
};

/* Starts the thread that detaches what is idle. Returns NULL if that fails. */
struct pool *pool_new(void);
/* Detaches everything. No segment may be in use. pool may be NULL. */
void pool_free(struct pool *pool);

/* Takes the segment called name. access is SHMVIEW_READ or SHMVIEW_WRITE; instead of READ it is
 * PEEK where the lock has no slot left. The caller owes pool_give(). Returns 0, POOL_FULL, or an
 * error of shmview_attach(). */
int pool_take(struct pool *pool, struct shmview_connection *connection, const char *name,
              int access, struct held **ret);
/* Gives it back. held may be NULL. */
void pool_give(struct pool *pool, struct held *held);
/* Like pool_give(), but detaches it as soon as nobody uses it: its handle is lost, or its memory
 * is gone. */
void pool_drop(struct pool *pool, struct held *held);

#endif

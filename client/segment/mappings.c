/* SPDX-License-Identifier: Apache-2.0 */
#include "client/segment/mappings.h"

#include <shmview/many.h>

#include "client/base/process.h"
#include "client/link/call.h"
#include "common/base/util.h"

/* A process may have a hundred thousand attachments. */
#define BUCKETS 1024

static LIST_HEAD(bucket, mapping) table[BUCKETS];
/* Those that no handle uses, the longest idle first. */
static TAILQ_HEAD(, mapping) idle = TAILQ_HEAD_INITIALIZER(idle);
static unsigned n_idle;
static uint64_t idle_bytes;

static struct bucket *bucket_of(dev_t device, ino_t inode)
{
    return &table[(inode ^ device) % BUCKETS];
}

static void take_off_idle(struct mapping *m)
{
    TAILQ_REMOVE(&idle, m, idle);
    n_idle--;
    idle_bytes -= m->size;
}

void mappings_add(struct mapping *m)
{
    DETAILS;
    NOT_FORKED;
    connection_at_disconnect(mappings_drop_idle);
    m->n_handles = 1;
    LIST_INSERT_HEAD(bucket_of(m->device, m->inode), m, same);
}

/* Whether the mapping that has been idle for the longest time must go. */
static bool is_excess(int64_t now)
{
    return n_idle > MAPPINGS_IDLE || idle_bytes > MAPPINGS_IDLE_BYTES ||
           (n_idle > 0 && now - TAILQ_FIRST(&idle)->idle_since > MAPPINGS_IDLE_NS);
}

/* Adds a mapping that is in no list any longer to those that must be freed. */
static void push(struct mapping **excess, struct mapping *m)
{
    m->next = *excess;
    *excess = m;
}

/* Moves the mappings that must go to *ret. The caller has process->details, and is within
 * NOT_FORKED. */
static void move_excess(int64_t now, struct mapping **ret)
{
    while (is_excess(now)) {
        struct mapping *m = TAILQ_FIRST(&idle);
        take_off_idle(m);
        LIST_REMOVE(m, same);
        push(ret, m);
    }
}

/* Frees what move_excess() has moved. Unmapping takes long, so the caller has unlocked. */
static void free_all(struct mapping *excess)
{
    while (excess) {
        struct mapping *m = excess;
        excess = m->next;
        mapping_free(m);
    }
}

/* Whether the mapping has this control object, or none if control is NULL. */
static bool has_control(const struct mapping *m, const struct stat *control)
{
    return control ? m->control_inode == control->st_ino && m->control_device == control->st_dev
                   : !m->control;
}

struct mapping *mappings_take(const struct stat *data, const struct stat *control, int access)
{
    struct mapping *m, *excess = NULL;
    int64_t now = now_ns();
    {
        DETAILS;
        NOT_FORKED;
        LIST_FOREACH (m, bucket_of(data->st_dev, data->st_ino), same)
            if (m->inode == data->st_ino && m->device == data->st_dev && m->access == access &&
                has_control(m, control))
                break;
        if (m && m->n_handles++ == 0)
            take_off_idle(m);
        move_excess(now, &excess);
    }
    free_all(excess);
    return m;
}

void mappings_release(struct mapping *m, bool stays, bool keeps_lock)
{
    struct mapping *excess = NULL;
    int64_t now = now_ns();
    {
        DETAILS;
        NOT_FORKED;
        m->keeps_lock |= keeps_lock;
        if (--m->n_handles)
            return;
        mapping_let_go(m);
        if (stays && !m->keeps_lock && m->size <= MAPPINGS_IDLE_BYTES) {
            m->idle_since = now;
            TAILQ_INSERT_TAIL(&idle, m, idle);
            n_idle++;
            idle_bytes += m->size;
        } else {
            LIST_REMOVE(m, same);
            push(&excess, m);
        }
        move_excess(now, &excess);
    }
    free_all(excess);
}

bool mappings_set_access(struct mapping *m, int access)
{
    DETAILS;
    NOT_FORKED;
    if (access == MAPPING_ALONE && m->n_handles > 1)
        return false;
    m->access = access;
    return true;
}

void mappings_note_frozen(const struct mapping *mapping)
{
    struct mapping *m;
    DETAILS;
    NOT_FORKED;
    LIST_FOREACH (m, bucket_of(mapping->device, mapping->inode), same)
        if (m->inode == mapping->inode && m->device == mapping->device)
            atomic_store(&m->is_frozen, true);
}

void shmview_trim(void)
{
    NOT_CANCELLED;
    if (process_init() == 0)
        mappings_drop_idle();
}

void mappings_drop_idle(void)
{
    struct mapping *excess = NULL;
    {
        DETAILS;
        NOT_FORKED;
        move_excess(INT64_MAX, &excess);
    }
    free_all(excess);
}

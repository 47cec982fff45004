/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/survivor.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"
#include "daemon/events.h"
#include "daemon/log.h"
#include "daemon/methods.h"

static void on_closed(uv_handle_t *handle)
{
    struct survivor *s = CONTAINER_OF((uv_poll_t *)handle, struct survivor, poll);
    close(s->pidfd);
    free(s);
}

static void survivor_free(struct survivor *s)
{
    LIST_REMOVE(s, link);
    uv_close((uv_handle_t *)&s->poll, on_closed);
}

static void on_death(uv_poll_t *poll, int status, int events)
{
    struct survivor *s = CONTAINER_OF(poll, struct survivor, poll);
    struct registry *registry = &s->state->registry;
    struct attachment *a;
    struct segment *segment;
    (void)status;
    (void)events;
    events_by((pid_t)s->pid, UINT32_MAX);
    while ((a = LIST_FIRST(&s->attachments)))
        attachment_died(registry, a);
    while ((segment = LIST_FIRST(&s->created))) {
        LIST_REMOVE(segment, created);
        segment->has_creator = false;
        registry_remove(registry, segment);
    }
    events_by(0, UINT32_MAX);
    survivor_free(s);
}

static struct survivor *survivor_new(struct state *state, const struct store_holder *holder)
{
    CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, (pid_t)holder->pid, 0);
    if (pidfd < 0) {
        if (errno == EINVAL) /* no number of a process */
            errno = ESRCH;
        return NULL;
    }
    uint64_t birth = peer_birth(pidfd, (pid_t)holder->pid);
    if (birth != holder->birth) {
        if (birth)
            errno = ESRCH;
        return NULL;
    }
    struct survivor *s = calloc(1, sizeof *s);
    if (!s)
        return NULL;
    s->state = state;
    s->pid = holder->pid;
    s->birth = holder->birth;
    int r = uv_poll_init(state->loop, &s->poll, pidfd);
    if (r) {
        free(s);
        errno = -r;
        return NULL;
    }
    s->pidfd = steal_fd(&pidfd);
    uv_poll_start(&s->poll, UV_READABLE, on_death); /* fails only for handles that are closed */
    LIST_INSERT_HEAD(&state->survivors, s, link);
    return s;
}

static struct survivor *find(const struct state *state, const struct store_holder *holder)
{
    struct survivor *s;
    LIST_FOREACH(s, &state->survivors, link)
    if (s->pid == holder->pid && s->birth == holder->birth)
        return s;
    return NULL;
}

struct survivor *survivor_find(struct state *state, const struct store_holder *holder)
{
    struct survivor *s = find(state, holder);
    return s ? s : survivor_new(state, holder);
}

/* Those that hold nothing any more: what was entrusted to them was removed. */
static void forget_idle(struct state *state)
{
    struct survivor *s, *next;
    for (s = LIST_FIRST(&state->survivors); s; s = next) {
        next = LIST_NEXT(s, link);
        if (LIST_EMPTY(&s->attachments) && LIST_EMPTY(&s->created))
            survivor_free(s);
    }
}

static bool belongs_to(pid_t pid, uid_t uid)
{
    char path[32];
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d", pid);
    return stat(path, &st) == 0 && st.st_uid == uid;
}

int survivor_entrust(struct state *state, struct segment *segment, pid_t pid, uid_t uid)
{
    struct store_holder holder = {.pid = (uint32_t)pid}, old = segment->holder;
    forget_idle(state);
    CLEANUP_FD int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
    if (pidfd < 0)
        return errno == ESRCH || errno == EINVAL ? 1 : -errno;
    holder.birth = peer_birth(pidfd, pid);
    if (!holder.birth)
        return errno == ESRCH ? 1 : -errno;
    if (!belongs_to(pid, uid))
        return 1;
    struct survivor *s = survivor_find(state, &holder);
    if (!s)
        return errno == ESRCH ? 1 : -errno;
    segment->holder = holder;
    int r = segment_keep(segment);
    if (r) {
        segment->holder = old;
        return r;
    }
    LIST_REMOVE(segment, created);
    LIST_INSERT_HEAD(&s->created, segment, created);
    return 0;
}

static bool is_among(uint64_t id, const struct wire_held *held, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if ((uint64_t)held[i].attachment == id)
            return true;
    return false;
}

void survivor_claim(struct state *state, struct connection *connection,
                    const struct wire_held *held, size_t n)
{
    const struct store_holder *holder = &connection->holder;
    struct survivor *s = find(state, holder);
    struct attachment *a, *next;
    struct segment *segment, *after;
    if (!s)
        return;
    for (a = LIST_FIRST(&s->attachments); a; a = next) {
        next = LIST_NEXT(a, link);
        if (a->holder.client != holder->client)
            continue;
        if (is_among(a->id, held, n)) {
            LIST_REMOVE(a, link);
            LIST_INSERT_HEAD(&connection->attachments, a, link);
        } else {
            attachment_give_back(&state->registry, a); /* the client has never heard of it */
        }
    }
    for (segment = LIST_FIRST(&s->created); segment; segment = after) {
        after = LIST_NEXT(segment, created);
        if (segment->holder.client != holder->client)
            continue;
        LIST_REMOVE(segment, created);
        LIST_INSERT_HEAD(&connection->created, segment, created);
    }
    if (LIST_EMPTY(&s->attachments) && LIST_EMPTY(&s->created))
        survivor_free(s);
}

void survivors_leave(struct state *state)
{
    struct survivor *s;
    while ((s = LIST_FIRST(&state->survivors))) {
        struct attachment *a;
        struct segment *segment;
        while ((a = LIST_FIRST(&s->attachments)))
            attachment_forget(a);
        while ((segment = LIST_FIRST(&s->created))) {
            LIST_REMOVE(segment, created);
            segment->has_creator = false;
        }
        survivor_free(s);
    }
}

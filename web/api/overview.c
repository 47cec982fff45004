/* SPDX-License-Identifier: Apache-2.0 */
/* GET /api/daemon: figures of the daemon, and the caller's quotas.
 * GET /api/segments: a part of the list of segments, or those with given names. With brief=1
 * without the columns for which the daemon must look at the memory of each segment. */
#include <inttypes.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "web/api/api.h"

#define MOST_USERS 64 /* whose names are looked up for one answer */

/* --- The daemon ---------------------------------------------------------- */

static void put_quotas(struct text *t, const struct shmview_stats *s)
{
    text_put(t, "\"quotas\":[");
    for (size_t i = 0; i < s->n_quotas; i++) {
        text_print(t, "%s{\"what\":", i ? "," : "");
        text_json(t, s->quotas[i]->what);
        text_put(t, ",\"used\":");
        text_json_known(t, s->quotas[i]->used);
        text_put(t, ",\"limit\":");
        text_json_known(t, s->quotas[i]->limit);
        text_put(t, "}");
    }
    text_put(t, "],\"refusals\":[");
    for (size_t i = 0; i < s->n_refusals; i++) {
        text_print(t, "%s{\"error\":", i ? "," : "");
        text_json(t, s->refusals[i]->error);
        text_print(t, ",\"count\":%" PRId64 "}", s->refusals[i]->count);
    }
    text_put(t, "]");
}

void api_daemon(const struct request *q, struct reply *reply)
{
    const struct shmview_stats *s;
    struct shmview_connection *connection = api_connect(q, reply);
    if (!connection)
        return;
    int r = shmview_stats_get(connection, NULL, &s);
    if (r) {
        api_fail(reply, r);
        return;
    }
    const struct {
        const char *name;
        int64_t value;
    } figures[] = {
        {"started_us", s->started_us},
        {"uptime_us", s->uptime_us},
        {"starts", s->starts},
        {"pid", s->pid},
        {"connections", s->connections},
        {"segments", s->n_all_segments},
        {"attachments", s->attachments},
        {"allocated_bytes", s->allocated_bytes},
        {"removed_bytes", s->removed_bytes},
        {"memory_free", s->memory_free},
        {"memory_limit", s->memory_limit},
        {"total_created", s->total_created},
        {"total_attached", s->total_attached},
        {"total_died", s->total_died},
        {"total_owner_died", s->total_owner_died},
        {"total_requests", s->total_requests},
        {"total_repaired", s->total_repaired},
    };
    struct text *t = &reply->body;
    text_put(t, "{\"version\":");
    text_json(t, s->version);
    text_put(t, ",\"socket\":");
    text_json(t, shmview_socket_path(connection));
    text_print(t, ",\"server_pid\":%d,\"allow_changes\":%s", (int)getpid(),
               api_backend(q)->allow_changes ? "true" : "false");
    for (size_t i = 0; i < ARRAY_LEN(figures); i++) {
        text_print(t, ",\"%s\":", figures[i].name);
        text_json_known(t, figures[i].value);
    }
    text_put(t, ",");
    put_quotas(t, s);
    text_put(t, "}\n");
    shmview_stats_free(s);
}

/* --- Segments ------------------------------------------------------------ */

/* The users that own the segments of one answer: a name is looked up once. */
struct users {
    int64_t uids[MOST_USERS];
    size_t n;
};

static void note_user(struct users *u, int64_t uid)
{
    for (size_t i = 0; i < u->n; i++)
        if (u->uids[i] == uid)
            return;
    if (uid >= 0 && u->n < MOST_USERS)
        u->uids[u->n++] = uid;
}

static void put_users(struct text *t, const struct users *u)
{
    text_put(t, "\"users\":{");
    for (size_t i = 0; i < u->n; i++) {
        char buffer[4096];
        struct passwd entry, *found = NULL;
        text_print(t, "%s\"%" PRId64 "\":", i ? "," : "", u->uids[i]);
        getpwuid_r((uid_t)u->uids[i], &entry, buffer, sizeof buffer, &found);
        text_json(t, found ? found->pw_name : NULL);
    }
    text_put(t, "}");
}

/* Writes the value of one column in a row. */
typedef void put_value(struct text *t, const struct shmview_segment_stats *s, bool is_brief);

#define PUT_NUMBER(member)                                                                         \
    static void put_##member(struct text *t, const struct shmview_segment_stats *s, bool is_brief) \
    {                                                                                              \
        (void)is_brief;                                                                            \
        text_json_known(t, (int64_t)s->member);                                                    \
    }
#define PUT_STRING(member)                                                                         \
    static void put_##member(struct text *t, const struct shmview_segment_stats *s, bool is_brief) \
    {                                                                                              \
        (void)is_brief;                                                                            \
        text_json(t, s->member);                                                                   \
    }
PUT_NUMBER(id)
PUT_STRING(name)
PUT_STRING(label)
PUT_NUMBER(size)
PUT_NUMBER(attachments)
PUT_NUMBER(owner)
PUT_NUMBER(lifetime)
PUT_NUMBER(backing)
PUT_NUMBER(has_lock)
PUT_NUMBER(owner_deaths)
PUT_NUMBER(generation)
PUT_NUMBER(changes)
PUT_NUMBER(resident)
PUT_NUMBER(created_us)

/* Writes who holds the lock exclusively, as "command (pid)", or null. */
static void put_holder(struct text *t, const struct shmview_segment_stats *s, bool is_brief)
{
    char text[64];
    const struct shmview_party_stats *holder = NULL;
    (void)is_brief;
    for (size_t i = 0; i < s->n_parties; i++)
        if (s->parties[i]->holds == SHMVIEW_EXCLUSIVE)
            holder = s->parties[i];
    if (holder)
        snprintf(text, sizeof text, "%s (%" PRId64 ")", holder->command, holder->pid);
    text_json(t, holder ? text : NULL);
}

/* Writes how many wait for the lock. */
static void put_waiters(struct text *t, const struct shmview_segment_stats *s, bool is_brief)
{
    int64_t n = 0;
    (void)is_brief;
    for (size_t i = 0; i < s->n_parties; i++)
        n += s->parties[i]->waits != 0;
    text_int(t, n);
}

/* Writes the phase. In brief figures the daemon leaves it out for segments without an attachment;
 * those without layouts have none. */
static void put_layout(struct text *t, const struct shmview_segment_stats *s, bool is_brief)
{
    text_json(t, is_brief && s->layouts && !s->attachments ? NULL : s->layout);
}

/* The columns of a brief answer come first. */
static const struct column {
    const char *name;
    put_value *put;
} columns[] = {
    {"id", put_id},
    {"name", put_name},
    {"label", put_label},
    {"size", put_size},
    {"attachments", put_attachments},
    {"owner", put_owner},
    {"lifetime", put_lifetime},
    {"backing", put_backing},
    {"has_lock", put_has_lock},
    {"deaths", put_owner_deaths},
    {"holder", put_holder},
    {"waiters", put_waiters},
    {"layout", put_layout},
    /* those for which the daemon must look */
    {"generation", put_generation},
    {"changes", put_changes},
    {"resident", put_resident},
    {"created_us", put_created_us},
};
#define N_BRIEF 13

/* Writes a column: a list of its values, or the value that all rows have. In a long list most
 * columns have one value, and a browser then reads a third of the bytes. */
static void put_column(struct text *t, put_value *put, const struct shmview_stats *s, bool is_brief)
{
    size_t begin = t->n, first = 0;
    bool is_same = true;
    text_put(t, "[");
    for (size_t i = 0; i < s->n_segments && !t->failed; i++) {
        if (i)
            text_put(t, ",");
        size_t at = t->n;
        put(t, s->segments[i], is_brief);
        if (t->failed)
            return;
        if (i == 0)
            first = t->n - at;
        is_same = is_same && t->n - at == first &&
                  memcmp(t->bytes + at, t->bytes + begin + 1, first) == 0;
    }
    text_put(t, "]");
    if (is_same && s->n_segments && !t->failed) {
        memmove(t->bytes + begin, t->bytes + begin + 1, first);
        t->n = begin + first;
    }
}

/* Reads what is asked for. Returns false after making the reply an error. */
static bool read_options(const struct request *q, struct reply *reply,
                         struct shmview_stats_options *o, const char **names)
{
    int64_t after = 0, limit = 1000, brief = 0;
    if (!request_number(q, reply, "after", 0, INT64_MAX, &after) ||
        !request_number(q, reply, "limit", 1, LIMIT_PAGE_SEGMENTS, &limit) ||
        !request_number(q, reply, "brief", 0, 1, &brief))
        return false;
    size_t n = request_texts(q, "name", names, LIMIT_NAMES);
    *o = (struct shmview_stats_options){.struct_bytes = sizeof *o,
                                        .limit = (uint32_t)limit,
                                        .names = names,
                                        .n_names = n,
                                        .after = (uint64_t)after,
                                        .brief = (uint32_t)brief};
    return true;
}

void api_segments(const struct request *q, struct reply *reply)
{
    const char *names[LIMIT_NAMES];
    struct shmview_stats_options o;
    const struct shmview_stats *s;
    struct users users = {.n = 0};
    struct shmview_connection *connection = api_connect(q, reply);
    if (!connection || !read_options(q, reply, &o, names))
        return;
    int r = shmview_stats_get(connection, &o, &s);
    if (r) {
        api_fail(reply, r);
        return;
    }
    struct text *t = &reply->body;
    text_print(t, "{\"n\":%zu,\"next\":%" PRIu64 ",\"columns\":{", s->n_segments, s->next);
    for (size_t i = 0; i < (o.brief ? N_BRIEF : ARRAY_LEN(columns)); i++) {
        text_print(t, "%s\n\"%s\":", i ? "," : "", columns[i].name);
        put_column(t, columns[i].put, s, o.brief);
    }
    for (size_t i = 0; i < s->n_segments; i++)
        note_user(&users, s->segments[i]->owner);
    text_put(t, "},\"all\":");
    text_json_known(t, s->n_all_segments);
    text_put(t, ",");
    put_users(t, &users);
    text_put(t, "}\n");
    shmview_stats_free(s);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/text/event.h"

#include <ctype.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "cli/text/stream.h"

#define KIND_LAST SHMVIEW_EVENT_LOST /* of enum shmview_event_kind */

/* --- For people ---------------------------------------------------------- */

/* Writes "process 4711 (python3) of alice". Leaves out the unknown parts: the daemon has no pid of
 * a process in another pid namespace. */
static void name_actor(const struct shmview_event *e, char *buffer, size_t bytes)
{
    const char *user = e->uid < 0 ? "" : user_name(e->uid);
    if (e->pid)
        snprintf(buffer, bytes, "process %" PRIu32 "%s%s%s%s%s", e->pid, e->command[0] ? " (" : "",
                 e->command, e->command[0] ? ")" : "", user[0] ? " of " : "", user);
    else
        snprintf(buffer, bytes, "%s", user[0] ? user : "nobody known");
}

/* Whether the segment of the event is a stream, of a mode that this program knows. */
static bool is_of_stream(const struct shmview_event *e)
{
    return e->stream == SHMVIEW_LOSSLESS || e->stream == SHMVIEW_LATEST;
}

static const char *mode_of(const struct shmview_event *e)
{
    return stream_mode_names[e->stream == SHMVIEW_LATEST ? STREAM_MODE_LATEST
                                                         : STREAM_MODE_LOSSLESS];
}

static const char *role_of(const struct shmview_event *e)
{
    static const char *const names[] = {NULL, "writer", "reader", "both"};
    return names[e->stream_role % ARRAY_LEN(names)];
}

/* Writes ", a latest stream with 8 slots", or what the client that died did with the stream; "" for
 * another segment. */
static void describe_stream(const struct shmview_event *e, char *buffer, size_t bytes)
{
    static const char *const roles[] = {"", "; it wrote the stream", "; it read the stream",
                                        "; it wrote and read the stream"};
    char held[64] = "";
    buffer[0] = '\0';
    if (!is_of_stream(e))
        return;
    if (e->stream_role & SHMVIEW_STREAM_READER)
        snprintf(held, sizeof held, ", and held %" PRIu32 " frame%s", e->held_frames,
                 e->held_frames == 1 ? "" : "s");
    snprintf(buffer, bytes, ", a %s stream with %" PRIu32 " slots%s%s", mode_of(e), e->stream_slots,
             roles[e->stream_role % ARRAY_LEN(roles)], held);
}

/* Writes the actor, the access, the slot, and what the client held when it ended. */
static void describe_attachment(const struct shmview_event *e, const char *actor, char *buffer,
                                size_t bytes)
{
    const char *access = access_name(e->access), *held = hold_name(e->held);
    char slot[32] = "", stream[128];
    if (e->slot >= 0)
        snprintf(slot, sizeof slot, ", slot %" PRId64, e->slot);
    describe_stream(e, stream, sizeof stream);
    snprintf(buffer, bytes, "%s%s%s%s%s%s%s", actor, access ? ", " : "", access ? access : "", slot,
             stream, held ? "; it held the lock, " : "", held ? held : "");
}

void event_sentence(const struct shmview_event *e, char *buffer, size_t bytes)
{
    char actor[160], size[HUMAN_BYTES], stream[128];
    name_actor(e, actor, sizeof actor);
    buffer[0] = '\0';
    switch (e->kind) {
    case SHMVIEW_EVENT_CREATED:
        describe_stream(e, stream, sizeof stream);
        snprintf(buffer, bytes, "%s%s, by %s", human_bytes(size, (int64_t)e->size), stream, actor);
        break;
    case SHMVIEW_EVENT_ATTACHED:
    case SHMVIEW_EVENT_DETACHED:
    case SHMVIEW_EVENT_DIED:
    case SHMVIEW_EVENT_OWNER_DIED:
        describe_attachment(e, actor, buffer, bytes);
        break;
    case SHMVIEW_EVENT_REMOVED:
        snprintf(buffer, bytes, "by %s; %" PRIu64 " attachments keep its memory", actor,
                 e->attachments);
        break;
    case SHMVIEW_EVENT_ACCESS:
        snprintf(buffer, bytes, "by %s", actor);
        break;
    case SHMVIEW_EVENT_PHASE:
        snprintf(buffer, bytes, "layout '%s', generation %" PRIu32 ", %" PRIu32 " switched",
                 e->layout, e->generation, e->switches);
        break;
    case SHMVIEW_EVENT_QUOTA:
        snprintf(buffer, bytes, "%s: %s", actor, e->reason);
        break;
    case SHMVIEW_EVENT_RECOVERED:
        snprintf(buffer, bytes,
                 "%" PRIu64 " segments, %" PRIu64 " attachments; %" PRIu64
                 " deaths were noticed, %" PRIu64 " segments lost",
                 e->segments, e->attachments, e->deaths, e->lost);
        break;
    case SHMVIEW_EVENT_LOST:
        snprintf(buffer, bytes, "%" PRIu64 " events: they came faster than they were read",
                 e->lost);
        break;
    default:
        break;
    }
}

const char *event_time(char *buffer, int64_t us, bool is_utc)
{
    time_t seconds = (time_t)(us / 1000000);
    char text[32];
    struct tm tm;
    bool is_valid = is_utc ? gmtime_r(&seconds, &tm) : localtime_r(&seconds, &tm);
    if (!is_valid || !strftime(text, sizeof text, is_utc ? "%Y-%m-%dT%T" : "%Y-%m-%d %T", &tm))
        snprintf(text, sizeof text, "%" PRId64, us / 1000000);
    snprintf(buffer, EVENT_TIME_BYTES, "%s.%06" PRId64 "%s", text, us % 1000000, is_utc ? "Z" : "");
    return buffer;
}

/* --- For programs -------------------------------------------------------- */

static json_t *text_or_null(const char *text)
{
    return text && text[0] ? json_string(text) : json_null();
}

static json_t *number_or_null(int64_t number, bool is_known)
{
    return is_known ? json_integer(number) : json_null();
}

/* Adds the members that depend on the kind. Returns 0, or not 0 if memory is short. */
static int add_facts(json_t *o, const struct shmview_event *e)
{
    switch (e->kind) {
    case SHMVIEW_EVENT_CREATED:
        return json_object_set_new(o, "size", json_integer((json_int_t)e->size));
    case SHMVIEW_EVENT_DIED:
    case SHMVIEW_EVENT_OWNER_DIED:
        return json_object_set_new(o, "held", text_or_null(hold_name(e->held)));
    case SHMVIEW_EVENT_REMOVED:
        return json_object_set_new(o, "attachments", json_integer((json_int_t)e->attachments));
    case SHMVIEW_EVENT_PHASE:
        return json_object_set_new(o, "layout", json_string(e->layout)) |
               json_object_set_new(o, "generation", json_integer(e->generation)) |
               json_object_set_new(o, "switches", json_integer(e->switches));
    case SHMVIEW_EVENT_QUOTA:
        return json_object_set_new(o, "error", json_string(shmview_strerror(e->error))) |
               json_object_set_new(o, "reason", json_string(e->reason));
    case SHMVIEW_EVENT_RECOVERED:
        return json_object_set_new(o, "segments", json_integer((json_int_t)e->segments)) |
               json_object_set_new(o, "attachments", json_integer((json_int_t)e->attachments)) |
               json_object_set_new(o, "deaths", json_integer((json_int_t)e->deaths)) |
               json_object_set_new(o, "lost", json_integer((json_int_t)e->lost));
    case SHMVIEW_EVENT_LOST:
        return json_object_set_new(o, "lost", json_integer((json_int_t)e->lost));
    default:
        return 0;
    }
}

/* Returns the member "stream" of an event whose segment is one, or NULL if memory is short. */
static json_t *stream_json(const struct shmview_event *e)
{
    bool is_death = e->kind == SHMVIEW_EVENT_DIED || e->kind == SHMVIEW_EVENT_OWNER_DIED;
    json_auto_t *o = json_object();
    int r = json_object_set_new(o, "mode", json_string(mode_of(e))) |
            json_object_set_new(o, "n_slots", json_integer(e->stream_slots));
    if (is_death)
        r |= json_object_set_new(o, "role", text_or_null(role_of(e))) |
             json_object_set_new(o, "held_frames", json_integer(e->held_frames));
    return r ? NULL : json_incref(o);
}

json_t *event_json(const struct shmview_event *e)
{
    char time[EVENT_TIME_BYTES];
    const char *kind = shmview_event_kind_name((int)e->kind);
    json_auto_t *o = json_object();
    int r = json_object_set_new(o, "serial", json_integer((json_int_t)e->serial)) |
            json_object_set_new(o, "time", json_string(event_time(time, e->time_us, true))) |
            json_object_set_new(o, "kind", text_or_null(kind));
    if (e->id)
        r |= json_object_set_new(o, "segment", json_string(e->segment)) |
             json_object_set_new(o, "id", json_integer((json_int_t)e->id));
    if (e->uid >= 0 || e->pid)
        r |= json_object_set_new(o, "pid", number_or_null(e->pid, e->pid != 0)) |
             json_object_set_new(o, "uid", number_or_null(e->uid, e->uid >= 0)) |
             json_object_set_new(o, "command", text_or_null(e->command));
    if (e->attachment)
        r |= json_object_set_new(o, "attachment", json_integer((json_int_t)e->attachment)) |
             json_object_set_new(o, "access", text_or_null(access_name(e->access))) |
             json_object_set_new(o, "slot", number_or_null(e->slot, e->slot >= 0));
    if (is_of_stream(e))
        r |= json_object_set_new(o, "stream", stream_json(e));
    if (r | add_facts(o, e))
        return NULL;
    json_t *done = o; /* json_auto_t must not free it */
    o = NULL;
    return done;
}

/* --- From the command line ----------------------------------------------- */

int event_kinds(struct context *c, const char *text, uint32_t *ret)
{
    const char *names[KIND_LAST + 1] = {NULL};
    char word[32];
    uint32_t kinds = 0;
    for (int kind = 1; kind <= KIND_LAST; kind++)
        names[kind - 1] = shmview_event_kind_name(kind);
    for (const char *at = text;; at++) {
        size_t n = strcspn(at, ","), index;
        snprintf(word, sizeof word, "%.*s", (int)n, at);
        int status = parse_word(c, "--kind", word, names, &index);
        if (status)
            return status;
        kinds |= SHMVIEW_EVENT_BIT(index + 1);
        at += n;
        if (!*at)
            break;
    }
    *ret = kinds;
    return 0;
}

int event_since(struct context *c, const char *text, int64_t now_us, int64_t *ret)
{
    static const char *const formats[] = {"%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M:%S",
                                          "%Y-%m-%d %H:%M",    "%Y-%m-%d",
                                          "%H:%M:%S",          "%H:%M"};
    time_t now = (time_t)(now_us / 1000000);
    int64_t ns;
    if (text[0] == '@' && isdigit((unsigned char)text[1])) {
        int status = parse_number(c, "--since", text + 1, 0, INT64_MAX / 1000000, &ns);
        *ret = status ? 0 : ns * 1000000;
        return status;
    }
    for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
        struct tm tm;
        bool has_date = formats[i][1] == 'Y';
        localtime_r(&now, &tm);
        tm.tm_sec = tm.tm_min = tm.tm_hour = 0;
        const char *end = strptime(text, formats[i], &tm);
        if (!end || *end)
            continue;
        tm.tm_isdst = -1; /* mktime() finds out */
        time_t seconds = mktime(&tm);
        if (!has_date && seconds > now)
            seconds -= 86400; /* a time of day in the future is one of yesterday */
        *ret = (int64_t)seconds * 1000000;
        return 0;
    }
    /* a clock time or date, not a duration: the message must show the right form */
    if (strpbrk(text, ":-"))
        return fail_usage(c,
                          "--since '%s' is not a time: write it like 10min, 12:00 or "
                          "'2026-03-01 12:00:00'",
                          text);
    int status = parse_duration(c, "--since", text, &ns);
    *ret = now_us - ns / 1000;
    return status;
}

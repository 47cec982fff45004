/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/wire_events.h"

#include <string.h>

#include "common/base/limits.h"
#include "common/json/fields_text.h"

static const char *const kind_names[] = {
    "created",    "attached",       "detached", "died",          "owner_died",
    "removed",    "access_changed", "phase",    "quota_refused", "recovered",
    "subscribed", "lost",           NULL,
};
static const char *const hold_names[] = {"exclusive", "shared", NULL};
static const char *const stream_names[] = {"lossless", "latest", NULL}; /* SHMVIEW_LOSSLESS ... */
static const char *const role_names[] = {"writer", "reader", "both", NULL};

/* Rows of the tables below. `most` is the largest value, or the length of the text. */
#define AT(type, member) offsetof(struct type, member)
#define NUMBER(text, member, most)                                                                 \
    {                                                                                              \
        .name = text, .kind = FIELD_INT, .optional = true,                                         \
        .narrow = FIELD_IS_NARROW(shmview_event, member), .offset = AT(sent, event.member),        \
        .max = most                                                                                \
    }
#define TEXT(text, member, most)                                                                   \
    {                                                                                              \
        .name = text, .kind = FIELD_STRING, .optional = true, .offset = AT(sent, member),          \
        .max = most                                                                                \
    }
#define CHOICE(text, member, may_lack, names)                                                      \
    {                                                                                              \
        .name = text, .kind = FIELD_ENUM, .optional = may_lack, .narrow = true,                    \
        .offset = AT(sent, event.member), .enums = names                                           \
    }

/* An event as it is sent: the error is a name, because its number means something in C only. */
struct sent {
    struct shmview_event event;
    const char *error;
};

static const struct field monitor_fields[] = {
    {"names", FIELD_STRINGS, true, .offset = AT(wire_monitor, names),
     .count = AT(wire_monitor, n_names), .min = LIMIT_NAME_BYTES, .max = LIMIT_NAMES},
    {"kinds", FIELD_SET, true, .offset = AT(wire_monitor, kinds), .enums = kind_names},
    {"after", FIELD_INT, true, .offset = AT(wire_monitor, after), .max = INT64_MAX},
    FIELDS_END,
};

static const struct field event_fields[] = {
    {"serial", FIELD_INT, false, .offset = AT(sent, event.serial), .max = INT64_MAX},
    {"time", FIELD_INT, false, .offset = AT(sent, event.time_us), .max = INT64_MAX},
    CHOICE("kind", kind, false, kind_names),
    TEXT("segment", event.segment, LIMIT_NAME_BYTES),
    NUMBER("id", id, INT64_MAX),
    NUMBER("uid", uid, UINT32_MAX),
    NUMBER("pid", pid, INT32_MAX),
    TEXT("command", event.command, 64),
    NUMBER("attachment", attachment, INT64_MAX),
    CHOICE("access", access, true, wire_access_names),
    NUMBER("slot", slot, INT64_MAX),
    CHOICE("held", held, true, hold_names),
    CHOICE("stream", stream, true, stream_names),
    NUMBER("stream_slots", stream_slots, UINT32_MAX),
    CHOICE("stream_role", stream_role, true, role_names),
    NUMBER("held_frames", held_frames, UINT32_MAX),
    NUMBER("size", size, INT64_MAX),
    TEXT("layout", event.layout, LIMIT_VIEW_NAME_BYTES),
    NUMBER("generation", generation, UINT32_MAX),
    NUMBER("switches", switches, UINT32_MAX),
    TEXT("error", error, 128),
    TEXT("reason", event.reason, 512),
    NUMBER("segments", segments, INT64_MAX),
    NUMBER("attachments", attachments, INT64_MAX),
    NUMBER("deaths", deaths, INT64_MAX),
    NUMBER("lost", lost, INT64_MAX),
    FIELDS_END,
};

int wire_read_monitor(const json_t *parameters, struct wire_monitor *ret, struct wire_fault *fault)
{
    *ret = (struct wire_monitor){.after = WIRE_ABSENT};
    if (fields_read(parameters, monitor_fields, true, ret, fault) == 0)
        return 0;
    free(ret->names);
    ret->names = NULL;
    return -1;
}

char *wire_monitor_text(const struct wire_monitor *monitor)
{
    return fields_message("{\"method\":\"io.shmview.Monitor\",\"parameters\":", monitor_fields,
                          monitor, ",\"more\":true}", NULL);
}

const char *wire_event_kind_name(int64_t kind)
{
    return kind > 0 && kind <= SHMVIEW_EVENT_LOST ? kind_names[kind - 1] : NULL;
}

char *wire_event_text(const struct shmview_event *event, size_t *ret_bytes)
{
    const struct sent sent = {*event, event->error ? wire_error_name(event->error) : NULL};
    return fields_message("{\"parameters\":{\"event\":", event_fields, &sent,
                          "},\"continues\":true}", ret_bytes);
}

static bool is_known(const char *kind)
{
    for (size_t i = 0; kind_names[i]; i++)
        if (strcmp(kind_names[i], kind) == 0)
            return true;
    return false;
}

int wire_read_event(const json_t *parameters, const char *member, struct shmview_event *ret,
                    struct wire_fault *fault)
{
    const struct field fields[] = {{member, FIELD_OBJECT, false, .of = event_fields}, FIELDS_END};
    struct sent sent = {
        .event = {.segment = "", .uid = -1, .command = "", .slot = -1, .layout = "", .reason = ""}};
    /* before the table is used, because it refuses a kind that it does not know */
    const char *kind =
        json_string_value(json_object_get(json_object_get(parameters, member), "kind"));
    if (kind && !is_known(kind))
        return EVENT_UNKNOWN;
    if (fields_read(parameters, fields, false, &sent, fault))
        return -1;
    if (sent.error)
        sent.event.error = wire_error_number(sent.error, NULL);
    *ret = sent.event;
    return EVENT_READ;
}

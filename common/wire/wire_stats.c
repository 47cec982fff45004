/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/wire_stats.h"

#include <string.h>

#include "common/base/limits.h"
#include "common/json/fields_scan.h"
#include "common/json/fields_text.h"

#define REPLY "{\"parameters\":"

static const char *const detail_names[] = {"full", "brief", NULL};
static const char *const hold_names[] = {"exclusive", "shared", NULL};

/* Rows of the tables below. may_lack: the member is optional. */
#define AT(type, member) offsetof(struct type, member)
#define NUMBER(type, text, member, may_lack)                                                       \
    {                                                                                              \
        .name = text, .kind = FIELD_INT, .optional = may_lack,                                     \
        .narrow = FIELD_IS_NARROW(type, member), .offset = AT(type, member),                       \
        .max = FIELD_IS_NARROW(type, member) ? UINT32_MAX : INT64_MAX                              \
    }
#define FLAG(type, text, member)                                                                   \
    {                                                                                              \
        .name = text, .kind = FIELD_BOOL, .narrow = true, .offset = AT(type, member)               \
    }
#define CHOICE(type, text, member, may_lack, names)                                                \
    {                                                                                              \
        .name = text, .kind = FIELD_ENUM, .optional = may_lack, .narrow = true,                    \
        .offset = AT(type, member), .enums = names                                                 \
    }

/* Each struct before its members are read. A member that is absent keeps the value -1 or "", which
 * <shmview/stats.h> documents for figures that are not known. */
static const struct shmview_party_stats no_party = {
    .uid = -1,
    .command = "",
    .slot = -1,
    .since_us = -1,
};
static const struct shmview_segment_stats no_segment = {
    .created_us = -1,
    .resident = -1,
    .generation = -1,
    .layout = "",
    .changes = -1,
    .owner_deaths = -1,
    .label = "",
    .backing = SHMVIEW_BACKING_FILE,
    .paid_by = -1,
    .huge_bytes = -1,
    .nodes = -1,
};
static const struct shmview_stats no_stats = {
    .starts = -1,
    .connections = -1,
    .n_all_segments = -1,
    .attachments = -1,
    .allocated_bytes = -1,
    .removed_bytes = -1,
    .total_created = -1,
    .total_attached = -1,
    .total_died = -1,
    .total_owner_died = -1,
    .total_requests = -1,
    .total_lost = -1,
    .total_repaired = -1,
    .max_connections = -1,
    .longest_turn_us = -1,
};
static const struct shmview_quota_stats no_quota = {
    .limit = -1,
    .total_used = -1,
    .total_limit = -1,
};

static const struct field party_fields[] = {
    NUMBER(shmview_party_stats, "attachment", attachment, false),
    NUMBER(shmview_party_stats, "pid", pid, false),
    NUMBER(shmview_party_stats, "uid", uid, true),
    {"command", FIELD_STRING, true, .offset = AT(shmview_party_stats, command), .max = 64},
    CHOICE(shmview_party_stats, "access", access, false, wire_access_names),
    NUMBER(shmview_party_stats, "slot", slot, true),
    CHOICE(shmview_party_stats, "holds", holds, true, hold_names),
    CHOICE(shmview_party_stats, "waits", waits, true, hold_names),
    NUMBER(shmview_party_stats, "since", since_us, true),
    FIELDS_END,
};

static const struct field segment_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(shmview_segment_stats, name),
     .max = LIMIT_NAME_BYTES},
    NUMBER(shmview_segment_stats, "id", id, false),
    NUMBER(shmview_segment_stats, "size", size, false),
    FLAG(shmview_segment_stats, "named", is_named),
    FLAG(shmview_segment_stats, "lock", has_lock),
    CHOICE(shmview_segment_stats, "lifetime", lifetime, false, wire_lifetime_names),
    NUMBER(shmview_segment_stats, "owner", owner, false),
    NUMBER(shmview_segment_stats, "group", group, false),
    NUMBER(shmview_segment_stats, "mode", mode, false),
    NUMBER(shmview_segment_stats, "attachments", attachments, false),
    NUMBER(shmview_segment_stats, "layouts", layouts, false),
    NUMBER(shmview_segment_stats, "created", created_us, true),
    NUMBER(shmview_segment_stats, "resident", resident, true),
    NUMBER(shmview_segment_stats, "generation", generation, true),
    {"layout", FIELD_STRING, true, .offset = AT(shmview_segment_stats, layout),
     .max = LIMIT_VIEW_NAME_BYTES},
    NUMBER(shmview_segment_stats, "changes", changes, true),
    NUMBER(shmview_segment_stats, "owner_deaths", owner_deaths, true),
    {"attached", FIELD_LIST, false, .offset = AT(shmview_segment_stats, parties),
     .count = AT(shmview_segment_stats, n_parties), .of = party_fields,
     .of_bytes = sizeof(struct shmview_party_stats), .max = LIMIT_STATS_ATTACHED,
     .blank = &no_party},
    {"label", FIELD_STRING, true, .offset = AT(shmview_segment_stats, label),
     .max = LIMIT_LABEL_BYTES},
    CHOICE(shmview_segment_stats, "backing", backing, true, wire_backing_names),
    CHOICE(shmview_segment_stats, "frozen", frozen, true, wire_frozen_names),
    NUMBER(shmview_segment_stats, "paid_by", paid_by, true),
    CHOICE(shmview_segment_stats, "huge", huge, true, wire_huge_names),
    CHOICE(shmview_segment_stats, "huge_by", huge_by, true, wire_huge_by_names),
    CHOICE(shmview_segment_stats, "huge_missing", huge_missing, true, wire_huge_missing_names),
    NUMBER(shmview_segment_stats, "huge_bytes", huge_bytes, true),
    CHOICE(shmview_segment_stats, "numa", numa, true, wire_numa_names),
    NUMBER(shmview_segment_stats, "nodes", nodes, true),
    FIELDS_END,
};

static const struct field refusals_fields[] = {
    {"error", FIELD_STRING, false, .offset = AT(shmview_refusal_stats, error), .max = 128},
    NUMBER(shmview_refusal_stats, "count", count, false),
    FIELDS_END,
};

static const struct field quota_fields[] = {
    {"what", FIELD_STRING, false, .offset = AT(shmview_quota_stats, what), .max = 64},
    NUMBER(shmview_quota_stats, "used", used, false),
    NUMBER(shmview_quota_stats, "limit", limit, true),
    NUMBER(shmview_quota_stats, "total_used", total_used, true),
    NUMBER(shmview_quota_stats, "total_limit", total_limit, true),
    FIELDS_END,
};

static const struct field instance_fields[] = {
    {"version", FIELD_STRING, false, .offset = AT(shmview_stats, version), .max = 64},
    NUMBER(shmview_stats, "started", started_us, false),
    NUMBER(shmview_stats, "uptime", uptime_us, false),
    NUMBER(shmview_stats, "starts", starts, true),
    NUMBER(shmview_stats, "connections", connections, true),
    NUMBER(shmview_stats, "segments", n_all_segments, true),
    NUMBER(shmview_stats, "attachments", attachments, true),
    NUMBER(shmview_stats, "allocated_bytes", allocated_bytes, true),
    NUMBER(shmview_stats, "removed_bytes", removed_bytes, true),
    NUMBER(shmview_stats, "total_created", total_created, true),
    NUMBER(shmview_stats, "total_attached", total_attached, true),
    NUMBER(shmview_stats, "total_died", total_died, true),
    NUMBER(shmview_stats, "total_owner_died", total_owner_died, true),
    NUMBER(shmview_stats, "total_requests", total_requests, true),
    NUMBER(shmview_stats, "total_lost", total_lost, true),
    NUMBER(shmview_stats, "total_repaired", total_repaired, true),
    {"refusals", FIELD_LIST, false, .offset = AT(shmview_stats, refusals),
     .count = AT(shmview_stats, n_refusals), .of = refusals_fields,
     .of_bytes = sizeof(struct shmview_refusal_stats), .max = LIMIT_STATS_REFUSALS},
    NUMBER(shmview_stats, "pid", pid, false),
    NUMBER(shmview_stats, "memory_free", memory_free, false),
    NUMBER(shmview_stats, "memory_limit", memory_limit, false),
    NUMBER(shmview_stats, "max_connections", max_connections, true),
    NUMBER(shmview_stats, "longest_turn", longest_turn_us, true),
    {"quotas", FIELD_LIST, false, .offset = AT(shmview_stats, quotas),
     .count = AT(shmview_stats, n_quotas), .of = quota_fields,
     .of_bytes = sizeof(struct shmview_quota_stats), .max = LIMIT_STATS_QUOTAS, .blank = &no_quota},
    FIELDS_END,
};

static const struct field call_fields[] = {
    {"names", FIELD_STRINGS, true, .offset = AT(wire_stats_call, names),
     .count = AT(wire_stats_call, n_names), .min = LIMIT_NAME_BYTES, .max = LIMIT_NAMES},
    NUMBER(wire_stats_call, "after", after, true),
    {"limit", FIELD_INT, true, .offset = AT(wire_stats_call, limit), .max = LIMIT_STATS_PAGE},
    {"detail", FIELD_ENUM, true, .offset = AT(wire_stats_call, detail), .enums = detail_names},
    FIELDS_END,
};

static const struct field stats_fields[] = {
    {"instance", FIELD_OBJECT, false, .of = instance_fields},
    {"segments", FIELD_LIST, false, .offset = AT(shmview_stats, segments),
     .count = AT(shmview_stats, n_segments), .of = segment_fields,
     .of_bytes = sizeof(struct shmview_segment_stats), .max = LIMIT_STATS_PAGE,
     .blank = &no_segment},
    NUMBER(shmview_stats, "next", next, true),
    FIELDS_END,
};

int wire_read_stats_call(const json_t *parameters, struct wire_stats_call *ret,
                         struct wire_fault *fault)
{
    *ret = (struct wire_stats_call){.after = 0, .limit = 0};
    if (fields_read(parameters, call_fields, true, ret, fault) == 0)
        return 0;
    free(ret->names);
    ret->names = NULL;
    return -1;
}

char *wire_stats_call_text(const struct wire_stats_call *call)
{
    return fields_message("{\"method\":\"io.shmview.Stats\",\"parameters\":", call_fields, call,
                          "}", NULL);
}

char *wire_stats_text(const struct shmview_stats *stats, size_t *ret_bytes)
{
    return fields_message(REPLY, stats_fields, stats, "}", ret_bytes);
}

int wire_read_stats(const json_t *parameters, struct shmview_stats *ret, struct wire_fault *fault)
{
    *ret = no_stats;
    return fields_read(parameters, stats_fields, false, ret, fault);
}

bool wire_stats_scan(const char *text, char *room, size_t room_bytes, struct shmview_stats *ret)
{
    struct fields_scan scan = {text, room, room_bytes};
    *ret = no_stats;
    if (fields_scan_literal(&scan, REPLY) && fields_scan(&scan, stats_fields, ret) &&
        fields_scan_literal(&scan, "}") && !*scan.at)
        return true;
    wire_stats_deinit(ret);
    return false;
}

bool wire_stats_begins(const char *text)
{
    static const char head[] = REPLY "{\"instance\":";
    return strncmp(text, head, sizeof head - 1) == 0;
}

/* Frees a list of the public struct, whose elements are const for its users. */
static void free_list(const void *list)
{
    free((void *)(uintptr_t)list);
}

void wire_stats_deinit(struct shmview_stats *stats)
{
    /* each list is one block (FIELD_LIST). A fault may leave segments that were not read: their
     * lists are NULL */
    for (size_t i = 0; stats->segments && i < stats->n_segments; i++)
        free_list(stats->segments[i]->parties);
    free_list(stats->segments);
    free_list(stats->refusals);
    free_list(stats->quotas);
    *stats = (struct shmview_stats){0};
}

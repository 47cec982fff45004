/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/wire_stats.h"

#include "common/base/limits.h"
#include "common/json/fields_text.h"

static const char *const hold_names[] = {"exclusive", "shared", NULL};

#define AT(type, member) offsetof(struct type, member)
#define END                                                                                        \
    {                                                                                              \
        .name = NULL                                                                               \
    }
#define NUMBER(type, text, member, may_lack)                                                       \
    {                                                                                              \
        .name = text, .kind = FIELD_INT, .optional = may_lack, .offset = AT(type, member),         \
        .max = INT64_MAX                                                                           \
    }

static const struct wire_party no_party = {
    .uid = WIRE_ABSENT,
    .slot = WIRE_ABSENT,
    .since_us = WIRE_ABSENT,
};
static const struct wire_segment_stats no_segment = {
    .created_us = WIRE_ABSENT,
    .resident = WIRE_ABSENT,
    .generation = WIRE_ABSENT,
    .changes = WIRE_ABSENT,
    .owner_deaths = WIRE_ABSENT,
};
static const struct wire_instance no_instance = {
    .starts = WIRE_ABSENT,
    .connections = WIRE_ABSENT,
    .segments = WIRE_ABSENT,
    .attachments = WIRE_ABSENT,
    .allocated = WIRE_ABSENT,
    .removed = WIRE_ABSENT,
    .n_created = WIRE_ABSENT,
    .n_attached = WIRE_ABSENT,
    .n_died = WIRE_ABSENT,
    .n_owner_died = WIRE_ABSENT,
    .n_requests = WIRE_ABSENT,
    .n_lost = WIRE_ABSENT,
    .n_repaired = WIRE_ABSENT,
    .max_connections = WIRE_ABSENT,
};
static const struct wire_quota no_quota = {
    .limit = WIRE_ABSENT,
    .total_used = WIRE_ABSENT,
    .total_limit = WIRE_ABSENT,
};

static const struct field party_fields[] = {
    NUMBER(wire_party, "attachment", attachment, false),
    NUMBER(wire_party, "pid", pid, false),
    NUMBER(wire_party, "uid", uid, true),
    {"command", FIELD_STRING, true, .offset = AT(wire_party, command), .max = 64},
    {"access", FIELD_ENUM, false, .offset = AT(wire_party, access), .enums = wire_access_names},
    NUMBER(wire_party, "slot", slot, true),
    {"holds", FIELD_ENUM, true, .offset = AT(wire_party, holds), .enums = hold_names},
    {"waits", FIELD_ENUM, true, .offset = AT(wire_party, waits), .enums = hold_names},
    NUMBER(wire_party, "since", since_us, true),
    END,
};

static const struct field segment_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_segment_stats, name), .max = LIMIT_NAME_BYTES},
    NUMBER(wire_segment_stats, "id", id, false),
    NUMBER(wire_segment_stats, "size", size, false),
    {"named", FIELD_BOOL, false, .offset = AT(wire_segment_stats, named)},
    {"lock", FIELD_BOOL, false, .offset = AT(wire_segment_stats, lock)},
    {"lifetime", FIELD_ENUM, false, .offset = AT(wire_segment_stats, lifetime),
     .enums = wire_lifetime_names},
    NUMBER(wire_segment_stats, "owner", owner, false),
    NUMBER(wire_segment_stats, "group", group, false),
    NUMBER(wire_segment_stats, "mode", mode, false),
    NUMBER(wire_segment_stats, "attachments", attachments, false),
    NUMBER(wire_segment_stats, "layouts", layouts, false),
    NUMBER(wire_segment_stats, "created", created_us, true),
    NUMBER(wire_segment_stats, "resident", resident, true),
    NUMBER(wire_segment_stats, "generation", generation, true),
    {"layout", FIELD_STRING, true, .offset = AT(wire_segment_stats, layout),
     .max = LIMIT_VIEW_NAME_BYTES},
    NUMBER(wire_segment_stats, "changes", changes, true),
    NUMBER(wire_segment_stats, "owner_deaths", owner_deaths, true),
    {"attached", FIELD_OBJECTS, false, .offset = AT(wire_segment_stats, attached),
     .count = AT(wire_segment_stats, n_attached), .of = party_fields,
     .of_bytes = sizeof(struct wire_party), .max = LIMIT_STATS_ATTACHED, .blank = &no_party},
    END,
};

static const struct field refusals_fields[] = {
    {"error", FIELD_STRING, false, .offset = AT(wire_refusals, error), .max = 128},
    NUMBER(wire_refusals, "count", count, false),
    END,
};

static const struct field quota_fields[] = {
    {"what", FIELD_STRING, false, .offset = AT(wire_quota, what), .max = 64},
    NUMBER(wire_quota, "used", used, false),
    NUMBER(wire_quota, "limit", limit, true),
    NUMBER(wire_quota, "total_used", total_used, true),
    NUMBER(wire_quota, "total_limit", total_limit, true),
    END,
};

static const struct field instance_fields[] = {
    {"version", FIELD_STRING, false, .offset = AT(wire_instance, version), .max = 64},
    NUMBER(wire_instance, "started", started_us, false),
    NUMBER(wire_instance, "uptime", uptime_us, false),
    NUMBER(wire_instance, "starts", starts, true),
    NUMBER(wire_instance, "connections", connections, true),
    NUMBER(wire_instance, "segments", segments, true),
    NUMBER(wire_instance, "attachments", attachments, true),
    NUMBER(wire_instance, "allocated_bytes", allocated, true),
    NUMBER(wire_instance, "removed_bytes", removed, true),
    NUMBER(wire_instance, "total_created", n_created, true),
    NUMBER(wire_instance, "total_attached", n_attached, true),
    NUMBER(wire_instance, "total_died", n_died, true),
    NUMBER(wire_instance, "total_owner_died", n_owner_died, true),
    NUMBER(wire_instance, "total_requests", n_requests, true),
    NUMBER(wire_instance, "total_lost", n_lost, true),
    NUMBER(wire_instance, "total_repaired", n_repaired, true),
    {"refusals", FIELD_OBJECTS, false, .offset = AT(wire_instance, refusals),
     .count = AT(wire_instance, n_refusals), .of = refusals_fields,
     .of_bytes = sizeof(struct wire_refusals), .max = LIMIT_STATS_REFUSALS},
    NUMBER(wire_instance, "pid", pid, false),
    NUMBER(wire_instance, "memory_free", memory_free, false),
    NUMBER(wire_instance, "memory_limit", memory_limit, false),
    NUMBER(wire_instance, "max_connections", max_connections, true),
    {"quotas", FIELD_OBJECTS, false, .offset = AT(wire_instance, quotas),
     .count = AT(wire_instance, n_quotas), .of = quota_fields,
     .of_bytes = sizeof(struct wire_quota), .max = LIMIT_STATS_QUOTAS, .blank = &no_quota},
    END,
};

static const struct field call_fields[] = {
    {"names", FIELD_STRINGS, true, .offset = AT(wire_stats_call, names),
     .count = AT(wire_stats_call, n_names), .min = LIMIT_NAME_BYTES, .max = LIMIT_NAMES},
    NUMBER(wire_stats_call, "after", after, true),
    {"limit", FIELD_INT, true, .offset = AT(wire_stats_call, limit), .max = LIMIT_STATS_PAGE},
    END,
};

static const struct field stats_fields[] = {
    {"instance", FIELD_OBJECT, false, .offset = AT(wire_stats, instance), .of = instance_fields},
    {"segments", FIELD_OBJECTS, false, .offset = AT(wire_stats, segments),
     .count = AT(wire_stats, n_segments), .of = segment_fields,
     .of_bytes = sizeof(struct wire_segment_stats), .max = LIMIT_STATS_PAGE, .blank = &no_segment},
    NUMBER(wire_stats, "next", next, true),
    END,
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

char *wire_stats_text(const struct wire_stats *stats, size_t *ret_bytes)
{
    return fields_message("{\"parameters\":", stats_fields, stats, "}", ret_bytes);
}

int wire_read_stats(const json_t *parameters, struct wire_stats *ret, struct wire_fault *fault)
{
    *ret = (struct wire_stats){.instance = no_instance, .next = WIRE_ABSENT};
    return fields_read(parameters, stats_fields, false, ret, fault);
}

void wire_stats_deinit(struct wire_stats *stats)
{
    for (size_t i = 0; stats->segments && i < stats->n_segments; i++)
        free(stats->segments[i].attached);
    free(stats->segments);
    free(stats->instance.refusals);
    free(stats->instance.quotas);
    *stats = (struct wire_stats){0};
}

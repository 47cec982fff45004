/* SPDX-License-Identifier: Apache-2.0 */
/* Figures: what Stats asks for and tells, struct <-> JSON, for both ends. */
#ifndef COMMON_WIRE_STATS_H
#define COMMON_WIRE_STATS_H

#include "common/wire/wire_events.h"

/* Integers that are not known are WIRE_ABSENT, enums 0, strings NULL. Times are microseconds
 * of CLOCK_REALTIME. */
struct wire_party {
    int64_t attachment, pid, uid;
    const char *command;
    int64_t access, slot;
    int64_t holds, waits; /* as in struct wire_event */
    int64_t since_us;
};

struct wire_segment_stats {
    const char *name;
    int64_t id, size;
    bool named, lock;
    int64_t lifetime, owner, group, mode, attachments, layouts;
    int64_t created_us, resident;
    int64_t generation;
    const char *layout;
    int64_t changes, owner_deaths;
    struct wire_party *attached; /* new when decoded */
    size_t n_attached;
};

struct wire_refusals {
    const char *error;
    int64_t count;
};

struct wire_quota {
    const char *what;
    int64_t used, limit, total_used, total_limit;
};

struct wire_instance {
    const char *version;
    int64_t started_us, uptime_us, starts;
    int64_t connections, segments, attachments;
    int64_t allocated, removed; /* bytes */
    int64_t n_created, n_attached, n_died, n_owner_died, n_requests, n_lost, n_repaired;
    struct wire_refusals *refusals; /* new when decoded */
    size_t n_refusals;
    int64_t pid, memory_free, memory_limit, max_connections;
    struct wire_quota *quotas; /* the same */
    size_t n_quotas;
};

struct wire_stats_call {
    const char **names; /* new when decoded: free() */
    size_t n_names;
    int64_t after, limit;
};

struct wire_stats {
    struct wire_instance instance;
    struct wire_segment_stats *segments; /* new when decoded */
    size_t n_segments;
    int64_t next;
};

#define LIMIT_STATS_PAGE     1000
#define LIMIT_STATS_ATTACHED 64
#define LIMIT_STATS_REFUSALS 128
#define LIMIT_STATS_QUOTAS   16

int wire_read_stats_call(const json_t *parameters, struct wire_stats_call *ret,
                         struct wire_fault *fault);
/* The whole call. New; NULL if memory is short. */
char *wire_stats_call_text(const struct wire_stats_call *call);
/* The whole reply, with a NUL that *ret_bytes counts. New; NULL if memory is short. */
char *wire_stats_text(const struct wire_stats *stats, size_t *ret_bytes);
/* Owes wire_stats_deinit(), also on failure. */
int wire_read_stats(const json_t *parameters, struct wire_stats *ret, struct wire_fault *fault);
void wire_stats_deinit(struct wire_stats *stats);

#endif

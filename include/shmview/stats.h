/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/stats.h - figures: what a daemon has, and how its segments do: who is attached, who
 * holds the lock, who waits for it.
 *
 *     const struct shmview_stats *stats;
 *     struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL};
 *     shmview_stats_get(conn, &o, &stats);
 *     for (size_t i = 0; i < stats->n_segments; i++)
 *         puts(stats->segments[i]->name);
 *     shmview_stats_free(stats);
 *
 * Structs are made by the library and new members come at their ends. Numbers that are not
 * known are -1, strings "". Times are microseconds of CLOCK_REALTIME. */
#ifndef SHMVIEW_STATS_H
#define SHMVIEW_STATS_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An attachment, and what it does by the lock's own words. */
struct shmview_party_stats {
    int64_t attachment; /* id */
    int64_t pid;
    int64_t uid;
    const char *command; /* as that client calls itself */
    uint32_t access;     /* enum shmview_access */
    uint32_t holds;      /* SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED, 0: nothing */
    uint32_t waits;      /* the same: what for */
    uint32_t reserved;
    int64_t slot;
    int64_t since_us; /* of what it holds, or else waits for; a holder: since before this */
};

struct shmview_segment_stats {
    const char *name;
    int64_t id;
    int64_t size; /* bytes */
    uint32_t is_named;
    uint32_t has_lock;
    uint32_t lifetime; /* enum shmview_lifetime */
    uint32_t mode;     /* as shmview/access.h has it */
    int64_t owner;     /* uid */
    int64_t group;     /* gid */
    int64_t attachments;
    int64_t layouts;
    int64_t created_us;
    int64_t resident;   /* bytes of memory or swap behind it */
    int64_t generation; /* of the phase */
    const char *layout; /* that is current */
    int64_t changes;    /* the counter */
    int64_t owner_deaths;
    const struct shmview_party_stats *const *parties; /* who hold or wait first */
    size_t n_parties;                                 /* at most 64, of the attachments */
};

/* How much the caller has of a thing that is counted, and how much he may have. */
struct shmview_quota_stats {
    const char *what; /* "bytes", "segments", "attachments", "connections", "layout_bytes" */
    int64_t used;
    int64_t limit;      /* -1: none */
    int64_t total_used; /* by all users together */
    int64_t total_limit;
};

/* How often a daemon has refused something since it was started. */
struct shmview_refusal_stats {
    const char *error; /* as the protocol has it: "io.shmview.SegmentNotFound" */
    int64_t count;     /* 1 or more */
};

/* Only administrators and the daemon's own user get to know more than version, times, pid, memory
 * and quotas of their own. */
struct shmview_stats {
    const char *version;
    int64_t started_us;
    int64_t uptime_us;
    int64_t starts; /* how often a daemon has begun to serve these segments */
    int64_t connections;
    int64_t n_all_segments; /* also those that this user may not see */
    int64_t attachments;
    int64_t allocated_bytes;
    int64_t removed_bytes; /* of those, what only attachments keep */
    int64_t total_created; /* since the daemon was started, as all that follow */
    int64_t total_attached;
    int64_t total_died;
    int64_t total_owner_died;
    int64_t total_requests;
    int64_t total_lost;     /* events */
    int64_t total_repaired; /* objects that clients had truncated, enlarged or overwritten */
    const struct shmview_segment_stats *const *segments;
    size_t n_segments;
    uint64_t next;           /* there are more segments: go on with that as after; 0: no more */
    int64_t pid;             /* of the daemon, as it sees itself */
    int64_t memory_free;     /* bytes that new segments could get now */
    int64_t memory_limit;    /* bytes that /dev/shm or the daemon's control group may hold */
    int64_t max_connections; /* that the daemon has descriptors for */
    const struct shmview_quota_stats *const *quotas;
    size_t n_quotas;
    const struct shmview_refusal_stats *const *refusals;
    size_t n_refusals;
};

#define SHMVIEW_STATS_ALL UINT32_MAX

/* Zero is the default: no segments. Size the struct with sizeof. */
struct shmview_stats_options {
    uint32_t struct_bytes;
    uint32_t limit;           /* of segments, in the order of their ids; SHMVIEW_STATS_ALL */
    const char *const *names; /* of segments: these and no others; those not there are left out */
    size_t n_names;           /* at most 64 */
    uint64_t after;           /* only segments with ids above that */
};

/* Asks for figures. options are borrowed for the call and may be NULL. *ret_stats is new: the
 * caller owes shmview_stats_free(). Blocks for a round trip for each hundred segments or so,
 * which the daemon serves between the requests of others. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID, _UNSUPPORTED, _DISCONNECTED, _PROTOCOL or
 * _NO_MEMORY on failure. */
int shmview_stats_get(struct shmview_connection *connection,
                      const struct shmview_stats_options *options,
                      const struct shmview_stats **ret_stats);

/* Frees them. Takes NULL. Never fails. */
void shmview_stats_free(const struct shmview_stats *stats);

#ifdef __cplusplus
}
#endif
#endif

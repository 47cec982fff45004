/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/stats.h - figures of a daemon and of its segments.
 *
 * The figures answer the questions of an operator: how much memory is used and by
 * which segments, which clients are attached, which one holds a lock, which ones
 * wait for it and since when, and how far a user is from a quota.
 *
 *     const struct shmview_stats *stats;
 *     struct shmview_stats_options o = {.struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL};
 *     shmview_stats_get(conn, &o, &stats);
 *     for (size_t i = 0; i < stats->n_segments; i++)
 *         puts(stats->segments[i]->name);
 *     shmview_stats_free(stats);
 *
 * The library allocates all structs, and programs only read them through
 * pointers. Later versions of the library can therefore add members at the ends
 * of the structs. All strings, arrays and structs belong to the figures and are
 * valid until these are freed. They are a copy and do not change. Numbers that
 * are not known are -1, strings are "". Times are in microseconds of
 * CLOCK_REALTIME.
 *
 * The figures of lock and phase come from the memory that clients write. The
 * daemon reads it without taking the lock, so values may not fit each other
 * exactly. It leaves out values that cannot be true. Use them to show them to
 * people. */
#ifndef SHMVIEW_STATS_H
#define SHMVIEW_STATS_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* An attachment, and what it does by the words of the lock. */
struct shmview_party_stats {
    /* Its id, as in events. */
    int64_t attachment;
    /* The process; 0 if it is in a pid namespace that the daemon cannot see. */
    int64_t pid;
    /* The user who attached. */
    int64_t uid;
    /* The program, as the client calls itself; "" until it has used the lock. */
    const char *command;
    /* enum shmview_access. */
    uint32_t access;
    /* SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED or 0: what it holds of the lock. */
    uint32_t holds;
    /* SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED or 0: what one of its threads waits
     * for. */
    uint32_t waits;
    uint32_t reserved;
    /* Its slot in the lock; -1 with SHMVIEW_PEEK, or if the segment has no
     * lock. */
    int64_t slot;
    /* Since when it holds the lock, or else waits for it. For an exclusive holder
     * an upper bound: it has held the lock at least since then, because the first
     * client that waits notes the time. */
    int64_t since_us;
};

/* A segment. */
struct shmview_segment_stats {
    const char *name;
    /* A number that no other segment of the instance gets. */
    int64_t id;
    int64_t size; /* bytes */
    /* 0 if the name was removed, and only attachments keep the memory. */
    uint32_t is_named;
    /* 0 if it was created with SHMVIEW_NO_LOCK. */
    uint32_t has_lock;
    uint32_t lifetime; /* enum shmview_lifetime */
    uint32_t mode;     /* bits as in shmview/access.h */
    int64_t owner;     /* uid */
    int64_t group;     /* gid */
    /* How many attachments and layouts there are. */
    int64_t attachments;
    int64_t layouts;
    /* Needs a kernel whose tmpfs stores it (Linux 5.18). */
    int64_t created_us;
    /* Bytes of memory or swap that the data take. */
    int64_t resident;
    /* The phase: generation, and the name of the layout that is current. */
    int64_t generation;
    const char *layout;
    /* The counter of changes. */
    int64_t changes;
    /* Clients that died while they held the lock exclusively; known while a
     * client is attached. */
    int64_t owner_deaths;
    /* Some of the attachments: at most 64, and fewer if many segments were asked
     * for. Those that hold the lock or wait for it come first. */
    const struct shmview_party_stats *const *parties;
    size_t n_parties;
    /* What its creator wrote for people; "" if nothing. */
    const char *label;
    uint32_t backing; /* enum shmview_backing */
    uint32_t frozen;  /* enum shmview_frozen (freeze.h); 0: clients may write */
    /* uid of the user whose client made its memory; -1: the daemon did. */
    int64_t paid_by;
    /* As in struct shmview_description. */
    uint32_t huge;
    uint32_t huge_by;
    uint32_t huge_missing;
    uint32_t numa;
    int64_t huge_bytes;
    int64_t nodes;
};

/* How much of a counted thing the caller has, and how much the caller may
 * have. */
struct shmview_quota_stats {
    /* "bytes", "segments", "attachments", "connections" or "layout_bytes". */
    const char *what;
    int64_t used;
    int64_t limit; /* -1: none */
    /* Of all users together; only for administrators and the daemon's own
     * user. */
    int64_t total_used;
    int64_t total_limit;
};

/* How often the daemon has refused a request with one error since it started. */
struct shmview_refusal_stats {
    /* As in the protocol: "io.shmview.SegmentNotFound". */
    const char *error;
    int64_t count; /* 1 or more */
};

/* The daemon. Other users than administrators and the daemon's own user get its
 * version, times, pid and memory, their own quotas, and the segments that they
 * may see. For them the other numbers are -1, because they would show how much
 * other users have. */
struct shmview_stats {
    /* Of the daemon, such as "0.1.0". */
    const char *version;
    /* When it started, and how long ago that was. */
    int64_t started_us;
    int64_t uptime_us;
    /* How often a daemon has started to serve these segments. */
    int64_t starts;
    int64_t connections;
    /* All segments, also those that this user may not see. */
    int64_t n_all_segments;
    int64_t attachments;
    /* Bytes of all segments, and of those whose name was removed. */
    int64_t allocated_bytes;
    int64_t removed_bytes;
    /* Since the daemon started: segments created, attachments made, attachments
     * that ended by the death of their client, exclusive holders that died, and
     * requests served. */
    int64_t total_created;
    int64_t total_attached;
    int64_t total_died;
    int64_t total_owner_died;
    int64_t total_requests;
    /* Events that monitors have missed. */
    int64_t total_lost;
    /* Objects that clients had truncated, enlarged or overwritten, and the daemon
     * repaired. */
    int64_t total_repaired;
    /* The segments that were asked for. */
    const struct shmview_segment_stats *const *segments;
    size_t n_segments;
    /* If there are more segments, the value of after that continues the list;
     * else 0. */
    uint64_t next;
    /* The daemon's own pid, in its pid namespace. */
    int64_t pid;
    /* Bytes that new segments could get now. */
    int64_t memory_free;
    /* Bytes that /dev/shm may hold, or the daemon's control group if that is
     * less. */
    int64_t memory_limit;
    /* The connections for which the daemon has descriptors. */
    int64_t max_connections;
    /* Of the caller, one for each thing that is counted. */
    const struct shmview_quota_stats *const *quotas;
    size_t n_quotas;
    /* One for each error that the daemon has used. */
    const struct shmview_refusal_stats *const *refusals;
    size_t n_refusals;
    /* The longest time since the daemon started, in microseconds of processor time,
     * that it took from one look for new requests to the next. */
    int64_t longest_turn_us;
};

/* As limit: all segments that this user may see. */
#define SHMVIEW_STATS_ALL UINT32_MAX

/* What to ask for. Set struct_bytes to sizeof. A member that is 0 has its
 * default: figures of the daemon, and no segments. */
struct shmview_stats_options {
    uint32_t struct_bytes;
    /* How many segments at most, in the order of their ids; or
     * SHMVIEW_STATS_ALL. */
    uint32_t limit;
    /* Names of the only segments to report. Those that do not exist are left
     * out. */
    const char *const *names;
    /* At most 64. If it is not 0, limit and after do not count. */
    size_t n_names;
    /* Only segments with ids above this one: next of the figures before. */
    uint64_t after;
    /* 1: without the figures for which the daemon must look at the memory of each
     * segment, which takes most of its time. These are created_us and
     * resident, and for segments without an attachment generation, layout and
     * changes. They are not known then. */
    uint32_t brief;
    uint32_t reserved; /* 0 */
};

/* Gets figures. connection, options and all they point to are borrowed for the
 * call; options may be NULL. The caller must pass *ret_stats to
 * shmview_stats_free(). Blocks as a request (shmview.h), once for each hundred
 * segments or so: the daemon serves other clients in between. Any thread.
 *
 * Returns 0 on success. Returns -SHMVIEW_ERR_INVALID for a wrong option, or an
 * error of requests. */
int shmview_stats_get(struct shmview_connection *connection,
                      const struct shmview_stats_options *options,
                      const struct shmview_stats **ret_stats);

/* Frees figures and all they point to. stats may be NULL. Any thread. Never
 * fails. */
void shmview_stats_free(const struct shmview_stats *stats);

#ifdef __cplusplus
}
#endif
#endif

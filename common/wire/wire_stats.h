/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the request and the reply of Stats between structs and JSON text, for both sides. As for
 * events, the tables fill the public struct directly.
 *
 * A figure that the caller may not see, or that is unknown, is absent; in the struct it has the
 * value that <shmview/stats.h> gives for that, usually -1. */
#ifndef COMMON_WIRE_STATS_H
#define COMMON_WIRE_STATS_H

#include <shmview/stats.h>

#include "common/wire/wire_events.h"

#define WIRE_DETAIL_FULL  1 /* also meant by 0 */
#define WIRE_DETAIL_BRIEF 2

/* The parameters of Stats: the segments with these names; or, without names, up to `limit` segments
 * with ids above `after`. */
struct wire_stats_call {
    const char **names; /* new when decoded: free() */
    size_t n_names;
    int64_t after, limit;
    int64_t detail; /* 0: absent */
};

/* The most entries of each list in one reply. */
#define LIMIT_STATS_PAGE     1000 /* segments */
#define LIMIT_STATS_ATTACHED 64   /* attachments of one segment */
#define LIMIT_STATS_REFUSALS 128
#define LIMIT_STATS_QUOTAS   16

/* Decodes the parameters. Returns 0, and the caller owes free(ret->names); or -1 with *fault. */
int wire_read_stats_call(const json_t *parameters, struct wire_stats_call *ret,
                         struct wire_fault *fault);
/* Returns the text of the whole call, which is new, or NULL if memory is short. */
char *wire_stats_call_text(const struct wire_stats_call *call);
/* Returns the text of the whole reply, which is new, or NULL if memory is short. *ret_bytes is its
 * length with the NUL. stats->next is WIRE_ABSENT after the last segment. */
char *wire_stats_text(const struct shmview_stats *stats, size_t *ret_bytes);
/* Decodes the reply. Strings are borrowed from parameters. Returns 0, or -1 with *fault; in both
 * cases the caller owes wire_stats_deinit(). */
int wire_read_stats(const json_t *parameters, struct shmview_stats *ret, struct wire_fault *fault);
/* Like wire_read_stats(), but reads the whole reply without making JSON values, which takes a tenth
 * of the time. Strings are in room, which must have as many bytes as the text with its NUL. Returns
 * whether the text has exactly the form that wire_stats_text() writes, and then the caller owes
 * wire_stats_deinit(); otherwise *ret is undefined, and wire_reply_parse() may read the text. */
bool wire_stats_scan(const char *text, char *room, size_t room_bytes, struct shmview_stats *ret);
/* Whether a reply can be of that form, by how it begins. No reply to another method begins so. */
bool wire_stats_begins(const char *text);
/* Frees the lists, and zeroes the struct. */
void wire_stats_deinit(struct shmview_stats *stats);

#endif

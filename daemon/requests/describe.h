/* SPDX-License-Identifier: Apache-2.0 */
/* Describes segments in replies. The text is written from tables (common/wire) and not from JSON
 * values, because that takes 1.8 us instead of 5.8. Layouts are kept as text and only copied. */
#ifndef DAEMON_DESCRIBE_H
#define DAEMON_DESCRIBE_H

#include "daemon/clients/connection.h"
#include "daemon/segments/frozen.h"

/* Returns the description of a segment without its layouts, and its access in *ret_grant. The
 * entries of the access are written to room, which must have LIMIT_ACL_ENTRIES elements and which
 * *ret_grant borrows. Strings are borrowed from the segment. */
struct shmview_description describe_head(const struct segment *segment, struct wire_acl_entry *room,
                                         struct wire_grant *ret_grant);

/* The members on the memory of a segment, as designated initializers: a struct shmview_description
 * and a struct shmview_segment_stats have the same ones. An absent backing is a file. */
#define DESCRIBE_MEMORY(segment)                                                                   \
    .backing = (segment)->sealed ? SHMVIEW_BACKING_SEALED : 0, .frozen = segment_frozen(segment),  \
    .paid_by = (segment)->own ? (segment)->maker : WIRE_ABSENT,                                    \
    DESCRIBE_PLACEMENT((segment)->placement)
#define DESCRIBE_PLACEMENT(p)                                                                      \
    .huge = (p) ? (p)->huge : 0, .huge_by = (p) ? (p)->by : 0,                                     \
    .huge_missing = (p) ? (p)->missing : 0, .numa = (p) ? (p)->numa : 0,                           \
    .huge_bytes = (p) && (p)->huge ? (int64_t)(p)->huge_bytes : WIRE_ABSENT,                       \
    .nodes = (p) && (p)->numa ? (int64_t)(p)->nodes : WIRE_ABSENT

/* The bytes that describe_names() may need. */
#define DESCRIBE_NAMES_BYTES (LIMIT_LAYOUTS * (LIMIT_VIEW_NAME_BYTES + sizeof "{\"name\":\"\"},"))

/* Returns the text of the layouts for the reply to an attachment: the layouts, or only their names
 * if they have more than LIMIT_ATTACHED_BYTES. It is borrowed from the segment, until a layout is
 * added or removed, or from room, which must have DESCRIBE_NAMES_BYTES. */
struct wire_text describe_layouts(const struct segment *segment, char *room);

/* Replies with the segment, without its layouts: for SetAccess, and for Create without an
 * access. */
void describe_segment(const struct segment *segment, struct answer *answer);

/* Adds one segment to the reply to List. */
void describe_in_list(const struct segment *segment, struct json_text *text);

/* Replies to Describe: the segment with the layouts that are wanted, as many as fit into one reply.
 */
void describe_all(const struct segment *s, const struct wire_describe *want, struct answer *answer);

#endif

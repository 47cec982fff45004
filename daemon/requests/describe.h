/* SPDX-License-Identifier: Apache-2.0 */
/* Segments as replies describe them. */
#ifndef DAEMON_DESCRIBE_H
#define DAEMON_DESCRIBE_H

#include "daemon/clients/connection.h"

/* What replies say of a segment. The list of *ret_grant is room, which has LIMIT_ACL_ENTRIES. */
struct shmview_description describe_head(const struct segment *segment, struct wire_acl_entry *room,
                                         struct wire_grant *ret_grant);

/* The text of its layouts, borrowed until a layout is added or taken away. */
struct wire_text describe_layouts(const struct segment *segment);

/* Answers with the segment. */
void describe_segment(const struct segment *segment, struct answer *answer);

/* Adds the segment as List has it. */
void describe_in_list(const struct segment *segment, struct json_text *text);

/* Answers Describe: the segment with its layouts. */
void describe_all(const struct segment *segment, struct answer *answer);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the key "stream" of a declared segment. A stream has its size and its one layout from its
 * slots and views, by the same plan as one that a program creates (common/stream/plan.h). */
#ifndef DAEMON_CONFIG_STREAM_H
#define DAEMON_CONFIG_STREAM_H

#include "daemon/config/config_reader.h"

/* Reads the object into a struct config_segment, whose layouts must not have been read. Afterwards
 * the segment has the layout "frame" with views that are not placed yet. */
void config_read_stream(struct config_reader *reader, const json_t *value, void *segment);

/* Places the views, and sets the size and the header of a stream whose members had no fault. */
void config_plan_stream(struct config_reader *reader, struct config_segment *segment);

#endif

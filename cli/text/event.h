/* SPDX-License-Identifier: Apache-2.0 */
/* Prints events, for people and for programs, and reads the options of monitor that select them.
 *
 * People get a sentence, which leaves out unknown facts. Programs get a JSON object. Its members
 * depend on the kind, and on whether the event has a segment, an actor or an attachment; an unknown
 * fact among them is null. */
#ifndef CLI_EVENT_H
#define CLI_EVENT_H

#include <shmview/monitor.h>

#include "cli/shell/cli.h"

#define EVENT_TIME_BYTES 48 /* room for event_time() */

/* Describes the event in buffer, cut if it is too long, without its time, kind and segment, which
 * have columns of their own. "" if there is nothing more. */
void event_sentence(const struct shmview_event *event, char *buffer, size_t bytes);

/* Makes the object of an event, with the members that belong to its kind. The caller owns it.
 * Returns NULL if memory is short. */
json_t *event_json(const struct shmview_event *event);

/* Writes "2026-03-01 12:00:00.123456", local time; or if is_utc, for programs,
 * "2026-03-01T12:00:00.123456Z". us is of CLOCK_REALTIME. buffer has EVENT_TIME_BYTES. Returns it.
 */
const char *event_time(char *buffer, int64_t us, bool is_utc);

/* Reads kinds, "died,owner_died", into bits of SHMVIEW_EVENT_BIT(). Returns 0 or the exit status.
 */
int event_kinds(struct context *c, const char *text, uint32_t *ret);

/* Reads a time into microseconds of CLOCK_REALTIME: "10min" before now_us, "@1700000000", "12:00",
 * "12:00:30", "2026-03-01", "2026-03-01 12:00" or with seconds. Returns 0 or the exit status. */
int event_since(struct context *c, const char *text, int64_t now_us, int64_t *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Events, for people and for programs. */
#ifndef CLI_EVENT_H
#define CLI_EVENT_H

#include <shmview/monitor.h>

#include "cli/shell/cli.h"

#define EVENT_TIME_BYTES 48

/* What is worth saying beside time, kind and segment. */
void event_sentence(const struct shmview_event *event, char *buffer, size_t bytes);

/* A new object with the members that belong to the kind; NULL: memory is short. */
json_t *event_json(const struct shmview_event *event);

/* "2026-03-01 12:00:00.123456", local; or, for programs, "2026-03-01T12:00:00.123456Z". buffer has
 * EVENT_TIME_BYTES; returned. */
const char *event_time(char *buffer, int64_t us, bool is_utc);

/* The kinds that text names, "died,owner_died", as SHMVIEW_EVENT_BIT(). Returns 0 or the exit
 * status. */
int event_kinds(struct context *c, const char *text, uint32_t *ret);

/* Microseconds of CLOCK_REALTIME: "10min" before now_us, "@1700000000", "12:00", "12:00:30",
 * "2026-03-01", "2026-03-01 12:00" or with seconds. Returns 0 or the exit status. */
int event_since(struct context *c, const char *text, int64_t now_us, int64_t *ret);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Events: the request and the replies of Monitor, struct <-> JSON, for both ends. */
#ifndef COMMON_WIRE_EVENTS_H
#define COMMON_WIRE_EVENTS_H

#include <shmview/monitor.h>

#include "common/wire/wire.h"

/* An event to be sent that has no facts yet. Of those that its kind does not have, 64-bit numbers
 * are WIRE_ABSENT, others 0, and strings NULL or "". */
#define WIRE_EVENT_NONE                                                                            \
    ((struct shmview_event){                                                                       \
        .id = (uint64_t)WIRE_ABSENT,                                                               \
        .uid = WIRE_ABSENT,                                                                        \
        .attachment = (uint64_t)WIRE_ABSENT,                                                       \
        .slot = WIRE_ABSENT,                                                                       \
        .size = (uint64_t)WIRE_ABSENT,                                                             \
        .deaths = (uint64_t)WIRE_ABSENT,                                                           \
        .segments = (uint64_t)WIRE_ABSENT,                                                         \
        .attachments = (uint64_t)WIRE_ABSENT,                                                      \
        .lost = (uint64_t)WIRE_ABSENT,                                                             \
    })

struct wire_monitor {
    const char **names; /* new when decoded: free() */
    size_t n_names;     /* 0: all */
    int64_t kinds;      /* bit k - 1 for kind k; 0: all */
    int64_t after;      /* a serial number, or WIRE_ABSENT: only what happens from now on */
};

int wire_read_monitor(const json_t *parameters, struct wire_monitor *ret, struct wire_fault *fault);
/* The whole call. New; NULL if memory is short. */
char *wire_monitor_text(const struct wire_monitor *monitor);

/* "created" for SHMVIEW_EVENT_CREATED and so on; NULL for a value that is none. */
const char *wire_event_kind_name(int64_t kind);

/* The whole reply, after which more follow, with a NUL that *ret_bytes counts. New; NULL if memory
 * is short. */
char *wire_event_text(const struct shmview_event *event, size_t *ret_bytes);
/* What a message holds, unless it is faulty. */
enum event_read {
    EVENT_READ,
    EVENT_UNKNOWN, /* of a kind that is not known here */
};

/* member is where in parameters it is. The event is as <shmview/monitor.h> has it; its strings are
 * borrowed from parameters. Returns an enum event_read, or -1 with *fault. */
int wire_read_event(const json_t *parameters, const char *member, struct shmview_event *ret,
                    struct wire_fault *fault);

#endif

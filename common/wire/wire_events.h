/* SPDX-License-Identifier: Apache-2.0 */
/* Events: what Monitor asks for and tells, struct <-> JSON, for both ends. */
#ifndef COMMON_WIRE_EVENTS_H
#define COMMON_WIRE_EVENTS_H

#include <shmview/monitor.h>

#include "common/wire/wire.h"

/* Integers that a kind does not have are WIRE_ABSENT, enums 0, strings NULL. */
struct wire_event {
    int64_t serial;
    int64_t time_us; /* CLOCK_REALTIME */
    int64_t kind;    /* enum shmview_event_kind, in the order of the type EventKind */
    const char *segment;
    int64_t id, uid, pid;
    const char *command;
    int64_t attachment, access, slot;
    int64_t held; /* SHMVIEW_EXCLUSIVE, SHMVIEW_SHARED; 0: nothing */
    int64_t size;
    const char *layout;
    int64_t generation, switches;
    const char *error, *reason;
    int64_t segments, attachments, deaths, lost;
};
#define WIRE_EVENT_NONE                                                                            \
    ((struct wire_event){                                                                          \
        .id = WIRE_ABSENT,                                                                         \
        .uid = WIRE_ABSENT,                                                                        \
        .pid = WIRE_ABSENT,                                                                        \
        .attachment = WIRE_ABSENT,                                                                 \
        .slot = WIRE_ABSENT,                                                                       \
        .size = WIRE_ABSENT,                                                                       \
        .generation = WIRE_ABSENT,                                                                 \
        .switches = WIRE_ABSENT,                                                                   \
        .segments = WIRE_ABSENT,                                                                   \
        .attachments = WIRE_ABSENT,                                                                \
        .deaths = WIRE_ABSENT,                                                                     \
        .lost = WIRE_ABSENT,                                                                       \
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
char *wire_event_text(const struct wire_event *event, size_t *ret_bytes);
/* member is where in parameters it is. Returns 0; 1 for a kind that is not known here; or -1
 * with *fault. */
int wire_read_event(const json_t *parameters, const char *member, struct wire_event *ret,
                    struct wire_fault *fault);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the request and the replies of Monitor between structs and JSON text, for both sides.
 * The tables fill struct shmview_event of the public header directly, because a copy of that struct
 * would have to be kept equal.
 *
 * An event has only the members of its kind. A reader must accept kinds that it does not know,
 * because a newer daemon may add some. */
#ifndef COMMON_WIRE_EVENTS_H
#define COMMON_WIRE_EVENTS_H

#include <shmview/monitor.h>

#include "common/wire/wire.h"

/* An event to be sent that has no facts yet. A member that its kind does not have stays as it is
 * here, and is not sent: 64-bit numbers WIRE_ABSENT, other numbers 0, strings NULL or "". */
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

/* The parameters of Monitor. */
struct wire_monitor {
    const char **names; /* new when decoded: free() */
    size_t n_names;     /* 0: all */
    int64_t kinds;      /* bit k - 1 for kind k; 0: all */
    int64_t after;      /* a serial number, or WIRE_ABSENT: only what happens from now on */
};

/* Decodes the parameters of Monitor. Returns 0, and the caller owes free(ret->names); or -1 with
 * *fault. */
int wire_read_monitor(const json_t *parameters, struct wire_monitor *ret, struct wire_fault *fault);
/* Returns the text of the whole call, which is new, or NULL if memory is short. */
char *wire_monitor_text(const struct wire_monitor *monitor);

/* Returns "created" for SHMVIEW_EVENT_CREATED and so on, or NULL for any other value. */
const char *wire_event_kind_name(int64_t kind);

/* Returns the text of a whole reply, after which further ones follow. It is new, or NULL if memory
 * is short; *ret_bytes is its length with the NUL. */
char *wire_event_text(const struct shmview_event *event, size_t *ret_bytes);
/* The result of decoding an event without a fault. */
enum event_read {
    EVENT_READ,
    EVENT_UNKNOWN, /* the kind is not known here; *ret is unchanged */
};

/* Decodes the event that is called `member` in the parameters of a reply, as <shmview/monitor.h>
 * describes it. Its strings are borrowed from parameters. Returns an enum event_read, or -1 with
 * *fault. */
int wire_read_event(const json_t *parameters, const char *member, struct shmview_event *ret,
                    struct wire_fault *fault);

#endif

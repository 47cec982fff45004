/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the header of a stream, and what a client does with the stream, for events. Clients write
 * these bytes, so they are as untrusted as a control object (control_peek.h): the daemon decides
 * nothing by them. */
#ifndef DAEMON_STREAM_PEEK_H
#define DAEMON_STREAM_PEEK_H

#include "daemon/segments/control_peek.h"
#include "daemon/segments/events.h"

/* All 0: the segment is no stream. */
struct stream_peek {
    uint8_t mode; /* SHMVIEW_LOSSLESS, SHMVIEW_LATEST */
    uint8_t role; /* of the client: SHMVIEW_STREAM_WRITER | SHMVIEW_STREAM_READER */
    uint16_t n_slots;
    uint16_t n_held; /* frames that the client holds as a reader */
};

/* Reads the header of the stream. *ret is all 0 if the segment is no stream, or cannot be read. */
void stream_peek(const struct segment *segment, struct stream_peek *ret);

/* Sets the members of an event that are about a stream. */
void stream_peek_note(const struct stream_peek *peek, struct event *event);
/* Reads the header of the stream, and sets these members. Does nothing if no subscriber wants the
 * event. */
void stream_peek_event(const struct segment *segment, struct event *event);

/* Like stream_peek(), but also finds out what the client of an attachment does. control has the
 * slot of that client, see control_peek_slot(). To be called before the slot is marked as dead,
 * because another writer may take over then. */
void stream_peek_party(const struct attachment *attachment, const struct control_peek *control,
                       struct stream_peek *ret);

#endif

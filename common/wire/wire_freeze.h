/* SPDX-License-Identifier: Apache-2.0 */
/* Converts the request and the reply of Freeze between structs and JSON text, for both sides. */
#ifndef COMMON_WIRE_FREEZE_H
#define COMMON_WIRE_FREEZE_H

#include "common/wire/wire.h"

/* The parameters of Freeze. */
struct wire_freeze {
    int64_t attachment;
    bool done; /* the client has added the seal, or will not */
};

/* The reply to Freeze that begins it. write and read are indices into the descriptors of the
 * message, which the receiver must compare with their number. */
struct wire_freezing {
    int64_t descriptors;
    int64_t write; /* the data, opened for writing too; for the seal */
    int64_t read;  /* the data, opened for reading only; for a mapping in place of the old one */
};

/* Decodes the parameters of Freeze. Returns 0, or -1 with *fault. */
int wire_read_freeze(const json_t *parameters, struct wire_freeze *ret, struct wire_fault *fault);
/* Returns the text of the whole call, which is new, or NULL if memory is short. */
char *wire_freeze_text(const struct wire_freeze *freeze);

/* Decodes the parameters of the reply. Returns 0, or -1 with *fault. */
int wire_read_freezing(const json_t *parameters, struct wire_freezing *ret,
                       struct wire_fault *fault);
/* Returns the text of the whole reply, as wire_reply_text() does. */
char *wire_freezing_text(const struct wire_freezing *freezing, size_t *ret_bytes);

#endif

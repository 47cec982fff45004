/* SPDX-License-Identifier: Apache-2.0 */
/* Converts layouts, and the request and the reply of Describe, between structs and JSON text, for
 * both sides. A layout never changes after its declaration. The daemon therefore makes its text
 * once, and replies copy that text.
 *
 * Memory is as in wire.h, which includes this header. */
#ifndef COMMON_WIRE_LAYOUTS_H
#define COMMON_WIRE_LAYOUTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <jansson.h>

#include <shmview/describe.h>

#include "common/json/fields.h"
#include "common/views/view.h"

struct wire_acl_entry;

/* A view of a layout, as it was declared. desc is incomplete until view_resolve(): it has no item
 * size, strides only if they were declared, and is indirect if suboffsets were declared. */
struct wire_view {
    const char *name;
    const char *format;
    bool has_strides;
    struct view_desc desc;
};

/* A layout, as it was declared. The reply to Attach has only the names of layouts whose text is
 * long: then views is NULL. A layout without views has another pointer. */
struct wire_layout {
    const char *name;
    struct wire_view *views; /* new when decoded: wire_layouts_free() */
    size_t n_views;
};

/* The rows of a layout with its views. */
extern const struct field wire_layout_fields[];

/* Decodes a layout of the configuration or of the registry, as strictly as one of a request.
 * Returns 0, or -1 with *fault. Also after an error *ret may have allocations, which the caller
 * frees. */
int wire_read_layout(const json_t *json, struct wire_layout *ret, struct wire_fault *fault);
/* Frees n layouts and the array itself, which may be NULL. */
void wire_layouts_free(struct wire_layout *layouts, size_t n);

/* Returns the text of one layout, which is new, or NULL if memory is short. *ret_bytes is its
 * length with the NUL. */
char *wire_layout_text(const struct wire_layout *layout, size_t *ret_bytes);

/* Text that replies contain as it is, such as layouts with commas between them. No NUL ends it. */
struct wire_text {
    const char *bytes;
    size_t n;
};

/* The parameters of Describe. */
struct wire_describe {
    const char *name;
    int64_t id;         /* as in wire_attach */
    const char *layout; /* NULL, or the name of the only layout that is wanted */
    int64_t from;       /* the index of the first layout that is wanted; FIELDS_ABSENT: 0 */
};

/* What the reply to Describe has beside the segment. */
struct wire_described {
    struct wire_layout *layouts; /* new when decoded */
    size_t n_layouts;
    int64_t index; /* of the first of them; FIELDS_ABSENT if the daemon has none to send */
    int64_t next;  /* the index of the next one; FIELDS_ABSENT if there is none, as without index */
};

/* As wire_attach_text() and wire_read_attach(). */
char *wire_describe_text(const struct wire_describe *describe);
int wire_read_describe(const json_t *parameters, struct wire_describe *ret,
                       struct wire_fault *fault);

/* Returns the text of a whole reply to Describe, as wire_attached_text() does. *layouts has commas
 * between layouts; described->layouts and n_layouts are ignored. */
char *wire_described_text(const struct shmview_description *segment,
                          const struct wire_acl_entry *acl, size_t n,
                          const struct wire_described *described, const struct wire_text *layouts,
                          size_t *ret_bytes);
/* Decodes the reply to Describe without the segment. Returns 0, and the caller owes
 * wire_layouts_free() for ret->layouts; or -1 with *fault. */
int wire_read_described(const json_t *parameters, struct wire_described *ret,
                        struct wire_fault *fault);

/* Decodes the array of layouts of a reply to Attach, n bytes with its brackets. *ret_root owns the
 * strings: json_decref(). *ret is new: wire_layouts_free(). Returns 0, or -1 with *fault. */
int wire_layouts_parse(const char *text, size_t n, json_t **ret_root, struct wire_layout **ret,
                       size_t *ret_n, struct wire_fault *fault);

#endif

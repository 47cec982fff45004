/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/wire_layouts.h"

#include <stdlib.h>

#include "common/base/limits.h"
#include "common/json/fields_text.h"
#include "common/json/json_read.h"
#include "common/wire/wire.h"

#define AT(type, member) offsetof(struct type, member)

static const struct field view_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_view, name), .max = LIMIT_VIEW_NAME_BYTES},
    {"format", FIELD_STRING, false, .offset = AT(wire_view, format), .max = LIMIT_FORMAT_BYTES},
    {"shape", FIELD_INTS, false, .offset = AT(wire_view, desc.shape),
     .count = AT(wire_view, desc.ndim)},
    {"strides", FIELD_INTS, true, .offset = AT(wire_view, desc.strides),
     .present = AT(wire_view, has_strides), .count = AT(wire_view, desc.ndim)},
    {"suboffsets", FIELD_INTS, true, .offset = AT(wire_view, desc.suboffsets),
     .present = AT(wire_view, desc.indirect), .count = AT(wire_view, desc.ndim)},
    {"offset", FIELD_INT, true, .offset = AT(wire_view, desc.offset), .max = INT64_MAX},
    {"readonly", FIELD_BOOL, true, .offset = AT(wire_view, desc.read_only)},
    FIELDS_END,
};
const struct field wire_layout_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_layout, name), .max = LIMIT_VIEW_NAME_BYTES},
    {"views", FIELD_OBJECTS, false, .offset = AT(wire_layout, views),
     .count = AT(wire_layout, n_views), .of = view_fields, .of_bytes = sizeof(struct wire_view),
     .max = LIMIT_VIEWS},
    FIELDS_END,
};
/* Like wire_layout_fields, but the views may be absent. */
static const struct field named_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_layout, name), .max = LIMIT_VIEW_NAME_BYTES},
    {"views", FIELD_OBJECTS, true, .offset = AT(wire_layout, views),
     .count = AT(wire_layout, n_views), .of = view_fields, .of_bytes = sizeof(struct wire_view),
     .max = LIMIT_VIEWS},
    FIELDS_END,
};
static const struct field describe_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_describe, name), .max = LIMIT_NAME_BYTES},
    {"id", FIELD_INT, true, .offset = AT(wire_describe, id), .max = INT64_MAX},
    {"layout", FIELD_STRING, true, .offset = AT(wire_describe, layout),
     .max = LIMIT_VIEW_NAME_BYTES},
    {"from", FIELD_INT, true, .offset = AT(wire_describe, from), .max = LIMIT_LAYOUTS},
    FIELDS_END,
};
#define LAYOUTS(rows)                                                                              \
    {                                                                                              \
        "layouts", FIELD_OBJECTS, false,                                                           \
            .offset = AT(wire_described, layouts), .count = AT(wire_described, n_layouts),         \
            .of = rows, .of_bytes = sizeof(struct wire_layout), .max = LIMIT_LAYOUTS               \
    }
static const struct field described_fields[] = {
    LAYOUTS(wire_layout_fields),
    {"index", FIELD_INT, true, .offset = AT(wire_described, index), .max = LIMIT_LAYOUTS - 1},
    {"next", FIELD_INT, true, .offset = AT(wire_described, next), .min = 1,
     .max = LIMIT_LAYOUTS - 1},
    FIELDS_END,
};

void wire_layouts_free(struct wire_layout *layouts, size_t n)
{
    for (size_t i = 0; layouts && i < n; i++)
        free(layouts[i].views);
    free(layouts);
}

int wire_read_layout(const json_t *json, struct wire_layout *ret, struct wire_fault *fault)
{
    return fields_read(json, wire_layout_fields, true, ret, fault);
}

char *wire_layout_text(const struct wire_layout *layout, size_t *ret_bytes)
{
    return fields_message("", wire_layout_fields, layout, "", ret_bytes);
}

char *wire_describe_text(const struct wire_describe *describe)
{
    return fields_message("{\"method\":\"io.shmview.Describe\",\"parameters\":", describe_fields,
                          describe, "}", NULL);
}

int wire_read_describe(const json_t *parameters, struct wire_describe *ret,
                       struct wire_fault *fault)
{
    *ret = (struct wire_describe){.id = FIELDS_ABSENT};
    return fields_read(parameters, describe_fields, true, ret, fault);
}

char *wire_described_text(const struct shmview_description *segment,
                          const struct wire_acl_entry *acl, size_t n,
                          const struct wire_described *described, const struct wire_text *layouts,
                          size_t *ret_bytes)
{
    struct json_text t;
    json_text_begin(&t);
    json_text_raw(&t, "{\"parameters\":{\"segment\":");
    wire_add_segment(&t, segment, acl, n);
    json_text_raw(&t, ",\"layouts\":[");
    json_text_add(&t, layouts->bytes, layouts->n);
    json_text_raw(&t, described->index == FIELDS_ABSENT ? "]" : "],");
    fields_text_members(described_fields + 1, described, &t); /* those after the layouts */
    json_text_raw(&t, "}}");
    return json_text_end(&t, ret_bytes);
}

/* Reads the layouts of *ret by one of the tables. Returns 0, or -1 with *fault and no layouts. */
static int read_layouts(const json_t *json, const struct field *fields, struct wire_described *ret,
                        struct wire_fault *fault)
{
    struct wire_described got = {.next = FIELDS_ABSENT};
    if (fields_read(json, fields, false, &got, fault)) {
        wire_layouts_free(got.layouts, got.n_layouts);
        return -1;
    }
    *ret = got;
    return 0;
}

int wire_read_described(const json_t *parameters, struct wire_described *ret,
                        struct wire_fault *fault)
{
    return read_layouts(parameters, described_fields, ret, fault);
}

int wire_layouts_parse(const char *text, size_t n, json_t **ret_root, struct wire_layout **ret,
                       size_t *ret_n, struct wire_fault *fault)
{
    static const struct field fields[] = {LAYOUTS(named_fields), FIELDS_END};
    struct wire_described got;
    json_t *array = json_read(text, n, false, fault);
    json_t *root = array ? json_pack("{s:o}", "layouts", array) : NULL;
    if (array && !root)
        wire_fault_memory(fault, "layouts");
    if (!root)
        return -1;
    if (read_layouts(root, fields, &got, fault)) {
        json_decref(root);
        return -1;
    }
    *ret_root = root;
    *ret = got.layouts;
    *ret_n = got.n_layouts;
    return 0;
}

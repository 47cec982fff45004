/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/wire_freeze.h"

#include "common/base/limits.h"
#include "common/json/fields_text.h"

#define AT(type, member) offsetof(struct type, member)

static const struct field freeze_fields[] = {
    {"attachment", FIELD_INT, false, .offset = AT(wire_freeze, attachment), .max = INT64_MAX},
    {"done", FIELD_BOOL, true, .offset = AT(wire_freeze, done)},
    FIELDS_END,
};
static const struct field freezing_fields[] = {
    {"descriptors", FIELD_INT, false, .offset = AT(wire_freezing, descriptors),
     .max = LIMIT_DESCRIPTORS},
    {"write", FIELD_INT, false, .offset = AT(wire_freezing, write), .max = LIMIT_DESCRIPTORS - 1},
    {"read", FIELD_INT, false, .offset = AT(wire_freezing, read), .max = LIMIT_DESCRIPTORS - 1},
    FIELDS_END,
};

int wire_read_freeze(const json_t *parameters, struct wire_freeze *ret, struct wire_fault *fault)
{
    *ret = (struct wire_freeze){0};
    return fields_read(parameters, freeze_fields, true, ret, fault);
}

char *wire_freeze_text(const struct wire_freeze *freeze)
{
    return fields_message("{\"method\":\"io.shmview.Freeze\",\"parameters\":", freeze_fields,
                          freeze, "}", NULL);
}

int wire_read_freezing(const json_t *parameters, struct wire_freezing *ret,
                       struct wire_fault *fault)
{
    *ret = (struct wire_freezing){0};
    return fields_read(parameters, freezing_fields, false, ret, fault);
}

char *wire_freezing_text(const struct wire_freezing *freezing, size_t *ret_bytes)
{
    return fields_message("{\"parameters\":", freezing_fields, freezing, "}", ret_bytes);
}

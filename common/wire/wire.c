/* SPDX-License-Identifier: Apache-2.0 */
#include "common/wire/wire.h"

#include <stdio.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/json/fields_scan.h"
#include "common/json/fields_text.h"
#include "common/json/json_text.h"

#define CALL(method) "{\"method\":\"io.shmview." method "\",\"parameters\":"
#define DETACH_END   ",\"oneway\":true}" /* nobody waits for its reply */

const char *const wire_access_names[] = {"peek", "read", "write", NULL};
const char *const wire_lifetime_names[] = {"attached", "manual", "creator", NULL};
const char *const wire_backing_names[] = {"file", "sealed", NULL};
const char *const wire_frozen_names[] = {"future", "all", NULL};
static const char *const memory_names[] = {"daemon", "client", NULL};
const char *const wire_huge_names[] = {"wanted", "required", NULL};
const char *const wire_huge_by_names[] = {"hugetlb", "thp", NULL};
const char *const wire_huge_missing_names[] = {"small", "disabled", "short", "unsupported", NULL};
const char *const wire_numa_names[] = {"local", "interleaved", "node", NULL};
static const char *const right_names[] = {"none", "read", "write", NULL};

#define AT(type, member) offsetof(struct type, member)

/* "acl" has no row, because the public struct has entries of another form. "group" and "mode" are
 * optional, because older daemons send none; "backing" is absent for files, and "frozen" while
 * clients may write. */
#define OF_SEGMENT(member) AT(shmview_description, member)
static const struct field segment_fields[] = {
    {"name", FIELD_STRING, false, .offset = OF_SEGMENT(name), .max = LIMIT_NAME_BYTES},
    {"id", FIELD_INT, false, .offset = OF_SEGMENT(id), .max = INT64_MAX},
    {"size", FIELD_INT, false, .offset = OF_SEGMENT(size), .max = INT64_MAX},
    {"lock", FIELD_BOOL, false, .narrow = true, .offset = OF_SEGMENT(has_lock)},
    {"lifetime", FIELD_ENUM, false, .narrow = true, .offset = OF_SEGMENT(lifetime),
     .enums = wire_lifetime_names},
    {"owner", FIELD_INT, false, .offset = OF_SEGMENT(owner), .max = UINT32_MAX},
    {"attachments", FIELD_INT, false, .offset = OF_SEGMENT(attachments), .max = INT64_MAX},
    {"group", FIELD_INT, true, .offset = OF_SEGMENT(group), .max = UINT32_MAX},
    {"mode", FIELD_INT, true, .offset = OF_SEGMENT(mode), .max = 0777},
    {"label", FIELD_STRING, true, .offset = OF_SEGMENT(label), .max = LIMIT_LABEL_BYTES},
    {"backing", FIELD_ENUM, true, .narrow = true, .offset = OF_SEGMENT(backing),
     .enums = wire_backing_names},
    {"frozen", FIELD_ENUM, true, .narrow = true, .offset = OF_SEGMENT(frozen),
     .enums = wire_frozen_names},
    {"paid_by", FIELD_INT, true, .offset = OF_SEGMENT(paid_by), .max = UINT32_MAX},
    {"huge", FIELD_ENUM, true, .narrow = true, .offset = OF_SEGMENT(huge),
     .enums = wire_huge_names},
    {"huge_by", FIELD_ENUM, true, .narrow = true, .offset = OF_SEGMENT(huge_by),
     .enums = wire_huge_by_names},
    {"huge_missing", FIELD_ENUM, true, .narrow = true, .offset = OF_SEGMENT(huge_missing),
     .enums = wire_huge_missing_names},
    {"huge_bytes", FIELD_INT, true, .offset = OF_SEGMENT(huge_bytes), .max = INT64_MAX},
    {"numa", FIELD_ENUM, true, .narrow = true, .offset = OF_SEGMENT(numa),
     .enums = wire_numa_names},
    {"nodes", FIELD_INT, true, .offset = OF_SEGMENT(nodes), .max = INT64_MAX},
    FIELDS_END,
};
static const struct field acl_fields[] = {
    {"user", FIELD_INT, true, .offset = AT(wire_acl_entry, user),
     .present = AT(wire_acl_entry, is_user), .max = UINT32_MAX - 1},
    {"group", FIELD_INT, true, .offset = AT(wire_acl_entry, group),
     .present = AT(wire_acl_entry, is_group), .max = UINT32_MAX - 1},
    {"right", FIELD_ENUM, false, .offset = AT(wire_acl_entry, right), .enums = right_names},
    FIELDS_END,
};
#define GRANT_FIELDS(type)                                                                         \
    {"mode", FIELD_INT, true, .offset = AT(type, grant.mode), .max = 0777},                        \
        {"owner", FIELD_INT, true, .offset = AT(type, grant.owner), .max = UINT32_MAX - 1},        \
        {"group", FIELD_INT, true, .offset = AT(type, grant.group), .max = UINT32_MAX - 1},        \
    {                                                                                              \
        "acl", FIELD_OBJECTS, true, .offset = AT(type, grant.acl), .count = AT(type, grant.n_acl), \
                                    .of = acl_fields, .of_bytes = sizeof(struct wire_acl_entry),   \
                                    .max = LIMIT_ACL_ENTRIES                                       \
    }
/* An attachment without its layouts, which are read and written as text (struct wire_text). */
static const struct field attachment_fields[] = {
    {"id", FIELD_INT, false, .offset = AT(wire_attachment, id), .max = INT64_MAX},
    {"access", FIELD_ENUM, false, .offset = AT(wire_attachment, access),
     .enums = wire_access_names},
    {"descriptors", FIELD_INT, false, .offset = AT(wire_attachment, descriptors),
     .max = LIMIT_DESCRIPTORS},
    {"data", FIELD_INT, false, .offset = AT(wire_attachment, data), .max = LIMIT_DESCRIPTORS - 1},
    {"control", FIELD_INT, true, .offset = AT(wire_attachment, control),
     .max = LIMIT_DESCRIPTORS - 1},
    {"liveness", FIELD_INT, true, .offset = AT(wire_attachment, liveness),
     .max = LIMIT_DESCRIPTORS - 1},
    {"slot", FIELD_INT, true, .offset = AT(wire_attachment, slot), .max = SHMVIEW_SLOTS_MAX - 1},
    {"generation", FIELD_INT, true, .offset = AT(wire_attachment, generation), .min = 1,
     .max = SHMVIEW_GENERATION_MASK},
    FIELDS_END,
};
static const struct field create_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_create, name), .max = LIMIT_NAME_BYTES},
    {"size", FIELD_INT, false, .offset = AT(wire_create, size), .min = 1,
     .max = (int64_t)LIMIT_SEGMENT_BYTES},
    {"access", FIELD_ENUM, true, .offset = AT(wire_create, access), .enums = wire_access_names},
    {"lifetime", FIELD_ENUM, true, .offset = AT(wire_create, lifetime),
     .enums = wire_lifetime_names},
    {"lock", FIELD_BOOL, true, .offset = AT(wire_create, lock)},
    GRANT_FIELDS(wire_create),
    {"label", FIELD_STRING, true, .offset = AT(wire_create, label), .max = LIMIT_LABEL_BYTES},
    {"backing", FIELD_ENUM, true, .offset = AT(wire_create, backing), .enums = wire_backing_names},
    {"memory", FIELD_ENUM, true, .offset = AT(wire_create, memory), .enums = memory_names},
    {"huge", FIELD_ENUM, true, .offset = AT(wire_create, huge), .enums = wire_huge_names},
    {"numa", FIELD_ENUM, true, .offset = AT(wire_create, numa), .enums = wire_numa_names},
    {"node", FIELD_INT, true, .offset = AT(wire_create, node), .max = LIMIT_NODE},
    {"populate", FIELD_BOOL, true, .if_true = true, .offset = AT(wire_create, populate)},
    FIELDS_END,
};
static const struct field set_access_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_set_access, name), .max = LIMIT_NAME_BYTES},
    {"id", FIELD_INT, true, .offset = AT(wire_set_access, id), .max = INT64_MAX},
    GRANT_FIELDS(wire_set_access),
    FIELDS_END,
};
static const struct field attach_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_attach, name), .max = LIMIT_NAME_BYTES},
    {"access", FIELD_ENUM, false, .offset = AT(wire_attach, access), .enums = wire_access_names},
    {"id", FIELD_INT, true, .offset = AT(wire_attach, id), .max = INT64_MAX},
    FIELDS_END,
};
static const struct field entrust_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_entrust, name), .max = LIMIT_NAME_BYTES},
    {"pid", FIELD_INT, false, .offset = AT(wire_entrust, pid), .min = 1, .max = INT32_MAX},
    FIELDS_END,
};
/* of an int64_t: the parameters of methods that need only an attachment */
static const struct field attachment_id_fields[] = {
    {"attachment", FIELD_INT, false, .max = INT64_MAX},
    FIELDS_END,
};
static const char *const presence_names[] = {"wanted", "kept", NULL};
static const struct field claim_fields[] = {
    {"client", FIELD_INT, false, .offset = AT(wire_claim, client), .min = 1, .max = INT64_MAX},
    {"held", FIELD_IDS, false, .offset = AT(wire_claim, held), .count = AT(wire_claim, n_held),
     .max = LIMIT_ATTACHMENTS},
    {"presence", FIELD_ENUM, true, .offset = AT(wire_claim, presence), .enums = presence_names},
    {"bell", FIELD_BOOL, true, .offset = AT(wire_claim, bell)},
    FIELDS_END,
};
static const struct field claimed_fields[] = {
    {"held", FIELD_IDS, false, .offset = AT(wire_claimed, held), .count = AT(wire_claimed, n_held),
     .max = LIMIT_ATTACHMENTS},
    {"descriptors", FIELD_INT, true, .offset = AT(wire_claimed, descriptors),
     .max = LIMIT_DESCRIPTORS},
    {"presence", FIELD_INT, true, .offset = AT(wire_claimed, presence),
     .max = LIMIT_DESCRIPTORS - 1},
    {"bell", FIELD_INT, true, .offset = AT(wire_claimed, bell), .max = LIMIT_DESCRIPTORS - 1},
    FIELDS_END,
};
static const struct field define_fields[] = {
    {"name", FIELD_STRING, false, .offset = AT(wire_define, name), .max = LIMIT_NAME_BYTES},
    {"layout", FIELD_OBJECT, false, .offset = AT(wire_define, layout), .of = wire_layout_fields},
    {"id", FIELD_INT, true, .offset = AT(wire_define, id), .max = INT64_MAX},
    FIELDS_END,
};

/* --- The messages -------------------------------------------------------- */

int wire_read_none(const json_t *parameters, struct wire_fault *fault)
{
    static const struct field none[] = {FIELDS_END};
    return fields_read(parameters, none, true, NULL, fault);
}

#define NO_GRANT                                                                                   \
    {                                                                                              \
        .mode = WIRE_ABSENT, .owner = WIRE_ABSENT, .group = WIRE_ABSENT                            \
    }

/* Frees the entries of a grant if its request could not be read. r is the result of reading it, and
 * is returned. */
static int read_grant(int r, struct wire_grant *grant)
{
    if (r) {
        free(grant->acl);
        grant->acl = NULL;
    }
    return r;
}

int wire_read_create(const json_t *parameters, struct wire_create *ret, struct wire_fault *fault)
{
    *ret = (struct wire_create){.lock = true, .node = WIRE_ABSENT, .grant = NO_GRANT};
    return read_grant(fields_read(parameters, create_fields, true, ret, fault), &ret->grant);
}

int wire_read_set_access(const json_t *parameters, struct wire_set_access *ret,
                         struct wire_fault *fault)
{
    *ret = (struct wire_set_access){.id = WIRE_ABSENT, .grant = NO_GRANT};
    return read_grant(fields_read(parameters, set_access_fields, true, ret, fault), &ret->grant);
}

int wire_read_attach(const json_t *parameters, struct wire_attach *ret, struct wire_fault *fault)
{
    *ret = (struct wire_attach){.id = WIRE_ABSENT};
    return fields_read(parameters, attach_fields, true, ret, fault);
}

int wire_read_list(const json_t *parameters, struct wire_list *ret, struct wire_fault *fault)
{
    static const struct field fields[] = {
        {"after", FIELD_INT, true, .offset = offsetof(struct wire_list, after), .max = INT64_MAX},
        FIELDS_END,
    };
    *ret = (struct wire_list){0};
    return fields_read(parameters, fields, true, ret, fault);
}

int wire_read_entrust(const json_t *parameters, struct wire_entrust *ret, struct wire_fault *fault)
{
    *ret = (struct wire_entrust){0};
    return fields_read(parameters, entrust_fields, true, ret, fault);
}

int wire_read_claim(const json_t *parameters, struct wire_claim *ret, struct wire_fault *fault)
{
    *ret = (struct wire_claim){0};
    if (fields_read(parameters, claim_fields, true, ret, fault) == 0)
        return 0;
    free(ret->held);
    ret->held = NULL;
    return -1;
}

int wire_read_define(const json_t *parameters, struct wire_define *ret, struct wire_fault *fault)
{
    *ret = (struct wire_define){.id = WIRE_ABSENT};
    if (fields_read(parameters, define_fields, true, ret, fault) == 0)
        return 0;
    free(ret->layout.views);
    ret->layout.views = NULL;
    return -1;
}

int wire_read_name(const json_t *parameters, const char *member, const char **ret,
                   struct wire_fault *fault)
{
    const struct field fields[] = {{member, FIELD_STRING, false, .max = LIMIT_NAME_BYTES},
                                   FIELDS_END};
    return fields_read(parameters, fields, true, ret, fault);
}

int wire_read_int(const json_t *parameters, const char *member, int64_t *ret,
                  struct wire_fault *fault)
{
    const struct field fields[] = {{member, FIELD_INT, false, .max = INT64_MAX}, FIELDS_END};
    return fields_read(parameters, fields, true, ret, fault);
}

#define NO_SEGMENT                                                                                 \
    {                                                                                              \
        .group = WIRE_ABSENT, .mode = WIRE_ABSENT, .label = "", .backing = SHMVIEW_BACKING_FILE,   \
        .paid_by = WIRE_ABSENT, .huge_bytes = WIRE_ABSENT, .nodes = WIRE_ABSENT                    \
    }
#define NO_ATTACHMENT                                                                              \
    {                                                                                              \
        .control = WIRE_ABSENT, .liveness = WIRE_ABSENT, .slot = WIRE_ABSENT,                      \
        .generation = WIRE_ABSENT                                                                  \
    }

int wire_read_attachment(const json_t *parameters, const char *member, struct wire_attachment *ret,
                         struct wire_fault *fault)
{
    *ret = (struct wire_attachment)NO_ATTACHMENT;
    const struct field fields[] = {{member, FIELD_OBJECT, false, .of = attachment_fields},
                                   FIELDS_END};
    return fields_read(parameters, fields, false, ret, fault);
}

int wire_read_segment(const json_t *parameters, const char *member, struct shmview_description *ret,
                      struct wire_fault *fault)
{
    const struct field fields[] = {{member, FIELD_OBJECT, false, .of = segment_fields}, FIELDS_END};
    *ret = (struct shmview_description)NO_SEGMENT;
    return fields_read(parameters, fields, false, ret, fault);
}

int wire_read_acl(const json_t *parameters, const char *member, struct wire_acl_entry **ret,
                  size_t *ret_n, struct wire_fault *fault)
{
    struct {
        struct wire_acl_entry *acl;
        size_t n;
    } got = {0};
    const struct field list[] = {
        {"acl", FIELD_OBJECTS, true, .count = sizeof(void *), .of = acl_fields,
         .of_bytes = sizeof(struct wire_acl_entry), .max = LIMIT_ACL_ENTRIES},
        FIELDS_END,
    };
    const struct field fields[] = {{member, FIELD_OBJECT, false, .of = list}, FIELDS_END};
    if (fields_read(parameters, fields, false, &got, fault)) {
        free(got.acl);
        return -1;
    }
    *ret = got.acl;
    *ret_n = got.n;
    return 0;
}

bool wire_attached_scan(const char *text, char *room, size_t room_bytes,
                        struct shmview_description *ret_segment,
                        struct wire_attachment *ret_attachment, struct wire_text *ret_layouts)
{
    struct fields_scan scan = {text, room, room_bytes};
    *ret_segment = (struct shmview_description)NO_SEGMENT;
    *ret_attachment = (struct wire_attachment)NO_ATTACHMENT;
    return fields_scan_literal(&scan, "{\"parameters\":{\"segment\":{") &&
           fields_scan_members(&scan, segment_fields, ret_segment) &&
           fields_scan_literal(&scan, ",\"acl\":[]},\"attachment\":{") &&
           fields_scan_members(&scan, attachment_fields, ret_attachment) &&
           fields_scan_literal(&scan, ",\"layouts\":") &&
           fields_scan_array(&scan, &ret_layouts->bytes, &ret_layouts->n) &&
           fields_scan_literal(&scan, "}}}") && !*scan.at;
}

bool wire_call_scan(struct wire_call *ret, const char *text)
{
    struct fields_scan scan = {text, ret->room, sizeof ret->room}, again = scan;
    ret->root = ret->parameters = NULL;
    ret->more = ret->upgrade = false;
    ret->attach = (struct wire_attach){.id = WIRE_ABSENT};
    if (fields_scan_literal(&scan, CALL("Attach"))) {
        ret->scanned = WIRE_SCANNED_ATTACH;
        ret->method = "io.shmview.Attach";
        ret->oneway = false;
        return fields_scan(&scan, attach_fields, &ret->attach) && fields_scan_literal(&scan, "}") &&
               !*scan.at;
    }
    ret->scanned = WIRE_SCANNED_DETACH;
    ret->method = "io.shmview.Detach";
    ret->oneway = true;
    return fields_scan_literal(&again, CALL("Detach")) &&
           fields_scan(&again, attachment_id_fields, &ret->attachment) &&
           fields_scan_literal(&again, DETACH_END) && !*again.at;
}

char *wire_attached_layouts(const json_t *parameters)
{
    const json_t *attachment = json_object_get(parameters, "attachment");
    return json_text(json_object_get(attachment, "layouts"), NULL);
}

int wire_read_claimed(const json_t *parameters, struct wire_claimed *ret, struct wire_fault *fault)
{
    *ret = (struct wire_claimed){
        .descriptors = WIRE_ABSENT, .presence = WIRE_ABSENT, .bell = WIRE_ABSENT};
    if (fields_read(parameters, claimed_fields, false, ret, fault) == 0)
        return 0;
    free(ret->held);
    ret->held = NULL;
    return -1;
}

/* --- Writing ------------------------------------------------------------- */

#define REPLY         "{\"parameters\":"
#define SEGMENT_REPLY "{\"parameters\":{\"segment\":"

char *wire_ping_text(void)
{
    return strdup(CALL("Ping") "{}}");
}

char *wire_hand_over_text(void)
{
    return strdup(CALL("HandOver") "{}}");
}

char *wire_create_text(const struct wire_create *create)
{
    return fields_message(CALL("Create"), create_fields, create, "}", NULL);
}

char *wire_attach_text(const struct wire_attach *attach)
{
    return fields_message(CALL("Attach"), attach_fields, attach, "}", NULL);
}

char *wire_detach_text(int64_t attachment)
{
    return fields_message(CALL("Detach"), attachment_id_fields, &attachment, DETACH_END, NULL);
}

char *wire_remove_text(const char *name)
{
    static const struct field fields[] = {{"name", FIELD_STRING, false, .max = LIMIT_NAME_BYTES},
                                          FIELDS_END};
    return fields_message(CALL("Remove"), fields, &name, "}", NULL);
}

char *wire_define_text(const struct wire_define *define)
{
    return fields_message(CALL("DefineLayout"), define_fields, define, "}", NULL);
}

char *wire_set_access_text(const struct wire_set_access *set)
{
    return fields_message(CALL("SetAccess"), set_access_fields, set, "}", NULL);
}

char *wire_entrust_text(const struct wire_entrust *entrust)
{
    return fields_message(CALL("Entrust"), entrust_fields, entrust, "}", NULL);
}

char *wire_claim_text(const struct wire_claim *claim)
{
    return fields_message(CALL("Claim"), claim_fields, claim, "}", NULL);
}

char *wire_attachment_text(const char *method, int64_t attachment)
{
    char head[100];
    snprintf(head, sizeof head, "{\"method\":\"%s\",\"parameters\":", method);
    return fields_message(head, attachment_id_fields, &attachment, "}", NULL);
}

char *wire_claimed_text(const struct wire_claimed *claimed, size_t *ret_bytes)
{
    return fields_message(REPLY, claimed_fields, claimed, "}", ret_bytes);
}

void wire_add_segment(struct json_text *text, const struct shmview_description *segment,
                      const struct wire_acl_entry *acl, size_t n)
{
    json_text_raw(text, "{");
    fields_text_members(segment_fields, segment, text);
    if (acl) {
        json_text_raw(text, ",\"acl\":");
        fields_text_array(acl_fields, sizeof *acl, acl, n, text);
    }
    json_text_raw(text, "}");
}

char *wire_attached_text(const struct shmview_description *segment,
                         const struct wire_acl_entry *acl, size_t n,
                         const struct wire_attachment *attachment, const struct wire_text *layouts,
                         size_t *ret_bytes)
{
    struct json_text t;
    json_text_begin(&t);
    json_text_raw(&t, SEGMENT_REPLY);
    wire_add_segment(&t, segment, acl, n);
    json_text_raw(&t, ",\"attachment\":{");
    fields_text_members(attachment_fields, attachment, &t);
    json_text_raw(&t, ",\"layouts\":[");
    json_text_add(&t, layouts->bytes, layouts->n);
    json_text_raw(&t, "]}}}");
    return json_text_end(&t, ret_bytes);
}

char *wire_segment_text(const struct shmview_description *segment, const struct wire_acl_entry *acl,
                        size_t n, size_t *ret_bytes)
{
    struct json_text t;
    json_text_begin(&t);
    json_text_raw(&t, SEGMENT_REPLY);
    wire_add_segment(&t, segment, acl, n);
    json_text_raw(&t, "}}");
    return json_text_end(&t, ret_bytes);
}

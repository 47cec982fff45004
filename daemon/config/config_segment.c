/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the declared segments: the key "segments" of a configuration. Each one is read as a whole,
 * and its layouts are then checked against its size. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/base/limits.h"
#include "common/base/name.h"
#include "common/base/util.h"
#include "daemon/config/config_line.h"
#include "daemon/config/config_reader.h"
#include "daemon/config/config_stream.h"
#include "daemon/config/layout_check.h"

/* The mode of a segment that declares none, until config_settle_segments(). */
#define MODE_DEFAULT UINT32_MAX

static void read_name(struct config_reader *reader, const json_t *value, void *at)
{
    const char *name = config_string(reader, value);
    if (name && !name_is_valid(name, LIMIT_NAME_BYTES))
        config_fault(reader, "must be 1 to %d of A-Z a-z 0-9 . _ -, not starting with a dot",
                     LIMIT_NAME_BYTES);
    else
        *(const char **)at = name;
}

static void read_label(struct config_reader *reader, const json_t *value, void *at)
{
    const char *label = config_string(reader, value);
    if (label && !label_is_valid(label))
        config_fault(reader, "must be 1 to %d bytes of UTF-8 without control characters",
                     LIMIT_LABEL_BYTES);
    else
        *(const char **)at = label;
}

static void read_size(struct config_reader *reader, const json_t *value, void *at)
{
    uint64_t bytes = 0;
    int r = -EINVAL;
    if (json_is_integer(value)) {
        json_int_t n = json_integer_value(value);
        bytes = (uint64_t)n;
        r = n >= 1 && n <= (json_int_t)LIMIT_SEGMENT_BYTES ? 0 : -ERANGE;
    } else if (json_is_string(value)) {
        r = config_parse_size(json_string_value(value), 0, &bytes);
    }
    if (r == 0)
        *(uint64_t *)at = bytes;
    else if (r == -ERANGE)
        config_fault(reader, "must be 1 to %" PRIu64 " bytes", LIMIT_SEGMENT_BYTES);
    else
        config_fault(reader, "must be a number of bytes, or a string like \"64MiB\"");
}

/* Reads the id of a user or group: a number, or a name that is looked up. */
static void read_id(struct config_reader *reader, const json_t *value, enum access_kind kind,
                    uint32_t *ret)
{
    const char *text = json_string_value(value);
    json_int_t n = json_integer_value(value);
    if (json_is_integer(value) && n >= 0 && n < UINT32_MAX) {
        *ret = (uint32_t)n;
    } else if (text) {
        int r = config_parse_id(text, kind, reader->lookup, ret);
        if (r)
            config_fault_id(reader, text, kind, r);
    } else {
        config_fault(reader, "must be a name or a %s", kind == ACCESS_USER ? "uid" : "gid");
    }
}

static void read_owner(struct config_reader *reader, const json_t *value, void *at)
{
    read_id(reader, value, ACCESS_USER, at);
}

static void read_group(struct config_reader *reader, const json_t *value, void *at)
{
    read_id(reader, value, ACCESS_GROUP, at);
}

static void read_lifetime(struct config_reader *reader, const json_t *value, void *at)
{
    const char *name = json_string_value(value);
    if (name && strcmp(name, "manual") == 0)
        *(int64_t *)at = SHMVIEW_MANUAL;
    else if (name && strcmp(name, "attached") == 0)
        *(int64_t *)at = SHMVIEW_ATTACHED;
    else
        config_fault(reader, "must be \"manual\" or \"attached\"");
}

/* --- The access control list --------------------------------------------- */

/* Adds one entry. Two entries for the same user or group are an error, because it would be unclear
 * which one holds. */
static void read_entry(struct config_reader *reader, const json_t *value, struct access *access)
{
    struct access_entry entry;
    const char *text = config_string(reader, value);
    if (!text)
        return;
    int r = config_parse_entry(text, true, reader->lookup, &entry);
    if (r == -EINVAL) {
        config_fault(reader,
                     "must be \"user:NAME:\" or \"group:NAME:\", followed by r, w, rw or -");
        return;
    }
    if (r) {
        config_fault_id(reader, text, (enum access_kind)entry.kind, r);
        return;
    }
    for (uint32_t i = 0; i < access->n_entries; i++)
        if (access->entries[i].kind == entry.kind && access->entries[i].id == entry.id) {
            config_fault(reader, "is '%.100s': this list has that %s already", text,
                         entry.kind == ACCESS_USER ? "user" : "group");
            return;
        }
    access->entries[access->n_entries++] = entry;
}

static void read_acl(struct config_reader *reader, const json_t *value, void *at)
{
    size_t n = json_array_size(value);
    if (!json_is_array(value)) {
        config_fault(reader, "must be an array");
        return;
    }
    if (n > LIMIT_ACL_ENTRIES) {
        config_fault(reader, "has %zu entries, the limit is %d", n, LIMIT_ACL_ENTRIES);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        size_t mark = config_path_index(reader, i);
        read_entry(reader, json_array_get(value, i), at);
        config_path_cut(reader, mark);
    }
}

/* --- Layouts -------------------------------------------------------------- */

/* Decodes one layout as strictly as a request. The fault names the member at fault. */
static void read_layout(struct config_reader *reader, const json_t *value,
                        struct wire_layout *layout)
{
    struct wire_fault fault;
    if (wire_read_layout(value, layout, &fault) == 0)
        return;
    size_t mark =
        fault.parameter[0] ? config_path_key(reader, fault.parameter) : strlen(reader->path);
    config_fault(reader, "%s", fault.reason);
    config_path_cut(reader, mark);
}

/* n_layouts is set before any layout is read, so that all are freed also after a fault. */
static void read_layouts(struct config_reader *reader, const json_t *value, void *at)
{
    struct config_segment *s = at;
    size_t n = json_array_size(value);
    if (s->is_stream)
        return; /* check_keys() reports that */
    if (!json_is_array(value)) {
        config_fault(reader, "must be an array");
        return;
    }
    if (n > LIMIT_LAYOUTS) {
        config_fault(reader, "has %zu layouts, the limit is %d", n, LIMIT_LAYOUTS);
        return;
    }
    s->layouts = calloc(n ? n : 1, sizeof *s->layouts);
    if (!s->layouts) {
        config_fault_memory(reader);
        return;
    }
    s->n_layouts = n;
    for (size_t i = 0; i < n; i++) {
        size_t mark = config_path_index(reader, i);
        read_layout(reader, json_array_get(value, i), &s->layouts[i]);
        config_path_cut(reader, mark);
    }
}

/* Checks the layouts of a segment whose members had no fault: without a valid size there is nothing
 * to check against. */
static void check_layouts(struct config_reader *reader, struct config_segment *s)
{
    size_t start = config_path_key(reader, "layouts");
    for (size_t i = 0; i < s->n_layouts; i++) {
        struct layout_fault fault;
        size_t mark = config_path_index(reader, i);
        if (layout_resolve(&s->layouts[i], &reader->config->formats, &fault) ||
            layout_fit(&s->layouts[i], s->size, &fault)) {
            if (fault.view != LAYOUT_NO_VIEW) {
                config_path_key(reader, "views");
                config_path_index(reader, fault.view);
            }
            config_fault(reader, "does not fit: %s", fault.text);
        }
        for (size_t k = 0; k < i; k++)
            if (strcmp(s->layouts[i].name, s->layouts[k].name) == 0)
                config_fault(reader, "is a second layout '%s'", s->layouts[i].name);
        config_path_cut(reader, mark);
    }
    config_path_cut(reader, start);
}

/* --- Segments ------------------------------------------------------------- */

static void segment_deinit(struct config_segment *s)
{
    wire_layouts_free(s->layouts, s->n_layouts);
}

/* Moves the segment into the configuration, or frees it after a fault. */
static void keep_segment(struct config_reader *reader, struct config_segment *s)
{
    struct config *config = reader->config;
    const struct config_segment *other = config_find_segment(config, s->name);
    struct config_segment *more = NULL;
    if (other)
        config_fault(reader, "declares '%s' again: it is declared at %s:%u", s->name, other->file,
                     other->line);
    else if (config->n_segments == LIMIT_CONFIG_SEGMENTS)
        config_fault(reader, "is one segment too many: the limit is %d", LIMIT_CONFIG_SEGMENTS);
    else if (!(more = realloc(config->segments, (config->n_segments + 1) * sizeof *more)))
        config_fault_memory(reader);
    if (!more) {
        segment_deinit(s);
        return;
    }
    config->segments = more;
    config->segments[config->n_segments++] = *s;
}

static void read_stream(struct config_reader *reader, const json_t *value, void *at)
{
    struct config_segment *s = at;
    s->is_stream = true;
    if (!s->layouts)
        config_read_stream(reader, value, s);
}

/* Reports a key that the segment lacks, or must not have because it is a stream. */
static void check_keys(struct config_reader *reader, const json_t *value,
                       const struct config_segment *s)
{
    static const char *const others[] = {"size", "layouts"};
    if (!s->is_stream && json_is_object(value) && !json_object_get(value, "size"))
        config_fault(reader, "has no \"size\"");
    for (size_t i = 0; s->is_stream && i < ARRAY_LEN(others); i++)
        if (json_object_get(value, others[i])) {
            size_t mark = config_path_key(reader, others[i]);
            config_fault(reader, "follows from \"stream\", and must not be beside it");
            config_path_cut(reader, mark);
        }
    if (s->is_stream && s->huge) {
        size_t mark = config_path_key(reader, "huge");
        config_fault(reader, "must not be beside \"stream\"");
        config_path_cut(reader, mark);
    }
    if (s->is_stream && !s->lock) {
        size_t mark = config_path_key(reader, "lock");
        config_fault(reader, "must be true, because a stream needs a lock");
        config_path_cut(reader, mark);
    }
}

static void read_segment(struct config_reader *reader, const json_t *value, unsigned line)
{
#define AT(member) offsetof(struct config_segment, member)
    static const struct config_key keys[] = {
        {"name", read_name, AT(name), true},
        {"size", read_size, AT(size), false},
        {"owner", read_owner, AT(access.uid), false},
        {"group", read_group, AT(access.gid), false},
        {"mode", config_read_mode, AT(access.mode), false},
        {"acl", read_acl, AT(access), false},
        {"lifetime", read_lifetime, AT(lifetime), false},
        {"lock", config_read_bool, AT(lock), false},
        {"label", read_label, AT(label), false},
        {"backing", config_read_backing, AT(backing), false},
        {"huge", config_read_huge, AT(huge), false},
        {"numa", config_read_numa, 0, false},
        {"layouts", read_layouts, 0, false},
        {"stream", read_stream, 0, false},
        {.name = NULL},
    };
#undef AT
    unsigned errors = reader->n_errors;
    struct config_segment s = {
        .access = {.uid = geteuid(), .gid = getegid(), .mode = MODE_DEFAULT},
        .lifetime = SHMVIEW_MANUAL,
        .lock = true,
        .node = WIRE_ABSENT,
        .file = reader->file,
        .line = line,
    };
    config_read_object(reader, value, keys, &s);
    check_keys(reader, value, &s);
    if (reader->n_errors == errors && s.is_stream)
        config_plan_stream(reader, &s);
    else if (reader->n_errors == errors)
        check_layouts(reader, &s);
    if (s.name)
        keep_segment(reader, &s);
    else
        segment_deinit(&s);
}

void config_read_segments(struct config_reader *reader, const json_t *value, void *config)
{
    (void)config;
    if (!json_is_array(value)) {
        config_fault(reader, "must be an array");
        return;
    }
    size_t n = json_array_size(value);
    if (n > LIMIT_CONFIG_SEGMENTS) {
        config_fault(reader, "has %zu segments, the limit is %d", n, LIMIT_CONFIG_SEGMENTS);
        return;
    }
    CLEANUP_FREE unsigned *lines = calloc(n ? n : 1, sizeof *lines);
    if (!lines) {
        config_fault_memory(reader);
        return;
    }
    config_lines(reader->text, reader->path, lines, n);
    for (size_t i = 0; i < n; i++) {
        size_t mark = config_path_index(reader, i);
        read_segment(reader, json_array_get(value, i), lines[i]);
        config_path_cut(reader, mark);
    }
}

void config_settle_segments(struct config_reader *reader)
{
    struct config *config = reader->config;
    for (size_t i = 0; i < config->n_segments; i++)
        if (config->segments[i].access.mode == MODE_DEFAULT)
            config->segments[i].access.mode = config->default_mode;
}

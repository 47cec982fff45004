/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config_reader.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/config/config_line.h"

/* --- Faults -------------------------------------------------------------- */

/* Reports a line, unless too many were reported. A line can contain text of a file; control
 * characters are replaced, because a newline in it could forge another line. */
static void say(struct config_reader *reader, char *line)
{
    if (reader->n_errors++ >= LIMIT_CONFIG_ERRORS)
        return;
    for (char *p = line; *p; p++)
        if ((unsigned char)*p < ' ' || *p == 0x7f)
            *p = '?';
    reader->say(reader->arg, line);
}

/* Reports an error at file and line; line 0 stands for the whole file. */
__attribute__((format(printf, 4, 0))) static void say_at(struct config_reader *reader,
                                                         const char *file, unsigned line,
                                                         const char *format, va_list ap)
{
    char text[PATH_MAX + 800];
    int n = line ? snprintf(text, sizeof text, "%.*s:%u: ", PATH_MAX, file, line)
                 : snprintf(text, sizeof text, "%.*s: ", PATH_MAX, file);
    vsnprintf(text + n, sizeof text - (size_t)n, format, ap);
    say(reader, text);
}

void config_reader_fault(struct config_reader *reader, const char *file, unsigned line,
                         const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    say_at(reader, file, line, format, ap);
    va_end(ap);
}

void config_reader_passing(struct config_reader *reader)
{
    reader->n_passing++;
}

static void fault_syntax(struct config_reader *reader, const json_error_t *error)
{
    char text[PATH_MAX + 800];
    if (!error->text[0])
        config_reader_passing(reader);
    snprintf(text, sizeof text, "%.*s:%d: %s", PATH_MAX, reader->file,
             error->line > 0 ? error->line : 1, error->text[0] ? error->text : "out of memory");
    say(reader, text);
}

/* Finds the line only for errors that are reported, because it walks through the text. */
void config_fault(struct config_reader *reader, const char *format, ...)
{
    char text[PATH_MAX + 800];
    unsigned line =
        reader->n_errors < LIMIT_CONFIG_ERRORS ? config_line(reader->text, reader->path) : 0;
    int n = snprintf(text, sizeof text, "%.*s:%u: %s%s", PATH_MAX, reader->file, line, reader->path,
                     reader->path[0] ? " " : "");
    va_list ap;
    va_start(ap, format);
    vsnprintf(text + n, sizeof text - (size_t)n, format, ap);
    va_end(ap);
    say(reader, text);
}

void config_fault_memory(struct config_reader *reader)
{
    config_reader_passing(reader);
    config_fault(reader, "cannot be read: out of memory");
}

/* --- Objects ------------------------------------------------------------- */

size_t config_path_key(struct config_reader *reader, const char *key)
{
    size_t mark = strlen(reader->path);
    snprintf(reader->path + mark, sizeof reader->path - mark, "%s%.100s", mark ? "." : "", key);
    return mark;
}

size_t config_path_index(struct config_reader *reader, size_t index)
{
    size_t mark = strlen(reader->path);
    snprintf(reader->path + mark, sizeof reader->path - mark, "[%zu]", index);
    return mark;
}

void config_path_cut(struct config_reader *reader, size_t mark)
{
    reader->path[mark] = '\0';
}

void config_read_object(struct config_reader *reader, const json_t *value,
                        const struct config_key *keys, void *into)
{
    const char *name;
    json_t *member;
    if (!json_is_object(value)) {
        config_fault(reader, "must be an object");
        return;
    }
    json_object_foreach ((json_t *)value, name, member) {
        const struct config_key *key = keys;
        size_t mark = config_path_key(reader, name);
        while (key->name && strcmp(key->name, name) != 0)
            key++;
        if (key->name)
            key->read(reader, member, (char *)into + key->offset);
        else
            config_fault(reader, "is not a known key");
        config_path_cut(reader, mark);
    }
    for (const struct config_key *key = keys; key->name; key++)
        if (key->required && !json_object_get(value, key->name))
            config_fault(reader, "has no \"%s\"", key->name);
}

/* --- Values -------------------------------------------------------------- */

const char *config_string(struct config_reader *reader, const json_t *value)
{
    if (!json_is_string(value))
        config_fault(reader, "must be a string");
    return json_string_value(value);
}

void config_read_bool(struct config_reader *reader, const json_t *value, void *at)
{
    if (json_is_boolean(value))
        *(bool *)at = json_is_true(value);
    else
        config_fault(reader, "must be true or false");
}

void config_read_mode(struct config_reader *reader, const json_t *value, void *at)
{
    const char *text = json_string_value(value);
    if (!text || config_parse_mode(text, at))
        config_fault(reader, "must be a string of octal digits, at most \"0666\"");
}

void config_read_backing(struct config_reader *reader, const json_t *value, void *at)
{
    const char *name = json_string_value(value);
    int64_t backing = SHMVIEW_BACKING_SEALED;
    while (name && backing && strcmp(name, wire_backing_name(backing)) != 0)
        backing--;
    if (name && backing)
        *(int64_t *)at = backing;
    else
        config_fault(reader, "must be \"file\" or \"sealed\"");
}

void config_fault_id(struct config_reader *reader, const char *text, enum access_kind kind,
                     int error)
{
    const char *what = kind == ACCESS_USER ? "user" : "group";
    if (error == -ENOENT) {
        config_fault(reader, "is '%.100s': there is no such %s", text, what);
        return;
    }
    config_reader_passing(reader);
    config_fault(reader, "is '%.100s': the %s cannot be looked up: %s", text, what,
                 strerror(-error));
}

/* Returns whether the value is "unlimited", and stores QUOTA_UNLIMITED if so. */
static bool read_unlimited(const json_t *value, uint64_t *ret)
{
    const char *text = json_string_value(value);
    if (!text || strcmp(text, "unlimited") != 0)
        return false;
    *ret = QUOTA_UNLIMITED;
    return true;
}

/* Reads a number of bytes, `least` or more. others has examples of texts that are right, too. */
static void read_bytes(struct config_reader *reader, const json_t *value, int least,
                       const char *others, uint64_t *ret)
{
    int r = -EINVAL;
    if (json_is_integer(value)) {
        json_int_t n = json_integer_value(value);
        r = n >= least && n <= (json_int_t)LIMIT_SEGMENT_BYTES ? 0 : -ERANGE;
        *ret = (uint64_t)n;
    } else if (json_is_string(value)) {
        r = config_parse_size(json_string_value(value), reader->memory, ret);
    }
    if (r == -ERANGE)
        config_fault(reader, "must be %d to %" PRIu64 " bytes, or 1%% to 100%%", least,
                     LIMIT_SEGMENT_BYTES);
    else if (r)
        config_fault(reader, "must be a number of bytes, or a string like %s", others);
}

static void read_quota_bytes(struct config_reader *reader, const json_t *value, void *at)
{
    if (!read_unlimited(value, at))
        read_bytes(reader, value, 1, "\"64MiB\", \"50%\" or \"unlimited\"", at);
}

/* Reads the most bytes of the pool. */
static void read_pool(struct config_reader *reader, const json_t *value, void *at)
{
    read_bytes(reader, value, 0, "\"64MiB\" or \"1%\"", at);
}

static void read_quota_count(struct config_reader *reader, const json_t *value, void *at)
{
    uint64_t *ret = at;
    if (read_unlimited(value, ret))
        return;
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value))
        config_fault(reader, "must be an integer or \"unlimited\"");
    else if (n < 1 || n > LIMIT_CONFIG_COUNT)
        config_fault(reader, "is %" JSON_INTEGER_FORMAT ", must be 1 to %d", n, LIMIT_CONFIG_COUNT);
    else
        *ret = (uint64_t)n;
}

#define QUOTA(name, read)                                                                          \
    {                                                                                              \
#name, read, offsetof(struct quota_limit, name), false                                     \
    }

static void read_quota(struct config_reader *reader, const json_t *value, void *at)
{
    static const struct config_key keys[] = {
        QUOTA(bytes, read_quota_bytes),        QUOTA(segments, read_quota_count),
        QUOTA(attachments, read_quota_count),  QUOTA(connections, read_quota_count),
        QUOTA(layout_bytes, read_quota_bytes), QUOTA(requests_per_second, read_quota_count),
        QUOTA(burst, read_quota_count),        {.name = NULL},
    };
    config_read_object(reader, value, keys, at);
}

static void read_quotas(struct config_reader *reader, const json_t *value, void *config)
{
    static const struct config_key keys[] = {
        {"user", read_quota, offsetof(struct config, limits.user), false},
        {"total", read_quota, offsetof(struct config, limits.total), false},
        {.name = NULL},
    };
    config_read_object(reader, value, keys, config);
}

static void read_defaults(struct config_reader *reader, const json_t *value, void *config)
{
    static const struct config_key keys[] = {
        {"mode", config_read_mode, offsetof(struct config, default_mode), false},
        {"backing", config_read_backing, offsetof(struct config, default_backing), false},
        {.name = NULL},
    };
    config_read_object(reader, value, keys, config);
}

static void read_log_level(struct config_reader *reader, const json_t *value, void *at)
{
    static const struct {
        const char *name;
        enum log_priority level;
    } levels[] = {{"error", LOG_ERROR}, {"warning", LOG_WARNING}, {"info", LOG_INFO}};
    const char *name = json_string_value(value);
    for (size_t i = 0; name && i < ARRAY_LEN(levels); i++)
        if (strcmp(name, levels[i].name) == 0) {
            *(enum log_priority *)at = levels[i].level;
            return;
        }
    config_fault(reader, "must be \"error\", \"warning\" or \"info\"");
}

static void read_admin_group(struct config_reader *reader, const json_t *value, void *at)
{
    struct config *config = at;
    const char *name = config_string(reader, value);
    if (!name)
        return;
    int r = config_parse_id(name, ACCESS_GROUP, reader->lookup, &config->admin_group);
    config->has_admin_group = r == 0;
    if (r)
        config_fault_id(reader, name, ACCESS_GROUP, r);
}

/* Adds one user or group, or everybody for "*". */
static void read_person(struct config_reader *reader, const json_t *value,
                        struct config_people *people)
{
    struct access_entry entry;
    const char *text = config_string(reader, value);
    if (!text)
        return;
    if (strcmp(text, "*") == 0) {
        people->everybody = true;
        return;
    }
    int r = config_parse_entry(text, false, reader->lookup, &entry);
    if (r == -EINVAL)
        config_fault(reader, "must be \"*\", \"user:NAME\" or \"group:NAME\"");
    else if (r)
        config_fault_id(reader, text, (enum access_kind)entry.kind, r);
    else if (people->n_entries == LIMIT_CONFIG_PEOPLE)
        config_fault(reader, "is one user or group too many: the limit is %d", LIMIT_CONFIG_PEOPLE);
    if (r || people->n_entries == LIMIT_CONFIG_PEOPLE)
        return;
    struct access_entry *more =
        realloc(people->entries, (people->n_entries + 1) * sizeof *people->entries);
    if (!more) {
        config_fault_memory(reader);
        return;
    }
    people->entries = more;
    people->entries[people->n_entries++] = entry;
}

/* The first list replaces the default, by which everybody may create; later ones add to it. */
static void read_create(struct config_reader *reader, const json_t *value, void *at)
{
    struct config_people *people = at;
    size_t i;
    json_t *element;
    if (!json_is_array(value)) {
        config_fault(reader, "must be an array");
        return;
    }
    if (!reader->says_who_creates)
        people->everybody = false;
    reader->says_who_creates = true;
    json_array_foreach (value, i, element) {
        size_t mark = config_path_index(reader, i);
        read_person(reader, element, people);
        config_path_cut(reader, mark);
    }
}

/* --- The whole ----------------------------------------------------------- */

int config_reader_begin(struct config_reader *reader, config_lookup *lookup, uint64_t memory,
                        config_say *say_line, void *arg)
{
    *reader = (struct config_reader){
        .config = config_new(),
        .lookup = lookup,
        .memory = memory,
        .say = say_line,
        .arg = arg,
    };
    if (reader->config)
        return 0;
    say_line(arg, "configuration: out of memory");
    return -1;
}

void config_reader_add(struct config_reader *reader, const char *file, const char *text,
                       size_t bytes)
{
    static const struct config_key keys[] = {
        {"quotas", read_quotas, 0, false},
        {"defaults", read_defaults, 0, false},
        {"create", read_create, offsetof(struct config, create), false},
        {"admin_group", read_admin_group, 0, false},
        {"log_level", read_log_level, offsetof(struct config, log_level), false},
        {"pool", read_pool, offsetof(struct config, pool_bytes), false},
        {"only_sealed", config_read_bool, offsetof(struct config, only_sealed), false},
        {"segments", config_read_segments, 0, false},
        {.name = NULL},
    };
    json_error_t error;
    json_t *name = json_string(file);
    json_t *json = json_loadb(text, bytes, JSON_REJECT_DUPLICATES, &error);
    reader->file = name ? json_string_value(name) : "configuration";
    reader->text = text;
    /* keep both, because the configuration borrows strings from them */
    if (!json) {
        fault_syntax(reader, &error);
    } else if (!name || json_array_append(reader->config->kept, json) ||
               json_array_append(reader->config->kept, name)) {
        config_reader_passing(reader);
        config_reader_fault(reader, file, 0, "out of memory");
    } else {
        config_read_object(reader, json, keys, reader->config);
    }
    json_decref(json);
    json_decref(name);
}

/* Without a configured burst a user may send the requests of one second at once. */
static void settle_quota(struct quota_limit *quota)
{
    if (quota->burst == QUOTA_UNLIMITED)
        quota->burst = quota->requests_per_second;
}

/* Applies only_sealed, which may stand in another file than what it excludes. */
static void settle_backing(struct config_reader *reader)
{
    struct config *config = reader->config;
    if (!config->only_sealed)
        return;
    if (config->default_backing == SHMVIEW_BACKING_FILE)
        config_reader_fault(reader, "configuration", 0,
                            "defaults.backing is \"file\", but only_sealed is true");
    config->default_backing = SHMVIEW_BACKING_SEALED;
    for (size_t i = 0; i < config->n_segments; i++) {
        const struct config_segment *s = &config->segments[i];
        if (s->backing == SHMVIEW_BACKING_FILE)
            config_reader_fault(reader, s->file, s->line,
                                "the backing of segment '%s' is \"file\", but only_sealed is true",
                                s->name);
    }
}

struct config *config_reader_end(struct config_reader *reader)
{
    config_settle_segments(reader);
    settle_backing(reader);
    settle_quota(&reader->config->limits.user);
    settle_quota(&reader->config->limits.total);
    if (reader->n_errors > LIMIT_CONFIG_ERRORS) {
        char text[80];
        snprintf(text, sizeof text, "configuration: %u more errors",
                 reader->n_errors - LIMIT_CONFIG_ERRORS);
        reader->say(reader->arg, text);
    }
    if (reader->n_errors)
        reader->config = config_free(reader->config);
    return STEAL(reader->config);
}

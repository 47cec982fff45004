/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes as up to three configuration files with a NUL between them. An accepted
 * configuration must obey every rule. A refused one must be reported in lines that name a file and
 * a line number that exists in it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/name.h"
#include "daemon/config/config_reader.h"
#include "fuzz.h"

#define MAX_FILES 3

struct trial {
    unsigned n_lines[MAX_FILES]; /* in each file */
    unsigned n_files;
    unsigned n_said;
};

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* Stands in for the user database: names with p exist, names with s fail with EIO. */
static int lookup(enum access_kind kind, const char *name, uint32_t *ret_id)
{
    REQUIRE(kind == ACCESS_USER || kind == ACCESS_GROUP);
    if (name[0] != 'p')
        return name[0] == 's' ? -EIO : -ENOENT;
    *ret_id = (uint32_t)strlen(name);
    return 0;
}

static void say(void *arg, const char *line)
{
    struct trial *t = arg;
    unsigned file, number;
    t->n_said++;
    REQUIRE(line[0] && !strpbrk(line, "\n\r\033"));
    if (strncmp(line, "configuration: ", strlen("configuration: ")) == 0)
        return;
    REQUIRE(sscanf(line, "file%u:%u: ", &file, &number) == 2);
    REQUIRE(file < t->n_files);
    /* the parser counts one more line where the text ends with a newline */
    REQUIRE(number >= 1 && number <= t->n_lines[file] + 1);
}

static void check_quota(const struct quota_limit *q)
{
    REQUIRE(q->bytes >= 1 && (q->bytes <= LIMIT_SEGMENT_BYTES || q->bytes == QUOTA_UNLIMITED));
    REQUIRE(q->segments >= 1 && q->attachments >= 1 && q->connections >= 1);
    REQUIRE(q->requests_per_second >= 1 && q->burst >= 1);
}

static void check_segment(const struct config *c, size_t index)
{
    const struct config_segment *s = &c->segments[index];
    REQUIRE(name_is_valid(s->name, LIMIT_NAME_BYTES));
    REQUIRE(!s->label || label_is_valid(s->label));
    REQUIRE(config_find_segment(c, s->name) == s); /* no other segment has its name */
    REQUIRE(s->size >= 1 && s->size <= LIMIT_SEGMENT_BYTES);
    REQUIRE((s->access.mode & ~ACCESS_MODES) == 0);
    REQUIRE(s->access.n_entries <= LIMIT_ACL_ENTRIES);
    REQUIRE(s->lifetime == SHMVIEW_MANUAL || s->lifetime == SHMVIEW_ATTACHED);
    REQUIRE(s->line >= 1 && strncmp(s->file, "file", 4) == 0);
    REQUIRE(s->n_layouts <= LIMIT_LAYOUTS);
    for (size_t i = 0; i < s->n_layouts; i++) {
        struct formats pool = {0};
        REQUIRE(name_is_valid(s->layouts[i].name, LIMIT_VIEW_NAME_BYTES));
        for (size_t k = 0; k < s->layouts[i].n_views; k++) {
            struct format_fault fault;
            const struct wire_view *v = &s->layouts[i].views[k];
            const struct format *f = formats_get(&pool, v->format, &fault);
            REQUIRE(f && strcmp(f->text, v->format) == 0); /* the canonical text */
            REQUIRE(v->desc.offset <= s->size);
        }
        formats_deinit(&pool);
    }
}

static void check(const struct config *c)
{
    check_quota(&c->limits.user);
    check_quota(&c->limits.total);
    REQUIRE((c->default_mode & ~ACCESS_MODES) == 0);
    for (size_t i = 0; i < c->n_segments; i++)
        check_segment(c, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct trial t = {0};
    struct config_reader reader;
    REQUIRE(config_reader_begin(&reader, lookup, 1000000, say, &t) == 0);
    for (size_t at = 0; at <= size && t.n_files < MAX_FILES;) {
        char name[16];
        const uint8_t *end = size > at ? memchr(data + at, 0, size - at) : NULL;
        size_t n = end && t.n_files < MAX_FILES - 1 ? (size_t)(end - data) - at : size - at;
        char *text = malloc(n + 1);
        REQUIRE(text);
        if (n)
            memcpy(text, data + at, n);
        text[n] = '\0';
        t.n_lines[t.n_files] = 1;
        for (size_t i = 0; i < n; i++)
            t.n_lines[t.n_files] += text[i] == '\n';
        snprintf(name, sizeof name, "file%u", t.n_files++);
        config_reader_add(&reader, name, text, n);
        free(text);
        at += n + 1;
    }
    struct config *config = config_reader_end(&reader);
    REQUIRE((config == NULL) == (t.n_said > 0));
    if (config)
        check(config);
    config_free(config);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Reads texts of a configuration, and collects what is reported about them. */
#ifndef UNIT_CONFIG_TEXT_H
#define UNIT_CONFIG_TEXT_H

#include "unit/unit.h"

#include "daemon/config/config_reader.h"

#define MEMORY 1000000 /* of the machine */

static char said[16384]; /* one line for each fault */

static inline void say(void *arg, const char *line)
{
    size_t n = strlen(said);
    (void)arg;
    ck_assert_ptr_null(strpbrk(line, "\n\r\t\033"));
    ck_assert_int_lt(snprintf(said + n, sizeof said - n, "%s\n", line), (int)(sizeof said - n));
}

static inline int lookup(enum access_kind kind, const char *name, uint32_t *ret_id)
{
    if (strcmp(name, "ann") == 0 && kind == ACCESS_USER)
        *ret_id = 1001;
    else if (strcmp(name, "lab") == 0 && kind == ACCESS_GROUP)
        *ret_id = 2001;
    else
        return strcmp(name, "slow") == 0 ? -ETIMEDOUT : -ENOENT;
    return 0;
}

static struct config_reader reader;

static inline void begin(void)
{
    said[0] = '\0';
    ck_assert_int_eq(config_reader_begin(&reader, lookup, MEMORY, say, NULL), 0);
}

static inline void add(const char *file, const char *text)
{
    char *copy = strdup(unit_json(text)); /* the configuration must not borrow from it */
    config_reader_add(&reader, file, copy, strlen(copy));
    memset(copy, '#', strlen(copy));
    free(copy);
}

/* Reads a valid text. The caller frees the result with config_free(). */
static inline struct config *reads(const char *text)
{
    begin();
    add("f", text);
    struct config *config = config_reader_end(&reader);
    ck_assert_str_eq(said, "");
    ck_assert_ptr_nonnull(config);
    return config;
}

/* Reads an invalid text, for which exactly these lines must be reported. */
static inline void refuses(const char *text, const char *lines)
{
    begin();
    add("f", text);
    ck_assert_ptr_null(config_reader_end(&reader));
    ck_assert_str_eq(said, lines);
}

#endif

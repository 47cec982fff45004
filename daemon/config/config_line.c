/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config_line.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* No function here reads beyond the NUL, whatever the text is. */

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* p points to a quote. Returns the byte after the closing quote. */
static const char *skip_string(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : p;
}

/* p points to a value. Returns the byte after it: the comma or bracket that follows, if there is no
 * space in between. Counts brackets and skips strings; whether the brackets match is the parser's
 * concern. */
static const char *skip_value(const char *p)
{
    unsigned depth = 0;
    do {
        if (*p == '"') {
            p = skip_string(p);
            continue;
        }
        depth += *p == '{' || *p == '[';
        if (*p == '}' || *p == ']') {
            if (depth == 0)
                return p;
            depth--;
        } else if (depth == 0 && (*p == ',' || *p == '\0')) {
            return p;
        }
        p += *p != '\0';
    } while (*p && (depth || !strchr(",}]", *p)));
    return p;
}

/* If the key at p is the first part of path, returns the length of that part; otherwise 0. jansson
 * decodes the key, because a key can contain escapes. */
static size_t match_key(const char *p, const char *path)
{
    const char *end = skip_string(p);
    json_t *key = json_loadb(p, (size_t)(end - p), JSON_DECODE_ANY, NULL);
    size_t n = key ? json_string_length(key) : 0;
    if (!key || strncmp(path, json_string_value(key), n) != 0 || !strchr(".[", path[n]))
        n = 0;
    json_decref(key);
    return n;
}

/* p points to the key of a member. Returns its value. */
static const char *value_of(const char *p)
{
    p = skip_space(skip_string(p));
    return skip_space(*p == ':' ? p + 1 : p);
}

/* p points to a '{'. Returns the key with which *path begins and removes that part from *path, or
 * returns NULL. */
static const char *find_member(const char *p, const char **path)
{
    for (p = skip_space(p + 1); *p == '"'; p = skip_space(p + 1)) {
        size_t n = match_key(p, *path);
        if (n) {
            *path += n + ((*path)[n] == '.');
            return p;
        }
        p = skip_space(skip_value(value_of(p)));
        if (*p != ',')
            break;
    }
    return NULL;
}

/* Like find_member(), but p points to a '[', and the result is the element of an index. */
static const char *find_element(const char *p, const char **path)
{
    char *end;
    if (**path != '[')
        return NULL;
    unsigned long index = strtoul(*path + 1, &end, 10);
    for (p = skip_space(p + 1); index && *p && *p != ']'; index--) {
        p = skip_space(skip_value(p));
        if (*p != ',')
            return NULL;
        p = skip_space(p + 1);
    }
    if (index || *end != ']' || !*p || *p == ']')
        return NULL;
    *path = end + 1 + (end[1] == '.');
    return p;
}

static unsigned count_lines(const char *from, const char *to)
{
    unsigned n = 0;
    for (const char *p = from; p < to; p++)
        n += *p == '\n';
    return n;
}

/* Follows path as far as it exists, and returns the value there. *ret_found is the place whose line
 * is reported: the key of a member, or an element itself. */
static const char *locate(const char *text, const char *path, const char **ret_found)
{
    const char *value = skip_space(text), *found = value;
    while (*path && (*value == '{' || *value == '[')) {
        const char *p = *value == '{' ? find_member(value, &path) : find_element(value, &path);
        if (!p)
            break;
        found = p;
        value = *value == '{' ? value_of(p) : p;
    }
    *ret_found = found;
    return value;
}

unsigned config_line(const char *text, const char *path)
{
    const char *found;
    locate(text, path, &found);
    return 1 + count_lines(text, found);
}

void config_lines(const char *text, const char *path, unsigned *ret_lines, size_t n)
{
    const char *found, *p = locate(text, path, &found), *counted = text;
    unsigned line = 1;
    for (size_t i = 0; i < n; i++) {
        if (*p == '[' || *p == ',') {
            p = skip_space(p + 1);
            line += count_lines(counted, p);
            counted = p;
            p = skip_space(skip_value(p));
        }
        ret_lines[i] = line;
    }
}

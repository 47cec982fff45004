/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config_line.h"

#include <stdlib.h>
#include <string.h>

#include <jansson.h>

/* Every function here stops at the NUL, whatever comes before it. */

static const char *skip_space(const char *p)
{
    return p + strspn(p, " \t\r\n");
}

/* p is at a quote. Returns what follows the closing one. */
static const char *skip_string(const char *p)
{
    for (p++; *p && *p != '"'; p++)
        if (*p == '\\' && p[1])
            p++;
    return *p ? p + 1 : p;
}

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

/* How many bytes of path the key at p is, where one ends there; else 0. */
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

/* The value of a member: p is at its key. */
static const char *value_of(const char *p)
{
    p = skip_space(skip_string(p));
    return skip_space(*p == ':' ? p + 1 : p);
}

/* p is at the '{'. Returns the key that *path begins with and takes it off, or NULL. */
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

/* p is at the '['. The same for an element. */
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

/* Returns the value that path leads to, as far as it does; *ret_found is where that is said
 * to be: at its key. */
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

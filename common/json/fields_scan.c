/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table are tried in their order, and each name is compared at one place of the text
 * only. That is why this is fast, and why members in another order are not found. The NUL at the
 * end of the text matches nothing, so no function compares scan->at with an end. */
#include "common/json/fields_scan.h"

#include <stdlib.h>
#include <string.h>

#define DIGITS_MOST 18 /* any number of 18 digits fits an int64_t */

bool fields_scan_literal(struct fields_scan *scan, const char *literal)
{
    size_t n = strlen(literal);
    if (strncmp(scan->at, literal, n) != 0)
        return false;
    scan->at += n;
    return true;
}

static bool scan_int(struct fields_scan *scan, const struct field *f, char *base)
{
    const char *from = scan->at;
    int64_t value = 0;
    while (*scan->at >= '0' && *scan->at <= '9' && scan->at - from < DIGITS_MOST)
        value = value * 10 + (*scan->at++ - '0');
    /* A longer number, or 1.5, is refused by the caller, who finds no comma or brace after it. 007
     * is not JSON. */
    if (scan->at == from || (*from == '0' && scan->at - from > 1) || value < f->min ||
        value > f->max)
        return false;
    field_store(f, base, value);
    return true;
}

/* Returns the bytes of a string without its quotes, or NULL if it has others than printable ASCII,
 * or an escape: those are left to json_read(). */
static const char *scan_plain(struct fields_scan *scan, size_t *ret_n)
{
    if (*scan->at != '"')
        return NULL;
    const char *from = ++scan->at;
    while (*scan->at >= ' ' && *scan->at != '"' && *scan->at != '\\' && *scan->at < 0x7f)
        scan->at++;
    if (*scan->at != '"')
        return NULL;
    *ret_n = (size_t)(scan->at++ - from);
    return from;
}

static bool scan_string(struct fields_scan *scan, const struct field *f, const char **ret)
{
    size_t n;
    const char *from = scan_plain(scan, &n);
    if (!from || n > (size_t)f->max || n >= scan->room_bytes)
        return false;
    memcpy(scan->room, from, n);
    scan->room[n] = '\0';
    *ret = scan->room;
    scan->room += n + 1;
    scan->room_bytes -= n + 1;
    return true;
}

static bool scan_enum(struct fields_scan *scan, const struct field *f, char *base)
{
    size_t n;
    const char *from = scan_plain(scan, &n);
    for (int64_t i = 0; from && f->enums[i]; i++)
        if (strlen(f->enums[i]) == n && memcmp(f->enums[i], from, n) == 0) {
            field_store(f, base, i + 1);
            return true;
        }
    return false;
}

/* Skips a string without escapes. An escape could hide its end. */
static bool skip_string(struct fields_scan *scan)
{
    const char *at = scan->at + 1;
    while (*at != '"' && *at != '\\' && *at)
        at++;
    scan->at = at + 1;
    return *at == '"';
}

/* Counts the objects of the array that comes next, by their brackets only. Returns false if the
 * array does not end, or has strings with escapes. */
static bool count_objects(struct fields_scan scan, size_t *ret_n)
{
    unsigned depth = 0;
    *ret_n = 0;
    do {
        char c = *scan.at;
        if (c == '"' ? !skip_string(&scan) : !c)
            return false;
        if (c == '"')
            continue;
        *ret_n += c == '{' && depth == 1;
        depth += c == '[' || c == '{';
        depth -= c == ']' || c == '}';
        scan.at++;
    } while (depth);
    return true;
}

/* Reads an array of objects into one block, as fields_read() does: pointers, and then structs. */
static bool scan_list(struct fields_scan *scan, const struct field *f, char *base)
{
    size_t n;
    if (*scan->at != '[' || !count_objects(*scan, &n) || n == 0 || n > (size_t)f->max)
        return fields_scan_literal(scan, "[]");
    char *block = calloc(n, sizeof(void *) + f->of_bytes), *array = block + n * sizeof(void *);
    if (!block)
        return false;
    /* stored before it is filled: the caller frees it, and the lists of all its structs */
    memcpy(base + f->offset, &block, sizeof block);
    memcpy(base + f->count, &n, sizeof n);
    for (size_t i = 0; i < n; i++) {
        char *one = array + i * f->of_bytes;
        ((void **)(void *)block)[i] = one;
        if (f->blank)
            memcpy(one, f->blank, f->of_bytes);
    }
    for (size_t i = 0; i < n; i++)
        if (!fields_scan_literal(scan, i ? "," : "[") ||
            !fields_scan(scan, f->of, array + i * f->of_bytes))
            return false;
    return fields_scan_literal(scan, "]");
}

static bool scan_value(struct fields_scan *scan, const struct field *f, char *base)
{
    void *at = base + f->offset;
    switch (f->kind) {
    case FIELD_INT:
        if (f->present)
            *(bool *)(void *)(base + f->present) = true;
        return scan_int(scan, f, base);
    case FIELD_STRING:
        return scan_string(scan, f, at);
    case FIELD_ENUM:
        return scan_enum(scan, f, base);
    case FIELD_BOOL:
        field_store(f, base, *scan->at == 't');
        return fields_scan_literal(scan, "true") || fields_scan_literal(scan, "false");
    case FIELD_OBJECT:
        return fields_scan(scan, f->of, at);
    case FIELD_LIST:
        return scan_list(scan, f, base);
    case FIELD_IDS:
    case FIELD_OBJECTS: /* an array with elements would need memory; leave it to fields_read() */
        return fields_scan_literal(scan, "[]");
    case FIELD_INTS:
    case FIELD_STRINGS:
    case FIELD_SET:
        break;
    }
    return false;
}

/* Skips "name": if that comes next. Returns whether it did. */
static bool scan_name(struct fields_scan *scan, const char *name)
{
    size_t n = strlen(name);
    const char *at = scan->at;
    if (at[0] != '"' || strncmp(at + 1, name, n) != 0 || at[n + 1] != '"' || at[n + 2] != ':')
        return false;
    scan->at += n + 3;
    return true;
}

/* A comma belongs to the member after it. If that member is optional and absent, both are tried
 * again with the next row. */
bool fields_scan_members(struct fields_scan *scan, const struct field *fields, void *ret)
{
    bool any = false;
    for (const struct field *f = fields; f->name; f++) {
        struct fields_scan before = *scan;
        if (any && !fields_scan_literal(scan, ",")) {
            if (!f->optional)
                return false;
            continue;
        }
        if (!scan_name(scan, f->name)) {
            *scan = before;
            if (!f->optional)
                return false;
            continue;
        }
        any = true;
        if (!scan_value(scan, f, ret))
            return false;
    }
    return true;
}

bool fields_scan(struct fields_scan *scan, const struct field *fields, void *ret)
{
    return fields_scan_literal(scan, "{") && fields_scan_members(scan, fields, ret) &&
           fields_scan_literal(scan, "}");
}

/* Brackets in strings do not count. */
bool fields_scan_array(struct fields_scan *scan, const char **ret, size_t *ret_n)
{
    const char *from = scan->at;
    unsigned depth = 0;
    if (*from != '[')
        return false;
    do {
        char c = *scan->at;
        if (c == '"' ? !skip_string(scan) : !c)
            return false;
        if (c == '"')
            continue;
        depth += c == '[';
        depth -= c == ']';
        scan->at++;
    } while (depth);
    *ret = from;
    *ret_n = (size_t)(scan->at - from);
    return true;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/fields_text.h"

#include <string.h>

#define ADD(text, literal) json_text_add(text, literal, sizeof(literal) - 1)

/* --- Values -------------------------------------------------------------- */

/* Adds a number. Works with its unsigned amount, because that of INT64_MIN fits no int64_t. */
static void add_int(struct json_text *text, int64_t value)
{
    char digits[24], *p = digits + sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    if (value < 0)
        *--p = '-';
    json_text_add(text, p, (size_t)(digits + sizeof digits - p));
}

static void add_ints(struct json_text *text, const int64_t *values, size_t n)
{
    ADD(text, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            ADD(text, ",");
        add_int(text, values[i]);
    }
    ADD(text, "]");
}

static void add_strings(struct json_text *text, const char *const *strings, size_t n)
{
    ADD(text, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            ADD(text, ",");
        json_text_string(text, strings[i]);
    }
    ADD(text, "]");
}

static void add_set(struct json_text *text, const char *const *names, int64_t set)
{
    bool any = false;
    ADD(text, "[");
    for (int64_t bit = 0; names[bit]; bit++) {
        if (!(set >> bit & 1))
            continue;
        if (any)
            ADD(text, ",");
        any = true;
        json_text_string(text, names[bit]);
    }
    ADD(text, "]");
}

static void add_list(struct json_text *text, const struct field *of, const void *const *list,
                     size_t n)
{
    ADD(text, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            ADD(text, ",");
        fields_text(of, list[i], text);
    }
    ADD(text, "]");
}

/* --- Members ------------------------------------------------------------- */

/* The value of one member in a struct, loaded according to its kind. Only the members that the kind
 * uses are set. */
struct member {
    const void *at;      /* its place in the struct */
    bool is_there;       /* INT, INTS: false if the row has `present` and the bool there is false */
    int64_t number;      /* INT, BOOL, ENUM, SET */
    const char *pointer; /* strings and arrays that are not in place */
    size_t n;            /* elements of an array */
};

static struct member member_of(const struct field *f, const char *base)
{
    struct member m = {.at = base + f->offset, .is_there = true};
    switch (f->kind) {
    case FIELD_INTS:
        m.n = *(const uint32_t *)(const void *)(base + f->count);
        m.is_there = !f->present || *(const bool *)(base + f->present);
        break;
    case FIELD_INT:
        m.is_there = !f->present || *(const bool *)(base + f->present);
        m.number = field_load(f, base);
        break;
    case FIELD_BOOL:
    case FIELD_ENUM:
        m.number = field_load(f, base);
        break;
    case FIELD_SET:
        memcpy(&m.number, m.at, sizeof m.number);
        break;
    case FIELD_OBJECTS:
    case FIELD_IDS:
    case FIELD_LIST:
    case FIELD_STRINGS:
        memcpy(&m.n, base + f->count, sizeof m.n);
        memcpy(&m.pointer, m.at, sizeof m.pointer);
        break;
    case FIELD_STRING:
        memcpy(&m.pointer, m.at, sizeof m.pointer);
        break;
    case FIELD_OBJECT:
        break;
    }
    return m;
}

/* Whether the member is optional and must be omitted: the reverse of what fields_read() leaves. */
static bool is_absent(const struct field *f, const struct member *m)
{
    switch (f->kind) {
    case FIELD_STRING:
        return f->optional && (!m->pointer || !m->pointer[0]);
    case FIELD_OBJECTS:
    case FIELD_IDS:
    case FIELD_LIST:
        return f->optional && !m->pointer;
    case FIELD_INT:
        return f->optional &&
               (f->present ? !m->is_there : m->number == (f->narrow ? 0 : FIELDS_ABSENT));
    case FIELD_INTS:
        return !m->is_there;
    case FIELD_ENUM:
    case FIELD_SET:
        return f->optional && m->number == 0;
    case FIELD_STRINGS:
        return f->optional && m->n == 0;
    case FIELD_BOOL:
        return f->if_true && m->number == 0;
    case FIELD_OBJECT:
        break;
    }
    return false;
}

static void add_value(const struct field *f, const struct member *m, struct json_text *text)
{
    switch (f->kind) {
    case FIELD_STRING:
        json_text_string(text, m->pointer);
        break;
    case FIELD_INT:
        add_int(text, m->number);
        break;
    case FIELD_BOOL:
        if (m->number)
            ADD(text, "true");
        else
            ADD(text, "false");
        break;
    case FIELD_ENUM:
        json_text_string(text, f->enums[m->number - 1]);
        break;
    case FIELD_INTS:
        add_ints(text, m->at, m->n);
        break;
    case FIELD_OBJECT:
        fields_text(f->of, m->at, text);
        break;
    case FIELD_OBJECTS:
        fields_text_array(f->of, f->of_bytes, m->pointer, m->n, text);
        break;
    case FIELD_IDS:
        add_ints(text, (const int64_t *)(const void *)m->pointer, m->n);
        break;
    case FIELD_LIST:
        add_list(text, f->of, (const void *const *)(const void *)m->pointer, m->n);
        break;
    case FIELD_STRINGS:
        add_strings(text, (const char *const *)(const void *)m->pointer, m->n);
        break;
    case FIELD_SET:
        add_set(text, f->enums, m->number);
        break;
    }
}

void fields_text_members(const struct field *fields, const void *from, struct json_text *text)
{
    bool any = false;
    for (const struct field *f = fields; f->name; f++) {
        struct member m = member_of(f, from);
        if (is_absent(f, &m))
            continue;
        if (any)
            ADD(text, ",");
        any = true;
        json_text_string(text, f->name);
        ADD(text, ":");
        add_value(f, &m, text);
    }
}

void fields_text(const struct field *fields, const void *from, struct json_text *text)
{
    ADD(text, "{");
    fields_text_members(fields, from, text);
    ADD(text, "}");
}

void fields_text_array(const struct field *of, size_t of_bytes, const void *array, size_t n,
                       struct json_text *text)
{
    ADD(text, "[");
    for (size_t i = 0; i < n; i++) {
        if (i)
            ADD(text, ",");
        fields_text(of, (const char *)array + i * of_bytes, text);
    }
    ADD(text, "]");
}

char *fields_message(const char *head, const struct field *fields, const void *from,
                     const char *tail, size_t *ret_bytes)
{
    struct json_text text;
    json_text_begin(&text);
    json_text_raw(&text, head);
    fields_text(fields, from, &text);
    json_text_raw(&text, tail);
    return json_text_end(&text, ret_bytes);
}

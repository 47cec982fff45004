/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/fields.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* --- Faults -------------------------------------------------------------- */

void wire_fault_fill(struct wire_fault *fault, const char *parameter, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    fault->no_memory = false;
    snprintf(fault->parameter, sizeof fault->parameter, "%s", parameter);
    vsnprintf(fault->reason, sizeof fault->reason, format, ap);
    va_end(ap);
}

int wire_fault_memory(struct wire_fault *fault, const char *parameter)
{
    wire_fault_fill(fault, parameter, "out of memory");
    fault->no_memory = true;
    return -1;
}

int wire_fault_nest(struct wire_fault *fault, const char *outer)
{
    /* a key of the peer can be long: both halves are cut off, so that the outer name always fits */
    char inner[sizeof fault->parameter];
    memcpy(inner, fault->parameter, sizeof inner);
    snprintf(fault->parameter, sizeof fault->parameter, "%.80s%s%.70s", outer, inner[0] ? "." : "",
             inner);
    return -1;
}

/* --- Reading ------------------------------------------------------------- */

static int read_int(const json_t *v, const struct field *f, char *base, struct wire_fault *fault)
{
    if (!json_is_integer(v))
        return wire_fault_set(fault, f->name, "must be an integer");
    int64_t i = json_integer_value(v);
    if (i < f->min || i > f->max)
        return wire_fault_set(fault, f->name, "is %" PRId64 ", must be %" PRId64 " to %" PRId64, i,
                              f->min, f->max);
    field_store(f, base, i);
    return 0;
}

static int read_string(const json_t *v, const struct field *f, const char **ret,
                       struct wire_fault *fault)
{
    if (!json_is_string(v))
        return wire_fault_set(fault, f->name, "must be a string");
    if (json_string_length(v) > (size_t)f->max)
        return wire_fault_set(fault, f->name, "has %zu bytes, the limit is %" PRId64,
                              json_string_length(v), f->max);
    *ret = json_string_value(v);
    return 0;
}

static int read_enum(const json_t *v, const struct field *f, char *base, struct wire_fault *fault)
{
    const char *s = json_string_value(v);
    for (int64_t i = 0; s && f->enums[i]; i++)
        if (strcmp(s, f->enums[i]) == 0) {
            field_store(f, base, i + 1);
            return 0;
        }
    char names[96] = "";
    size_t n = 0;
    for (size_t i = 0; f->enums[i] && n < sizeof names; i++) {
        const char *before = i == 0 ? "" : f->enums[i + 1] ? ", " : " or ";
        n += (size_t)snprintf(names + n, sizeof names - n, "%s\"%s\"", before, f->enums[i]);
    }
    return wire_fault_set(fault, f->name, "must be %s", names);
}

/* Reads integers into an array in place. Their values are not limited here: view_check()
 * checks shape, strides and offset together. */
static int read_ints(const json_t *v, const struct field *f, char *base, struct wire_fault *fault)
{
    int64_t *values = (int64_t *)(void *)(base + f->offset);
    uint32_t *count = (uint32_t *)(void *)(base + f->count);
    size_t n = json_array_size(v);
    if (!json_is_array(v))
        return wire_fault_set(fault, f->name, "must be an array of integers");
    if (n > SHMVIEW_MAX_NDIM)
        return wire_fault_set(fault, f->name, "has %zu dimensions, the limit is %d", n,
                              SHMVIEW_MAX_NDIM);
    if (f->optional && n != *count)
        return wire_fault_set(fault, f->name, "has %zu integers for %u dimensions", n, *count);
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(v, i);
        if (!json_is_integer(e))
            return wire_fault_set(fault, f->name, "element %zu must be an integer", i);
        values[i] = json_integer_value(e);
    }
    *count = (uint32_t)n;
    return 0;
}

/* Reads an array of structs. A FIELD_LIST has one block as well: the pointers to the structs, and
 * then the structs, so that one free() suffices. */
static int read_objects(const json_t *v, const struct field *f, bool strict, char *base,
                        struct wire_fault *fault)
{
    if (!json_is_array(v))
        return wire_fault_set(fault, f->name, "must be an array of objects");
    size_t n = json_array_size(v);
    if (n > (size_t)f->max)
        return wire_fault_set(fault, f->name, "has %zu elements, the limit is %" PRId64, n, f->max);
    size_t head = f->kind == FIELD_LIST ? sizeof(void *) : 0;
    /* never of 0 bytes, because a NULL pointer stands for an absent member */
    char *block = calloc(n ? n : 1, head + f->of_bytes), *array = block + n * head;
    if (!block)
        return wire_fault_memory(fault, f->name);
    for (size_t i = 0; head && i < n; i++)
        ((void **)(void *)block)[i] = array + i * f->of_bytes;
    /* Stored before it is filled, because an element can allocate too: after a fault the caller
     * walks over all n elements, and frees their arrays and this one. */
    memcpy(base + f->offset, &block, sizeof block);
    memcpy(base + f->count, &n, sizeof n);
    for (size_t i = 0; f->blank && i < n; i++)
        memcpy(array + i * f->of_bytes, f->blank, f->of_bytes);
    for (size_t i = 0; i < n; i++)
        if (fields_read(json_array_get(v, i), f->of, strict, array + i * f->of_bytes, fault)) {
            char outer[64];
            snprintf(outer, sizeof outer, "%s[%zu]", f->name, i);
            return wire_fault_nest(fault, outer);
        }
    return 0;
}

static int read_ids(const json_t *v, const struct field *f, char *base, struct wire_fault *fault)
{
    if (!json_is_array(v))
        return wire_fault_set(fault, f->name, "must be an array of integers");
    size_t n = json_array_size(v);
    if (n > (size_t)f->max)
        return wire_fault_set(fault, f->name, "has %zu elements, the limit is %" PRId64, n, f->max);
    int64_t *array = calloc(n ? n : 1, sizeof *array);
    if (!array)
        return wire_fault_memory(fault, f->name);
    memcpy(base + f->offset, &array, sizeof array);
    memcpy(base + f->count, &n, sizeof n);
    for (size_t i = 0; i < n; i++) {
        const json_t *e = json_array_get(v, i);
        if (!json_is_integer(e) || json_integer_value(e) < 0)
            return wire_fault_set(fault, f->name, "element %zu must be an integer from 0 on", i);
        array[i] = json_integer_value(e);
    }
    return 0;
}

static int read_strings(const json_t *v, const struct field *f, char *base,
                        struct wire_fault *fault)
{
    if (!json_is_array(v))
        return wire_fault_set(fault, f->name, "must be an array of strings");
    size_t n = json_array_size(v);
    if (n > (size_t)f->max)
        return wire_fault_set(fault, f->name, "has %zu elements, the limit is %" PRId64, n, f->max);
    const char **array = calloc(n ? n : 1, sizeof *array);
    if (!array)
        return wire_fault_memory(fault, f->name);
    memcpy(base + f->offset, &array, sizeof array);
    memcpy(base + f->count, &n, sizeof n);
    for (size_t i = 0; i < n; i++) {
        struct field element = {.name = f->name, .max = f->min}; /* min: bytes of each, see above */
        if (read_string(json_array_get(v, i), &element, &array[i], fault))
            return -1;
    }
    return 0;
}

static int read_set(const json_t *v, const struct field *f, int64_t *ret, struct wire_fault *fault)
{
    int64_t set = 0;
    if (!json_is_array(v))
        return wire_fault_set(fault, f->name, "must be an array of strings");
    for (size_t i = 0; i < json_array_size(v); i++) {
        const char *s = json_string_value(json_array_get(v, i));
        int64_t bit = 0;
        while (s && f->enums[bit] && strcmp(s, f->enums[bit]) != 0)
            bit++;
        if (!s || !f->enums[bit])
            return wire_fault_set(fault, f->name, "element %zu is not a known name", i);
        set |= (int64_t)1 << bit;
    }
    *ret = set;
    return 0;
}

static int read_field(const json_t *v, const struct field *f, bool strict, char *base,
                      struct wire_fault *fault)
{
    void *at = base + f->offset;
    switch (f->kind) {
    case FIELD_STRING:
        return read_string(v, f, at, fault);
    case FIELD_INT:
        if (f->present)
            *(bool *)(void *)(base + f->present) = true;
        return read_int(v, f, base, fault);
    case FIELD_BOOL:
        if (!json_is_boolean(v))
            return wire_fault_set(fault, f->name, "must be true or false");
        field_store(f, base, json_is_true(v));
        return 0;
    case FIELD_ENUM:
        return read_enum(v, f, base, fault);
    case FIELD_INTS:
        if (f->present)
            *(bool *)(void *)(base + f->present) = true;
        return read_ints(v, f, base, fault);
    case FIELD_OBJECT:
        return fields_read(v, f->of, strict, at, fault) ? wire_fault_nest(fault, f->name) : 0;
    case FIELD_OBJECTS:
    case FIELD_LIST:
        return read_objects(v, f, strict, base, fault);
    case FIELD_IDS:
        return read_ids(v, f, base, fault);
    case FIELD_STRINGS:
        return read_strings(v, f, base, fault);
    case FIELD_SET:
        return read_set(v, f, at, fault);
    }
    return -1;
}

/* Reports a member without a row. Called only if there is one, so that valid messages skip the
 * search. */
static int refuse_unknown(const json_t *json, const struct field *fields, struct wire_fault *fault)
{
    const char *key;
    json_t *v;
    json_object_foreach ((json_t *)json, key, v) {
        const struct field *f = fields;
        while (f->name && strcmp(f->name, key) != 0)
            f++;
        if (!f->name)
            return wire_fault_set(fault, key, "is not a known member");
    }
    return 0;
}

int fields_read(const json_t *json, const struct field *fields, bool strict, void *ret,
                struct wire_fault *fault)
{
    size_t used = 0; /* members that have a row; json has others if there are more of them */
    if (json && !json_is_object(json))
        return wire_fault_set(fault, "", "must be an object");
    for (const struct field *f = fields; f->name; f++) {
        const json_t *v = json_object_get(json, f->name);
        used += v != NULL;
        if (!v || (f->optional && json_is_null(v))) {
            if (!f->optional)
                return wire_fault_set(fault, f->name, "is missing");
            continue;
        }
        if (read_field(v, f, strict, ret, fault))
            return -1;
    }
    if (strict && used != json_object_size(json))
        return refuse_unknown(json, fields, fault);
    return 0;
}

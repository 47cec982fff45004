/* SPDX-License-Identifier: Apache-2.0 */
/* A reader by recursive descent: one function for each rule of RFC 8259. LIMIT_JSON_DEPTH bounds
 * the recursion. A function that fails has set *fault, and returns -1 or NULL. */
#include "common/json/json_read.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/json/json_text.h"

/* Most keys and strings fit. */
#define ROOM_BYTES_FIRST 128

/* The state of one call of json_read(). Strings and the digits of reals are decoded into room,
 * which is a stack: a key stays there until its value has been read. */
struct reader {
    const char *begin, *at, *end;
    bool is_strict;
    unsigned depth, weight; /* arrays and objects that are open; of the values so far */
    char *room;             /* owned */
    size_t n, capacity;     /* bytes of room that are used, and all of them */
    struct wire_fault *fault;
};

/* Reports bad text at the current byte. Returns -1. */
static int bad(struct reader *r, const char *what)
{
    return wire_fault_set(r->fault, "", "byte %zu: %s", (size_t)(r->at - r->begin), what);
}

/* Returns the value, and reports lack of memory if jansson could not make it. */
static json_t *checked(struct reader *r, json_t *value)
{
    if (!value)
        wire_fault_memory(r->fault, "");
    return value;
}

/* Adds to the weight of the text, which is limited (LIMIT_JSON_WEIGHT). Returns 0, or -1. */
static int weigh(struct reader *r, unsigned weight)
{
    r->weight += weight;
    if (r->is_strict && r->weight > LIMIT_JSON_WEIGHT)
        return bad(r, "too many values");
    return 0;
}

static void skip_space(struct reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r'))
        r->at++;
}

/* Skips the next byte if it is c. Returns whether it was. */
static bool takes(struct reader *r, char c)
{
    bool is = r->at < r->end && *r->at == c;
    r->at += is;
    return is;
}

static int enlarge_room(struct reader *r, size_t n)
{
    size_t capacity = (r->n + n) * 2 + ROOM_BYTES_FIRST;
    char *room = realloc(r->room, capacity);
    if (!room)
        return wire_fault_memory(r->fault, "");
    r->room = room;
    r->capacity = capacity;
    return 0;
}

/* Adds n bytes to the stack. May move it, so positions in it are kept as numbers. */
static inline int push(struct reader *r, const char *bytes, size_t n)
{
    if (__builtin_expect(!r->room || n > r->capacity - r->n, 0) && enlarge_room(r, n))
        return -1;
    memcpy(r->room + r->n, bytes, n);
    r->n += n;
    return 0;
}

/* --- Strings ------------------------------------------------------------- */

/* Adds a character as UTF-8. */
static int push_character(struct reader *r, uint32_t c)
{
    char b[4];
    if (c < 0x80)
        return b[0] = (char)c, push(r, b, 1);
    size_t n = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6)
        b[i] = (char)(0x80 | (c & 0x3f));
    b[0] = (char)((0xf00u >> n & 0xff) | c); /* n ones and a zero, then the highest bits */
    return push(r, b, n);
}

/* Reads the four digits after "\u". Returns the number, or -1. */
static int32_t hex4(struct reader *r)
{
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        int c = r->at < r->end ? (unsigned char)*r->at : 0;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = value << 4 | digit;
        r->at++;
    }
    return value;
}

/* Reads an escape after "\u". A character beyond U+FFFF is written as two escapes (surrogates); one
 * of them alone is no character. U+0000 is refused, because strings of C end there. */
static int read_unicode(struct reader *r)
{
    int32_t c = hex4(r);
    if (c >= 0xd800 && c < 0xdc00) {
        int32_t low = takes(r, '\\') && takes(r, 'u') ? hex4(r) : -1;
        c = low >= 0xdc00 && low < 0xe000 ? 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00) : -1;
    } else if (c >= 0xdc00 && c < 0xe000) {
        c = -1;
    }
    return c > 0 ? push_character(r, (uint32_t)c) : bad(r, "an escape that is not a character");
}

static int read_escape(struct reader *r)
{
    static const char names[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (takes(r, 'u'))
        return read_unicode(r);
    /* without the test of *r->at strchr() would find the NUL of names */
    const char *name = r->at < r->end && *r->at ? strchr(names, *r->at) : NULL;
    if (!name)
        return bad(r, "an unknown escape");
    r->at++;
    return push(r, &values[name - names], 1);
}

/* Skips the characters of a string up to its last quote, an escape, or the end of the text. */
static int skip_plain(struct reader *r)
{
    while (r->at < r->end && *r->at != '"' && *r->at != '\\') {
        const unsigned char *p = (const unsigned char *)r->at;
        size_t n = *p < 0x80 ? 1 : utf8_length(p, (const unsigned char *)r->end);
        if (n == 0 || *p < 0x20)
            return bad(r, n ? "a control character" : "bytes that are not UTF-8");
        r->at += n;
    }
    return 0;
}

/* Reads a string after its first quote, and pushes it with a NUL. */
static int read_string(struct reader *r)
{
    for (;;) {
        const char *from = r->at;
        if (skip_plain(r))
            return -1;
        if (r->at > from && push(r, from, (size_t)(r->at - from)))
            return -1;
        if (takes(r, '"'))
            return push(r, "", 1);
        if (!takes(r, '\\'))
            return bad(r, "the end of a string is missing");
        if (read_escape(r))
            return -1;
    }
}

/* Makes a value of a string after its first quote: of the text itself if that has no escape. */
static json_t *read_text(struct reader *r)
{
    const char *from = r->at;
    size_t mark = r->n;
    if (skip_plain(r))
        return NULL;
    if (takes(r, '"'))
        return checked(r, json_stringn_nocheck(from, (size_t)(r->at - from) - 1));
    r->at = from;
    if (read_string(r))
        return NULL;
    json_t *v = json_stringn_nocheck(r->room + mark, r->n - mark - 1);
    r->n = mark;
    return checked(r, v);
}

/* --- Numbers ------------------------------------------------------------- */

/* Skips digits. Returns whether there was one. */
static bool skip_digits(struct reader *r)
{
    const char *from = r->at;
    while (r->at < r->end && *r->at >= '0' && *r->at <= '9')
        r->at++;
    return r->at > from;
}

/* Makes a real of the text from `from` on. strtod() needs a NUL after it, so it gets a copy.
 * No member of a message is a real: one occurs only in an unknown member, or is refused later. */
static json_t *read_real(struct reader *r, const char *from)
{
    size_t mark = r->n;
    if (weigh(r, 3)) /* with the 1 of any value */
        return NULL;
    if (push(r, from, (size_t)(r->at - from)) || push(r, "", 1))
        return NULL;
    double value = strtod(r->room + mark, NULL);
    r->n = mark;
    if (isinf(value))
        return bad(r, "a number that is too large"), NULL;
    return checked(r, json_real(value));
}

/* Reads a number. Each other kind of value has been ruled out before, so a text that is no value at
 * all is refused here. */
static json_t *read_number(struct reader *r)
{
    const char *from = r->at;
    bool negative = takes(r, '-');
    const char *digits = r->at;
    if (!takes(r, '0') && !skip_digits(r))
        return bad(r, "a value is missing"), NULL;
    const char *end = r->at;
    if (takes(r, '.') && !skip_digits(r))
        return bad(r, "digits are missing"), NULL;
    if (takes(r, 'e') || takes(r, 'E')) {
        if (!takes(r, '+'))
            takes(r, '-');
        if (!skip_digits(r))
            return bad(r, "digits are missing"), NULL;
    }
    if (r->at > end)
        return read_real(r, from);
    int64_t value = 0;
    for (; digits < end; digits++) {
        /* negative from the start, because INT64_MIN has no positive counterpart */
        int64_t digit = negative ? '0' - *digits : *digits - '0';
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return bad(r, "a number that is too large"), NULL;
    }
    return checked(r, json_integer(value));
}

/* --- Values -------------------------------------------------------------- */

static json_t *read_value(struct reader *r);

static int read_element(struct reader *r, json_t *array)
{
    json_t *v = read_value(r);
    if (!v)
        return -1;
    return json_array_append_new(array, v) ? wire_fault_memory(r->fault, "") : 0;
}

static int read_member(struct reader *r, json_t *object)
{
    size_t mark = r->n;
    if (!takes(r, '"'))
        return bad(r, "a key is missing");
    if (weigh(r, 2) || read_string(r))
        return -1;
    if (r->is_strict && json_object_get(object, r->room + mark))
        return bad(r, "a duplicate key");
    skip_space(r);
    if (!takes(r, ':'))
        return bad(r, "':' is missing");
    json_t *v = read_value(r);
    if (!v)
        return -1;
    int failed = json_object_set_new_nocheck(object, r->room + mark, v);
    r->n = mark;
    return failed ? wire_fault_memory(r->fault, "") : 0;
}

/* Reads the rest of an array or object, after its first bracket, into value. Calls read_one() for
 * each element or member. Returns value, or NULL after freeing it. */
static json_t *read_members(struct reader *r, json_t *value, char last,
                            int (*read_one)(struct reader *, json_t *))
{
    if (!checked(r, value))
        return NULL;
    if (++r->depth > LIMIT_JSON_DEPTH) {
        wire_fault_fill(r->fault, "", "byte %zu: the depth is more than %d",
                        (size_t)(r->at - r->begin), LIMIT_JSON_DEPTH);
        goto fail;
    }
    skip_space(r);
    if (!takes(r, last)) {
        do {
            skip_space(r);
            if (read_one(r, value))
                goto fail;
            skip_space(r);
        } while (takes(r, ','));
        if (!takes(r, last)) {
            bad(r, last == ']' ? "',' or ']' is missing" : "',' or '}' is missing");
            goto fail;
        }
    }
    r->depth--;
    return value;
fail:
    json_decref(value);
    return NULL;
}

static bool takes_word(struct reader *r, const char *word)
{
    size_t n = strlen(word);
    bool is = (size_t)(r->end - r->at) >= n && memcmp(r->at, word, n) == 0;
    r->at += is ? n : 0;
    return is;
}

static json_t *read_value(struct reader *r)
{
    skip_space(r);
    char first = r->at < r->end ? *r->at : '\0';
    if (weigh(r, first == '"' || first == '[' || first == '{' ? 2 : 1))
        return NULL;
    if (takes(r, '{'))
        return read_members(r, json_object(), '}', read_member);
    if (takes(r, '['))
        return read_members(r, json_array(), ']', read_element);
    if (takes(r, '"'))
        return read_text(r);
    if (takes_word(r, "true"))
        return json_true();
    if (takes_word(r, "false"))
        return json_false();
    if (takes_word(r, "null"))
        return json_null();
    return read_number(r);
}

json_t *json_read(const char *text, size_t n, bool is_strict, struct wire_fault *fault)
{
    struct reader r = {
        .begin = text, .at = text, .end = text + n, .is_strict = is_strict, .fault = fault};
    json_t *value = read_value(&r);
    skip_space(&r);
    if (value && r.at < r.end) {
        json_decref(value);
        value = NULL;
        bad(&r, "more than one value");
    }
    free(r.room);
    return value;
}

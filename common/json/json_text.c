/* SPDX-License-Identifier: Apache-2.0 */
#include "common/json/json_text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Most messages fit. */
#define TEXT_BYTES_FIRST 512

void json_text_begin(struct json_text *text)
{
    *text = (struct json_text){.bytes = malloc(TEXT_BYTES_FIRST), .room = TEXT_BYTES_FIRST};
    text->failed = !text->bytes;
}

void json_text_add(struct json_text *text, const char *bytes, size_t n)
{
    if (text->failed)
        return;
    if (n >= text->room - text->n) { /* not >, because json_text_end() adds a NUL */
        size_t room = (text->room + n) * 2;
        char *more = realloc(text->bytes, room);
        if (!more) {
            text->failed = true; /* stays set, because jansson ignores some errors of add() */
            return;
        }
        text->bytes = more;
        text->room = room;
    }
    memcpy(text->bytes + text->n, bytes, n);
    text->n += n;
}

void json_text_raw(struct json_text *text, const char *s)
{
    json_text_add(text, s, strlen(s));
}

/* By the table of RFC 3629, section 4: the first byte gives the length, and limits the second. */
size_t utf8_length(const unsigned char *p, const unsigned char *end)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
    if (n == 0 || p[0] > 0xf4 || n > (size_t)(end - p))
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    bool is_long = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
    bool is_surrogate = p[0] == 0xed && p[1] >= 0xa0;
    return is_long || is_surrogate || (p[0] == 0xf4 && p[1] >= 0x90) ? 0 : n;
}

static void add_escape(struct json_text *text, char c)
{
    static const char plain[] = "\"\\\b\f\n\r\t", letters[] = "\"\\bfnrt";
    char escape[8];
    const char *at = memchr(plain, c, sizeof plain - 1);
    int n = at ? snprintf(escape, sizeof escape, "\\%c", letters[at - plain])
               : snprintf(escape, sizeof escape, "\\u%04X", (unsigned)(unsigned char)c);
    json_text_add(text, escape, (size_t)n);
}

/* Returns how many bytes at s can be copied as they are: all up to the end, a control character, a
 * quote, a backslash, or a byte that is not UTF-8. */
static size_t plain_bytes(const char *s)
{
    const unsigned char *p = (const unsigned char *)s;
    for (;;) {
        /* p + 4 may lie beyond the NUL, but no character contains a NUL, so nothing after it is
         * read */
        size_t n = *p < 0x80 ? *p >= ' ' && *p != '"' && *p != '\\' : utf8_length(p, p + 4);
        if (n == 0)
            return (size_t)(p - (const unsigned char *)s);
        p += n;
    }
}

void json_text_string(struct json_text *text, const char *s)
{
    json_text_add(text, "\"", 1);
    for (;;) {
        size_t n = plain_bytes(s);
        json_text_add(text, s, n);
        s += n;
        if (!*s)
            break;
        if ((unsigned char)*s < 0x80)
            add_escape(text, *s);
        else
            json_text_add(text, "?", 1);
        s++;
    }
    json_text_add(text, "\"", 1);
}

char *json_text_end(struct json_text *text, size_t *ret_bytes)
{
    if (text->failed) {
        free(text->bytes);
        return NULL;
    }
    text->bytes[text->n] = '\0';
    if (ret_bytes)
        *ret_bytes = text->n + 1;
    return text->bytes;
}

/* For json_dump_callback(). Returns -1 to stop it. */
static int add(const char *bytes, size_t n, void *text)
{
    json_text_add(text, bytes, n);
    return ((struct json_text *)text)->failed ? -1 : 0;
}

char *json_text(const json_t *value, size_t *ret_bytes)
{
    struct json_text t;
    json_text_begin(&t);
    if (!value || json_dump_callback(value, add, &t, JSON_COMPACT))
        t.failed = true;
    return json_text_end(&t, ret_bytes);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "web/base/text.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ROOM_FIRST 1024
#define REPLACED   "\xef\xbf\xbd" /* U+FFFD */

void text_free(struct text *t)
{
    free(t->bytes);
    *t = (struct text){.bytes = NULL};
}

/* Makes room for n more bytes. Returns whether it could. */
static bool reserve(struct text *t, size_t n)
{
    size_t room = t->room ? t->room : ROOM_FIRST;
    if (t->failed || n > SIZE_MAX / 4 - t->n) {
        t->failed = true;
        return false;
    }
    while (room < t->n + n)
        room *= 2;
    if (room > t->room) {
        char *bytes = realloc(t->bytes, room);
        if (!bytes) {
            t->failed = true;
            return false;
        }
        t->bytes = bytes;
        t->room = room;
    }
    return true;
}

bool text_fit(struct text *t, size_t n)
{
    char *bytes = t->failed || n >= SIZE_MAX / 4 - t->n ? NULL : realloc(t->bytes, t->n + n + 1);
    if (!bytes) {
        t->failed = true;
        return false;
    }
    t->bytes = bytes;
    t->room = t->n + n + 1;
    return true;
}

void text_add(struct text *t, const void *bytes, size_t n)
{
    if (n && reserve(t, n)) {
        memcpy(t->bytes + t->n, bytes, n);
        t->n += n;
    }
}

void text_put(struct text *t, const char *string)
{
    text_add(t, string, strlen(string));
}

void text_print(struct text *t, const char *format, ...)
{
    char small[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < 0) {
        t->failed = true;
    } else if ((size_t)n < sizeof small) {
        text_add(t, small, (size_t)n);
    } else if (reserve(t, (size_t)n + 1)) {
        va_start(args, format);
        vsnprintf(t->bytes + t->n, (size_t)n + 1, format, args);
        va_end(args);
        t->n += (size_t)n;
    }
}

void text_int(struct text *t, int64_t number)
{
    char digits[24], *p = digits + sizeof digits;
    uint64_t rest = number < 0 ? -(uint64_t)number : (uint64_t)number;
    do
        *--p = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        *--p = '-';
    text_add(t, p, (size_t)(digits + sizeof digits - p));
}

/* Returns the length of the UTF-8 sequence at s, of at most n bytes, or 0 if there is none: for
 * overlong forms, surrogates and values above U+10FFFF too. */
static size_t sequence(const unsigned char *s, size_t n)
{
    static const struct {
        unsigned char low, high;   /* of the first byte */
        unsigned char low2, high2; /* of the second byte */
        size_t length;
    } forms[] = {
        {0xc2, 0xdf, 0x80, 0xbf, 2}, {0xe0, 0xe0, 0xa0, 0xbf, 3}, {0xe1, 0xec, 0x80, 0xbf, 3},
        {0xed, 0xed, 0x80, 0x9f, 3}, {0xee, 0xef, 0x80, 0xbf, 3}, {0xf0, 0xf0, 0x90, 0xbf, 4},
        {0xf1, 0xf3, 0x80, 0xbf, 4}, {0xf4, 0xf4, 0x80, 0x8f, 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(forms); i++) {
        if (s[0] < forms[i].low || s[0] > forms[i].high)
            continue;
        if (n < forms[i].length || s[1] < forms[i].low2 || s[1] > forms[i].high2)
            return 0;
        for (size_t k = 2; k < forms[i].length; k++)
            if ((s[k] & 0xc0) != 0x80)
                return 0;
        return forms[i].length;
    }
    return 0;
}

/* Whether the character stands for itself in JSON, and does no harm in HTML. */
static bool is_plain(unsigned char c)
{
    return c >= 0x20 && c < 0x7f && c != '"' && c != '\\' && c != '<' && c != '>' && c != '&';
}

void text_json_n(struct text *t, const char *bytes, size_t n)
{
    const unsigned char *s = (const unsigned char *)bytes;
    text_put(t, "\"");
    for (size_t i = 0; i < n;) {
        size_t plain = i;
        while (plain < n && is_plain(s[plain]))
            plain++;
        text_add(t, s + i, plain - i);
        i = plain;
        if (i == n)
            break;
        if (s[i] < 0x80) {
            text_print(t, "\\u%04x", s[i]);
            i++;
            continue;
        }
        size_t length = sequence(s + i, n - i);
        if (length)
            text_add(t, s + i, length);
        else
            text_put(t, REPLACED);
        i += length ? length : 1;
    }
    text_put(t, "\"");
}

void text_json(struct text *t, const char *string)
{
    if (string)
        text_json_n(t, string, strlen(string));
    else
        text_put(t, "null");
}

void text_json_double(struct text *t, double x)
{
    if (isfinite(x))
        text_print(t, "%.17g", x);
    else
        text_put(t, isnan(x) ? "\"nan\"" : x > 0 ? "\"inf\"" : "\"-inf\"");
}

void text_json_known(struct text *t, int64_t number)
{
    if (number < 0)
        text_put(t, "null");
    else
        text_int(t, number);
}

void text_html(struct text *t, const char *string)
{
    for (; *string; string++) {
        switch (*string) {
        case '&':
            text_put(t, "&amp;");
            break;
        case '<':
            text_put(t, "&lt;");
            break;
        case '>':
            text_put(t, "&gt;");
            break;
        case '"':
            text_put(t, "&quot;");
            break;
        case '\'':
            text_put(t, "&#39;");
            break;
        default:
            text_add(t, string, 1);
        }
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/name.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"

/* isalnum() would depend on the locale. */
static bool letter_is_valid(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
}

bool name_is_valid(const char *name, size_t max_bytes)
{
    size_t n = strnlen(name, max_bytes + 1);
    if (n == 0 || n > max_bytes || name[0] == '.')
        return false;
    for (size_t i = 0; i < n; i++)
        if (!letter_is_valid(name[i]))
            return false;
    return true;
}

/* Reads one character at *at and moves *at past it. Returns 0 if the bytes are not UTF-8: also for
 * one that is longer than necessary, a surrogate, or one above U+10FFFF. */
static uint32_t next_character(const unsigned char **at)
{
    static const uint32_t least[] = {0, 0x80, 0x800, 0x10000};
    const unsigned char *byte = *at;
    unsigned more = *byte < 0x80             ? 0
                    : (*byte & 0xe0) == 0xc0 ? 1
                    : (*byte & 0xf0) == 0xe0 ? 2
                    : (*byte & 0xf8) == 0xf0 ? 3
                                             : 4;
    if (more == 4)
        return 0;
    uint32_t c = more ? *byte & (0x3fu >> more) : *byte;
    for (unsigned i = 1; i <= more; i++) {
        if ((byte[i] & 0xc0) != 0x80) /* a NUL too, so this reads no further */
            return 0;
        c = c << 6 | (byte[i] & 0x3fu);
    }
    *at = byte + more + 1;
    return c < least[more] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff) ? 0 : c;
}

/* Whether the character would end a line, or change how a terminal shows what follows. */
static bool is_control(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || (c >= 0x200e && c <= 0x200f) ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

bool label_is_valid(const char *label)
{
    const unsigned char *at = (const unsigned char *)label;
    size_t n = strnlen(label, LIMIT_LABEL_BYTES + 1);
    if (n == 0 || n > LIMIT_LABEL_BYTES)
        return false;
    while (*at)
        if (is_control(next_character(&at))) /* 0 counts as one */
            return false;
    return true;
}

void command_copy(char to[16], const char *from)
{
    memset(to, 0, 16);
    for (size_t i = 0; i < 15 && (to[i] = from[i]); i++)
        if (to[i] < ' ' || to[i] > '~')
            to[i] = '?';
}

const char **names_copy(const char *const *names, size_t n)
{
    size_t bytes = (n + 1) * sizeof *names;
    for (size_t i = 0; i < n; i++)
        bytes += strlen(names[i]) + 1;
    const char **list = malloc(bytes);
    if (!list)
        return NULL;
    char *text = (char *)&list[n + 1];
    for (size_t i = 0; i < n; i++) {
        list[i] = text;
        text = stpcpy(text, names[i]) + 1;
    }
    list[n] = NULL;
    return list;
}

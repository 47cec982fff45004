/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/shell/problem.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Bytes of the input that are shown on each side of the caret, so that it fits into 80 columns. */
#define SHOWN_BEFORE 50
#define SHOWN_AFTER  26

/* Replaces control characters, because the text may contain parts of a file, and these must not
 * control the terminal. */
static void clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

int problem_set(struct problem *problem, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(problem->text, sizeof problem->text, format, args);
    va_end(args);
    clean(problem->text);
    return -1;
}

/* Returns the columns that n bytes of UTF-8 take. Bytes that continue a character take none. */
static int columns(const char *text, unsigned n)
{
    int width = 0;
    for (unsigned i = 0; i < n && text[i]; i++)
        width += ((unsigned char)text[i] & 0xc0) != 0x80;
    return width;
}

int problem_at(struct problem *problem, const char *input, unsigned at, const char *format, ...)
{
    const size_t room = sizeof problem->text;
    unsigned begin = at > SHOWN_BEFORE ? at - SHOWN_BEFORE : 0;
    char shown[SHOWN_BEFORE + SHOWN_AFTER + 1];
    va_list args;
    va_start(args, format);
    vsnprintf(problem->text, room, format, args);
    va_end(args);
    clean(problem->text);
    snprintf(shown, sizeof shown, "%s", input + begin);
    shown[strcspn(shown, "\n")] = '\0';
    clean(shown);
    size_t n = strlen(problem->text);
    snprintf(problem->text + n, room - n, "\n  %s\n  %*s^", shown, columns(shown, at - begin), "");
    return -1;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out what standard output can show, and prints JSON on it. */
#include <langinfo.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/shell/cli.h"

#define WIDTH_DEFAULT 80

bool wants_color(void)
{
    const char *no = getenv("NO_COLOR"), *term = getenv("TERM");
    return isatty(STDOUT_FILENO) && !(no && no[0]) && term && strcmp(term, "dumb") != 0;
}

size_t terminal_width(void)
{
    struct winsize size;
    const char *set = getenv("COLUMNS");
    if (isatty(STDOUT_FILENO) && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
        return size.ws_col;
    long n = set ? strtol(set, NULL, 10) : 0;
    return n > 0 && n < 10000 ? (size_t)n : WIDTH_DEFAULT;
}

bool has_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

void print_safely(const char *text)
{
    for (const unsigned char *p = (const unsigned char *)text; *p; p++)
        if (p[0] == 0xc2 && p[1] >= 0x80 && p[1] < 0xa0) /* U+0080 to U+009F: controls too */
            putchar('?'), p++;
        else
            putchar(*p < ' ' || *p == '\177' ? '?' : *p);
}

int print_json(struct context *c, const json_t *json)
{
    if (!json || json_dumpf(json, stdout, JSON_INDENT(2)))
        return fail_text(c, "the result cannot be written as JSON: out of memory, or standard "
                            "output cannot be written");
    putchar('\n');
    return EXIT_OK;
}

int print_json_line(struct context *c, const json_t *json)
{
    if (!json || json_dumpf(json, stdout, JSON_COMPACT) || putchar('\n') == EOF || fflush(stdout))
        return fail_text(c, "the result cannot be written as JSON: out of memory, or standard "
                            "output cannot be written");
    return EXIT_OK;
}

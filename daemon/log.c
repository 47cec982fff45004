/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static bool journal;

void log_init(void)
{
    journal = getenv("JOURNAL_STREAM") != NULL;
}

/* One write a line, so that lines of two processes do not mix. */
__attribute__((format(printf, 2, 0))) static void log_line(int priority, const char *format,
                                                           va_list ap)
{
    char line[1024];
    int n = journal ? snprintf(line, sizeof line, "<%d>", priority)
                    : snprintf(line, sizeof line, "shmviewd: ");
    int m = vsnprintf(line + n, sizeof line - (size_t)n - 1, format, ap);
    size_t end = (size_t)n + (m < 0 ? 0 : (size_t)m);
    if (end > sizeof line - 2)
        end = sizeof line - 2;
    line[end] = '\n';
    if (write(STDERR_FILENO, line, end + 1) < 0)
        return; /* nowhere left to say so */
}

#define LOG_AT(priority)                                                                           \
    do {                                                                                           \
        va_list ap;                                                                                \
        va_start(ap, format);                                                                      \
        log_line(priority, format, ap);                                                            \
        va_end(ap);                                                                                \
    } while (0)

void log_info(const char *format, ...)
{
    LOG_AT(6);
}

void log_warning(const char *format, ...)
{
    LOG_AT(4);
}

void log_error(const char *format, ...)
{
    LOG_AT(3);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the tests of keeping.c: the things that they keep, and the log. */
#ifndef UNIT_KEEPING_H
#define UNIT_KEEPING_H

#include "unit/kept.h"

#include "daemon/memory/keeping.h"

static struct thing things[4];
static const uint64_t numbers[] = {5, 6, 7, 8};

static inline bool has_socket(void)
{
    return access(kept_path(""), F_OK) == 0;
}

/* --- The log -------------------------------------------------------------- */

static int log_fd, saved_stderr;

static inline void log_begin(void)
{
    saved_stderr = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
    log_fd = open(kept_path(".log"), O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(dup2(log_fd, STDERR_FILENO), 0);
}

/* Returns what keeping_report() logs; valid until the next call. */
static inline const char *report(void)
{
    static char text[2000];
    keeping_report();
    ssize_t n = pread(log_fd, text, sizeof text - 1, 0);
    ck_assert_int_ge(n, 0);
    text[n] = '\0';
    ck_assert_int_eq(ftruncate(log_fd, 0), 0);
    return text;
}

static inline void log_end(void)
{
    dup2(saved_stderr, STDERR_FILENO);
    close(saved_stderr);
    close(log_fd);
}

/* --- Beginning and end ---------------------------------------------------- */

static inline void begin(void)
{
    kept_adopt();
    for (unsigned i = 0; i < ARRAY_LEN(things); i++)
        things[i] = thing_new();
    keeping_init(kept_socket());
}

static inline void end(void)
{
    keeping_end();
    kept_reap();
    for (unsigned i = 0; i < ARRAY_LEN(things); i++)
        thing_end(&things[i]);
    unit_sweep(unit_directory(), "s");
}

#endif

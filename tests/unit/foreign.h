/* SPDX-License-Identifier: Apache-2.0 */
/* Views of the test's own memory, without a daemon. */
#ifndef UNIT_FOREIGN_H
#define UNIT_FOREIGN_H

#include "unit/unit.h"

#include <shmview/shmview.h>

#define FOREIGN_BYTES 65536

static _Alignas(64) unsigned char foreign_memory[FOREIGN_BYTES];
static struct shmview_segment *foreign_segment;

static inline void foreign_begin(void)
{
    memset(foreign_memory, 0, sizeof foreign_memory);
    ck_assert_int_eq(shmview_wrap(foreign_memory, FOREIGN_BYTES, 0, NULL, NULL, &foreign_segment),
                     0);
}

static inline void foreign_end(void)
{
    ck_assert_int_eq(shmview_detach(foreign_segment), 0);
    foreign_segment = NULL;
}

static inline struct shmview_view foreign_view(const struct shmview_view_spec *spec)
{
    struct shmview_view v;
    int r = shmview_view_make(foreign_segment, spec, &v);
    ck_assert_msg(r == 0, "%s", shmview_error_text());
    return v;
}

/* Returns a view of one dimension with n elements and no gaps. */
static inline struct shmview_view foreign_row(const char *format, uint64_t offset, int64_t n)
{
    struct shmview_view_spec spec = {.format = format, .offset = offset, .ndim = 1, .shape = &n};
    return foreign_view(&spec);
}

static inline void assert_fails(int r, int error, const char *text)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    ck_assert_str_eq(shmview_error_text(), text);
}

#define INTS(...)                                                                                  \
    (const int64_t[])                                                                              \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
#define AT(...)                                                                                    \
    (const ptrdiff_t[])                                                                            \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

#endif

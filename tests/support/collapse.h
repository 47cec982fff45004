/* SPDX-License-Identifier: Apache-2.0 */
/* A huge page across the end of an object, which any client can make. */
#ifndef SUPPORT_COLLAPSE_H
#define SUPPORT_COLLAPSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <check.h>

#ifndef MADV_COLLAPSE
#define MADV_COLLAPSE 25
#endif

#define COLLAPSED_BYTES ((size_t)2 << 20)

/* Lets the kernel put the first 2 MiB of a smaller object into one huge page. fd may be read-only.
 * Returns whether the object has that page now, and reports if not: some kernels refuse it, and
 * qemu ignores it. */
static inline bool collapse(int fd)
{
    struct stat st;
    char *space = mmap(NULL, 2 * COLLAPSED_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(space, MAP_FAILED);
    char *at = space + (-(uintptr_t)space & (COLLAPSED_BYTES - 1));
    ck_assert_ptr_eq(mmap(at, COLLAPSED_BYTES, PROT_READ, MAP_SHARED | MAP_FIXED, fd, 0), at);
    madvise(at, COLLAPSED_BYTES, MADV_COLLAPSE);
    munmap(space, 2 * COLLAPSED_BYTES);
    ck_assert_int_eq(fstat(fd, &st), 0);
    bool is_there = (size_t)st.st_blocks * 512 == COLLAPSED_BYTES;
    if (!is_there)
        puts("skipped: there is no huge page");
    return is_there;
}

#endif

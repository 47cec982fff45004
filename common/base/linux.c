/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/linux.h"

#include <unistd.h>

#ifndef __GLIBC__
int close_range(unsigned first, unsigned last, int flags)
{
    return (int)syscall(SYS_close_range, first, last, flags);
}

int renameat2(int from, const char *old, int to, const char *new, unsigned flags)
{
    return (int)syscall(SYS_renameat2, from, old, to, new, flags);
}

int statx(int directory, const char *path, int flags, unsigned mask, struct statx *ret)
{
    return (int)syscall(SYS_statx, directory, path, flags, mask, ret);
}
#endif

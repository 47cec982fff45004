/* SPDX-License-Identifier: Apache-2.0 */
/* System calls of Linux that glibc has functions for and older releases of musl do not. */
#ifndef COMMON_BASE_LINUX_H
#define COMMON_BASE_LINUX_H

#include <fcntl.h>
#include <linux/futex.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#ifndef STATX_BTIME
#include <linux/stat.h>
#endif
#ifndef RENAME_NOREPLACE
#define RENAME_NOREPLACE (1u << 0)
#endif
#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ 22
#endif
#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif
#ifndef MFD_NOEXEC_SEAL
#define MFD_NOEXEC_SEAL 8u
#endif
#ifndef F_SEAL_FUTURE_WRITE
#define F_SEAL_FUTURE_WRITE 0x10
#endif
#ifndef F_SEAL_EXEC
#define F_SEAL_EXEC 0x0020
#endif
#ifndef MFD_HUGE_2MB
#define MFD_HUGE_2MB (21u << 26)
#endif
#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449 /* on every machine that Linux has had since */
#endif

#ifndef __GLIBC__
int close_range(unsigned first, unsigned last, int flags);
int renameat2(int from, const char *old, int to, const char *new, unsigned flags);
int statx(int directory, const char *path, int flags, unsigned mask, struct statx *ret);
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/room.h"

#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

#include <check.h>

#define GIB ((uint64_t)1 << 30)

bool room_mount(const char *options)
{
    if (unshare(CLONE_NEWNS) || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) ||
        mount("tmpfs", "/dev/shm", "tmpfs", 0, options)) {
        puts("skipped: only root can mount");
        return false;
    }
    return true;
}

static uint64_t free_memory(void)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/meminfo", "re");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) && sscanf(line, "MemAvailable: %llu", &kib) != 1)
        continue;
    fclose(f);
    return (uint64_t)kib * 1024;
}

bool room_for(uint64_t bytes)
{
    char options[32];
    struct statvfs shm;
    if (free_memory() < bytes + 4 * GIB) {
        printf("skipped: less than %" PRIu64 " bytes of memory available\n", bytes + 4 * GIB);
        return false;
    }
    ck_assert_int_eq(statvfs("/dev/shm", &shm), 0);
    if (shm.f_blocks == 0 || (uint64_t)shm.f_bavail * shm.f_frsize >= bytes + GIB) /* 0: no limit */
        return true;
    printf("/dev/shm has less than %" PRIu64 " bytes free\n", bytes + GIB);
    snprintf(options, sizeof options, "size=%" PRIu64, bytes + GIB);
    return room_mount(options);
}

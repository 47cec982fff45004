/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/huge_setting.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#define POOL    "/sys/kernel/mm/hugepages/hugepages-2048kB/"
#define SETTING "/sys/kernel/mm/transparent_hugepage/shmem_enabled"

static uint64_t read_number(const char *path)
{
    uint64_t n = 0;
    FILE *f = fopen(path, "re");
    if (f && fscanf(f, "%" SCNu64, &n) != 1)
        n = 0;
    if (f)
        fclose(f);
    return n;
}

uint64_t huge_pool_free(void)
{
    uint64_t n = read_number(POOL "free_hugepages"), reserved = read_number(POOL "resv_hugepages");
    uint64_t more = read_number(POOL "nr_overcommit_hugepages");
    uint64_t added = read_number(POOL "surplus_hugepages");
    n = n > reserved ? n - reserved : 0;
    return (n + (more > added ? more - added : 0)) << 21;
}

/* Reads the word in brackets, "always within_size [advise] never deny force"; "" if there is none.
 */
static void read_setting(char ret[16])
{
    char line[128] = "";
    FILE *f = fopen(SETTING, "re");
    if (f && !fgets(line, sizeof line, f))
        line[0] = '\0';
    if (f)
        fclose(f);
    const char *word = strchr(line, '[');
    if (!word || sscanf(word, "[%15[a-z_]]", ret) != 1)
        ret[0] = '\0';
}

/* Returns whether the mount with this device has an option huge= other than never. */
static bool mount_allows(dev_t device)
{
    char line[1024], number[32];
    bool allows = false;
    snprintf(number, sizeof number, " %u:%u ", major(device), minor(device));
    FILE *f = fopen("/proc/self/mountinfo", "re");
    while (f && !allows && fgets(line, sizeof line, f)) {
        const char *options = strstr(line, " - ");
        const char *huge = options ? strstr(options, "huge=") : NULL;
        allows = huge && strstr(line, number) && strncmp(huge, "huge=never", 10) != 0;
    }
    if (f)
        fclose(f);
    return allows;
}

bool huge_is_allowed(int fd, bool is_memfd)
{
    char setting[16];
    struct stat st;
    read_setting(setting);
    if (strcmp(setting, "deny") == 0)
        return false;
    if (strcmp(setting, "force") == 0)
        return true;
    if (is_memfd)
        return setting[0] && strcmp(setting, "never") != 0;
    return fstat(fd, &st) == 0 && mount_allows(st.st_dev);
}

uint64_t huge_mapped(const void *at, size_t bytes)
{
    char line[512];
    uintptr_t from, to, begin = (uintptr_t)at, end = begin + bytes;
    uint64_t kib, sum = 0;
    bool within = false, is_over = false;
    FILE *f = fopen("/proc/self/smaps", "re");
    while (f && !is_over && fgets(line, sizeof line, f)) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &from, &to) == 2) {
            within = from >= begin && to <= end;
            is_over = from >= end;
        } else if (within && (sscanf(line, "ShmemPmdMapped: %" SCNu64, &kib) == 1 ||
                              sscanf(line, "FilePmdMapped: %" SCNu64, &kib) == 1)) {
            sum += kib << 10;
        }
    }
    if (f)
        fclose(f);
    return sum;
}

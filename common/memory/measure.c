/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory/measure.h"

#include <stdio.h>

#include "common/memory/cgroup.h"

/* 1/32 of the machine's memory is kept free, because other programs allocate too. */
#define RESERVE_PART 32

/* Without the reserve a creation could bring the OOM killer on other programs. */
struct measure_memory measure_memory(void)
{
    unsigned long long total = 0, available = UINT64_MAX / 1024, swap = 0, all_swap = 0, kib;
    char line[128];
    FILE *f = fopen("/proc/meminfo", "re");
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "MemTotal: %llu", &kib) == 1)
            total = kib;
        else if (sscanf(line, "MemAvailable: %llu", &kib) == 1)
            available = kib;
        else if (sscanf(line, "SwapFree: %llu", &kib) == 1)
            swap = kib;
        else if (sscanf(line, "SwapTotal: %llu", &kib) == 1)
            all_swap = kib;
    }
    if (f)
        fclose(f);
    struct cgroup_space group = cgroup_space((uint64_t)swap * 1024);
    unsigned long long reserve = total / RESERVE_PART, have = available + swap;
    uint64_t free = have > reserve ? (uint64_t)(have - reserve) * 1024 : 0;
    struct measure_memory m = {
        .free = free < group.free ? free : group.free,
        .limit = (uint64_t)(total + all_swap) * 1024,
        .group_limit = group.limit,
    };
    if (m.limit < m.free)
        m.limit = m.free;
    return m;
}

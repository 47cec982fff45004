/* SPDX-License-Identifier: Apache-2.0 */
/* How much memory this process could commit now, before the kernel ends processes for lack of it.
 */
#ifndef COMMON_MEASURE_H
#define COMMON_MEASURE_H

#include <stdint.h>

/* In bytes. */
struct measure_memory {
    /* what the kernel reports as available, memory and swap, less a reserve for other programs; or
     * what the control groups leave, if that is less */
    uint64_t free;
    uint64_t limit;       /* all memory and swap of the machine */
    uint64_t group_limit; /* of the control group; UINT64_MAX: none */
};

/* Measures. Reads files of the kernel, which takes as long as a small creation. A line that cannot
 * be read counts as no limit. After cgroup_init(); any thread. */
struct measure_memory measure_memory(void);

#endif

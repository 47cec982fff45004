/* SPDX-License-Identifier: Apache-2.0 */
/* What the system allows and has of huge pages, and how many of them a mapping has. For
 * placement.c. Any thread. */
#ifndef DAEMON_HUGE_SETTING_H
#define DAEMON_HUGE_SETTING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How many bytes of huge pages of 2 MiB the pool has that nobody has reserved; also those that the
 * kernel may add to it (vm.nr_overcommit_hugepages). */
uint64_t huge_pool_free(void);

/* Whether advice gets transparent huge pages for an object: for a memfd by the kernel's setting of
 * shmem_enabled, for a file by the option huge= of its mount. The settings deny and force apply to
 * files, too, and override the option. */
bool huge_is_allowed(int fd, bool is_memfd);

/* How many bytes of [at, at + bytes) are mapped by huge pages. at begins a mapping of this
 * process, and the range is mapped completely. */
uint64_t huge_mapped(const void *at, size_t bytes);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Maps pages of a segment before they are used. Threads of the caller do it in parallel, because
 * the kernel locks only single page tables for it; the library starts no thread. */
#include <shmview/placement.h>

#include <errno.h>
#include <inttypes.h>
#include <sys/mman.h>
#include <unistd.h>

#include "client/base/error.h"
#include "client/segment/segment.h"
#include "common/base/linux.h"

/* Touches the pages from `from` to before `to`, for kernels before 5.14. Adding 0 changes no byte
 * that another thread writes at the same time, as storing a byte that was read could. */
static void touch(char *from, const char *to, size_t page, bool for_writing)
{
    for (char *p = from; p < to; p += page) {
        _Atomic char *byte = (_Atomic char *)p;
        if (for_writing)
            atomic_fetch_add_explicit(byte, 0, memory_order_relaxed);
        else
            atomic_load_explicit(byte, memory_order_relaxed);
    }
}

int shmview_populate(struct shmview_segment *segment, uint64_t offset, uint64_t bytes)
{
    if (offset > segment->size || bytes > segment->size - offset)
        return fail(SHMVIEW_ERR_BOUNDS,
                    "bytes %" PRIu64 " to %" PRIu64 " of '%s', which has %" PRIu64, offset,
                    offset + bytes, segment->name, segment->size);
    if (bytes == 0)
        return 0;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    char *first = (char *)segment->data + offset, *end = first + bytes;
    char *from = first - (uintptr_t)first % page;
    bool for_writing = segment->access == SHMVIEW_WRITE;
    int r;
    do
        r = madvise(from, (size_t)(end - from),
                    for_writing ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    while (r && (errno == EINTR || errno == EAGAIN));
    if (r == 0)
        return 0;
    if (errno != EINVAL)
        return fail_errno("populating", errno);
    touch(from, end, page, for_writing);
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "cli/data/prefault.h"

#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#define STEP_BYTES  ((size_t)2 << 20)  /* between two looks at `stop` */
#define LEAST_BYTES ((size_t)16 << 20) /* a smaller copy ends before the thread runs */

#ifndef MADV_POPULATE_READ /* older headers lack it, and kernels before 5.14 refuse it */
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* Ends at the first error: another client may have truncated the memory, and madvise() reports that
 * where an access would raise SIGBUS. */
static void *run(void *arg)
{
    struct prefault *p = arg;
    for (size_t at = 0; at < p->bytes && !atomic_load(&p->stop); at += STEP_BYTES)
        if (madvise(p->data + at, p->bytes - at < STEP_BYTES ? p->bytes - at : STEP_BYTES,
                    p->advice))
            break;
    return NULL;
}

void prefault_begin(struct prefault *p, void *data, size_t bytes, bool writes)
{
    size_t before = (uintptr_t)data & ((uintptr_t)sysconf(_SC_PAGESIZE) - 1);
    *p = (struct prefault){
        .data = (unsigned char *)data - before,
        .bytes = bytes + before,
        .advice = writes ? MADV_POPULATE_WRITE : MADV_POPULATE_READ,
    };
    p->is_running = bytes >= LEAST_BYTES && pthread_create(&p->thread, NULL, run, p) == 0;
}

void prefault_end(struct prefault *p)
{
    if (!p->is_running)
        return;
    atomic_store(&p->stop, true);
    pthread_join(p->thread, NULL);
    p->is_running = false;
}

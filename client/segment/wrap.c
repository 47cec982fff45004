/* SPDX-License-Identifier: Apache-2.0 */
/* Foreign memory as a segment: memory that the program already has, so that views of it can be
 * made.
 *
 * Such a segment has no connection, lock or name, and is on no list. No other file needs to know
 * it: calls that need the daemon fail in connection_call(), calls that lock fail in
 * lock_enter(). */
#include <inttypes.h>

#include "client/base/error.h"
#include "client/segment/export.h"

/* The address of a segment of no bytes. Views of it need an address too, and one that is aligned
 * for every type. */
static _Alignas(64) unsigned char nothing[64];

int shmview_wrap(void *data, uint64_t nbytes, unsigned flags, void (*release)(void *arg), void *arg,
                 struct shmview_segment **ret_segment)
{
    uintptr_t end;
    NOT_CANCELLED;
    if (flags & ~SHMVIEW_WRAP_READ_ONLY)
        return fail(SHMVIEW_ERR_INVALID, "unknown flags 0x%x", flags & ~SHMVIEW_WRAP_READ_ONLY);
    if (!data && nbytes)
        return fail(SHMVIEW_ERR_INVALID, "%" PRIu64 " bytes at no address", nbytes);
    if (nbytes > PTRDIFF_MAX || __builtin_add_overflow((uintptr_t)data, nbytes, &end))
        return fail(SHMVIEW_ERR_INVALID, "%" PRIu64 " bytes at %p: no memory is so large", nbytes,
                    data);
    int r = process_init();
    if (r)
        return r;
    struct shmview_segment *s = segment_new(NULL);
    if (!s)
        return -SHMVIEW_ERR_NO_MEMORY;
    s->data = data ? data : nothing;
    s->size = nbytes;
    s->access = flags & SHMVIEW_WRAP_READ_ONLY ? SHMVIEW_READ : SHMVIEW_WRITE;
    s->release = release;
    s->release_arg = arg;
    *ret_segment = s;
    return 0;
}

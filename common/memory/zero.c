/* SPDX-License-Identifier: Apache-2.0 */
#include "common/memory/zero.h"

#include <errno.h>
#include <unistd.h>

/* How many zeros are written at once: they should stay in the processor's second cache. */
#define ZEROS_BYTES 65536

int zero_file(int fd, uint64_t from, uint64_t bytes)
{
    static const char zeros[ZEROS_BYTES];
    for (uint64_t done = 0; done < bytes;) {
        size_t n = bytes - done < sizeof zeros ? (size_t)(bytes - done) : sizeof zeros;
        ssize_t r = pwrite(fd, zeros, n, (off_t)(from + done));
        if (r < 0 && errno != EINTR)
            return -errno;
        if (r == 0)
            return -ENOSPC;
        done += r > 0 ? (uint64_t)r : 0;
    }
    return 0;
}

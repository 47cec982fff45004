/* SPDX-License-Identifier: Apache-2.0 */
#include "common/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

int descriptor_lift(int fd)
{
    if (fd < 0 || fd > STDERR_FILENO)
        return fd;
    int lifted = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    int r = lifted < 0 ? -errno : lifted;
    close(fd);
    return r;
}

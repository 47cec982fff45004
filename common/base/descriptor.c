/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
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

int descriptor_renumber(int fd, int number)
{
    int r;
    do
        r = dup3(fd, number, O_CLOEXEC);
    while (r < 0 && (errno == EINTR || errno == EBUSY)); /* EBUSY: a race with open() */
    if (r < 0)
        return -errno;
    close(fd);
    return 0;
}

bool descriptor_hung_up(int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLRDHUP};
    int r;
    do
        r = poll(&p, 1, 0);
    while (r < 0 && errno == EINTR);
    return r > 0;
}

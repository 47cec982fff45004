/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
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

void descriptor_pass(struct msghdr *message, union descriptor_control *control, int fd)
{
    memset(control, 0, sizeof *control);
    message->msg_control = control->bytes;
    message->msg_controllen = sizeof control->bytes;
    struct cmsghdr *c = &control->align;
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(c), &fd, sizeof fd);
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

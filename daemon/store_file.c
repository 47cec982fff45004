/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/util.h"

/* *ret_bytes is its size. */
static int open_own(int dir, const char *name, off_t *ret_bytes)
{
    struct stat st;
    CLEANUP_FD int fd =
        openat(dir, name, O_CREAT | O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC, 0600);
    if (fd < 0) /* a link, a directory, a socket, a file of another user */
        return errno == ELOOP || errno == EISDIR || errno == ENXIO || errno == EACCES ? -EUCLEAN
                                                                                      : -errno;
    if (fstat(fd, &st))
        return -errno;
    bool is_own = S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1 &&
                  !(st.st_mode & (S_IWGRP | S_IWOTH));
    *ret_bytes = st.st_size;
    return is_own ? steal_fd(&fd) : -EUCLEAN;
}

int store_file_open(int dir, const char *name, struct store_check *check)
{
    off_t bytes = 0;
    CLEANUP_FD int fd = open_own(dir, name, &bytes);
    int sound = store_check_end(check, bytes > 0 ? fd : -1);
    if (fd < 0)
        return fd;
    return sound ? sound : steal_fd(&fd);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/address.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static bool directory_is_mine(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid();
}

static bool is_of_another_user(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && st.st_uid != geteuid();
}

/* secure_getenv(): a setuid program must not let its caller choose the directory. A directory that
 * does not exist yet is taken as it is, because the daemon makes it. */
static int path_below(const char *tail, address_path ret_path)
{
    const char *dir = secure_getenv("XDG_RUNTIME_DIR");
    address_path buffer;
    if (!dir || dir[0] != '/' || is_of_another_user(dir)) {
        snprintf(buffer, sizeof buffer, "/run/user/%u", geteuid());
        if (!directory_is_mine(buffer))
            snprintf(buffer, sizeof buffer, "/tmp/shmview-%u", geteuid());
        dir = buffer;
    }
    int n = snprintf(ret_path, sizeof(address_path), "%s/shmviewd/%s", dir, tail);
    return n < 0 || (size_t)n >= sizeof(address_path) ? -ENAMETOOLONG : 0;
}

int address_user(address_path ret_path)
{
    return path_below("io.shmview", ret_path);
}

int address_session(address_path ret_path)
{
    return path_below("session/io.shmview", ret_path);
}

int address_fill(struct sockaddr_un *ret, const char *path)
{
    size_t n = strlen(path);
    if (n == 0)
        return -EINVAL;
    if (n >= sizeof ret->sun_path)
        return -ENAMETOOLONG;
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(ret->sun_path, path, n + 1);
    return 0;
}

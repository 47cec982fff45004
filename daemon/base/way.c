/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/base/way.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/address.h"
#include "common/base/util.h"
#include "daemon/base/log.h"

/* Checks one directory; path is for the message. Returns 0, or -errno after logging it. */
static int check(int dir, const char *path)
{
    struct stat st;
    const char *fault = NULL;
    if (fstat(dir, &st)) {
        int r = -errno;
        log_error("%s: %s", path, strerror(-r));
        return r;
    }
    if (st.st_uid != 0 && st.st_uid != geteuid())
        fault = "it belongs to another user";
    else if (st.st_mode & (S_IWGRP | S_IWOTH) && !(st.st_mode & S_ISVTX))
        fault = "others may write to it";
    if (!fault)
        return 0;
    log_error("no instance can be served below %s (user %u, mode %04o): %s", path, st.st_uid,
              st.st_mode & 07777, fault);
    return -EPERM;
}

/* Opens the directory called name in dir, makes it if it is missing, and checks it. Each step is
 * relative to a directory that was checked already, so nobody can exchange a part of the way in
 * between. Returns a descriptor, which the caller owns, or -errno after logging it. */
static int enter(int dir, const char *name, const char *path)
{
    const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
    CLEANUP_FD int next = openat(dir, name, flags);
    if (next < 0 && errno == ENOENT && (mkdirat(dir, name, 0777) == 0 || errno == EEXIST))
        next = openat(dir, name, flags);
    if (next < 0) {
        int r = -errno;
        log_error("cannot use or make the directory %s: %s%s", path, strerror(-r),
                  r == -ENOTDIR ? ", or a symbolic link, which is not followed" : "");
        return r;
    }
    int r = check(next, path);
    return r ? r : steal_fd(&next);
}

/* Returns -errno after logging it. */
static int fail_at(const char *place)
{
    int r = -errno;
    log_error("%s: %s", place, strerror(-r));
    return r;
}

/* Walks from / to the directory that contains path, which is absolute. While it works it replaces
 * one slash of path by NUL. Returns a descriptor, which the caller owns, or -errno after logging
 * it. */
static int walk(char *path)
{
    CLEANUP_FD int dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    int r = dir < 0 ? fail_at("/") : check(dir, "/");
    char *at = path + 1, *slash;
    for (; r == 0 && (slash = strchr(at, '/')); at = slash + 1) {
        if (slash == at) /* two slashes */
            continue;
        *slash = '\0';
        int next = enter(dir, at, path);
        *slash = '/';
        if (next < 0)
            return next;
        close(dir);
        dir = next;
    }
    return r ? r : steal_fd(&dir);
}

const char *way_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* The room for path in absolute[] suffices because callers pass no path longer than address_path.
 * umask() is not thread-safe; the daemon calls this before it has threads. */
int way_open(const char *path)
{
    char absolute[PATH_MAX + sizeof(address_path) + 1] = "";
    if (path[0] != '/' && !getcwd(absolute, PATH_MAX))
        return fail_at("the current directory");
    size_t n = strlen(absolute);
    snprintf(absolute + n, sizeof absolute - n, "%s%s", n ? "/" : "", path);
    mode_t mask = umask(strcmp(path, ADDRESS_SYSTEM) == 0 ? 022 : 077);
    int r = walk(absolute);
    umask(mask);
    return r;
}

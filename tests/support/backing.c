/* SPDX-License-Identifier: Apache-2.0 */
#include "support/backing.h"

#include <check.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define OBJECTS_MOST 1000

bool backing_is_sealed(void)
{
    const char *backing = getenv("SHMVIEW_TEST_BACKING");
    return backing && strcmp(backing, "sealed") == 0;
}

const char *backing_config(void)
{
    static const char text[] = "{\"defaults\": {\"backing\": \"sealed\"}}\n";
    static char path[32];
    if (!backing_is_sealed())
        return "/dev/null";
    int fd = memfd_create("configuration", 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(fchmod(fd, 0600), 0); /* the daemon refuses what others may write */
    ck_assert_int_eq(write(fd, text, sizeof text - 1), sizeof text - 1);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    return path;
}

unsigned backing_objects(pid_t daemon)
{
    char path[64], link[300];
    ino_t seen[OBJECTS_MOST];
    unsigned n = 0, i;
    struct stat st;
    snprintf(path, sizeof path, "/proc/%d/fd", daemon);
    DIR *dir = opendir(path);
    ck_assert_ptr_nonnull(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        ssize_t got = readlinkat(dirfd(dir), e->d_name, link, sizeof link - 1);
        link[got > 0 ? got : 0] = '\0';
        if (strncmp(link, "/memfd:shmview:", 15) || fstatat(dirfd(dir), e->d_name, &st, 0))
            continue;
        for (i = 0; i < n && seen[i] != st.st_ino; i++)
            continue;
        ck_assert_uint_lt(i, OBJECTS_MOST);
        seen[i] = st.st_ino;
        n += i == n;
    }
    closedir(dir);
    return n;
}

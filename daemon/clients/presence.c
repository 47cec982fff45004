/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/clients/presence.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/memory/directory.h"

#define PRESENCE_DIRECTORY "+presence"

typedef char file_name[40];

static void name_of(struct presence_key key, file_name ret)
{
    snprintf(ret, sizeof(file_name), "%u.%" PRIx64, key.uid, key.client);
}

/* Reads a name that name_of() could have made. Other spellings of the same numbers are refused, so
 * that no two files have one key. */
static bool read_name(const char *name, struct presence_key *ret)
{
    file_name again;
    if (sscanf(name, "%u.%" SCNx64, &ret->uid, &ret->client) != 2)
        return false;
    name_of(*ret, again);
    return strcmp(again, name) == 0;
}

int presence_open(struct presence *presence)
{
    *presence = (struct presence){.directory = -1, .news = -1};
    if (mkdirat(directory_fd(), PRESENCE_DIRECTORY, 0700) && errno != EEXIST)
        return -errno;
    presence->directory =
        openat(directory_fd(), PRESENCE_DIRECTORY, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (presence->directory < 0) {
        int r = -errno;
        unlinkat(directory_fd(), PRESENCE_DIRECTORY, AT_REMOVEDIR); /* fails if there is a file */
        return r;
    }
    snprintf(presence->path, sizeof presence->path, "%s/" PRESENCE_DIRECTORY, directory_path());
    presence->news = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    /* IN_CLOSE_NOWRITE: descriptors of clients are read-only, those of presence_test() are not */
    if (presence->news >= 0 &&
        inotify_add_watch(presence->news, presence->path,
                          IN_CLOSE_NOWRITE | IN_EXCL_UNLINK | IN_ONLYDIR | IN_DONT_FOLLOW) < 0)
        close_fdp(&presence->news);
    return 0;
}

int presence_create(const struct presence *presence, struct presence_key key)
{
    file_name name;
    if (!presence->path[0])
        return -ENOENT;
    name_of(key, name);
    unlinkat(presence->directory, name, 0);
    CLEANUP_FD int fd = openat(presence->directory, name,
                               O_RDONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_SH | LOCK_NB)) {
        int r = -errno;
        unlinkat(presence->directory, name, 0);
        return r;
    }
    return steal_fd(&fd);
}

int presence_test(const struct presence *presence, struct presence_key key)
{
    file_name name;
    if (!presence->path[0])
        return PRESENCE_ABSENT;
    name_of(key, name);
    CLEANUP_FD int fd = openat(presence->directory, name, O_WRONLY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0)
        return errno == ENOENT ? PRESENCE_ABSENT : -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0)
        return PRESENCE_FREE;
    return errno == EWOULDBLOCK ? PRESENCE_LOCKED : -errno;
}

void presence_remove(const struct presence *presence, struct presence_key key)
{
    file_name name;
    if (!presence->path[0])
        return;
    name_of(key, name);
    unlinkat(presence->directory, name, 0);
}

enum presence_news presence_read(const struct presence *presence,
                                 void (*visit)(void *arg, struct presence_key), void *arg)
{
    char room[4096] __attribute__((aligned(__alignof__(struct inotify_event))));
    struct presence_key key;
    bool lost = false;
    ssize_t n = read(presence->news, room, sizeof room);
    for (char *at = room; n > 0 && at < room + n;) {
        const struct inotify_event *e = (const struct inotify_event *)(void *)at;
        lost = lost || e->mask & IN_Q_OVERFLOW;
        if (e->len && read_name(e->name, &key))
            visit(arg, key);
        at += sizeof *e + e->len;
    }
    return lost ? NEWS_LOST : n > 0 ? NEWS_READ : NEWS_NONE;
}

void presence_sweep(const struct presence *presence, bool (*keep)(void *arg, struct presence_key),
                    void *arg)
{
    struct presence_key key;
    int fd = !presence->path[0] ? -1 : openat(presence->directory, ".", O_RDONLY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    if (!dir) {
        close_fdp(&fd);
        return;
    }
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.' && !(read_name(e->d_name, &key) && keep(arg, key)))
            unlinkat(presence->directory, e->d_name, 0);
    closedir(dir);
}

static bool keep_none(void *arg, struct presence_key key)
{
    (void)arg;
    (void)key;
    return false;
}

void presence_close(struct presence *presence, bool remove)
{
    if (!presence->path[0])
        return;
    if (remove)
        presence_sweep(presence, keep_none, NULL);
    unlinkat(directory_fd(), PRESENCE_DIRECTORY, AT_REMOVEDIR); /* fails if there is a file */
    presence->path[0] = '\0';
    close_fdp(&presence->news);
    close_fdp(&presence->directory);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A file without a name needs no cleanup: the kernel frees it however this process ends. Only a
 * temporary name needs the signal handler below, and stays after SIGKILL. */
#include "cli/data/outfile.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define NAMES_TRIED 100

/* The temporary name that a signal handler removes; "" if there is none. Static, because a handler
 * can reach nothing else, and must not allocate. */
static char doomed[PATH_MAX];

/* Removes the file, and then ends the process by the signal, so that the shell sees the cause. */
static void on_signal(int number)
{
    if (doomed[0])
        unlink(doomed);
    signal(number, SIG_DFL);
    raise(number);
}

/* Leaves ignored signals ignored, as nohup(1) and outfile_open() (SIGPIPE) need. */
static void catch_signals(void)
{
    static const int numbers[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE};
    struct sigaction action = {.sa_handler = on_signal}, old;
    sigemptyset(&action.sa_mask);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++)
        if (sigaction(numbers[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
            sigaction(numbers[i], &action, NULL);
}

/* Reports an errno and a way out. EFAULT is about the segment, not the file: its memory is missing
 * because another client has truncated the object. */
static int fail_file(const struct outfile *file, int error)
{
    if (error == EFAULT)
        return fail_text(file->c,
                         "the segment's memory is gone: a program that has it attached for "
                         "writing has cut it off; remove the segment");
    const char *hint = error == ENOSPC || error == EDQUOT ? "make room, or write elsewhere"
                       : error == EPIPE                   ? "its reader has gone"
                                                          : "write elsewhere";
    return fail_text(file->c, "%s cannot be written: %s: %s", file->path, strerror(error), hint);
}

/* Resolves symbolic links, because rename() would replace a link and not its target. A path that
 * does not exist is returned as a copy. Returns memory of the caller, or NULL with errno. */
static char *resolve(const char *path)
{
    char *place = realpath(path, NULL);
    return place ? place : errno == ENOENT ? strdup(path) : NULL;
}

/* Sets a temporary name in the directory of the target, because rename() does not work between file
 * systems. The caller tries the next attempt if the name exists. Returns 0 or -errno. */
static int name_temporary(struct outfile *file, unsigned attempt)
{
    char copy[PATH_MAX], *name;
    free(file->temporary);
    file->temporary = NULL;
    if (snprintf(copy, sizeof copy, "%s", file->place) >= (int)sizeof copy)
        return -ENAMETOOLONG;
    name = basename(copy);
    size_t before = strlen(file->place) - strlen(name);
    return asprintf(&file->temporary, "%.*s.%.200s.%d.%u", (int)before, file->place, name,
                    (int)getpid(), attempt) < 0
               ? -ENOMEM
               : 0;
}

/* Opens a new file under a temporary name. Returns 0 or -errno. */
static int open_named(struct outfile *file)
{
    int r = 0;
    for (unsigned i = 0; i < NAMES_TRIED; i++) {
        r = name_temporary(file, i);
        if (r)
            return r;
        file->fd =
            open(file->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
        if (file->fd >= 0) {
            snprintf(doomed, sizeof doomed, "%s", file->temporary);
            catch_signals();
            return 0;
        }
        if (errno != EEXIST)
            break;
    }
    r = -errno;
    free(file->temporary);
    file->temporary = NULL;
    return r;
}

/* Opens a new file without a name, or a named one if the file system or the kernel lacks O_TMPFILE;
 * the three errors are their ways to report that. Returns 0 or -errno. */
static int open_new(struct outfile *file)
{
    char copy[PATH_MAX];
    if (snprintf(copy, sizeof copy, "%s", file->place) >= (int)sizeof copy)
        return -ENAMETOOLONG;
    file->fd = open(dirname(copy), O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666);
    if (file->fd >= 0)
        return 0;
    return errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL ? open_named(file) : -errno;
}

/* Whether the file system has so many bytes left. Only an early estimate: write() still may fail.
 * Allocating the bytes instead would take as long as writing them where it means zeroing, as on
 * tmpfs. A file system that reports no size counts as large enough. */
static bool has_room(const struct outfile *file, uint64_t bytes)
{
    struct statvfs st;
    return fstatvfs(file->fd, &st) || st.f_blocks == 0 ||
           (uint64_t)st.f_bavail * st.f_frsize >= bytes;
}

/* Opens the named target: directly unless it is a regular file, or does not exist. Returns 0 or
 * -errno. */
static int open_place(struct outfile *file, uint64_t bytes)
{
    struct stat st;
    bool exists = stat(file->path, &st) == 0;
    if (exists && S_ISDIR(st.st_mode))
        return -EISDIR;
    if (exists && !S_ISREG(st.st_mode)) {
        file->fd = open(file->path, O_WRONLY | O_CLOEXEC);
        return file->fd < 0 ? -errno : 0;
    }
    if (exists && access(file->path, W_OK))
        return -errno; /* replacing the file needs no right to it, so check that first */
    file->place = resolve(file->path);
    int r = file->place ? open_new(file) : -errno;
    if (r == 0 && exists && fchmod(file->fd, st.st_mode & 07777))
        r = -errno;
    return r ? r : has_room(file, bytes) ? 0 : -ENOSPC;
}

int outfile_open(struct context *c, struct outfile *file, const char *path, uint64_t bytes)
{
    *file = (struct outfile){.c = c, .path = path, .fd = -1};
    signal(SIGPIPE, SIG_IGN);
    signal(SIGXFSZ, SIG_IGN);
    if (strcmp(path, "-") == 0) {
        file->path = "standard output";
        file->fd = STDOUT_FILENO;
        return isatty(file->fd) ? fail_usage(c, "standard output is a terminal: name a file, or "
                                                "send it elsewhere with '>' or '|'")
                                : 0;
    }
    file->is_ours = true;
    int r = open_place(file, bytes);
    return r ? fail_file(file, -r) : 0;
}

int outfile_write(struct outfile *file, const void *data, size_t n)
{
    for (const char *p = data; n;) {
        ssize_t written = write(file->fd, p, n);
        if (written < 0 && errno != EINTR)
            return fail_file(file, errno);
        if (written > 0) {
            p += written;
            n -= (size_t)written;
        }
    }
    return 0;
}

bool outfile_is_regular(const struct outfile *file)
{
    return file->place != NULL;
}

int outfile_cut(struct outfile *file, uint64_t n)
{
    int r;
    do
        r = ftruncate(file->fd, (off_t)n);
    while (r && errno == EINTR);
    return r ? fail_file(file, errno) : 0;
}

int outfile_rewrite(struct outfile *file, const void *data, size_t n)
{
    ssize_t written = pwrite(file->fd, data, n, 0);
    return written == (ssize_t)n ? 0 : fail_file(file, written < 0 ? errno : EIO);
}

/* Gives a file without a name its final name. If a file of that name exists, gives it a temporary
 * name instead, because linkat() cannot replace a file; the caller renames it. Returns 0 or -errno.
 */
static int give_name(struct outfile *file)
{
    char self[64];
    int r = 0;
    snprintf(self, sizeof self, "/proc/self/fd/%d", file->fd);
    if (linkat(AT_FDCWD, self, AT_FDCWD, file->place, AT_SYMLINK_FOLLOW) == 0)
        return 0;
    for (unsigned i = 0; i < NAMES_TRIED; i++) {
        r = name_temporary(file, i);
        if (r || linkat(AT_FDCWD, self, AT_FDCWD, file->temporary, AT_SYMLINK_FOLLOW) == 0)
            return r;
        r = -errno;
        if (errno != EEXIST)
            break;
    }
    free(file->temporary);
    file->temporary = NULL;
    return r;
}

/* Some file systems, such as NFS, write bytes and report errors of that only when a descriptor is
 * closed. The name needs the own descriptor open, so this closes a copy. Returns 0 or -errno. */
static int report_errors(const struct outfile *file)
{
    int copy = fcntl(file->fd, F_DUPFD_CLOEXEC, 0);
    return copy < 0 || close(copy) ? -errno : 0;
}

int outfile_commit(struct outfile *file)
{
    if (!file->place)
        return 0;
    int r = report_errors(file);
    if (r == 0 && !file->temporary)
        r = give_name(file);
    if (r == 0 && file->temporary && rename(file->temporary, file->place))
        r = -errno;
    if (r)
        return fail_file(file, -r);
    doomed[0] = '\0';
    free(file->temporary);
    file->temporary = NULL;
    return 0;
}

void outfile_close(struct outfile *file)
{
    if (file->temporary)
        unlink(file->temporary);
    doomed[0] = '\0';
    if (file->is_ours && file->fd >= 0)
        close(file->fd);
    free(file->temporary);
    free(file->place);
    *file = (struct outfile){.fd = -1};
}

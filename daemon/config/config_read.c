/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config_read.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/base/util.h"

/* Lower uids are those of root and of system users, by the policy of Debian and of systemd. */
#define FIRST_USER 1000
#define SUFFIX     ".json"

void config_default_path(config_path ret)
{
    const char *base = getenv("XDG_CONFIG_HOME"), *home = getenv("HOME");
    int n = 0;
    if (geteuid() < FIRST_USER)
        n = snprintf(ret, PATH_MAX, "%s", CONFIG_SYSTEM);
    else if (base && base[0] == '/') /* the XDG specification: ignore a relative path */
        n = snprintf(ret, PATH_MAX, "%s/shmviewd.json", base);
    else if (home && home[0] == '/')
        n = snprintf(ret, PATH_MAX, "%s/.config/shmviewd.json", home);
    if (n <= 0 || n >= PATH_MAX)
        snprintf(ret, PATH_MAX, "%s", CONFIG_NONE);
}

/* Whether no other user can have written the file; reports a fault if one can. st is of the open
 * descriptor, so the file cannot be exchanged in between. */
static bool is_ours(struct config_reader *reader, const char *path, const struct stat *st)
{
    uid_t me = geteuid();
    if (st->st_uid != 0 && st->st_uid != me) {
        config_reader_fault(reader, path, 0, "belongs to uid %u: must belong to root or to uid %u",
                            st->st_uid, me);
        return false;
    }
    mode_t bad = S_IWOTH | (me < FIRST_USER ? S_IWGRP : 0);
    if (st->st_mode & bad) {
        config_reader_fault(reader, path, 0, "has mode %04o: must not be writable by %s",
                            st->st_mode & 07777, bad & S_IWGRP ? "its group or others" : "others");
        return false;
    }
    return true;
}

static void fault_errno(struct config_reader *reader, const char *path)
{
    int error = errno;
    if (error == ENOMEM || error == EMFILE || error == ENFILE || error == EIO)
        config_reader_passing(reader);
    config_reader_fault(reader, path, 0, "%s", strerror(error));
}

/* Returns the contents of fd and a NUL as a new string, or NULL after a fault. */
static char *read_text(struct config_reader *reader, const char *path, int fd, size_t *ret_bytes)
{
    CLEANUP_FREE char *text = malloc(LIMIT_CONFIG_BYTES + 1);
    size_t n = 0;
    ssize_t r = 1;
    if (!text) {
        config_reader_passing(reader);
        config_reader_fault(reader, path, 0, "out of memory");
        return NULL;
    }
    while (r > 0 && n <= LIMIT_CONFIG_BYTES) {
        r = read(fd, text + n, LIMIT_CONFIG_BYTES + 1 - n);
        n += r > 0 ? (size_t)r : 0;
    }
    if (r < 0) {
        fault_errno(reader, path);
        return NULL;
    }
    if (n > LIMIT_CONFIG_BYTES) {
        config_reader_fault(reader, path, 0, "has more than %d bytes, which is the limit",
                            LIMIT_CONFIG_BYTES);
        return NULL;
    }
    text[n] = '\0';
    *ret_bytes = n;
    return STEAL(text);
}

/* Adds one file to the configuration. After a fault the other files are still read, so that a
 * single run reports all errors. */
static void read_file(struct config_reader *reader, const char *path, bool required)
{
    struct stat st;
    size_t bytes;
    /* O_NONBLOCK: opening a FIFO would block otherwise */
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0 && errno == ENOENT && !required)
        return;
    if (fd < 0 || fstat(fd, &st)) {
        fault_errno(reader, path);
        return;
    }
    if (!S_ISREG(st.st_mode)) {
        config_reader_fault(reader, path, 0, "is not a regular file");
        return;
    }
    if (!is_ours(reader, path, &st))
        return;
    CLEANUP_FREE char *text = read_text(reader, path, fd, &bytes);
    if (text)
        config_reader_add(reader, path, text, bytes);
}

/* --- The directory -------------------------------------------------------- */

static bool ends_with(const char *text, const char *end)
{
    size_t n = strlen(text), m = strlen(end);
    return n > m && strcmp(text + n - m, end) == 0;
}

static int is_wanted(const struct dirent *entry)
{
    return entry->d_name[0] != '.' && ends_with(entry->d_name, SUFFIX);
}

static int by_bytes(const struct dirent **a, const struct dirent **b)
{
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_entries(struct config_reader *reader, const char *directory,
                         struct dirent **entries, int n)
{
    config_path path;
    if (n > LIMIT_CONFIG_FILES) {
        config_reader_fault(reader, directory, 0, "has %d files, the limit is %d", n,
                            LIMIT_CONFIG_FILES);
        return;
    }
    for (int i = 0; i < n; i++) {
        if (snprintf(path, sizeof path, "%s/%s", directory, entries[i]->d_name) < PATH_MAX)
            read_file(reader, path, true);
        else
            config_reader_fault(reader, directory, 0, "'%s': %s", entries[i]->d_name,
                                strerror(ENAMETOOLONG));
    }
}

static void read_directory(struct config_reader *reader, const char *path)
{
    struct stat st;
    struct dirent **entries = NULL;
    if (stat(path, &st)) {
        if (errno != ENOENT)
            fault_errno(reader, path);
        return;
    }
    if (!S_ISDIR(st.st_mode)) {
        config_reader_fault(reader, path, 0, "is not a directory");
        return;
    }
    if (!is_ours(reader, path, &st))
        return;
    int n = scandir(path, &entries, is_wanted, by_bytes);
    if (n < 0)
        fault_errno(reader, path);
    else
        read_entries(reader, path, entries, n);
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
}

/* --- The whole ------------------------------------------------------------ */

static uint64_t memory_bytes(void)
{
    long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
    return pages > 0 && page > 0 ? (uint64_t)pages * (uint64_t)page : 0;
}

static void read_all(struct config_reader *reader, const char *file, bool required)
{
    config_path directory;
    if (strcmp(file, CONFIG_NONE) == 0)
        return;
    read_file(reader, file, required);
    int stem = (int)(strlen(file) - (ends_with(file, SUFFIX) ? strlen(SUFFIX) : 0));
    if (snprintf(directory, sizeof directory, "%.*s.d", stem, file) < PATH_MAX)
        read_directory(reader, directory);
}

struct config *config_read(const char *file, bool required, config_say *say, void *arg,
                           bool *ret_may_pass)
{
    struct config_reader reader;
    struct config *config = NULL;
    *ret_may_pass = true;
    if (config_reader_begin(&reader, config_lookup_system, memory_bytes(), say, arg) == 0) {
        read_all(&reader, file, required);
        config = config_reader_end(&reader);
        *ret_may_pass = reader.n_passing == reader.n_errors;
    }
    return config;
}

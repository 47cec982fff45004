/* SPDX-License-Identifier: Apache-2.0 */
/* Every error message names the file and the next step. */
#include "cli/data/infile.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_BYTES (UINT64_C(1) << 20) /* first buffer for a pipe; doubled when it is full */

/* Reports an errno. The data often goes directly into the segment, so EFAULT means that its memory
 * is missing: another client has truncated the object. The kernel returns EFAULT here, while an
 * access from this program would raise SIGBUS. */
static int fail_file(const struct infile *file, int error)
{
    if (error == EFAULT)
        return fail_text(file->c,
                         "the segment's memory is gone: a program that has it attached for "
                         "writing has cut it off; remove the segment");
    return fail_text(file->c, "%s cannot be read: %s: is it the file that you mean?", file->path,
                     strerror(error));
}

int infile_open(struct context *c, struct infile *file, const char *path)
{
    struct stat st;
    *file = (struct infile){.c = c, .path = path, .fd = STDIN_FILENO};
    if (strcmp(path, "-") == 0) {
        file->path = "standard input";
        if (isatty(file->fd))
            return fail_usage(c,
                              "standard input is a terminal: name a file, or send one with '<' or "
                              "'|'");
    } else {
        file->fd = open(path, O_RDONLY | O_CLOEXEC);
        if (file->fd < 0)
            return fail_file(file, errno);
        file->is_ours = true;
    }
    if (fstat(file->fd, &st))
        return fail_file(file, errno);
    if (S_ISDIR(st.st_mode))
        return fail_file(file, EISDIR);
    /* Another program may have read a part of standard input already, as in '(head -1; shmviewctl
     * load - NAME) < FILE'. pread() would read that part again, so such a file counts as a pipe. */
    file->is_regular = S_ISREG(st.st_mode) && lseek(file->fd, 0, SEEK_CUR) == 0;
    file->file_bytes = (uint64_t)st.st_size;
    return 0;
}

/* Reads up to n bytes; fewer only at the end of the file. `at` counts from the beginning of a
 * regular file, and is not used for a pipe. Returns the number of bytes, or -1 with errno. */
static ssize_t read_fully(const struct infile *file, void *data, size_t n, uint64_t at)
{
    size_t done = 0;
    while (done < n) {
        ssize_t r = file->is_regular
                        ? pread(file->fd, (char *)data + done, n - done, (off_t)(at + done))
                        : read(file->fd, (char *)data + done, n - done);
        if (r == 0)
            break;
        if (r < 0 && errno != EINTR)
            return -1;
        done += r > 0 ? (size_t)r : 0;
    }
    return (ssize_t)done;
}

/* Reads a pipe to its end and fails unless it has exactly `want` bytes; UINT64_MAX: any number. The
 * buffer grows with the bytes that arrive, because a false header could otherwise request any
 * amount of memory. */
static int read_pipe(struct infile *file, uint64_t want)
{
    uint64_t have = 0, room = 0;
    char more;
    while (have < want) {
        if (have == room) {
            room = room ? 2 * room : FIRST_BYTES;
            room = room < want ? room : want;
            unsigned char *memory = realloc(file->memory, room);
            if (!memory)
                return fail_memory(file->c);
            file->memory = memory;
        }
        ssize_t n = read_fully(file, file->memory + have, room - have, 0);
        if (n < 0)
            return fail_file(file, errno);
        if (n == 0)
            break;
        have += (uint64_t)n;
    }
    if (want == UINT64_MAX)
        want = have;
    if (have < want)
        return fail_text(file->c,
                         "%s is truncated: its header announces %" PRIu64
                         " bytes of elements, %" PRIu64 " arrived: write it again",
                         file->path, want, have);
    if (read_fully(file, &more, 1, 0) > 0)
        return fail_text(file->c,
                         "%s has more than the %" PRIu64 " bytes of elements that its header "
                         "announces: load one array at a time",
                         file->path, want);
    file->nbytes = want;
    return 0;
}

/* Whether a regular file has exactly the announced elements after its header. Bytes after them are
 * refused as well: numpy appends a second array there if it saves twice to one stream, and a load
 * would silently drop it. */
static int check_size(struct infile *file)
{
    uint64_t has = file->file_bytes > file->data_at ? file->file_bytes - file->data_at : 0;
    if (has < file->nbytes)
        return fail_text(file->c,
                         "%s is truncated: its header announces %" PRIu64
                         " bytes of elements, it has %" PRIu64 ": write it again",
                         file->path, file->nbytes, has);
    if (has > file->nbytes)
        return fail_text(file->c,
                         "%s has %" PRIu64
                         " bytes after its elements: load takes a file of one array; "
                         "truncate it to %" PRIu64 " bytes",
                         file->path, has - file->nbytes, file->data_at + file->nbytes);
    return 0;
}

int infile_read_npy(struct infile *file, struct npy *ret)
{
    struct problem problem;
    unsigned char prefix[NPY_PREFIX_BYTES];
    size_t bytes;
    ssize_t n = read_fully(file, prefix, sizeof prefix, 0);
    if (n < 0)
        return fail_file(file, errno);
    if (npy_header_bytes(prefix, (size_t)n, &bytes, &problem))
        return fail_text(file->c, "%s: %s: --raw takes its bytes as they are", file->path,
                         problem.text);
    CLEANUP_FREE unsigned char *header = malloc(bytes);
    if (!header)
        return fail_memory(file->c);
    memcpy(header, prefix, sizeof prefix);
    n = read_fully(file, header + sizeof prefix, bytes - sizeof prefix, sizeof prefix);
    if (n < 0)
        return fail_file(file, errno);
    if ((size_t)n < bytes - sizeof prefix)
        return fail_text(file->c,
                         "%s is truncated: the file ends within its header of %zu bytes: write "
                         "it again",
                         file->path, bytes);
    if (npy_read(header, bytes, ret, &problem))
        return fail_text(file->c, "%s: %s", file->path, problem.text);
    file->data_at = bytes;
    file->nbytes = ret->nbytes;
    return file->is_regular ? check_size(file) : read_pipe(file, ret->nbytes);
}

int infile_read_raw(struct infile *file)
{
    file->nbytes = file->file_bytes;
    return file->is_regular ? 0 : read_pipe(file, UINT64_MAX);
}

int infile_read(struct infile *file, void *data, size_t n)
{
    if (file->is_regular) {
        ssize_t r = read_fully(file, data, n, file->data_at + file->at);
        if (r < 0)
            return fail_file(file, errno);
        if ((size_t)r < n)
            return fail_text(file->c, "%s became shorter while it was read: load it again",
                             file->path);
    } else {
        memcpy(data, file->memory + file->at, n);
    }
    file->at += n;
    return 0;
}

void infile_rewind(struct infile *file)
{
    file->at = 0;
}

void infile_close(struct infile *file)
{
    if (file->is_ours)
        close(file->fd);
    free(file->memory);
    *file = (struct infile){.fd = -1};
}

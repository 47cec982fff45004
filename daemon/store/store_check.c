/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store/store_check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/store/store_try.h"

/* The child's limit of CPU time: in a damaged file a page may point to its parent, and LMDB would
 * walk in a circle. A sound file takes a tenth of this. */
#define CPU_SECONDS      2
#define BYTES_PER_SECOND ((off_t)16 << 20)
#define COPY_BYTES       65536

enum status {
    STATUS_SOUND,
    STATUS_BAD,
    STATUS_SHORT /* memory or descriptors were short: the file may be sound */
};

/* Sent to the child: which file the daemon has opened. */
struct identity {
    dev_t device;
    ino_t inode;
};

/* --- In the child -------------------------------------------------------- */

/* Discards messages of LMDB, which prints assertions to standard error, and lets any crash end the
 * child quickly and without a core file. */
static void prepare(off_t bytes)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGXCPU};
    /* at the soft limit the kernel sends SIGXCPU, so that SIGKILL can only come from elsewhere */
    rlim_t seconds = CPU_SECONDS + (rlim_t)(bytes / BYTES_PER_SECOND);
    struct rlimit cpu = {seconds, seconds + 1}, none = {0, 0};
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDERR_FILENO);
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &none);
    for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
        signal(fatal[i], SIG_DFL);
}

/* Copies a file. Returns 0; -EIO if it has become shorter; or another -errno. */
static int copy(int from, int to, off_t bytes)
{
    static char buffer[COPY_BYTES];
    for (off_t done = 0; done < bytes;) {
        ssize_t n = pread(from, buffer, sizeof buffer, done);
        if (n <= 0)
            return n ? -errno : -EIO;
        n = pwrite(to, buffer, (size_t)n, done);
        if (n < 0)
            return -errno;
        done += n;
    }
    return 0;
}

/* Opens the file by its name and tries a copy in a memfd, because the trial destroys what it tries.
 * Returns 0, -EUCLEAN if the file is bad, or another -errno. */
static int try_file(int dir, const char *name, const struct identity *want)
{
    struct stat st;
    char path[32];
    CLEANUP_FD int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st))
        return -errno;
    if (st.st_dev != want->device || st.st_ino != want->inode)
        return -EUCLEAN;
    CLEANUP_FD int memory = memfd_create("registry", MFD_CLOEXEC);
    if (memory < 0)
        return -errno;
    int r = copy(fd, memory, st.st_size);
    /* LMDB makes it as long; an error (RLIMIT_FSIZE) would look like one of the file there */
    if (r == 0 && ftruncate(memory, (off_t)store_try_bytes((size_t)st.st_size)))
        r = -errno;
    if (r)
        return r;
    prepare(st.st_size);
    snprintf(path, sizeof path, "/proc/self/fd/%d", memory);
    return store_try(path, (size_t)st.st_size);
}

/* The whole life of the child. It ends with the daemon, by PR_SET_PDEATHSIG or by the end of the
 * pipe. */
__attribute__((noreturn)) static void judge(int dir, const char *name, int go)
{
    struct identity want;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (read(go, &want, sizeof want) != sizeof want) /* not needed, or the daemon has died */
        _exit(STATUS_SHORT);
    int r = try_file(dir, name, &want);
    _exit(r == 0 ? STATUS_SOUND : r == -EUCLEAN ? STATUS_BAD : STATUS_SHORT);
}

/* --- In the daemon ------------------------------------------------------- */

int store_check_begin(struct store_check *check, int dir, const char *name)
{
    int go[2];
    if (pipe2(go, O_CLOEXEC))
        return -errno;
    pid_t pid = fork();
    if (pid == 0) {
        close(go[1]);
        judge(dir, name, go[0]);
    }
    int r = pid < 0 ? -errno : 0;
    close(go[0]);
    if (r)
        close(go[1]);
    else
        *check = (struct store_check){pid, go[1]};
    return r;
}

/* Lets the child begin. Returns 0 or -errno. */
static int let_go(struct store_check *check, int fd)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    struct identity identity = {st.st_dev, st.st_ino};
    return write(check->go, &identity, sizeof identity) == sizeof identity ? 0 : -errno;
}

int store_check_end(struct store_check *check, int fd)
{
    if (!check)
        return 0;
    int status, r = fd < 0 ? 0 : let_go(check, fd);
    close_fdp(&check->go);
    while (waitpid(check->pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    if (r || fd < 0)
        return r;
    /* SIGKILL most likely comes from the OOM killer. SIGBUS is a page of the memfd that the kernel
     * could not supply, because the memfd is as long as LMDB's map: a bad address in the file leads
     * beyond the map (SIGSEGV), and nowhere beyond the end of the memfd. */
    if ((WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SHORT) ||
        (WIFSIGNALED(status) && (WTERMSIG(status) == SIGKILL || WTERMSIG(status) == SIGBUS)))
        return -ENOMEM;
    return WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SOUND ? 0 : -EUCLEAN;
}

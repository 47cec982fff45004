/* SPDX-License-Identifier: Apache-2.0 */
/* Reads births and states from /proc, and decides whether an owner has ended. */
#include "client/family/owner.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <shmview/mutex_layout.h>

#include "common/base/util.h"

__thread struct caller caller __attribute__((tls_model("initial-exec")));

/* The facts that /proc has of a thread; for a process these are of its first thread. */
struct record {
    unsigned long birth; /* in clock ticks since the machine started */
    bool is_zombie;
    unsigned long n_threads; /* of its process, with a first thread that is a zombie */
};

/* Reads the record of the thread with this kernel id. Returns 0 or -errno. */
static int read_record(uint32_t id, struct record *ret)
{
    char path[40], text[1024];
    snprintf(path, sizeof path, "/proc/%u/stat", id);
    CLEANUP_FD int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
    if (n < 0)
        return -errno;
    text[n] = '\0';
    const char *p = strrchr(text, ')'); /* the last one, because a command may contain more */
    char state;
    /* fields 3, 20 and 22 of proc_pid_stat(5) */
    if (!p || sscanf(p + 1,
                     " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %lu %*d "
                     "%lu",
                     &state, &ret->n_threads, &ret->birth) != 3)
        return -EINVAL;
    ret->is_zombie = state == 'Z' || state == 'X';
    return 0;
}

/* Returns the id with its birth in the upper half, or with 0 if the birth cannot be read. */
static uint64_t owner_word(uint32_t id)
{
    struct record found;
    return caller.sees_proc && read_record(id, &found) == 0 ? (uint64_t)found.birth << 32 | id : id;
}

/* Returns the inode of a namespace of this process, or 0 if it cannot be read. */
static uint32_t namespace_of(const char *path)
{
    struct stat found;
    return stat(path, &found) ? 0 : (uint32_t)found.st_ino;
}

int caller_look_up(void)
{
    char number[16] = "";
    int saved = errno;
    NOT_CANCELLED;
    int r = process_init();
    if (r)
        return r;
    uint32_t epoch = process_epoch();
    caller.pid = (uint32_t)getpid();
    caller.namespaces[0] = namespace_of("/proc/self/ns/pid");
    caller.namespaces[1] = namespace_of("/proc/self/ns/time");
    caller.sees_proc = readlink("/proc/self", number, sizeof number - 1) > 0 &&
                       strtoul(number, NULL, 10) == caller.pid;
    /* gettid() of musl returns the id that the thread had before a bare clone() */
    caller.thread = owner_word((uint32_t)syscall(SYS_gettid));
    caller.process = owner_word(caller.pid);
    caller.epoch = epoch;
    errno = saved;
    return 0;
}

/* The first thread of a process may exit before the others. /proc then shows a zombie, but the
 * process lives while it has another thread. */
bool owner_is_dead(uint64_t owner, bool is_thread)
{
    struct record found;
    uint32_t id = owner & SHMVIEW_MUTEX_ID, birth = (uint32_t)(owner >> 32);
    /* kill() as a second witness, because hidepid= hides the processes of other users */
    if (!caller.sees_proc || read_record(id, &found))
        return kill((pid_t)id, 0) < 0 && errno == ESRCH;
    if (birth && (uint32_t)found.birth != birth)
        return true;
    return found.is_zombie && (is_thread || found.n_threads < 2);
}

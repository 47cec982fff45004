/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/sealed.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/magic.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "daemon/base/table.h"
#include "daemon/memory/keeping.h"

/* One name for all objects: from systemd 254 on every user can list the descriptors that it stores
 * for a service, with their names, and the name of a segment is for those who may see it. */
#define MEMFD_NAME "shmview:sealed"
/* How long a daemon that ends waits for a keeper or a service manager. */
#define END_WAIT_NS 2000000000
/* How long one call gives objects to them. After a keeper has ended there may be thousands. */
#define SETTLE_NS 250000
/* Objects of base pages have no larger blocks, except where shmem_enabled is "always". */
#define SMALL_BLOCK_BYTES 65536

struct sealed {
    struct table_link link;
    LIST_ENTRY(sealed) all;
    TAILQ_ENTRY(sealed) waiting; /* on one of the queues below */
    ino_t inode;
    int fd; /* of a description that nobody but a keeper has, and the user whose object it is */
    bool unclaimed;  /* an earlier daemon had it, and no segment is known to have it */
    bool offered;    /* to the place where it outlives this daemon */
    bool is_foreign; /* the object belongs to another user than the daemon's */
};

TAILQ_HEAD(queue, sealed);

/* Allocations run on several threads. The lock protects all that follows. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct table objects;
static LIST_HEAD(, sealed) all = LIST_HEAD_INITIALIZER(all);
static unsigned limit = UINT_MAX;
/* Objects to offer; and taken ones that were offered and must be forgotten. The second queue is
 * served first: a new object can have the number of one that has ended. */
static struct queue unoffered = TAILQ_HEAD_INITIALIZER(unoffered);
static struct queue unforgotten = TAILQ_HEAD_INITIALIZER(unforgotten);

static uint32_t hash_of(ino_t inode)
{
    return table_hash_number((uint64_t)inode);
}

/* The caller holds the lock. */
static struct sealed *find(ino_t inode)
{
    struct table_link *l = table_first(&objects, hash_of(inode));
    for (; l; l = table_next(l)) {
        struct sealed *s = CONTAINER_OF(l, struct sealed, link);
        if (s->inode == inode)
            return s;
    }
    return NULL;
}

void sealed_limit(unsigned most)
{
    pthread_mutex_lock(&lock);
    limit = most;
    pthread_mutex_unlock(&lock);
}

struct sealed_room sealed_room(void)
{
    pthread_mutex_lock(&lock);
    struct sealed_room room = {.most = limit};
    room.free = objects.n < limit ? limit - (unsigned)objects.n : 0;
    pthread_mutex_unlock(&lock);
    return room;
}

/* Makes the descriptor of another description of the same memory. A client of the daemon's own user
 * may have changed the mode; then the mode is restored. The mode of a foreign object stays:
 * fchmod() would fail, but first wait for the lock of the inode (object_write.h). O_NONBLOCK:
 * otherwise a lease of the owner (fcntl F_SETLEASE) would let open() wait for 45 s. Returns the
 * descriptor, or -errno. */
static int reopen(int fd, int flags, bool is_foreign)
{
    char path[40];
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    int again = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    if (again < 0 && errno == EACCES && !is_foreign && fchmod(fd, 0600) == 0)
        again = open(path, flags | O_CLOEXEC | O_NONBLOCK);
    return again < 0 ? -errno : again;
}

/* Returns a descriptor of the object for a client, or -errno. Memory of another user can perhaps be
 * written only through the description that this user has passed to the daemon. */
static int open_for_client(const struct sealed *s, int flags)
{
    int fd = reopen(s->fd, flags, s->is_foreign);
    if (fd >= 0 || !s->is_foreign || flags != O_RDWR)
        return fd;
    fd = fcntl(s->fd, F_DUPFD_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

int sealed_mark(int fd, struct stat *ret)
{
    struct statfs fs;
    if (fstat(fd, ret))
        return -1;
    if (ret->st_blksize > SMALL_BLOCK_BYTES && fstatfs(fd, &fs) == 0 &&
        fs.f_type == HUGETLBFS_MAGIC)
        ret->st_ino |= SEALED_HUGE;
    return 0;
}

/* Returns an empty memfd that cannot be executed, or -errno; more are further flags. Linux before
 * 6.3 does not know MFD_NOEXEC_SEAL; there fchmod() alone makes it so. */
static int new_memfd(unsigned more)
{
    int fd = memfd_create(MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_NOEXEC_SEAL | more);
    if (fd < 0 && errno == EINVAL)
        fd = memfd_create(MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING | more);
    return fd < 0 ? -errno : fd;
}

/* Adds the object to the table, which takes over fd if this succeeds. The flags are those of
 * struct sealed. Returns 0, -EEXIST, -EMFILE or -ENOMEM. */
static int keep(int fd, const struct stat *st, bool unclaimed, bool offered)
{
    ino_t inode = st->st_ino;
    struct sealed *s = malloc(sizeof *s);
    if (!s)
        return -ENOMEM;
    *s = (struct sealed){
        .inode = inode,
        .fd = fd,
        .unclaimed = unclaimed,
        .offered = offered,
        .is_foreign = st->st_uid != geteuid(),
    };
    pthread_mutex_lock(&lock);
    int r = find(inode) ? -EEXIST : objects.n < limit ? 0 : -EMFILE;
    if (r == 0) {
        table_add(&objects, &s->link, hash_of(inode));
        LIST_INSERT_HEAD(&all, s, all);
        if (!offered)
            TAILQ_INSERT_TAIL(&unoffered, s, waiting);
    }
    pthread_mutex_unlock(&lock);
    if (r)
        free(s);
    return r;
}

/* --- For the next daemon -------------------------------------------------- */

/* A new keeper must get all objects. The caller holds the lock. */
static void offer_all_again(void)
{
    struct sealed *s;
    LIST_FOREACH (s, &all, all)
        if (s->offered) {
            s->offered = false;
            TAILQ_INSERT_TAIL(&unoffered, s, waiting);
        }
}

/* Serves both queues for a slice. Returns like sealed_settle(). The caller holds the lock. */
static int settle(void)
{
    struct sealed *s;
    int64_t until = now_ns() + SETTLE_NS;
    while ((s = TAILQ_FIRST(&unforgotten))) {
        int r = now_ns() > until ? SEALED_MORE : keeping_forget((uint64_t)s->inode);
        if (r)
            return r;
        TAILQ_REMOVE(&unforgotten, s, waiting);
        free(s);
    }
    while ((s = TAILQ_FIRST(&unoffered))) {
        int r = now_ns() > until ? SEALED_MORE : keeping_offer(s->fd, (uint64_t)s->inode);
        if (keeping_has_lost())
            offer_all_again();
        if (r)
            return r;
        TAILQ_REMOVE(&unoffered, s, waiting);
        s->offered = true;
    }
    return SEALED_SETTLED;
}

int sealed_settle(void)
{
    pthread_mutex_lock(&lock);
    if (keeping_has_lost())
        offer_all_again();
    int r = settle();
    pthread_mutex_unlock(&lock);
    return r;
}

void sealed_end(void)
{
    const struct timespec pause = {.tv_nsec = 10000000};
    int64_t until = now_ns() + END_WAIT_NS;
    int r;
    while ((r = sealed_settle()) != SEALED_SETTLED && now_ns() < until)
        if (r < 0)
            nanosleep(&pause, NULL);
    keeping_report();
    keeping_end();
}

/* --- Objects -------------------------------------------------------------- */

/* Gives the new memfd its size and seals, and keeps it; takes over fd. Returns like
 * sealed_create(). */
static int complete(int new_fd, uint64_t bytes, int seals, struct stat *ret_st)
{
    CLEANUP_FD int fd = new_fd;
    struct stat st;
    if (fchmod(fd, 0600) || ftruncate(fd, (off_t)bytes) || fcntl(fd, F_ADD_SEALS, seals) ||
        sealed_mark(fd, &st))
        return -errno;
    CLEANUP_FD int own = reopen(fd, O_RDWR, false);
    if (own < 0)
        return own;
    int r = keep(fd, &st, false, false);
    if (r)
        return r;
    steal_fd(&fd);
    pthread_mutex_lock(&lock);
    settle();
    pthread_mutex_unlock(&lock);
    *ret_st = st;
    return steal_fd(&own);
}

int sealed_take_over(int fd, const struct stat *st)
{
    int r = keep(fd, st, false, false);
    if (r)
        return r;
    pthread_mutex_lock(&lock);
    settle();
    pthread_mutex_unlock(&lock);
    return 0;
}

int sealed_create(uint64_t bytes, bool fully, struct stat *ret_st)
{
    int fd = new_memfd(0);
    return fd < 0 ? fd
                  : complete(fd, bytes, F_SEAL_SHRINK | F_SEAL_GROW | (fully ? F_SEAL_SEAL : 0),
                             ret_st);
}

int sealed_create_huge(uint64_t bytes, struct stat *ret_st)
{
    CLEANUP_FD int fd = new_memfd(MFD_HUGETLB | MFD_HUGE_2MB);
    if (fd < 0)
        return fd;
    /* a shared mapping reserves its pages for the object, also after it is unmapped */
    if (ftruncate(fd, (off_t)bytes))
        return -errno;
    void *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return errno == ENOMEM ? -ENOSPC : -errno;
    munmap(p, (size_t)bytes);
    return complete(steal_fd(&fd), bytes, F_SEAL_SHRINK | F_SEAL_GROW, ret_st);
}

int sealed_open(ino_t inode, int flags)
{
    pthread_mutex_lock(&lock); /* so that the descriptor is not closed until it is reopened */
    const struct sealed *s = find(inode);
    int fd = s ? open_for_client(s, flags) : -ENOENT;
    pthread_mutex_unlock(&lock);
    return fd;
}

int sealed_stat(ino_t inode, struct stat *ret)
{
    pthread_mutex_lock(&lock);
    const struct sealed *s = find(inode);
    int r = !s ? -ENOENT : sealed_mark(s->fd, ret) ? -errno : 0;
    pthread_mutex_unlock(&lock);
    return r;
}

int sealed_statx(ino_t inode, unsigned mask, struct statx *ret)
{
    pthread_mutex_lock(&lock);
    const struct sealed *s = find(inode);
    int r = !s ? -ENOENT : statx(s->fd, "", AT_EMPTY_PATH, mask, ret) ? -errno : 0;
    pthread_mutex_unlock(&lock);
    return r;
}

int sealed_seals(ino_t inode)
{
    pthread_mutex_lock(&lock);
    const struct sealed *s = find(inode);
    int r = s ? fcntl(s->fd, F_GET_SEALS) : -ENOENT;
    pthread_mutex_unlock(&lock);
    return r == -1 ? -errno : r;
}

int sealed_take(ino_t inode)
{
    pthread_mutex_lock(&lock);
    struct sealed *s = find(inode);
    int fd = s ? s->fd : -ENOENT;
    if (s) {
        table_remove(&objects, &s->link);
        LIST_REMOVE(s, all);
        if (s->offered) {
            TAILQ_INSERT_TAIL(&unforgotten, s, waiting);
        } else {
            TAILQ_REMOVE(&unoffered, s, waiting);
            free(s);
        }
        settle();
    }
    pthread_mutex_unlock(&lock);
    return fd;
}

/* --- Recovery ------------------------------------------------------------- */

/* Whether fd is what this module makes, and is not in the table yet. */
static bool is_adoptable(int fd, struct stat *ret_st)
{
    const int size = F_SEAL_SHRINK | F_SEAL_GROW;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & size) == size && sealed_mark(fd, ret_st) == 0 &&
           S_ISREG(ret_st->st_mode) && !find(ret_st->st_ino);
}

/* Takes over fd, which was kept under the number, or drops it. Returns 0 or -errno: then the object
 * stays where it is kept. */
static int adopt_kept(int fd, uint64_t number)
{
    struct stat st;
    if (!is_adoptable(fd, &st) || st.st_ino != number) {
        close(fd);
        keeping_forget(number); /* in vain: the next daemon drops it */
        return 0;
    }
    int r = keep(fd, &st, true, true);
    if (r)
        close(fd);
    return r;
}

int sealed_adopt(int fd)
{
    struct stat st;
    int r = is_adoptable(fd, &st) ? keep(fd, &st, true, false) : 1;
    if (r)
        close(fd);
    return r < 0 ? r : 0;
}

bool sealed_has(ino_t inode)
{
    return find(inode);
}

int sealed_recover(void)
{
    return keeping_recover(adopt_kept);
}

void sealed_claim(ino_t inode)
{
    struct sealed *s = find(inode);
    if (s)
        s->unclaimed = false;
}

unsigned sealed_drop_unclaimed(void (*on_remove)(int fd))
{
    unsigned n = 0;
    struct sealed *s = LIST_FIRST(&all), *next;
    for (; s; s = next) {
        next = LIST_NEXT(s, all);
        if (!s->unclaimed)
            continue;
        if (on_remove)
            on_remove(s->fd);
        close(sealed_take(s->inode));
        n++;
    }
    return n;
}

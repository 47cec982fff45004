/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/memory/object.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "common/base/linux.h"
#include "common/base/util.h"
#include "common/memory/measure.h"
#include "common/memory/zero.h"
#include "daemon/memory/directory.h"
#include "daemon/memory/discard.h"
#include "daemon/memory/placement.h"
#include "daemon/memory/pool.h"
#include "daemon/memory/sealed.h"

/* How much is committed between two tests of *cancel, in about 20 ms. */
#define COMMIT_STEP_BYTES ((uint64_t)64 << 20)
/* Allocations up to this size use a measurement that is at most SPACE_HOLDS_NS old, until 1/32 of
 * what it found has been handed out. */
#define SPACE_SMALL_BYTES ((uint64_t)16 << 20)
#define SPACE_HOLDS_NS    100000000
#define SPACE_HOLDS_PART  32
/* From this size on a thread frees the memory. Freeing it on the loop would take as long as an
 * attach. */
#define DISCARD_BYTES (1 << 20)
/* Allocates the pages and zeroes them. Unlike ftruncate() alone this fails with ENOSPC here, and
 * not by a SIGBUS in a client. Returns 0 or -errno. */
static int commit(int fd, uint64_t from, uint64_t bytes)
{
    int r;
    do
        r = posix_fallocate(fd, (off_t)from, (off_t)bytes);
    while (r == EINTR);
    return -r;
}

/* What can still be used, in bytes. */
struct measure {
    uint64_t memory; /* of the machine or of the control groups, whichever is less */
    uint64_t shm;    /* of /dev/shm; UINT64_MAX if it has no limit */
    /* the size of all of that, and of /dev/shm if it has a limit */
    uint64_t memory_limit, shm_limit;
    uint64_t group_limit; /* of the control group; UINT64_MAX: none */
};

/* Calls statvfs() for the instance's directory, on which an administrator can have mounted a tmpfs
 * of its own (docs/PLACEMENT.md); for /dev/shm before the directory is open. */
static int stat_space(struct statvfs *ret)
{
    return statvfs(directory_fd() >= 0 ? directory_path() : DIRECTORY_SHM, ret);
}

/* Measures all; promises are not subtracted. */
static struct measure measure_now(void)
{
    struct statvfs fs;
    const struct measure_memory all = measure_memory();
    struct measure m = {
        .memory = all.free,
        .shm = UINT64_MAX,
        .memory_limit = all.limit,
        .group_limit = all.group_limit,
    };
    if (stat_space(&fs) == 0 && fs.f_blocks) {
        m.shm = (uint64_t)fs.f_bavail * fs.f_frsize;
        m.shm_limit = (uint64_t)fs.f_blocks * fs.f_frsize;
    }
    return m;
}

static uint64_t less(uint64_t from, uint64_t bytes)
{
    return from > bytes ? from - bytes : 0;
}

/* The space for objects of one kind, if `files` bytes of /dev/shm and `all` bytes of memory are
 * used besides what was measured. */
static struct object_space space_of(const struct measure *m, enum object_kind kind, uint64_t files,
                                    uint64_t all)
{
    bool in_shm = kind == OBJECT_FILE && m->shm != UINT64_MAX;
    uint64_t memory = less(m->memory, all), shm = less(m->shm, files);
    uint64_t measured = in_shm && m->shm < m->memory ? m->shm : m->memory;
    struct object_space space = {
        .free = in_shm && shm < memory ? shm : memory,
        .limit = in_shm                ? m->shm_limit
                 : kind == OBJECT_FILE ? measured
                                       : m->memory_limit,
    };
    space.of_group = m->group_limit < space.limit;
    if (space.of_group)
        space.limit = m->group_limit > measured ? m->group_limit : measured;
    return space;
}

/* Allocations run on several threads at once. Each gets a promise of its bytes before it commits
 * the first of them; otherwise two of them could both count on the last free gigabyte. promise_lock
 * protects what follows. Sealed objects use memory too, but not /dev/shm. */
static pthread_mutex_t promise_lock = PTHREAD_MUTEX_INITIALIZER;
static uint64_t promised_files, promised_all;

/* The space for an allocation of `bytes`, less what is promised; 0: for a query. The caller holds
 * promise_lock.
 *
 * Reading /proc/meminfo takes as long as a small creation. Therefore small requests use a value up
 * to 100 ms old, until 1/32 of it has been handed out. The reserve covers what other programs
 * take in that time. */
static struct object_space space_left(enum object_kind kind, uint64_t bytes)
{
    static struct measure seen;
    static uint64_t given_files, given_all;
    static int64_t seen_ns;
    int64_t now = now_ns();
    bool is_small = bytes > 0 && bytes <= SPACE_SMALL_BYTES;
    if (!is_small || now - seen_ns > SPACE_HOLDS_NS ||
        given_all + bytes > space_of(&seen, kind, 0, 0).free / SPACE_HOLDS_PART) {
        seen = measure_now();
        given_files = given_all = 0;
        seen_ns = now;
    }
    struct object_space left =
        space_of(&seen, kind, given_files + promised_files, given_all + promised_all);
    if (is_small) {
        given_files += kind == OBJECT_FILE ? bytes : 0;
        given_all += bytes;
    } else {
        seen_ns = 0; /* the next caller must measure again, as this allocation changes much */
    }
    return left;
}

void object_unpromise(enum object_kind kind, uint64_t bytes)
{
    pthread_mutex_lock(&promise_lock);
    promised_files -= kind == OBJECT_FILE ? bytes : 0;
    promised_all -= bytes;
    pthread_mutex_unlock(&promise_lock);
}

struct object_space object_space(enum object_kind kind)
{
    pthread_mutex_lock(&promise_lock);
    struct object_space space = space_left(kind, 0);
    pthread_mutex_unlock(&promise_lock);
    space.free += pool_bytes(); /* a creation that needs them drains the pool */
    return space;
}

uint64_t object_count_free(void)
{
    struct statvfs fs;
    return stat_space(&fs) || fs.f_files == 0 ? UINT64_MAX : fs.f_favail;
}

/* Returns whether the bytes were promised. */
static bool try_promise(enum object_kind kind, uint64_t bytes, struct object_space *ret_space)
{
    pthread_mutex_lock(&promise_lock);
    *ret_space = space_left(kind, bytes);
    bool fits = bytes <= ret_space->free;
    if (fits) {
        promised_files += kind == OBJECT_FILE ? bytes : 0;
        promised_all += bytes;
    }
    pthread_mutex_unlock(&promise_lock);
    return fits;
}

int object_promise(enum object_kind kind, uint64_t bytes, struct object_space *ret_space)
{
    bool fits = try_promise(kind, bytes, ret_space);
    if (!fits && discard_settle()) /* memory of removed objects may have become free */
        fits = try_promise(kind, bytes, ret_space);
    if (!fits && pool_drain())
        fits = try_promise(kind, bytes, ret_space);
    return fits ? 0 : -ENOSPC;
}

int object_promise_now(enum object_kind kind, uint64_t bytes)
{
    struct object_space space;
    return try_promise(kind, bytes, &space) ? 0 : -EAGAIN;
}

/* Commits one step, by the placement if there is one. Returns 0 or -errno. */
static int commit_step(const struct object *object, int fd, uint64_t from, uint64_t bytes)
{
    bool is_file = object->kind == OBJECT_FILE;
    if (!object->placement)
        return object->zeroed ? zero_file(fd, from, bytes) : commit(fd, from, bytes);
    if (is_file && ftruncate(fd, (off_t)(from + bytes)))
        return -errno;
    return placement_commit(object->placement, fd, !is_file, from, bytes);
}

/* Settles the promise step by step, because the next measurement no longer counts committed memory
 * as free, and keeping its promise would subtract it twice. Looks for free memory before each step
 * but the first of an object, because other programs may have taken memory since the promise. */
int object_commit(const struct object *object, int fd, uint64_t from, uint64_t bytes,
                  const atomic_bool *cancel)
{
    const struct placement *placement = object->placement;
    uint64_t done = 0;
    int r = 0;
    while (done < bytes && r == 0) {
        if (cancel && atomic_load_explicit(cancel, memory_order_relaxed))
            r = -ECANCELED;
        uint64_t step = bytes - done < COMMIT_STEP_BYTES ? bytes - done : COMMIT_STEP_BYTES;
        if (from + done > 0 && r == 0 && measure_memory().free < placement_memory(placement, step))
            r = -ENOSPC;
        if (r == 0)
            r = commit_step(object, fd, from + done, step);
        if (r == 0) {
            object_unpromise(object->kind, placement_memory(placement, step));
            done += step;
        }
    }
    object_unpromise(object->kind, placement_memory(placement, bytes - done));
    return r;
}

/* Whether st is the file that was created as this object. Objects of huge pages have another device
 * than the others of their segment; their inode alone is unique (sealed.h). */
static bool is_same(const struct object *object, const struct stat *st)
{
    uid_t uid = object->own ? object->maker : geteuid();
    return S_ISREG(st->st_mode) && st->st_uid == uid && st->st_ino == object->inode &&
           (st->st_dev == object->device || object->inode & SEALED_HUGE);
}

/* Creates the empty file. Returns a descriptor and fills in *ret_st, or -errno. */
static int create_file(const char *name, struct stat *ret_st)
{
    CLEANUP_FD int fd =
        openat(directory_fd(), name, O_CREAT | O_EXCL | O_RDWR | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd >= 0 && fstat(fd, ret_st) == 0)
        return steal_fd(&fd);
    int r = -errno;
    if (fd >= 0)
        unlinkat(directory_fd(), name, 0);
    return r;
}

/* Creates the object without memory. Returns a descriptor and fills in *ret_st, or -errno. */
static int create_empty(const struct object *object, uint64_t size, struct stat *ret_st)
{
    if (object->kind == OBJECT_FILE)
        return create_file(object->name, ret_st);
    if (placement_is_pool(object->placement))
        return sealed_create_huge(placement_object_bytes(object->placement, size), ret_st);
    return sealed_create(size, object->kind == OBJECT_SEALED_FULLY, ret_st);
}

int object_create_promised(struct object *object, uint64_t size, uint64_t bytes,
                           const atomic_bool *cancel)
{
    struct stat st = {0};
    CLEANUP_FD int fd = create_empty(object, size, &st);
    if (fd < 0) {
        object_unpromise(object->kind, placement_memory(object->placement, bytes));
        return fd;
    }
    object->device = st.st_dev;
    object->inode = st.st_ino;
    int r = object_commit(object, fd, 0, bytes, cancel);
    if (r == 0)
        return steal_fd(&fd);
    if (object->kind == OBJECT_FILE)
        unlinkat(directory_fd(), object->name, 0);
    else
        close(sealed_take(st.st_ino));
    return r;
}

int object_open(const struct object *object, int flags)
{
    if (object->kind != OBJECT_FILE)
        return sealed_open(object->inode, flags);
    /* O_NONBLOCK: otherwise opening a FIFO under that name would block the loop */
    CLEANUP_FD int fd =
        openat(directory_fd(), object->name, flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0)
        return -errno;
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    return is_same(object, &st) ? steal_fd(&fd) : -ESTALE;
}

int object_grow(int fd, uint64_t from, uint64_t to)
{
    struct stat st;
    if (fstat(fd, &st))
        return -errno;
    if ((uint64_t)st.st_size < from)
        from = (uint64_t)st.st_size;
    return from >= to ? 0 : commit(fd, from, to - from);
}

int object_stat(const struct object *object, struct stat *ret)
{
    if (object->kind != OBJECT_FILE) {
        int r = sealed_stat(object->inode, ret);
        return r || is_same(object, ret) ? r : -ESTALE;
    }
    if (fstatat(directory_fd(), object->name, ret, AT_SYMLINK_NOFOLLOW))
        return -errno;
    return is_same(object, ret) ? 0 : -ESTALE;
}

int object_statx(const struct object *object, unsigned mask, struct statx *ret)
{
    if (object->kind != OBJECT_FILE)
        return sealed_statx(object->inode, mask, ret);
    if (statx(directory_fd(), object->name, AT_SYMLINK_NOFOLLOW, mask | STATX_INO, ret))
        return -errno;
    return ret->stx_ino == object->inode ? 0 : -ESTALE;
}

int object_seals(const struct object *object)
{
    return object->kind == OBJECT_FILE ? 0 : sealed_seals(object->inode);
}

int object_rename(struct object *object, const object_name name)
{
    struct stat st;
    int r = object_stat(object, &st);
    if (r)
        return r;
    if (object->kind == OBJECT_FILE &&
        renameat2(directory_fd(), object->name, directory_fd(), name, RENAME_NOREPLACE))
        return -errno;
    memcpy(object->name, name, sizeof(object_name));
    return 0;
}

/* Frees a sealed object that has no client. */
static void remove_sealed(const struct object *object)
{
    struct stat st;
    int fd = sealed_take(object->inode);
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size >= DISCARD_BYTES)
        discard(fd, (uint64_t)st.st_size);
    else
        close(fd);
}

void object_remove(struct object *object)
{
    struct stat st;
    if (object->name[0] && object->kind != OBJECT_FILE) {
        remove_sealed(object);
    } else if (object->name[0] && object_stat(object, &st) == 0) {
        int fd = st.st_size >= DISCARD_BYTES
                     ? openat(directory_fd(), object->name, O_PATH | O_NOFOLLOW | O_CLOEXEC)
                     : -1;
        unlinkat(directory_fd(), object->name, 0);
        if (fd >= 0)
            discard(fd, (uint64_t)st.st_size);
    }
    object->name[0] = '\0';
}

unsigned object_sweep(bool (*keep)(void *arg, const char *name, ino_t inode),
                      void (*on_remove)(int dir, const char *name), void *arg)
{
    unsigned n = 0;
    DIR *dir = opendir(directory_path());
    if (!dir)
        return 0;
    for (struct dirent *e; (e = readdir(dir));) {
        struct stat st;
        if (keep(arg, e->d_name, e->d_ino) ||
            fstatat(dirfd(dir), e->d_name, &st, AT_SYMLINK_NOFOLLOW) || !S_ISREG(st.st_mode) ||
            st.st_uid != geteuid())
            continue;
        if (on_remove)
            on_remove(dirfd(dir), e->d_name);
        n += unlinkat(dirfd(dir), e->d_name, 0) == 0;
    }
    closedir(dir);
    return n;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the objects of an attachment after checking them.
 *
 * The daemon is trusted, but other clients can write or truncate the data and the control object.
 * So each header is copied once and the copy is checked; the size is compared before a mapping is
 * made. A later truncation still raises SIGBUS at an access: no check can exclude it, and the
 * daemon repairs sizes (docs/THREATS.md). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/error.h"
#include "client/segment/segment.h"
#include "common/base/linux.h"

/* The size of a control object with all slots. All of it is mapped at once, although the object
 * grows with its slots. Slots that the daemon adds later then need no second mapping. */
#define CONTROL_MAP_BYTES                                                                          \
    (sizeof(struct shmview_control) + SHMVIEW_SLOTS_MAX * sizeof(struct shmview_slot))

static size_t page_bytes(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* Rounds up to whole pages, as mmap() does. */
static size_t whole_pages(uint64_t bytes)
{
    size_t page = page_bytes();
    return ((size_t)bytes + page - 1) / page * page;
}

/* How much of a data object is mapped: one page more than it has. An access to that page raises
 * SIGBUS, because no byte of the object is there, so a program that runs past the end does not
 * reach the mapping that follows. A page of its own without access would need a second mapping. */
static size_t data_map_bytes(uint64_t size)
{
    return whole_pages(size) + page_bytes();
}

/* Returns the seals of an object; 0 for one that has none. */
static int seals_of(int fd)
{
    int seals = fcntl(fd, F_GET_SEALS);
    return seals < 0 ? 0 : seals;
}

/* Checks that an object has at least `least` bytes now. `what` names it for the error text. *ret_st
 * is its status. Returns 0 or an error. */
static int check_size(int fd, const char *what, uint64_t least, struct stat *ret_st)
{
    if (fstat(fd, ret_st))
        return fail_errno(what, errno);
    if (ret_st->st_size >= 0 && (uint64_t)ret_st->st_size >= least)
        return 0;
    return fail(SHMVIEW_ERR_LAYOUT_VERSION,
                "the %s object has %jd bytes, %" PRIu64 " are needed: it was truncated", what,
                (intmax_t)ret_st->st_size, least);
}

/* Returns the error of an object that mmap() has refused to map. */
static int fail_map(int fd, const char *what, int error)
{
    if (error == EPERM && seals_of(fd) & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE))
        return fail(SHMVIEW_ERR_READ_ONLY,
                    "the %s object was frozen while the segment was being attached: attach it for "
                    "reading",
                    what);
    return fail_errno(what, error);
}

/* Maps the first `bytes` bytes of an object that check_size() accepts. Returns 0 or an error. */
static int map_object(int fd, const char *what, uint64_t least, size_t bytes, int protection,
                      int flags, void **ret, struct stat *ret_st)
{
    int r = check_size(fd, what, least, ret_st);
    if (r)
        return r;
    void *p = mmap(NULL, bytes, protection, MAP_SHARED | flags, fd, 0);
    if (p == MAP_FAILED)
        return fail_map(fd, what, errno);
    *ret = p;
    return 0;
}

/* Reads the first n bytes of an object and checks the copy. Reads them with pread() and not in the
 * mapping, because a page fault costs as much as the rest of an attach. Returns 0 or an error. */
static int read_header(int fd, const char *what, uint32_t magic, size_t header_bytes, uint64_t id,
                       void *ret, size_t n)
{
    struct shmview_object_header h;
    ssize_t got = pread(fd, ret, n, 0);
    if (got < 0)
        return fail_errno(what, errno);
    if ((size_t)got < n)
        return fail(SHMVIEW_ERR_LAYOUT_VERSION, "the %s object has %zd bytes: it was truncated",
                    what, got);
    memcpy(&h, ret, sizeof h);
    if (h.magic == magic && h.version == SHMVIEW_LAYOUT_VERSION && h.features == 0 &&
        h.header_bytes == header_bytes && h.segment_id == id)
        return 0;
    return fail(SHMVIEW_ERR_LAYOUT_VERSION,
                "the %s object has magic %08x, version %u, features %x, a header of %u bytes, "
                "segment %" PRIu64 "; expected are %08x, %u, 0, %zu and %" PRIu64,
                what, h.magic, h.version, h.features, h.header_bytes, h.segment_id, magic,
                SHMVIEW_LAYOUT_VERSION, header_bytes, id);
}

/* Checks and maps control and liveness object. *ret_word is the lock word as it was read with the
 * header, so that taking the slot does not touch a page of the control object. Returns 0 or an
 * error. */
static int map_lock(struct mapping *m, uint64_t id, const struct wire_attachment *a,
                    const struct frame_descriptors *fds, uint32_t *ret_word)
{
    struct shmview_control c;
    struct shmview_object_header l;
    int control = fds->fd[a->control], liveness = fds->fd[a->liveness];
    uint64_t least =
        sizeof(struct shmview_control) + ((uint64_t)a->slot + 1) * sizeof(struct shmview_slot);
    struct stat st;
    void *map = NULL;
    int r = read_header(control, "control", SHMVIEW_CONTROL_MAGIC, sizeof c, id, &c, sizeof c);
    if (r == 0)
        r = read_header(liveness, "liveness", SHMVIEW_LIVENESS_MAGIC,
                        offsetof(struct shmview_liveness, generation), id, &l, sizeof l);
    if (r == 0)
        r = map_object(control, "control", least, CONTROL_MAP_BYTES, PROT_READ | PROT_WRITE, 0,
                       &map, &st);
    if (r)
        return r;
    m->control = map;
    m->control_device = st.st_dev;
    m->control_inode = st.st_ino;
    r = map_object(liveness, "liveness", sizeof *m->live, sizeof *m->live, PROT_READ, 0, &map, &st);
    if (r)
        return r;
    m->live = map;
    *ret_word = c.lock;
    return 0;
}

int segment_check_attachment(const struct wire_attachment *a, const struct frame_descriptors *fds)
{
    int64_t n = (int64_t)fds->n;
    if (fds->lost)
        return fail_errno("the descriptors of the segment", EMFILE);
    bool lock = a->slot != WIRE_ABSENT;
    if (a->descriptors == n && a->data < n && lock == (a->generation != WIRE_ABSENT) &&
        lock == (a->control != WIRE_ABSENT) && lock == (a->liveness != WIRE_ABSENT) &&
        (!lock || (a->control < n && a->liveness < n)))
        return 0;
    return fail(SHMVIEW_ERR_PROTOCOL, "%zu descriptors came where %" PRId64 " were announced",
                fds->n, a->descriptors);
}

/* Like map_object(), for data that has huge pages. Returns 0 or an error. */
static int map_huge(const struct shmview_segment *s, int fd, int protection, int flags,
                    struct mapping *m, struct stat *ret_st)
{
    int r = check_size(fd, "data", s->size, ret_st);
    if (r)
        return r;
    void *p = placement_map(&s->placed, fd, s->size, protection, flags, &m->data_bytes);
    if (p == MAP_FAILED)
        return fail_map(fd, "data", errno);
    m->data = p;
    m->huge_by = s->placed.huge_by;
    return 0;
}

/* Makes the mapping of a segment whose id, size and access are set. Returns 0 or an error. */
static int make_mapping(const struct shmview_segment *s, const struct wire_attachment *a,
                        const struct frame_descriptors *fds, unsigned flags,
                        struct mapping **ret_mapping, uint32_t *ret_word)
{
    struct stat st;
    struct mapping *m = calloc(1, sizeof *m);
    if (!m)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    int protection = s->access == SHMVIEW_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
    m->access = s->access;
    m->size = s->size;
    m->data_bytes = data_map_bytes(s->size);
    int populate = flags & SHMVIEW_POPULATE ? MAP_POPULATE : 0;
    int r = s->placed.huge_bytes ? map_huge(s, fds->fd[a->data], protection, populate, m, &st)
                                 : map_object(fds->fd[a->data], "data", s->size, m->data_bytes,
                                              protection, populate, &m->data, &st);
    if (r == 0 && a->slot != WIRE_ABSENT)
        r = map_lock(m, s->id, a, fds, ret_word);
    if (r) {
        mapping_free(m);
        return r;
    }
    m->device = st.st_dev;
    m->inode = st.st_ino;
    mappings_add(m);
    *ret_mapping = m;
    return 0;
}

/* Returns the mapping that this process already has of these objects, or NULL. Their size is right,
 * because the daemon has looked at it for this attachment. */
static struct mapping *find_mapping(const struct shmview_segment *s,
                                    const struct wire_attachment *a,
                                    const struct frame_descriptors *fds, unsigned flags)
{
    struct stat data, control;
    bool lock = a->slot != WIRE_ABSENT;
    if (fstat(fds->fd[a->data], &data) || (lock && fstat(fds->fd[a->control], &control)))
        return NULL; /* mapping will report the error */
    struct mapping *m = mappings_take(&data, lock ? &control : NULL, s->access);
    if (m && flags & SHMVIEW_POPULATE)
        madvise(m->data, m->size,
                s->access == SHMVIEW_WRITE ? MADV_POPULATE_WRITE : MADV_POPULATE_READ);
    return m;
}

void segment_note_frozen(const struct shmview_segment *s, const struct wire_attachment *a,
                         const struct frame_descriptors *fds)
{
    const struct mapping *m = s->mapping;
    int fd = fds->fd[a->data];
    struct stat st;
    if (s->is_sealed && seals_of(fd) & F_SEAL_WRITE && fstat(fd, &st) == 0 &&
        st.st_ino == m->inode && st.st_dev == m->device)
        mappings_note_frozen(m);
}

int segment_map(struct shmview_segment *s, const struct wire_attachment *a,
                const struct frame_descriptors *fds, unsigned flags)
{
    uint32_t word = 0;
    int r = segment_check_attachment(a, fds);
    if (r)
        return r;
    if (s->size > SIZE_MAX / 2)
        return fail(SHMVIEW_ERR_NO_MEMORY, "%" PRIu64 " bytes cannot be mapped here", s->size);
    struct mapping *m = find_mapping(s, a, fds, flags);
    if (m && m->control)
        word = atomic_load((_Atomic uint32_t *)&m->control->lock);
    if (!m)
        r = make_mapping(s, a, fds, flags, &m, &word);
    if (r)
        return r;
    s->mapping = m;
    segment_note_frozen(s, a, fds);
    if (s->is_sealed)
        mapping_hold(m, fds->fd, fds->n);
    s->data = m->data;
    s->lock.control = m->control;
    s->lock.live = m->live;
    if (m->control)
        lock_take_slot(&s->lock, (uint32_t)a->slot, (uint32_t)a->generation, word);
    return 0;
}

int mapping_replace(struct mapping *m, int fd, int protection)
{
    if (m->huge_by)
        return placement_map_at(m->huge_by, m->data, fd, m->size, protection, 0);
    void *p = mmap(m->data, data_map_bytes(m->size), protection, MAP_SHARED | MAP_FIXED, fd, 0);
    return p == MAP_FAILED ? -errno : 0;
}

/* Whether the three mappings follow each other without a gap, as those do that the kernel places
 * from high addresses to low ones: liveness, control, data. */
static bool is_one_range(const struct mapping *m)
{
    const char *live = (const char *)m->live, *control = (const char *)m->control;
    return m->data && control && live && live + whole_pages(sizeof *m->live) == control &&
           control + whole_pages(CONTROL_MAP_BYTES) == m->data;
}

void mapping_free(struct mapping *m)
{
    if (!m->keeps_lock && is_one_range(m)) {
        /* one system call instead of three: each searches and changes the kernel's tree of
         * mappings */
        munmap((void *)(uintptr_t)m->live,
               (size_t)((char *)m->data - (const char *)m->live) + m->data_bytes);
        free(m);
        return;
    }
    if (m->data)
        munmap(m->data, m->data_bytes);
    if (m->keeps_lock) {
        m->data = NULL;
        return;
    }
    if (m->control)
        munmap(m->control, CONTROL_MAP_BYTES);
    if (m->live)
        munmap((void *)(uintptr_t)m->live, sizeof *m->live);
    free(m);
}

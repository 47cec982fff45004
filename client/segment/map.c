/* SPDX-License-Identifier: Apache-2.0 */
/* Maps the objects of an attachment after checking them.
 *
 * The daemon is trusted, but other clients can write or truncate the data and the control object.
 * So each header is copied once and the copy is checked; the size is compared before a mapping is
 * made. A later truncation still raises SIGBUS at an access: no check can exclude it, and the
 * daemon repairs sizes (docs/THREATS.md). */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "client/base/error.h"
#include "client/segment/segment.h"

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

/* Maps the first `bytes` bytes of an object, which must have at least `least` bytes now. `what`
 * names it for the error text. *ret_st is the object's status. Returns 0 or an error. */
static int map_object(int fd, const char *what, uint64_t least, size_t bytes, int protection,
                      int flags, void **ret, struct stat *ret_st)
{
    if (fstat(fd, ret_st))
        return fail_errno(what, errno);
    if (ret_st->st_size < 0 || (uint64_t)ret_st->st_size < least)
        return fail(SHMVIEW_ERR_LAYOUT_VERSION,
                    "the %s object has %jd bytes, %" PRIu64 " are needed: it was truncated", what,
                    (intmax_t)ret_st->st_size, least);
    void *p = mmap(NULL, bytes, protection, MAP_SHARED | flags, fd, 0);
    if (p == MAP_FAILED)
        return fail_errno(what, errno);
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

/* Checks and maps control and liveness object. Passes the lock word as it was read with the header,
 * so that taking the slot does not touch a page of the control object. Returns 0 or an error. */
static int map_lock(struct shmview_segment *s, const struct wire_attachment *a,
                    const struct frame_descriptors *fds)
{
    struct shmview_control c;
    struct shmview_object_header l;
    int control = fds->fd[a->control], liveness = fds->fd[a->liveness];
    uint64_t least =
        sizeof(struct shmview_control) + ((uint64_t)a->slot + 1) * sizeof(struct shmview_slot);
    struct stat st;
    void *map;
    int r = read_header(control, "control", SHMVIEW_CONTROL_MAGIC, sizeof c, s->id, &c, sizeof c);
    if (r == 0)
        r = read_header(liveness, "liveness", SHMVIEW_LIVENESS_MAGIC,
                        offsetof(struct shmview_liveness, generation), s->id, &l, sizeof l);
    if (r == 0)
        r = map_object(control, "control", least, CONTROL_MAP_BYTES, PROT_READ | PROT_WRITE, 0,
                       &map, &st);
    if (r)
        return r;
    s->lock.control = map;
    r = map_object(liveness, "liveness", sizeof *s->lock.live, sizeof *s->lock.live, PROT_READ, 0,
                   &map, &st);
    if (r)
        return r;
    s->lock.live = map;
    lock_take_slot(&s->lock, (uint32_t)a->slot, (uint32_t)a->generation, c.lock);
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

int segment_map(struct shmview_segment *s, const struct wire_attachment *a,
                const struct frame_descriptors *fds, unsigned flags)
{
    struct stat st = {0};
    int r = segment_check_attachment(a, fds);
    if (r)
        return r;
    if (s->size > SIZE_MAX / 2)
        return fail(SHMVIEW_ERR_NO_MEMORY, "%" PRIu64 " bytes cannot be mapped here", s->size);
    int protection = a->access == SHMVIEW_WRITE ? PROT_READ | PROT_WRITE : PROT_READ;
    r = map_object(fds->fd[a->data], "data", s->size, data_map_bytes(s->size), protection,
                   flags & SHMVIEW_POPULATE ? MAP_POPULATE : 0, &s->data, &st);
    s->data_device = st.st_dev;
    s->data_inode = st.st_ino;
    return r == 0 && a->slot != WIRE_ABSENT ? map_lock(s, a, fds) : r;
}

void segment_unmap_data(struct shmview_segment *s)
{
    if (s->data)
        munmap(s->data, data_map_bytes(s->size));
}

/* Whether the three mappings follow each other without a gap, as those do that the kernel places
 * from high addresses to low ones: liveness, control, data. */
static bool is_one_range(const struct shmview_segment *s)
{
    const char *live = (const char *)s->lock.live, *control = (const char *)s->lock.control;
    return s->data && control && live && live + whole_pages(sizeof *s->lock.live) == control &&
           control + whole_pages(CONTROL_MAP_BYTES) == s->data;
}

void segment_unmap(struct shmview_segment *s)
{
    /* one system call instead of three: each searches and changes the kernel's tree of mappings */
    if (is_one_range(s)) {
        munmap((void *)(uintptr_t)s->lock.live,
               (size_t)((char *)s->data - (const char *)s->lock.live) + data_map_bytes(s->size));
        return;
    }
    segment_unmap_data(s);
    if (s->lock.control)
        munmap(s->lock.control, CONTROL_MAP_BYTES);
    if (s->lock.live)
        munmap((void *)(uintptr_t)s->lock.live, sizeof *s->lock.live);
}

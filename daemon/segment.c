/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/segment.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/util.h"

#define CONTROL_BYTES_FIRST 4096
#define CONTROL_BYTES_STEP  4096

_Static_assert(CONTROL_BYTES_FIRST > sizeof(struct shmview_control), "room for slots");

static int write_all(int fd, const void *bytes, size_t n)
{
    ssize_t r = pwrite(fd, bytes, n, 0);
    if (r < 0)
        return -errno;
    return (size_t)r == n ? 0 : -EIO;
}

static struct shmview_object_header header_of(const struct segment *segment, uint32_t magic,
                                              size_t bytes)
{
    return (struct shmview_object_header){
        .magic = magic,
        .version = SHMVIEW_LAYOUT_VERSION,
        .header_bytes = (uint32_t)bytes,
        .segment_id = segment->id,
    };
}

static int allocate_lock(struct segment *segment, struct object_space *space)
{
    CLEANUP_FD int control = object_create(&segment->control, CONTROL_BYTES_FIRST, NULL, space);
    if (control < 0) {
        segment->control.name[0] = '\0';
        return control;
    }
    CLEANUP_FD int liveness =
        object_create(&segment->liveness, sizeof(struct shmview_liveness), NULL, space);
    if (liveness < 0) {
        segment->liveness.name[0] = '\0';
        return liveness;
    }
    struct shmview_control c = {
        .header = header_of(segment, SHMVIEW_CONTROL_MAGIC, sizeof c),
        .slots_offset = sizeof c,
        .slot_bytes = sizeof(struct shmview_slot),
    };
    struct shmview_object_header l =
        header_of(segment, SHMVIEW_LIVENESS_MAGIC, offsetof(struct shmview_liveness, generation));
    segment->control_bytes = CONTROL_BYTES_FIRST;
    int r = write_all(control, &c, sizeof c);
    return r ? r : write_all(liveness, &l, sizeof l);
}

static void remove_objects(struct segment *segment)
{
    object_remove(&segment->data);
    object_remove(&segment->control);
    object_remove(&segment->liveness);
}

int segment_allocate(struct segment *segment, const atomic_bool *cancel,
                     struct object_space *ret_space)
{
    CLEANUP_FD int data = object_create(&segment->data, segment->size, cancel, ret_space);
    if (data < 0) {
        segment->data.name[0] = '\0'; /* not ours: EEXIST */
        return data;
    }
    int r = segment->lock ? allocate_lock(segment, ret_space) : 0;
    if (r)
        remove_objects(segment);
    return r;
}

static void layout_deinit(struct wire_layout *layout)
{
    for (size_t i = 0; i < layout->n_views; i++) {
        free((char *)layout->views[i].name);
        free((char *)layout->views[i].format);
    }
    free(layout->views);
    free((char *)layout->name);
}

/* --- Descriptors --------------------------------------------------------- */

static TAILQ_HEAD(segments_recent, segment) recent = TAILQ_HEAD_INITIALIZER(recent);
static unsigned n_cached;
static unsigned max_cached = 1;

void segment_cache_limit(unsigned n_segments)
{
    max_cached = n_segments ? n_segments : 1;
}

static void unmap_liveness(struct segment *segment)
{
    if (segment->live)
        munmap(segment->live, sizeof *segment->live);
    segment->live = NULL;
}

static void uncache(struct segment *segment)
{
    if (!segment->cached)
        return;
    TAILQ_REMOVE(&recent, segment, recent);
    segment->cached = false;
    n_cached--;
    for (int i = 0; i < N_SEGMENT_OBJECTS; i++)
        close_fdp(&segment->fds[i]);
    if (segment->n_attachments == 0)
        unmap_liveness(segment);
}

/* Makes it the one attached last; who was attached longest ago must go. */
static void cache(struct segment *segment)
{
    if (segment->cached)
        TAILQ_REMOVE(&recent, segment, recent);
    else
        n_cached++;
    if (!segment->cached)
        for (int i = 0; i < N_SEGMENT_OBJECTS; i++)
            segment->fds[i] = -1;
    segment->cached = true;
    TAILQ_INSERT_HEAD(&recent, segment, recent);
    while (n_cached > max_cached)
        uncache(TAILQ_LAST(&recent, segments_recent));
}

/* The segment is cached. Returns a borrowed descriptor or -errno. */
static int open_cached(struct segment *segment, enum segment_object which)
{
    static const int flags[] = {O_RDWR, O_RDONLY, O_RDWR, O_RDONLY};
    const struct object *object = which == CONTROL    ? &segment->control
                                  : which == LIVENESS ? &segment->liveness
                                                      : &segment->data;
    if (segment->fds[which] < 0) {
        int fd = object_open(object, flags[which]);
        if (fd < 0)
            return fd;
        segment->fds[which] = fd;
    }
    return segment->fds[which];
}

void segment_leave(struct segment *segment)
{
    uncache(segment);
    unmap_liveness(segment);
    for (size_t i = 0; i < segment->n_layouts; i++)
        layout_deinit(&segment->layouts[i]);
    free(segment->layouts);
    slots_deinit(&segment->slots);
    free(segment);
}

struct segment *segment_free(struct segment *segment)
{
    if (!segment)
        return NULL;
    remove_objects(segment);
    segment_leave(segment);
    return NULL;
}

void segment_object_name(const struct segment *segment, const char *instance, const char *part,
                         object_name ret_name)
{
    snprintf(ret_name, sizeof(object_name), "/shmview.%s+%" PRIu64 ".%s", instance, segment->id,
             part);
}

void segment_unname(struct segment *segment, const char *instance)
{
    object_name name;
    segment_object_name(segment, instance, "data", name);
    if (object_rename(&segment->data, name))
        object_remove(&segment->data); /* nobody new, then, not even by id */
    segment->named = false;
}

int segment_keep(const struct segment *segment)
{
    struct store_segment record = {
        .id = segment->id,
        .size = segment->size,
        .device = segment->data.device,
        .inode = {segment->data.inode, segment->lock ? segment->control.inode : 0,
                  segment->lock ? segment->liveness.inode : 0},
        .owner = segment->owner,
        .lifetime = (uint32_t)segment->lifetime,
        .flags = (segment->lock ? STORE_LOCK : 0) | (segment->named ? STORE_NAMED : 0),
    };
    if (segment->has_creator)
        record.creator = segment->holder;
    memcpy(record.name, segment->name, sizeof record.name);
    return store_put_segment(segment->store, &record);
}

/* --- Attaching ----------------------------------------------------------- */

static int map_liveness(struct segment *segment)
{
    CLEANUP_FD int fd = object_open(&segment->liveness, O_RDWR);
    if (fd < 0)
        return fd;
    void *p = mmap(NULL, sizeof *segment->live, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    segment->live = p;
    return 0;
}

static _Atomic uint32_t *word(uint32_t *p)
{
    return (_Atomic uint32_t *)p;
}

/* The slot's line must be backed before anybody may touch it; once is enough, since
 * a client that truncates the object spoils it in any case. */
static int back_slot(struct segment *segment, int control, uint32_t slot)
{
    uint64_t need = sizeof(struct shmview_control) + (slot + 1) * sizeof(struct shmview_slot);
    if (need <= segment->control_bytes)
        return 0;
    uint64_t bytes = (need + CONTROL_BYTES_STEP - 1) / CONTROL_BYTES_STEP * CONTROL_BYTES_STEP;
    int r = object_grow(control, bytes);
    if (r == 0)
        segment->control_bytes = bytes;
    return r;
}

static int open_lock(struct segment *segment, struct wire_attachment *ret,
                     struct frame_descriptors *fds)
{
    int control = open_cached(segment, CONTROL);
    int liveness = control < 0 ? control : open_cached(segment, LIVENESS);
    int r = liveness < 0 ? liveness : segment->live ? 0 : map_liveness(segment);
    if (r)
        return r;
    uint32_t slot, generation;
    r = slots_take(&segment->slots, &slot, &generation);
    if (r)
        return r;
    r = back_slot(segment, control, slot);
    if (r) {
        slots_give(&segment->slots, slot);
        return r == -ENOSPC ? -ENOMEM : r;
    }
    struct shmview_liveness *live = segment->live;
    atomic_store_explicit(word(&live->high), segment->slots.high, memory_order_release);
    atomic_store_explicit(word(&live->generation[slot]), generation, memory_order_release);
    ret->control = (int64_t)fds->n;
    fds->fd[fds->n++] = control;
    ret->liveness = (int64_t)fds->n;
    fds->fd[fds->n++] = liveness;
    ret->slot = slot;
    ret->generation = generation;
    return 0;
}

int segment_attach(struct segment *segment, int64_t access, struct wire_attachment *ret,
                   struct frame_descriptors *ret_fds)
{
    struct frame_descriptors fds = {0};
    struct wire_attachment a = {
        .access = access,
        .control = WIRE_ABSENT,
        .liveness = WIRE_ABSENT,
        .slot = WIRE_ABSENT,
        .generation = WIRE_ABSENT,
        .layouts = segment->layouts,
        .n_layouts = segment->n_layouts,
    };
    cache(segment);
    int r = open_cached(segment, access == SHMVIEW_WRITE ? DATA_WRITE : DATA_READ);
    if (r >= 0) {
        fds.fd[fds.n++] = r;
        r = segment->lock && access != SHMVIEW_PEEK ? open_lock(segment, &a, &fds) : 0;
    }
    if (r) {
        uncache(segment); /* what cannot be opened is not to stay half open */
        return r;
    }
    a.descriptors = (int64_t)fds.n;
    segment->n_attachments++;
    *ret = a;
    *ret_fds = fds;
    return 0;
}

static void publish_death(struct shmview_liveness *live, uint32_t slot, pid_t pid)
{
    uint32_t generation = atomic_load_explicit(word(&live->generation[slot]), memory_order_relaxed);
    uint32_t n = atomic_load_explicit(word(&live->deaths), memory_order_relaxed);
    struct shmview_liveness_death *d = &live->last[n % ARRAY_LEN(live->last)];
    uint32_t id = generation << SHMVIEW_SLOT_BITS | slot;
    /* id last and released: a reader that finds it finds the rest as well */
    atomic_store_explicit(word(&d->id), 0, memory_order_release);
    atomic_store_explicit(word(&d->pid), (uint32_t)pid, memory_order_relaxed);
    atomic_store_explicit((_Atomic uint64_t *)&d->when_ns, (uint64_t)now_ns(),
                          memory_order_relaxed);
    atomic_store_explicit(word(&d->id), id, memory_order_release);

    atomic_store(word(&live->generation[slot]), generation | SHMVIEW_GENERATION_DEAD);
    atomic_fetch_add(word(&live->deaths), 1);
    syscall(SYS_futex, &live->deaths, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

bool segment_claim_slot(struct segment *segment, uint32_t slot, uint32_t generation)
{
    if (!segment->live || slot >= segment->slots.high ||
        atomic_load(word(&segment->live->generation[slot])) != generation ||
        segment->slots.entries[slot].next != SLOT_UNCLAIMED)
        return false;
    segment->slots.entries[slot].next = 0;
    return true;
}

void segment_restored(struct segment *segment)
{
    if (!segment->live)
        return;
    for (uint32_t slot = 0; slot < segment->slots.high; slot++) {
        uint32_t g = atomic_load(word(&segment->live->generation[slot]));
        if (g && !(g & SHMVIEW_GENERATION_DEAD) &&
            segment->slots.entries[slot].next == SLOT_UNCLAIMED) {
            publish_death(segment->live, slot, 0);
            slots_give(&segment->slots, slot);
        }
    }
    atomic_fetch_add(word(&segment->live->deaths), 1);
    syscall(SYS_futex, &segment->live->deaths, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (segment->n_attachments == 0 && !segment->cached)
        unmap_liveness(segment);
}

static int check_object(const struct object *object, uint64_t least, const struct segment *segment,
                        uint32_t magic, size_t header_bytes, uint64_t *ret_bytes)
{
    struct shmview_object_header h;
    struct stat st;
    CLEANUP_FD int fd = object_open(object, O_RDONLY);
    if (fd < 0)
        return fd;
    if (fstat(fd, &st))
        return -errno;
    if ((uint64_t)st.st_size < least)
        return -ESTALE;
    *ret_bytes = (uint64_t)st.st_size;
    if (!magic)
        return 0;
    ssize_t n = pread(fd, &h, sizeof h, 0);
    return n == sizeof h && h.magic == magic && h.version == SHMVIEW_LAYOUT_VERSION &&
                   h.header_bytes == header_bytes && h.segment_id == segment->id
               ? 0
               : -ESTALE;
}

/* The daemon's own object: what it says of slots is believed, within its limits. */
static int restore_slots(struct segment *segment)
{
    int r = map_liveness(segment);
    if (r)
        return r;
    uint32_t high = atomic_load_explicit(word(&segment->live->high), memory_order_relaxed);
    if (high > SHMVIEW_SLOTS_MAX)
        return -ESTALE;
    return slots_restore(&segment->slots, segment->live->generation, high);
}

int segment_restore(struct segment *segment, const char **ret_why)
{
    uint64_t bytes;
    *ret_why = "its data";
    int r = check_object(&segment->data, 0, segment, 0, 0, &bytes);
    if (r == 0 && segment->lock) {
        /* what clients did to the control object is theirs; only its slots must be backed */
        *ret_why = "its control object";
        r = check_object(&segment->control, 0, segment, 0, 0, &segment->control_bytes);
    }
    if (r == 0 && segment->lock) {
        *ret_why = "its liveness object";
        r = check_object(&segment->liveness, sizeof *segment->live, segment, SHMVIEW_LIVENESS_MAGIC,
                         offsetof(struct shmview_liveness, generation), &bytes);
        if (r == 0)
            r = restore_slots(segment);
    }
    return r;
}

void segment_detach(struct segment *segment, int64_t slot, pid_t pid)
{
    segment->n_attachments--;
    if (slot != WIRE_ABSENT) {
        publish_death(segment->live, (uint32_t)slot, pid);
        slots_give(&segment->slots, (uint32_t)slot);
    }
    if (segment->n_attachments == 0 && !segment->cached)
        unmap_liveness(segment);
}

void segment_forget(struct segment *segment)
{
    segment->n_attachments--;
}

void segment_watches_changed(struct segment *segment)
{
    atomic_fetch_add(word(&segment->live->watches), 1);
}

/* --- Layouts ------------------------------------------------------------- */

static int copy_view(struct wire_view *to, const struct wire_view *from)
{
    *to = *from;
    to->name = strdup(from->name);
    to->format = strdup(from->format);
    return to->name && to->format ? 0 : -ENOMEM;
}

int segment_restore_layout(struct segment *segment, const struct wire_layout *layout)
{
    struct wire_layout *layouts =
        realloc(segment->layouts, (segment->n_layouts + 1) * sizeof *layouts);
    if (!layouts)
        return -ENOMEM;
    segment->layouts = layouts;
    struct wire_layout copy = {
        .name = strdup(layout->name),
        .views = calloc(layout->n_views, sizeof *copy.views),
        .n_views = layout->n_views,
    };
    int r = copy.name && copy.views ? 0 : -ENOMEM;
    if (!copy.views)
        copy.n_views = 0;
    for (size_t i = 0; r == 0 && i < copy.n_views; i++)
        r = copy_view(&copy.views[i], &layout->views[i]);
    if (r) {
        layout_deinit(&copy);
        return r;
    }
    layouts[segment->n_layouts] = copy;
    return (int)segment->n_layouts++;
}

int segment_add_layout(struct segment *segment, const struct wire_layout *layout)
{
    int index = segment_restore_layout(segment, layout);
    if (index < 0 || !segment->store)
        return index;
    json_t *json = json_pack("{s:o}", "layouts", wire_write_layouts(&segment->layouts[index], 1));
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;
    json_decref(json);
    int r = text ? store_put_layout(segment->store, segment->id, (uint32_t)index, text) : -ENOMEM;
    free(text);
    if (r == 0)
        return index;
    layout_deinit(&segment->layouts[--segment->n_layouts]);
    return r;
}

const struct wire_layout *segment_find_layout(const struct segment *segment, const char *name)
{
    for (size_t i = 0; i < segment->n_layouts; i++)
        if (strcmp(segment->layouts[i].name, name) == 0)
            return &segment->layouts[i];
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The order of writes to the liveness object matters, because clients read it at any moment and
 * without a lock:
 *
 *   begin   memory for the slot -> high -> generation of the slot -> the reply to the client
 *   death   the slot is marked as dead -> deaths grows -> all waiters are woken
 *   end     all slots are marked as ended -> deaths grows -> all waiters are woken
 *
 * A waiter reads `deaths` before it looks at the owner, and sleeps only while `deaths` is the same.
 * Either it then finds the mark, or it does not fall asleep. The daemon may be killed between any
 * two steps; then the next one completes them (segment_restored()). */
#include "daemon/segments/use.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/base/util.h"
#include "daemon/memory/discard.h"
#include "daemon/memory/object_write.h"
#include "daemon/segments/segment_repair.h"

#define CONTROL_BYTES_STEP 4096

_Static_assert(SEGMENT_CONTROL_BYTES > sizeof(struct shmview_control), "room for slots");

int use_begin(struct segment *segment)
{
    if (segment->use)
        return 0;
    struct segment_use *u = calloc(1, sizeof *u);
    if (!u)
        return -ENOMEM;
    u->segment = segment;
    for (int i = 0; i < N_USE_DESCRIPTORS; i++)
        u->fds[i] = -1;
    LIST_INIT(&u->watchers);
    LIST_INIT(&u->attachments);
    segment->use = u;
    return 0;
}

void use_close(struct segment_use *use)
{
    for (int i = 0; i < N_USE_DESCRIPTORS; i++)
        close_fdp(&use->fds[i]);
}

/* Frees use if no client is attached and it is not cached. */
static void use_end(struct segment_use *use)
{
    if (use->cached || use->segment->n_attachments > 0)
        return;
    use_close(use);
    if (use->live)
        munmap(use->live, sizeof *use->live);
    use->segment->use = NULL;
    free(use);
}

void use_abandon(struct segment_use *use)
{
    if (!use)
        return;
    if (use->cached) {
        TAILQ_REMOVE(&use->segment->home->recent, use, recent);
        use->segment->home->n_recent--;
    }
    use->cached = false;
    use_close(use);
    use_end(use);
}

void use_discard(struct segment_use *use)
{
    bool is_small = use && use->segment->size < DISCARD_LARGE_BYTES;
    for (int i = 0; is_small && i < N_USE_DESCRIPTORS; i++) {
        if (use->fds[i] >= 0)
            discard_soon(use->fds[i], NULL, 0);
        use->fds[i] = -1;
    }
    if (use && use->live) {
        discard_soon(-1, use->live, sizeof *use->live);
        use->live = NULL;
    }
    use_abandon(use);
}

void use_cache(struct segment_use *use)
{
    struct segment_home *home = use->segment->home;
    unsigned most = home->max_recent ? home->max_recent : 1;
    if (use->cached)
        TAILQ_REMOVE(&home->recent, use, recent);
    else
        home->n_recent++;
    use->cached = true;
    TAILQ_INSERT_HEAD(&home->recent, use, recent);
    while (home->n_recent > most)
        use_abandon(TAILQ_LAST(&home->recent, uses_recent));
}

int use_open(struct segment_use *use, enum use_descriptor which)
{
    static const int flags[] = {O_RDWR, O_RDONLY, O_RDWR, O_RDONLY};
    static const enum segment_part parts[] = {DATA, DATA, CONTROL, LIVENESS};
    struct object object;
    if (use->fds[which] < 0) {
        segment_object(use->segment, parts[which], &object);
        int fd = object_open(&object, flags[which]);
        if (fd < 0)
            return fd;
        use->fds[which] = fd;
    }
    return use->fds[which];
}

int use_map_object(struct segment_use *use, int fd)
{
    void *p =
        mmap(NULL, sizeof *use->live, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (p == MAP_FAILED)
        return -errno;
    use->live = p;
    return 0;
}

/* Maps the liveness object, once. Returns 0 or -errno. */
static int use_map(struct segment_use *use)
{
    struct object object;
    if (use->live)
        return 0;
    segment_object(use->segment, LIVENESS, &object);
    CLEANUP_FD int fd = object_open(&object, O_RDWR);
    return fd < 0 ? fd : use_map_object(use, fd);
}

/* --- Attaching ----------------------------------------------------------- */

/* The members of the shared structs are not _Atomic, because C++ includes their header, too. */
static _Atomic uint32_t *word(uint32_t *p)
{
    return (_Atomic uint32_t *)p;
}

static void wake_all(uint32_t *at)
{
    syscall(SYS_futex, at, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* Wakes all clients that wait for a death. Adding 1 comes first: a client that is about to sleep
 * then finds the word changed, and does not. */
static void announce(struct shmview_liveness *live)
{
    atomic_fetch_add(word(&live->deaths), 1);
    wake_all(&live->deaths);
}

static void publish_death(struct shmview_liveness *live, uint32_t slot)
{
    atomic_fetch_or(word(&live->generation[slot]), SHMVIEW_GENERATION_DEAD);
    announce(live);
}

void segment_announce(struct segment *segment)
{
    if (segment->use && segment->use->live)
        announce(segment->use->live);
}

/* Reads the slots that an earlier daemon gave out. Only daemons write the liveness object, so its
 * contents are trusted within limits. Also writes the table of layouts again, because that daemon
 * may have died in the middle of a definition. Returns 0 or -errno. */
static int read_slots(struct segment *segment)
{
    const struct shmview_liveness *live = segment->use->live;
    uint32_t high =
        atomic_load_explicit(word((uint32_t *)(uintptr_t)&live->high), memory_order_relaxed);
    int r =
        high > SHMVIEW_SLOTS_MAX ? -ESTALE : slots_restore(&segment->slots, live->generation, high);
    if (r == 0)
        r = segment_publish_layouts(segment);
    if (r == -EIO || r == -ENOSPC) /* a client has truncated it; a repair writes the table, too */
        r = 0;
    if (r == 0)
        segment->unread = false;
    return r;
}

/* Gives back all slots that no attachment has claimed. Wakes the waiters even if there is none, see
 * segment_restored(). */
static void give_slots_back(struct segment *segment)
{
    struct shmview_liveness *live = segment->use->live;
    for (uint32_t slot = 0; slot < segment->slots.high; slot++) {
        uint32_t g = atomic_load(word(&live->generation[slot]));
        if (g && !(g & SHMVIEW_GENERATION_DEAD) &&
            slots_entry(&segment->slots, slot)->next == SLOT_UNCLAIMED) {
            publish_death(live, slot);
            slots_give(&segment->slots, slot);
        }
    }
    announce(live);
}

/* Reads the slots that an earlier daemon gave out, if any. Must be called before a slot is taken,
 * with the liveness object mapped. If they are still unread here, no attachment has claimed one, so
 * all of them are given back. Returns 0 or -errno. */
static int know_slots(struct segment *segment)
{
    if (!segment->unread)
        return 0;
    int r = read_slots(segment);
    if (r == 0)
        give_slots_back(segment);
    return r;
}

uint32_t segment_control_bytes(uint32_t n_slots)
{
    uint64_t need = sizeof(struct shmview_control) + n_slots * sizeof(struct shmview_slot);
    return (uint32_t)((need + CONTROL_BYTES_STEP - 1) / CONTROL_BYTES_STEP * CONTROL_BYTES_STEP);
}

uint64_t segment_control_size(const struct segment *segment, uint32_t committed)
{
    return segment->sealed ? segment_control_bytes(SHMVIEW_SLOTS_MAX) : committed;
}

/* Lets the control object grow until it has the slot, or commits the slot of a sealed one. This
 * must come before the generation is published, because an owner looks at each slot below `high`
 * and would get SIGBUS. Returns 0 or -errno. */
static int back_slot(struct segment *segment, int control, uint32_t slot)
{
    uint32_t bytes = segment_control_bytes(slot + 1);
    if (bytes <= segment->control_bytes)
        return 0;
    int r = segment->sealed ? object_populate(control, segment->control_bytes, bytes)
                            : object_grow(control, segment->control_bytes, bytes);
    if (r == 0)
        segment->control_bytes = bytes;
    return r;
}

/* Stores 0 in one word of a client's slot. Returns 0 or -errno. */
static int clear_word(int control, uint32_t slot, size_t offset)
{
    uint32_t none = 0;
    offset += sizeof(struct shmview_control) + slot * sizeof(struct shmview_slot);
    return object_write(control, &none, sizeof none, offset);
}

/* Clears the count of readers and the reader of a stream in a slot when its generations wrap,
 * because ids repeat from then on. A dead reader may have left a count with its generation, or its
 * id with the frames that it held. When a new client got that generation, the words would look like
 * those of a living reader, and writers would wait for it. Nobody uses the slot at this moment.
 * Returns 0 or -errno. */
static int clear_readers(const struct segment *segment, uint32_t slot, uint32_t generation)
{
    struct object object;
    if ((segment->use->live->generation[slot] & SHMVIEW_GENERATION_MASK) <= generation)
        return 0;
    segment_object(segment, CONTROL, &object);
    CLEANUP_FD int control = object_open(&object, O_RDWR);
    if (control < 0)
        return control;
    int r = clear_word(control, slot, offsetof(struct shmview_slot, readers));
    return r ? r : clear_word(control, slot, offsetof(struct shmview_slot, stream_user));
}

/* Opens the control and the liveness object for a client, repairs the segment, and takes a slot.
 * Returns 0, -ENOLCK if all slots are taken, or another -errno. */
static int open_lock(struct segment *segment, struct segment_grip *ret)
{
    int control = ret->fds[CONTROL] = use_open(segment->use, CONTROL_WRITE);
    int r = control < 0 ? control : (ret->fds[LIVENESS] = use_open(segment->use, LIVENESS_READ));
    if (r >= 0)
        r = use_map(segment->use); /* a repair wakes the waiters there */
    if (r == 0)
        r = segment_repair(segment);
    if (r == 0)
        r = know_slots(segment);
    if (r)
        return r;
    uint32_t slot, generation;
    r = slots_take(&segment->slots, &slot, &generation);
    if (r)
        return r == -ENOSPC ? -ENOLCK : r;
    struct shmview_liveness *live = segment->use->live;
    r = back_slot(segment, control, slot);
    if (r == 0)
        r = clear_readers(segment, slot, generation);
    if (r) {
        slots_give(&segment->slots, slot);
        return r;
    }
    atomic_store_explicit(word(&live->high), segment->slots.high, memory_order_release);
    atomic_store_explicit(word(&live->generation[slot]), generation, memory_order_release);
    ret->slot = slot;
    ret->generation = generation;
    return 0;
}

int segment_attach(struct segment *segment, int64_t access, struct segment_grip *ret)
{
    struct segment_grip grip = {.fds = {-1, -1, -1}, .slot = SLOT_NONE};
    int r = use_begin(segment);
    if (r)
        return r;
    use_cache(segment->use);
    r = grip.fds[DATA] = use_open(segment->use, access == SHMVIEW_WRITE ? DATA_WRITE : DATA_READ);
    if (r >= 0)
        r = segment->lock && access != SHMVIEW_PEEK ? open_lock(segment, &grip)
                                                    : segment_repair(segment);
    if (r) {
        use_abandon(segment->use); /* so that the next attempt opens all objects again */
        return r;
    }
    segment->n_attachments++;
    *ret = grip;
    return 0;
}

void segment_give_slot(struct segment *segment, uint32_t slot)
{
    publish_death(segment->use->live, slot);
    slots_give(&segment->slots, slot);
}

/* Returns the liveness object if any slot of it was taken or claimed since this daemon began,
 * otherwise NULL. */
static struct shmview_liveness *used_liveness(const struct segment *segment)
{
    return segment->use && !segment->unread ? segment->use->live : NULL;
}

/* Returns the generation as it is after the end of the segment: a user that lives has ended. */
static uint32_t ended(uint32_t generation)
{
    return generation && !(generation & SHMVIEW_GENERATION_DEAD)
               ? generation | SHMVIEW_GENERATION_ENDED
               : generation;
}

void segment_end_attachments(struct segment *segment)
{
    struct shmview_liveness *live = used_liveness(segment);
    if (!live)
        return;
    for (uint32_t slot = 0; slot < segment->slots.high; slot++)
        atomic_store(word(&live->generation[slot]), ended(live->generation[slot]));
    announce(live);
}

void use_end_unknown(int fd)
{
    struct shmview_liveness l;
    struct stat st;
    if (fstat(fd, &st) || st.st_size != sizeof l || pread(fd, &l, sizeof l, 0) != sizeof l ||
        l.header.magic != SHMVIEW_LIVENESS_MAGIC || l.header.version != SHMVIEW_LAYOUT_VERSION)
        return;
    for (uint32_t slot = 0; slot < SHMVIEW_SLOTS_MAX; slot++)
        l.generation[slot] = ended(l.generation[slot]);
    l.deaths++;
    /* Only the kernel touches the bytes, because the object may be a client's that looks like this.
     * A client never finds a wrong generation, because only one byte of it changes. */
    if (object_write(fd, l.generation, sizeof l.generation,
                     offsetof(struct shmview_liveness, generation)) ||
        object_write(fd, &l.deaths, sizeof l.deaths, offsetof(struct shmview_liveness, deaths)))
        return;
    struct shmview_liveness *live = mmap(NULL, sizeof l, PROT_READ, MAP_SHARED, fd, 0);
    if (live == MAP_FAILED)
        return;
    wake_all(&live->deaths);
    munmap(live, sizeof l);
}

bool segment_has_ended(const struct segment *segment)
{
    struct shmview_liveness *live = used_liveness(segment);
    uint32_t all = 0;
    for (uint32_t slot = 0; live && slot < segment->slots.high; slot++)
        all |= atomic_load(word(&live->generation[slot]));
    return all & SHMVIEW_GENERATION_ENDED;
}

void segment_detach(struct segment *segment, uint32_t slot)
{
    segment->n_attachments--;
    if (slot != SLOT_NONE)
        segment_give_slot(segment, slot);
    use_end(segment->use);
}

void segment_abandon_attachment(struct segment *segment)
{
    segment->n_attachments--;
    use_end(segment->use);
}

void segment_watches_changed(struct segment *segment)
{
    atomic_store(word(&segment->use->live->watches), segment->use->n_watches);
}

void segment_note_owner(struct segment *segment, uint32_t id, pid_t pid, const char command[16])
{
    struct shmview_liveness_death *d = &segment->use->live->owner;
    /* A client may read this at any moment. The id is 0 while the rest is written, and is stored
     * last, so that a client which finds the id finds the rest of that death, too. */
    atomic_store(word(&d->id), 0);
    d->pid = (uint32_t)pid;
    d->when_ns = (uint64_t)now_ns();
    memcpy(d->command, command, sizeof d->command);
    atomic_store(word(&d->id), id);
}

void segment_owner_died(struct segment *segment)
{
    atomic_fetch_add(word(&segment->use->live->owner_deaths), 1);
}

/* --- Restoring ----------------------------------------------------------- */

int segment_claim_slot(struct segment *segment, uint32_t slot, uint32_t generation)
{
    if (!segment->lock)
        return -ESTALE;
    int r = use_begin(segment);
    if (r == 0)
        r = use_map(segment->use);
    if (r == 0 && segment->unread)
        r = read_slots(segment);
    if (r)
        return r;
    if (slot >= segment->slots.high ||
        (atomic_load(word(&segment->use->live->generation[slot])) & ~SHMVIEW_GENERATION_ENDED) !=
            generation ||
        slots_entry(&segment->slots, slot)->next != SLOT_UNCLAIMED)
        return -ESTALE;
    slots_entry(&segment->slots, slot)->next = 0; /* anything but SLOT_UNCLAIMED */
    return 0;
}

int segment_restore_attachment(struct segment *segment)
{
    int r = use_begin(segment);
    if (r == 0)
        segment->n_attachments++;
    return r;
}

void segment_restored(struct segment *segment)
{
    if (!segment->use)
        return;
    if (segment->use->live && !segment->unread)
        give_slots_back(segment);
    use_end(segment->use);
}

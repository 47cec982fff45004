/* SPDX-License-Identifier: Apache-2.0 */
/* Freezes a segment: asks the daemon whether this client may, maps the data read-only, and adds the
 * seal.
 *
 *   begin: the daemon finds no other writer, and lets none begin -> the data are mapped read-only
 *       -> F_SEAL_WRITE is added  -> end
 *       -> the kernel refuses it: some process still maps them -> they are mapped writable -> end
 *
 * The kernel adds the seal only while nobody has a mapping that is or could become writable, this
 * process included. So the mapping must go before it is known whether the kernel agrees. */
#include <shmview/freeze.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "client/base/error.h"
#include "client/segment/export.h"
#include "client/segment/mapper.h"
#include "common/base/linux.h"
#include "common/base/util.h"
#include "common/wire/wire_freeze.h"

/* A process that has detached, or died, lets go of its mapping after the daemon knows of it. */
#define LET_GO_NS 100000000

/* Adds a seal. Returns 0 or -errno. */
static int add_seal(int fd, int seal)
{
    int64_t until = now_ns() + LET_GO_NS;
    struct timespec pause = {.tv_nsec = 1000000};
    while (fcntl(fd, F_ADD_SEALS, seal)) {
        if (errno != EBUSY || now_ns() > until)
            return -errno;
        nanosleep(&pause, NULL);
    }
    return 0;
}

/* Sets the text for a kernel that refuses the seal with EBUSY; what_now ends it. */
static int fail_mapped(const struct shmview_segment *s, const char *what_now)
{
    struct mapper m;
    char who[128] = "a process that this user may not look at maps it for writing, or a device or "
                    "the kernel has pages of it pinned";
    if (mapper_find(s->mapping, &m))
        snprintf(who, sizeof who, "process %d%s%s%s maps it for writing without an attachment",
                 m.pid, m.command[0] ? " (" : "", m.command, m.command[0] ? ")" : "");
    return fail(SHMVIEW_ERR_BUSY, "segment '%s' cannot be frozen: %s%s", s->name, who, what_now);
}

static int fail_seal(const struct shmview_segment *s, int error)
{
    if (error == EPERM)
        return fail(SHMVIEW_ERR_SYSTEM,
                    "segment '%s' cannot be frozen: a client has forbidden further seals", s->name);
    return fail_errno("the seal of the segment", error);
}

/* Ends the time without a writable mapping. If the data cannot be mapped for writing, maps them for
 * reading. Returns the access that the handle has now. */
static int map_back(struct shmview_segment *s, int write, int read, bool may_write)
{
    struct mapping *m = s->mapping;
    int access = SHMVIEW_WRITE;
    if (!may_write || mapping_replace(m, write, PROT_READ | PROT_WRITE)) {
        access = SHMVIEW_READ;
        if (mapping_replace(m, read, PROT_READ))
            access = 0;
    }
    mappings_set_access(m, access ? access : SHMVIEW_READ);
    atomic_store(&s->access, access ? access : SHMVIEW_READ);
    return access;
}

/* Adds the seal against all writing. Returns 0 or an error. */
static int seal_all(struct shmview_segment *s, int write, int read)
{
    struct mapping *m = s->mapping;
    int seals = fcntl(write, F_GET_SEALS);
    bool may_write = seals < 0 || !(seals & F_SEAL_FUTURE_WRITE);
    struct mapper other;
    /* it could not be mapped for writing again, so others are looked for first */
    if (!may_write && mapper_find(m, &other))
        return fail_mapped(s, "");
    if (!mappings_set_access(m, MAPPING_ALONE))
        return fail(SHMVIEW_ERR_BUSY,
                    "segment '%s' cannot be frozen: this process has another handle of it with "
                    "access write",
                    s->name);
    atomic_store(&s->access, SHMVIEW_READ);
    int error = -mapping_replace(m, read, PROT_READ);
    bool is_mapped = error == 0;
    if (is_mapped)
        error = -add_seal(write, F_SEAL_WRITE);
    if (error == 0) {
        mappings_set_access(m, SHMVIEW_READ);
        mappings_note_frozen(m);
        return 0;
    }
    int access = map_back(s, write, read, may_write);
    const char *what_now = access == SHMVIEW_WRITE  ? ""
                           : access == SHMVIEW_READ ? "; the handle has access read now"
                                                    : "; its data are no longer mapped";
    if (is_mapped && error == EBUSY)
        return fail_mapped(s, what_now);
    if (is_mapped && access)
        return fail_seal(s, error);
    return fail(SHMVIEW_ERR_SYSTEM, "the data of segment '%s' cannot be mapped for reading: %s%s",
                s->name, strerror(error), what_now);
}

/* Sends the request Freeze. Returns 0, after which the caller must call reply_deinit(), or an
 * error. */
static int ask(struct shmview_segment *s, bool done, struct reply *reply)
{
    const struct wire_freeze freeze = {.attachment = s->lock.attachment, .done = done};
    return connection_call(s->connection, "io.shmview.Freeze", wire_freeze_text(&freeze), reply);
}

/* Adds the seal with the descriptors of the reply. Returns 0 or an error. */
static int freeze_with(struct shmview_segment *s, const struct reply *reply, unsigned flags)
{
    struct wire_fault fault;
    struct wire_freezing f;
    if (reply->fds.lost)
        return fail_errno("the descriptors of the segment", EMFILE);
    if (wire_read_freezing(reply->wire.parameters, &f, &fault))
        return fail_reply(&fault);
    int64_t n = (int64_t)reply->fds.n;
    if (f.descriptors != n || f.write >= n || f.read >= n)
        return fail(SHMVIEW_ERR_PROTOCOL, "%zu descriptors came where %" PRId64 " were announced",
                    reply->fds.n, f.descriptors);
    if (!(flags & SHMVIEW_FREEZE_FUTURE))
        return seal_all(s, reply->fds.fd[f.write], reply->fds.fd[f.read]);
    int error = -add_seal(reply->fds.fd[f.write], F_SEAL_FUTURE_WRITE);
    return error ? fail_seal(s, error) : 0;
}

/* Whether the handle can be frozen, as far as this process knows. Returns 0 or an error. */
static int check(struct shmview_segment *s, unsigned flags)
{
    uint32_t n = atomic_load(&s->n_buffers) & ~DETACH_LATER;
    if (s->access != SHMVIEW_WRITE)
        return fail(SHMVIEW_ERR_READ_ONLY, "segment '%s' is attached with access %s", s->name,
                    wire_access_name(s->access));
    if (!s->is_sealed)
        return fail(SHMVIEW_ERR_INVALID,
                    "segment '%s' cannot be frozen: its backing is file, and only segments whose "
                    "backing is sealed can be",
                    s->name);
    if (n && !(flags & SHMVIEW_FREEZE_FUTURE))
        return fail(SHMVIEW_ERR_BUSY, "segment '%s' cannot be frozen: %u buffers of it are out",
                    s->name, n);
    return 0;
}

/* Returns the error of a second request that failed after F_SEAL_FUTURE_WRITE was added. A daemon
 * that was started before the seal may have let others attach the segment for writing, and only a
 * daemon can find them. */
static int fail_unasked(const struct shmview_segment *s, int error)
{
    char why[ERROR_TEXT_BYTES];
    snprintf(why, sizeof why, "%s", shmview_error_text());
    return fail(-error,
                "nobody else can begin to write to segment '%s', but whether another process "
                "writes already is unknown, so call shmview_freeze() again: %s",
                s->name, why);
}

int shmview_freeze(struct shmview_segment *segment, unsigned flags)
{
    struct reply reply, last;
    NOT_CANCELLED;
    if (flags & ~SHMVIEW_FREEZE_FUTURE)
        return fail(SHMVIEW_ERR_INVALID, "unknown flags 0x%x", flags & ~SHMVIEW_FREEZE_FUTURE);
    if (!segment->connection)
        return fail(SHMVIEW_ERR_INVALID, "foreign memory cannot be frozen");
    int r = segment_step_in(segment);
    if (r || shmview_is_frozen(segment))
        return r;
    r = check(segment, flags);
    if (r == 0)
        r = ask(segment, false, &reply);
    if (r)
        return r;
    r = freeze_with(segment, &reply, flags);
    reply_deinit(&reply);
    /* A seal against all writing decides, so errors of this request do not matter. The error text
     * of a failure before it does. */
    char text[ERROR_TEXT_BYTES];
    snprintf(text, sizeof text, "%s", shmview_error_text());
    int ended = ask(segment, true, &last);
    if (ended == 0)
        reply_deinit(&last);
    if (r == 0 && flags & SHMVIEW_FREEZE_FUTURE && ended)
        return ended == -SHMVIEW_ERR_BUSY ? ended : fail_unasked(segment, ended);
    if (r)
        set_error_text("%s", text);
    return r;
}

int shmview_is_frozen(const struct shmview_segment *segment)
{
    return segment->mapping && atomic_load(&segment->mapping->is_frozen);
}

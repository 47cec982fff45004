/* SPDX-License-Identifier: Apache-2.0 */
/* shmview/freeze.h - bytes that nobody can change any longer.
 *
 * A producer fills a segment once, and freezes it. From then on the kernel refuses
 * every way to change its bytes, to every process, for as long as the memory exists.
 * Readers need no lock and need not trust the producer:
 *
 *     options.backing = SHMVIEW_BACKING_SEALED;
 *     shmview_create(conn, "weights", bytes, &options, &seg);
 *     load(shmview_data(seg));
 *     shmview_freeze(seg, 0);
 *
 *     shmview_attach(conn, "weights", SHMVIEW_PEEK, 0, &seg);
 *     if (!shmview_is_frozen(seg))
 *         errx(1, "weights are still being loaded");
 *
 * Only segments whose backing is SHMVIEW_BACKING_SEALED can be frozen. There is no way
 * back. The state is a seal of the memory itself (F_SEAL_WRITE of memfd_create(2)), so
 * it survives a restart of the daemon. A segment that is frozen is still removed, and
 * its rights still changed, as any other.
 *
 * Frozen are the bytes of the segment. Its lock, its counter of changes and its phase
 * are not: clients with access read still lock and notify as before, and one that
 * disregards the library can still overwrite them, phase included. A reader that does
 * not trust the others attaches with SHMVIEW_PEEK, takes no lock, and opens views by the
 * names of their layouts. Switching the phase and defining layouts need access write,
 * which nobody has any longer: do both before.
 *
 * Trust. A client with access write has a descriptor to which it can add these seals
 * without this library, with the same effect; to freeze is no other right than to write. */
#ifndef SHMVIEW_FREEZE_H
#define SHMVIEW_FREEZE_H

#include <shmview/shmview.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A flag of shmview_freeze(): this process goes on writing, and no other can begin to. */
#define SHMVIEW_FREEZE_FUTURE 1u

/* How far a segment is frozen, in descriptions and figures; 0: not at all. */
enum shmview_frozen {
    SHMVIEW_FROZEN_FUTURE = 1, /* those that have it mapped for writing can write, no others */
    SHMVIEW_FROZEN_ALL = 2,    /* nobody can */
};

/* Freezes the bytes of the segment for good. flags is 0 or SHMVIEW_FREEZE_FUTURE.
 *
 * The handle must have access write, and be the only attachment that has, in this process
 * and in others. With flags 0, its access is read afterwards: the data stay at their
 * address, but a write there raises SIGSEGV, and so does one by shmview_set_...() through a
 * view that was opened before. Open such views again. Attributes that the program gave to
 * the mapping of the data (mlock(2), madvise(2)) are lost. Does nothing if the segment is
 * frozen that far already.
 *
 * With SHMVIEW_FREEZE_FUTURE the handle keeps its access, and so does its mapping. Nobody
 * can attach the segment for writing from then on, forked children of this process included.
 * A child that was forked before has a copy of the mapping, and can write to it: neither
 * the daemon nor the kernel refuses for it. The producer may freeze the rest later, with
 * flags 0.
 *
 * Blocks for two requests (shmview.h), for as long as the kernel looks at each page of the
 * segment (0.1 s for some 10 GiB), and for up to 0.1 s, or longer if pages are pinned,
 * while a process that has just detached or died is still letting go of the memory. A
 * refusal also takes a look at the mappings of all processes. Any thread may call. Until it
 * returns, no other thread may write to the data or use the handle, also if it fails,
 * because the data are mapped read-only while the kernel decides. A forked child may call
 * it like any other call, but its parent's attachment counts.
 *
 * Returns 0 on success. On failure the handle has its access and mapping as before, with
 * the exception that _BUSY and _SYSTEM name.
 *     _BUSY       others may write: another attachment, or a process that maps the memory
 *                 for writing without one, such as a forked child that has not used the
 *                 handle, or one that got the descriptor. The text names a process and its
 *                 command if this user may know them. Also if buffers or tensors of the
 *                 handle are not released (flags 0), or if a device or the kernel has pages
 *                 of it pinned, which the text states as a possibility. If the segment was
 *                 frozen with SHMVIEW_FREEZE_FUTURE, the kernel may leave the handle with
 *                 access read; the text states it, and the call may be repeated. With
 *                 SHMVIEW_FREEZE_FUTURE also if the daemon was restarted during the call, and
 *                 others could attach the segment for writing: they still can write, and
 *                 nobody else can begin to
 *     _READ_ONLY  the handle has no access write
 *     _DENIED     this user may no longer write to the segment
 *     _INVALID    the backing is not SHMVIEW_BACKING_SEALED, the segment is a stream or
 *                 foreign memory, or a flag is unknown
 *     _NOT_ATTACHED   the daemon has lost the attachment
 *     _SYSTEM     the data could not be mapped again; the text states whether they are
 *                 mapped at all
 * or an error of requests. With flags 0, nothing was frozen after one. With SHMVIEW_FREEZE_FUTURE
 * the second request may have failed, after the freezing: nobody else can begin to write then, but
 * whether others write already is unknown. The text states it; call again to find out. */
int shmview_freeze(struct shmview_segment *segment, unsigned flags);

/* Returns 1 if nobody can change the bytes of the segment any longer, and 0 if this is not
 * known. A frozen segment stays frozen, so 1 never becomes 0.
 *
 * 1 is a fact that the kernel has stated for the very memory that is mapped: it accepts
 * the seal only while nobody has that memory mapped for writing, and then lets nobody map
 * it so. No client, and no other program, can feign it.
 *
 * The library looks at the seal whenever this process attaches the segment or freezes it,
 * and all handles of it in this process know the result. A forked child attaches it with
 * the first call that locks it or asks the daemon. A process that attached it before it was
 * frozen therefore attaches it once more to learn of that; shmview_describe() has the
 * daemon's answer without an attachment. Does not block. Any thread. Never fails. */
int shmview_is_frozen(const struct shmview_segment *segment);

#ifdef __cplusplus
}
#endif
#endif

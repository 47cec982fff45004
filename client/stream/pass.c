/* SPDX-License-Identifier: Apache-2.0 */
/* Passing a frame on: a reader of one stage publishes what it holds in another one. */
#include "client/base/error.h"
#include "client/stream/stream.h"

int shmview_frame_pass(const struct shmview_frame *frame, uint32_t stage, uint64_t *ret_sequence)
{
    if (!frame_is_mine(frame, FRAME_TAKEN))
        return fail(SHMVIEW_ERR_NOT_OWNER, "the frame is not taken by this process");
    struct shmview_stream *s = frame->stream;
    const char *name = s->segment->name;
    if (s->segment->access != SHMVIEW_WRITE)
        return fail(SHMVIEW_ERR_READ_ONLY, "stream '%s' was not opened for writing", name);
    if (stage >= s->plan.n_stages || stage == s->stage)
        return fail(SHMVIEW_ERR_INVALID, "from stage %u to stage %u of stream '%s', which has %u",
                    s->stage, stage, name, s->plan.n_stages);
    if (!slot_is_mine(stream_lock(s)))
        return fail_lost(stream_lock(s));
    uint64_t sequence;
    bool is_first;
    int r = ring_pass(s, stage, frame->slot, &sequence, &is_first);
    if (frames_kept(s))
        gates_open(s, stage);
    else /* the only frame that has become free is this one, when it is released */
        gate_open(s, s->stages[stage].gate);
    if (r)
        return r;
    if (!is_first)
        return fail(SHMVIEW_ERR_EXISTS, "frame %llu of stream '%s' is in stage %u already",
                    (unsigned long long)frame->sequence, name, stage);
    if (ret_sequence)
        *ret_sequence = sequence;
    return 0;
}

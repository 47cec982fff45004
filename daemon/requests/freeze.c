/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/freeze.h"

#include <inttypes.h>
#include <stdio.h>

#include <shmview/freeze.h>

#include "daemon/clients/refusal.h"
#include "daemon/requests/request.h"
#include "daemon/segments/control_peek.h"
#include "daemon/segments/frozen.h"
#include "daemon/segments/stream_peek.h"

/* Refuses because another attachment prevents it; why is the middle of the sentence. n is the
 * number of such attachments. */
static void refuse_busy(struct answer *answer, const struct attachment *other, unsigned n,
                        const char *why)
{
    char command[16] = "", who[48] = "a process of another pid namespace";
    const struct segment *s = other->segment;
    if (other->pid) {
        process_command(other->pid, command);
        snprintf(who, sizeof who, "process %d%s%s%s", other->pid, command[0] ? " (" : "", command,
                 command[0] ? ")" : "");
    }
    refuse(answer, SHMVIEW_ERR_BUSY,
           json_pack("{s:s, s:i, s:s, s:i}", "name", s->name, "pid", other->pid, "command", command,
                     "attachments", (int)n),
           "segment '%s' %s %s", s->name, why, who);
}

/* Refuses if others may write. Returns whether it did. */
static bool refuse_writers(struct answer *answer, const struct attachment *mine)
{
    const struct attachment *a, *other = NULL;
    unsigned n = 0;
    char why[96];
    LIST_FOREACH (a, &mine->segment->use->attachments, sibling) {
        if (a == mine || a->access != SHMVIEW_WRITE)
            continue;
        n++;
        if (!other || other->pid == mine->pid)
            other = a;
    }
    if (n == 0)
        return false;
    snprintf(why, sizeof why, "cannot be frozen: %u other attachment%s may write to it, %s of", n,
             n == 1 ? "" : "s", n == 1 ? "that" : "one");
    refuse_busy(answer, other, n, why);
    return true;
}

/* Refuses what cannot be frozen. Returns whether it did. */
static bool refuse_kind(const struct request *request, const struct attachment *a)
{
    const struct segment *s = a->segment;
    struct wire_fault fault;
    struct stream_peek stream;
    if (a->access != SHMVIEW_WRITE) {
        refuse(request->answer, SHMVIEW_ERR_DENIED, NULL,
               "attachment %" PRIu64 " has no access write, which freezing segment '%s' needs",
               a->id, s->name);
        return true;
    }
    if (!policy_may_attach(s->access, &request->who, SHMVIEW_WRITE)) {
        refuse(request->answer, SHMVIEW_ERR_DENIED, NULL, "uid %u may not write to segment '%s'",
               request->who.uid, s->name);
        return true;
    }
    /* Clients write what makes a segment a stream. To refuse one only saves a program from a
     * mistake: its readers and writers could not store anything any longer. */
    stream_peek(s, &stream);
    if (s->sealed && !stream.mode)
        return false;
    wire_fault_fill(&fault, "attachment",
                    s->sealed
                        ? "is one of the stream '%s', and a stream cannot be frozen"
                        : "is one of segment '%s', whose backing is file: only segments whose "
                          "backing is sealed can be frozen",
                    s->name);
    refuse_parameter(request->answer, &fault);
    return true;
}

void freeze_begin(const struct request *request, struct attachment *attachment)
{
    struct answer *answer = request->answer;
    struct attachment *a = attachment;
    struct segment *s = a->segment;
    /* ends what is left of dead writers */
    if (!request_find(request, s->name, (int64_t)s->id) || refuse_kind(request, a) ||
        refuse_writers(answer, a))
        return;
    use_cache(s->use);
    int write = use_open(s->use, DATA_WRITE), read = use_open(s->use, DATA_READ);
    if (write < 0 || read < 0) {
        refuse_system(answer, "a segment cannot be frozen", write < 0 ? -write : -read);
        return;
    }
    size_t n = 0;
    const struct wire_freezing freezing = {.descriptors = 2, .write = 0, .read = 1};
    char *text = wire_freezing_text(&freezing, &n);
    answer_with_text(answer, text, n);
    if (answer->error)
        return;
    answer->fds_borrowed = true;
    answer->fds.fd[answer->fds.n++] = write;
    answer->fds.fd[answer->fds.n++] = read;
    answer->freezing = a->id;
    s->use->freezer = a;
}

void freeze_end(struct attachment *attachment)
{
    struct segment *s = attachment->segment;
    if (s->use->freezer == attachment)
        s->use->freezer = NULL;
    if (attachment->access == SHMVIEW_WRITE && segment_frozen(s) == SHMVIEW_FROZEN_ALL)
        attachment_become_reader(attachment);
}

void freeze_done(const struct request *request, struct attachment *attachment)
{
    const struct segment *s = attachment->segment;
    bool is_begun = s->use->freezer == attachment;
    freeze_end(attachment);
    /* the kernel accepts only this seal while others write */
    if (!is_begun && segment_frozen(s) == SHMVIEW_FROZEN_FUTURE &&
        request_find(request, s->name, (int64_t)s->id))
        refuse_writers(request->answer, attachment);
}

bool freeze_lets_write(const struct request *request, const struct segment *segment)
{
    const struct attachment *freezer = segment->use ? segment->use->freezer : NULL;
    uint32_t frozen = segment_frozen(segment);
    if (frozen)
        refuse(request->answer, SHMVIEW_ERR_READ_ONLY, json_pack("{s:s}", "name", segment->name),
               "segment '%s' is frozen: %s; attach it for reading", segment->name,
               frozen == SHMVIEW_FROZEN_ALL ? "nobody can write to it any longer"
                                            : "nobody else can begin to write to it");
    else if (freezer)
        refuse_busy(request->answer, freezer, 1, "is being frozen by");
    return !frozen && !freezer;
}

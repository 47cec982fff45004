/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/attach.h"

#include <errno.h>
#include <unistd.h>

#include "daemon/clients/refusal.h"
#include "daemon/requests/describe.h"
#include "daemon/requests/freeze.h"
#include "daemon/requests/permit.h"
#include "daemon/segments/events.h"
#include "daemon/segments/stream_peek.h"

/* Whether the user may have one more slot. A user gets one of the last slots only while that user
 * has fewer than are left (quota_in_share()); otherwise one user could lock all others out of a
 * segment that they share. Root and the daemon's own user may have all slots. When all are taken
 * this returns true, so that attachment_new() finds it and the refusal has the right reason. */
static bool has_slot_for(const struct segment *segment, int64_t access, uid_t uid)
{
    uint32_t used = segment->slots.n_used;
    const struct attachment *a;
    uint64_t held = 0;
    if (!segment->lock || access == SHMVIEW_PEEK || used == SHMVIEW_SLOTS_MAX || uid == 0 ||
        uid == geteuid() || quota_in_share(UINT64_MAX, used, SHMVIEW_SLOTS_MAX))
        return true;
    LIST_FOREACH (a, &segment->use->attachments, sibling)
        held += a->uid == uid && a->slot != SLOT_NONE;
    return quota_in_share(held, used, SHMVIEW_SLOTS_MAX);
}

/* Adds the descriptors to the answer, and returns the attachment for the reply, which refers to
 * them by index. They stay the segment's: answer->fds_borrowed makes the connection send them
 * without closing them. */
static struct wire_attachment hand_over(const struct attachment *a, const struct segment_grip *grip,
                                        struct answer *answer)
{
    int64_t index[N_SEGMENT_PARTS] = {0};
    answer->fds_borrowed = true;
    for (int part = 0; part < N_SEGMENT_PARTS; part++) {
        index[part] = grip->fds[part] < 0 ? WIRE_ABSENT : (int64_t)answer->fds.n;
        if (grip->fds[part] >= 0)
            answer->fds.fd[answer->fds.n++] = grip->fds[part];
    }
    return (struct wire_attachment){
        .id = (int64_t)a->id,
        .access = a->access,
        .descriptors = (int64_t)answer->fds.n,
        .data = index[DATA],
        .control = index[CONTROL],
        .liveness = index[LIVENESS],
        .slot = a->slot == SLOT_NONE ? WIRE_ABSENT : a->slot,
        .generation = a->slot == SLOT_NONE ? WIRE_ABSENT : a->generation,
    };
}

/* Fills in the reply to a successful attachment. */
static void answer_attached(const struct attachment *a, const struct segment_grip *grip,
                            struct answer *answer)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    size_t n = 0;
    struct wire_attachment attachment = hand_over(a, grip, answer);
    struct shmview_description head = describe_head(a->segment, room, &grant);
    char names[DESCRIBE_NAMES_BYTES];
    struct wire_text layouts = describe_layouts(a->segment, names);
    char *text = wire_attached_text(&head, grant.acl, grant.n_acl, &attachment, &layouts, &n);
    answer->attachment = a->id;
    answer_with_text(answer, text, n);
}

/* Refuses because the segment has no slot for this user; why ends the reason. */
static void refuse_slots(const struct segment *segment, const char *why, struct answer *answer)
{
    refuse(answer, SHMVIEW_ERR_NO_SLOT, json_pack("{s:i}", "limit", SHMVIEW_SLOTS_MAX),
           "segment '%s' has %u attachments%s", segment->name, segment->slots.n_used, why);
}

void attach_segment(const struct request *request, struct segment *segment, int64_t access)
{
    struct connection *c = request->connection;
    struct answer *answer = request->answer;
    struct quota_user *payer;
    struct attachment *a;
    struct segment_grip grip;
    if (c->attachments.n >= LIMIT_ATTACHMENTS) {
        refuse(answer, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", LIMIT_ATTACHMENTS),
               "this connection has %d attachments, which is the limit", LIMIT_ATTACHMENTS);
        return;
    }
    if (!has_slot_for(segment, access, request->who.uid)) {
        refuse_slots(segment, "; the last slots are for users that have fewer than are left",
                     answer);
        return;
    }
    if ((access == SHMVIEW_WRITE && !freeze_lets_write(request, segment)) ||
        !permit_attach(request, &payer))
        return;
    int r = attachment_new(&c->attachments, segment, access, &c->holder, payer, &a, &grip);
    if (r == -ENOLCK) {
        refuse_slots(segment, ", which is the limit", answer);
        return;
    }
    if (r) {
        refuse_system(answer, "a segment cannot be attached", -r);
        return;
    }
    answer_attached(a, &grip, answer);
    if (answer->error) { /* memory is short for the text: the client would not know its id */
        answer->fds.n = 0;
        attachment_cancel(a);
        return;
    }
    struct event *e = events_add_with_command(&segment->home->events, SHMVIEW_EVENT_ATTACHED,
                                              segment, connection_actor(c));
    e->attachment = a->id;
    e->access = (uint8_t)access;
    e->slot = a->slot;
    stream_peek_event(segment, e);
}

void attach_named(struct request *request, const union wanted *want)
{
    struct segment *s = request_find(request, want->attach.name, want->attach.id);
    if (s && !policy_may_attach(s->access, &request->who, want->attach.access))
        refuse(request->answer, SHMVIEW_ERR_DENIED, NULL,
               "uid %u may not attach segment '%s' for access %s", request->who.uid, s->name,
               wire_access_name(want->attach.access));
    else if (s)
        attach_segment(request, s, want->attach.access);
}

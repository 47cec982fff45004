/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/grants.h"

#include <errno.h>

#include "common/base/util.h"
#include "daemon/clients/refusal.h"
#include "daemon/requests/creation.h"
#include "daemon/segments/events.h"
#include "daemon/segments/look.h"

struct who grants_who(const struct state *state, const struct connection *connection)
{
    const struct peer *p = &connection->peer;
    struct who who = {.uid = p->uid, .gid = p->gid, .groups = p->groups, .n_groups = p->n_groups};
    who.is_admin = who.uid == 0 || (state->config->has_admin_group &&
                                    policy_is_member(&who, state->config->admin_group));
    return who;
}

/* --- Charging ------------------------------------------------------------ */

static bool refuse_charge(struct answer *answer, uid_t uid, int r, const struct quota_excess *e)
{
    if (r == -EDQUOT)
        refuse_quota(answer, uid, e);
    else
        refuse_system(answer, "a user cannot be charged", -r);
    return false;
}

static const enum quota_kind segment_kinds[] = {QUOTA_SEGMENTS, QUOTA_BYTES, QUOTA_LAYOUT_BYTES};

static uint64_t segment_cost(const struct segment *segment, enum quota_kind kind)
{
    return kind == QUOTA_SEGMENTS ? 1
           : kind == QUOTA_BYTES  ? quota_bytes(segment->size)
                                  : segment->layouts.text_bytes;
}

/* Charges for the first n kinds of what a segment costs. */
static void restore_kinds(struct quota_user *payer, const struct segment *segment, size_t n)
{
    for (size_t i = 0; payer && i < n; i++)
        quota_restore(payer->quota, payer->uid, segment_kinds[i],
                      segment_cost(segment, segment_kinds[i]));
}

static void refund_kinds(struct quota_user *payer, const struct segment *segment, size_t n)
{
    for (size_t i = 0; i < n; i++)
        quota_refund(payer, segment_kinds[i], segment_cost(segment, segment_kinds[i]));
}

/* Whether the limits of one user do not hold for the owner, as far as the caller shows that. */
static bool owner_is_admin(uid_t owner, const struct who *who)
{
    return owner == 0 || (owner == who->uid && who->is_admin);
}

/* Charges owner for the segment, in place of who was. */
static bool charge_segment(struct state *state, const struct who *who, struct segment *s,
                           uid_t owner, struct answer *answer)
{
    struct quota *q = &state->quota;
    struct quota_user *payer;
    struct quota_excess excess;
    bool is_admin = owner_is_admin(owner, who);
    /* what makes a user known may forget those who have nothing: now, while who was has it */
    if (!quota_restore(q, owner, QUOTA_SEGMENTS, 0))
        return refuse_charge(answer, owner, -ENOMEM, NULL);
    /* what is moved from one to the other counts once */
    grants_refund(s);
    size_t n = 0;
    int r = 0;
    while (r == 0 && n < ARRAY_LEN(segment_kinds)) {
        uint64_t cost = segment_cost(s, segment_kinds[n]);
        if (cost) /* else a limit that was lowered below what is used would refuse nothing more */
            r = quota_charge(q, owner, is_admin, segment_kinds[n], cost, &payer, &excess);
        n += r == 0;
    }
    if (r == 0) {
        s->payer = payer;
        return true;
    }
    if (n)
        refund_kinds(payer, s, n);
    restore_kinds(s->payer, s, ARRAY_LEN(segment_kinds));
    return refuse_charge(answer, owner, r, &excess);
}

bool grants_attach(struct state *state, struct connection *connection,
                   struct quota_user **ret_payer, struct answer *answer)
{
    struct who who = grants_who(state, connection);
    struct quota_excess excess;
    int r = quota_charge(&state->quota, who.uid, who.is_admin, QUOTA_ATTACHMENTS, 1, ret_payer,
                         &excess);
    return r == 0 || refuse_charge(answer, who.uid, r, &excess);
}

int grants_restore(struct quota *quota, struct segment *segment)
{
    struct quota_user *u = quota_restore(quota, segment->access->uid, QUOTA_SEGMENTS, 0);
    segment->payer = u;
    restore_kinds(u, segment, ARRAY_LEN(segment_kinds));
    return u ? 0 : -ENOMEM;
}

void grants_refund(struct segment *segment)
{
    refund_kinds(segment->payer, segment, ARRAY_LEN(segment_kinds));
}

/* --- Layouts ------------------------------------------------------------- */

bool grants_layout(struct state *state, struct connection *connection,
                   const struct segment *segment, size_t bytes, struct answer *answer)
{
    struct who who = grants_who(state, connection);
    struct quota_excess excess;
    struct quota_user *payer = segment->payer;
    if (!payer)
        return true;
    int r = quota_charge(&state->quota, payer->uid, owner_is_admin(payer->uid, &who),
                         QUOTA_LAYOUT_BYTES, bytes, &payer, &excess);
    return r == 0 || refuse_charge(answer, payer->uid, r, &excess);
}

void grants_declare_layout(const struct segment *segment, size_t bytes)
{
    if (segment->payer)
        quota_restore(segment->payer->quota, segment->payer->uid, QUOTA_LAYOUT_BYTES, bytes);
}

/* --- Access -------------------------------------------------------------- */

/* Applies want to *access. Returns whether who may do that. */
static bool change(struct access *access, const struct wire_grant *want, const struct who *who,
                   struct answer *answer)
{
    struct wire_fault fault;
    struct access from = *access;
    if (access_change(access, want, &fault)) {
        refuse_parameter(answer, &fault);
        return false;
    }
    if (policy_may_change(&from, access, who))
        return true;
    if (access->uid != from.uid)
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "only an administrator may name another owner");
    else
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "uid %u is not in group %u", who->uid,
               access->gid);
    return false;
}

bool grants_may_create(const struct state *state, const struct connection *connection,
                       struct answer *answer)
{
    const struct config_people *people = &state->config->create;
    struct who who = grants_who(state, connection);
    if (people->everybody || who.is_admin ||
        policy_is_among(&who, people->entries, people->n_entries))
        return true;
    refuse(answer, SHMVIEW_ERR_DENIED, NULL, "uid %u may not create segments here", who.uid);
    return false;
}

bool grants_create(struct state *state, struct connection *connection,
                   const struct wire_create *create, struct segment *segment, struct answer *answer)
{
    struct who who = grants_who(state, connection);
    struct access access = {.uid = who.uid, .gid = who.gid, .mode = state->config->default_mode};
    if (!change(&access, &create->grant, &who, answer))
        return false;
    int r = segment_set_access(segment, &access);
    if (r)
        refuse_system(answer, "a segment cannot be created", -r);
    return r == 0 && charge_segment(state, &who, segment, access.uid, answer);
}

bool grants_declare(struct state *state, struct segment *segment, const struct access *access,
                    struct answer *answer)
{
    int r = segment_set_access(segment, access);
    if (r == 0)
        r = grants_restore(&state->quota, segment);
    if (r)
        refuse_system(answer, "a segment cannot be created", -r);
    return r == 0;
}

void grants_set_access(struct state *state, struct connection *connection, struct segment *segment,
                       const struct wire_grant *want, struct answer *answer)
{
    struct who who = grants_who(state, connection);
    struct access access = *segment->access;
    uid_t before = access.uid;
    if (!policy_manages(&access, &who)) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL,
               "only its owner and administrators change who may use segment '%s'", segment->name);
        return;
    }
    if (!change(&access, want, &who, answer) ||
        (access.uid != before && !charge_segment(state, &who, segment, access.uid, answer)))
        return;
    int r = segment_set_access(segment, &access);
    if (r && access.uid != before) {
        grants_refund(segment);
        grants_restore(&state->quota, segment);
    }
    if (r) {
        refuse_system(answer, "who may use a segment cannot be kept", -r);
        return;
    }
    struct event *e = events_add(EVENT_ACCESS_CHANGED, segment);
    if (e->wanted_by)
        look_command(connection->peer.pid, e->command);
    answer_with(answer, json_pack("{s:o}", "segment", creation_describe(segment)));
}

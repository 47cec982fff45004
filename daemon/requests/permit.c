/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/permit.h"

#include <errno.h>

#include "daemon/clients/refusal.h"
#include "daemon/requests/describe.h"
#include "daemon/segments/charge.h"
#include "daemon/segments/events.h"

struct who permit_who(const struct state *state, const struct connection *connection)
{
    const struct peer *p = &connection->peer;
    struct who who = {.uid = p->uid, .gid = p->gid, .groups = p->groups, .n_groups = p->n_groups};
    who.is_admin = who.uid == 0 || (state->config->has_admin_group &&
                                    policy_is_member(&who, state->config->admin_group));
    return who;
}

/* --- Charging ------------------------------------------------------------ */

/* Refuses because a charge for uid failed with r. Returns false. */
static bool refuse_charge(struct answer *answer, uid_t uid, int r, const struct quota_excess *e)
{
    if (r == -EDQUOT)
        refuse_quota(answer, uid, e);
    else
        refuse_system(answer, "a user cannot be charged", -r);
    return false;
}

/* Whether the limits of one user do not apply to the owner. The groups of a user are known only
 * from a connection, so an owner other than the caller counts as an administrator only if it is
 * root. */
static bool owner_is_admin(uid_t owner, const struct who *who)
{
    return owner == 0 || (owner == who->uid && who->is_admin);
}

/* Charges owner for the segment, in place of its payer. Returns false after refusing. */
static bool charge(const struct request *request, struct segment *segment, uid_t owner)
{
    struct quota_excess excess;
    int r = charge_segment(&request->state->quota, segment, owner,
                           owner_is_admin(owner, &request->who), &excess);
    return r == 0 || refuse_charge(request->answer, owner, r, &excess);
}

bool permit_attach(const struct request *request, struct quota_user **ret_payer)
{
    const struct who *who = &request->who;
    struct quota_excess excess;
    int r = quota_charge(&request->state->quota, who->uid, who->is_admin, QUOTA_ATTACHMENTS, 1,
                         ret_payer, &excess);
    return r == 0 || refuse_charge(request->answer, who->uid, r, &excess);
}

/* --- Layouts ------------------------------------------------------------- */

bool permit_layout(const struct request *request, const struct segment *segment, size_t bytes)
{
    struct quota_excess excess;
    const struct quota_user *payer = segment->payer;
    int r = payer
                ? charge_layout(segment, owner_is_admin(payer->uid, &request->who), bytes, &excess)
                : 0;
    return r == 0 || refuse_charge(request->answer, payer->uid, r, &excess);
}

/* --- Access -------------------------------------------------------------- */

/* The permissions of each right of an entry, by WIRE_RIGHT_*. */
static const uint16_t perms_of[] = {0, 0, ACCESS_READ, ACCESS_READ | ACCESS_WRITE};

/* Adds one entry of a request to the access. Returns 0; or -1 with *fault. */
static int read_entry(const struct wire_acl_entry *e, struct access *access,
                      struct wire_fault *fault)
{
    if (e->is_user == e->is_group)
        return wire_fault_set(fault, "acl",
                              "has an entry that does not name one user or one group");
    struct access_entry entry = {
        .id = (uint32_t)(e->is_user ? e->user : e->group),
        .kind = e->is_user ? ACCESS_USER : ACCESS_GROUP,
        .perms = perms_of[e->right],
    };
    for (uint32_t i = 0; i < access->n_entries; i++)
        if (access->entries[i].id == entry.id && access->entries[i].kind == entry.kind)
            return wire_fault_set(fault, "acl", "has two entries for %s %u",
                                  entry.kind == ACCESS_USER ? "user" : "group", entry.id);
    access->entries[access->n_entries++] = entry;
    return 0;
}

/* Applies the changes of a request to *access. A list of entries replaces the old one as a whole.
 * Returns 0; or -1 with *fault, and then *access may be half changed. */
static int apply(struct access *access, const struct wire_grant *want, struct wire_fault *fault)
{
    if (want->mode != WIRE_ABSENT && want->mode & ~(int64_t)ACCESS_MODES)
        return wire_fault_set(fault, "mode", "is 0%o; only bits of 0%o are allowed",
                              (unsigned)want->mode, ACCESS_MODES);
    if (want->mode != WIRE_ABSENT)
        access->mode = (uint32_t)want->mode;
    if (want->owner != WIRE_ABSENT)
        access->uid = (uint32_t)want->owner;
    if (want->group != WIRE_ABSENT)
        access->gid = (uint32_t)want->group;
    if (!want->acl)
        return 0;
    access->n_entries = 0;
    for (size_t i = 0; i < want->n_acl; i++)
        if (read_entry(&want->acl[i], access, fault))
            return -1;
    return 0;
}

/* Applies want to *access, a copy. Returns false after refusing, if want is not valid or the client
 * may not do that. */
static bool change(const struct request *request, struct access *access,
                   const struct wire_grant *want)
{
    const struct who *who = &request->who;
    struct wire_fault fault;
    struct access from = *access;
    if (apply(access, want, &fault)) {
        refuse_parameter(request->answer, &fault);
        return false;
    }
    if (policy_may_change(&from, access, who))
        return true;
    if (access->uid != from.uid)
        refuse(request->answer, SHMVIEW_ERR_DENIED, NULL,
               "only an administrator may name another owner");
    else
        refuse(request->answer, SHMVIEW_ERR_DENIED, NULL, "uid %u is not in group %u", who->uid,
               access->gid);
    return false;
}

bool permit_may_create(const struct request *request)
{
    const struct config_people *people = &request->state->config->create;
    const struct who *who = &request->who;
    if (people->everybody || who->is_admin ||
        policy_is_among(who, people->entries, people->n_entries))
        return true;
    refuse(request->answer, SHMVIEW_ERR_DENIED, NULL, "uid %u may not create segments here",
           who->uid);
    return false;
}

bool permit_create(const struct request *request, const struct wire_create *create,
                   struct segment *segment)
{
    const struct who *who = &request->who;
    struct access access = {
        .uid = who->uid, .gid = who->gid, .mode = request->state->config->default_mode};
    if (!change(request, &access, &create->grant))
        return false;
    int r = segment_set_access(segment, &access);
    if (r)
        refuse_system(request->answer, "a segment cannot be created", -r);
    return r == 0 && charge(request, segment, access.uid);
}

bool permit_declare(const struct request *request, const struct access *access,
                    struct segment *segment)
{
    int r = segment_set_access(segment, access);
    if (r == 0)
        r = charge_restore(&request->state->quota, segment);
    if (r)
        refuse_system(request->answer, "a segment cannot be created", -r);
    return r == 0;
}

void permit_set_access(const struct request *request, struct segment *segment,
                       const struct wire_grant *want)
{
    struct answer *answer = request->answer;
    struct access access = *segment->access;
    uid_t before = access.uid;
    if (!policy_manages(&access, &request->who)) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL,
               "only the owner and administrators may change the access of segment '%s'",
               segment->name);
        return;
    }
    if (!change(request, &access, want) ||
        (access.uid != before && !charge(request, segment, access.uid)))
        return;
    int r = segment_set_access(segment, &access);
    if (r && access.uid != before) { /* the segment has its old owner again, who must pay */
        charge_refund(segment);
        charge_restore(&request->state->quota, segment);
    }
    if (r) {
        refuse_system(answer, "the access of a segment cannot be recorded", -r);
        return;
    }
    events_add_with_command(&segment->home->events, SHMVIEW_EVENT_ACCESS, segment,
                            connection_actor(request->connection));
    describe_segment(segment, answer);
}

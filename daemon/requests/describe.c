/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/describe.h"

#include "daemon/clients/refusal.h"

/* Returns the right of an entry. A permission to write without one to read counts as none, as in
 * policy_rights(). */
static int64_t right_of(unsigned perms)
{
    return !(perms & ACCESS_READ) ? WIRE_RIGHT_NONE
           : perms & ACCESS_WRITE ? WIRE_RIGHT_WRITE
                                  : WIRE_RIGHT_READ;
}

/* Fills in *ret from the access of a segment; the entries go to room. */
static void tell_access(const struct access *access, struct wire_acl_entry *room,
                        struct wire_grant *ret)
{
    *ret = (struct wire_grant){
        .mode = access->mode,
        .owner = access->uid,
        .group = access->gid,
        .acl = room,
        .n_acl = access->n_entries,
    };
    for (uint32_t i = 0; i < access->n_entries; i++) {
        const struct access_entry *e = &access->entries[i];
        room[i] = (struct wire_acl_entry){
            .user = e->id,
            .group = e->id,
            .is_user = e->kind == ACCESS_USER,
            .is_group = e->kind == ACCESS_GROUP,
            .right = right_of(e->perms),
        };
    }
}

struct shmview_description describe_head(const struct segment *s, struct wire_acl_entry *room,
                                         struct wire_grant *ret_grant)
{
    tell_access(s->access, room, ret_grant);
    return (struct shmview_description){
        .name = s->name,
        .id = (int64_t)s->id,
        .size = (int64_t)s->size,
        .owner = ret_grant->owner,
        .group = ret_grant->group,
        .mode = ret_grant->mode,
        .attachments = s->n_attachments,
        .lifetime = s->lifetime,
        .has_lock = s->lock,
    };
}

struct wire_text describe_layouts(const struct segment *s)
{
    struct wire_text text;
    text.bytes = layouts_text(&s->layouts, &text.n);
    return text;
}

void describe_segment(const struct segment *s, struct answer *answer)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    size_t n = 0;
    struct shmview_description head = describe_head(s, room, &grant);
    char *text = wire_segment_text(&head, grant.acl, grant.n_acl, &n);
    answer_with_text(answer, text, n);
}

void describe_in_list(const struct segment *s, struct json_text *text)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    struct shmview_description head = describe_head(s, room, &grant);
    wire_add_segment(text, &head, grant.acl, grant.n_acl);
}

void describe_all(const struct segment *s, struct answer *answer)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    size_t n = 0;
    struct wire_text layouts = describe_layouts(s);
    struct shmview_description head = describe_head(s, room, &grant);
    char *text = wire_described_text(&head, grant.acl, grant.n_acl, &layouts, &n);
    answer_with_text(answer, text, n);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/describe.h"

#include <stdio.h>
#include <string.h>

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
        .label = segment_label(s),
        DESCRIBE_MEMORY(s),
    };
}

/* Writes the names of all layouts to room. They need no escapes, because they were checked. Returns
 * the bytes of the text. */
static size_t describe_names(const struct layouts *layouts, char *room)
{
    char *at = room;
    for (size_t i = 0; i < layouts->n; i++)
        at += sprintf(at, "%s{\"name\":\"%s\"}", i ? "," : "", layouts->list[i].name);
    return (size_t)(at - room);
}

struct wire_text describe_layouts(const struct segment *s, char *room)
{
    size_t n, end;
    const char *text = layouts_text(&s->layouts, 0, LIMIT_ATTACHED_BYTES, &n, &end);
    if (end == s->layouts.n && n <= LIMIT_ATTACHED_BYTES)
        return (struct wire_text){text, n};
    return (struct wire_text){room, describe_names(&s->layouts, room)};
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

/* Returns the text of the layouts that the client wants, and fills in *ret for them. */
static struct wire_text wanted_layouts(const struct layouts *layouts,
                                       const struct wire_describe *want, struct wire_described *ret)
{
    struct wire_text text = {"", 0};
    size_t from = want->from > 0 ? (size_t)want->from : 0, end = layouts->n;
    *ret = (struct wire_described){.index = WIRE_ABSENT, .next = WIRE_ABSENT};
    if (want->layout) {
        const struct layout *l = layouts_find(layouts, want->layout);
        if (!l || strcmp(l->name, want->layout) != 0)
            return text;
        from = (size_t)(l - layouts->list);
        text.bytes = layouts_text_of(layouts, l, &text.n);
    } else {
        text.bytes = layouts_text(layouts, from, LIMIT_DESCRIBED_BYTES, &text.n, &end);
    }
    if (text.n)
        ret->index = (int64_t)from;
    if (end < layouts->n)
        ret->next = (int64_t)end;
    return text;
}

void describe_all(const struct segment *s, const struct wire_describe *want, struct answer *answer)
{
    struct wire_acl_entry room[LIMIT_ACL_ENTRIES];
    struct wire_grant grant;
    struct wire_described described;
    size_t n = 0;
    struct wire_text layouts = wanted_layouts(&s->layouts, want, &described);
    struct shmview_description head = describe_head(s, room, &grant);
    char *text = wire_described_text(&head, grant.acl, grant.n_acl, &described, &layouts, &n);
    answer_with_text(answer, text, n);
}

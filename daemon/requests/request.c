/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/request.h"

#include "daemon/clients/refusal.h"
#include "daemon/requests/departure.h"

bool request_may_see(const struct request *request, const struct segment *segment)
{
    return segment && segment->allocated && policy_may_see(segment->access, &request->who);
}

/* Whether the connection has attached the segment. Its client knows that the segment exists,
 * although it may have lost the right to see it since. */
static bool has_attached(const struct connection *c, const struct segment *segment)
{
    const struct attachment *a;
    LIST_FOREACH (a, &c->attachments, link)
        if (a->segment == segment)
            return true;
    return false;
}

struct segment *request_find(const struct request *r, const char *name, int64_t id)
{
    struct registry *registry = &r->state->registry;
    struct segment *s = id == WIRE_ABSENT ? registry_find(registry, name)
                                          : registry_find_id(registry, (uint64_t)id);
    s = departure_settle(r->state, s); /* may take the name from the segment, or free it */
    if (s && id == WIRE_ABSENT && !s->named)
        s = NULL;
    if (request_may_see(r, s) || (s && has_attached(r->connection, s)))
        return s;
    refuse(r->answer, SHMVIEW_ERR_NOT_FOUND, json_pack("{s:s}", "name", name), "no segment '%s'",
           name);
    return NULL;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/requests/definition.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "daemon/clients/refusal.h"
#include "daemon/config/layout_check.h"
#include "daemon/requests/permit.h"

struct definition {
    struct wire_define want; /* owns the views of its layout */
    struct formats formats;
    bool is_invalid; /* for the reason in fault */
    struct layout_fault fault;
    char *text; /* owned; NULL if is_invalid, if no segment can hold the views, or without memory */
    size_t text_bytes;
};

struct definition *definition_read(const json_t *parameters, struct wire_fault *fault)
{
    struct definition *d = calloc(1, sizeof *d);
    if (!d) {
        wire_fault_memory(fault, "");
        return NULL;
    }
    if (wire_read_define(parameters, &d->want, fault)) {
        free(d);
        return NULL;
    }
    struct wire_layout *layout = &d->want.layout;
    d->is_invalid = layout_resolve(layout, &d->formats, &d->fault) != 0;
    /* The text is written again from the checked values, so that the daemon keeps the canonical
     * form and not what the client sent. Misfits are reported later, with the size of the segment.
     */
    if (!d->is_invalid && layout_fit(layout, INT64_MAX, &d->fault) == 0)
        d->text = wire_layout_text(layout, &d->text_bytes);
    return d;
}

void definition_free(struct definition *definition)
{
    if (!definition)
        return;
    formats_deinit(&definition->formats);
    free(definition->want.layout.views);
    free(definition->text);
    free(definition);
}

/* Checks what depends on the client and the segment: that the client may write the segment and has
 * attached it for that, that name and index are free, and that each view fits into the segment.
 * Returns false after refusing the request. */
static bool check(const struct request *r, const struct segment *s, struct definition *d)
{
    struct answer *answer = r->answer;
    const char *name = d->want.layout.name;
    if (!policy_may_attach(s->access, &r->who, SHMVIEW_WRITE)) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL, "uid %u may not write to segment '%s'", r->who.uid,
               s->name);
        return false;
    }
    if (!attachment_find_writer(&r->connection->attachments, s)) {
        refuse(answer, SHMVIEW_ERR_DENIED, NULL,
               "a layout needs an attachment with access write on this connection");
        return false;
    }
    const struct layout *has = layouts_find(&s->layouts, name);
    if (has) {
        bool same = strcmp(has->name, name) == 0;
        refuse(answer, SHMVIEW_ERR_LAYOUT_EXISTS, json_pack("{s:s}", "layout", name),
               "segment '%s' has a layout '%s' already%s", s->name, has->name,
               same ? "" : ", whose name has the same hash");
        return false;
    }
    if (s->layouts.n == LIMIT_LAYOUTS) {
        refuse(answer, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", LIMIT_LAYOUTS),
               "segment '%s' has %d layouts, which is the limit", s->name, LIMIT_LAYOUTS);
        return false;
    }
    if (!d->is_invalid && layout_fit(&d->want.layout, s->size, &d->fault) == 0)
        return true;
    refuse(answer, d->fault.error, json_pack("{s:s}", d->fault.fact, d->fault.subject), "%s",
           d->fault.text);
    return false;
}

/* Charges and adds a layout, which must be checked, and replies with its index. */
static void add(const struct request *r, struct segment *s, const struct definition *d)
{
    if (!d->text) {
        refuse_system(r->answer, "a layout cannot be added", ENOMEM);
        return;
    }
    if (!permit_layout(r, s, d->text_bytes))
        return;
    int index = segment_add_layout(s, d->want.layout.name, d->text, d->text_bytes);
    if (index >= 0) {
        answer_with(r->answer, json_pack("{s:i}", "index", index));
        return;
    }
    quota_refund(s->payer, QUOTA_LAYOUT_BYTES, d->text_bytes);
    refuse_system(r->answer, "a layout cannot be added", -index);
}

void definition_add(struct request *request, const union wanted *want)
{
    struct definition *d = want->definition;
    struct segment *s = request_find(request, d->want.name, d->want.id);
    if (s && check(request, s, d))
        add(request, s, d);
    definition_free(d);
}

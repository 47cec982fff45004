/* SPDX-License-Identifier: Apache-2.0 */
/* shmview_describe(): one segment with its layouts and entries, as the daemon describes it. If
 * there are many views, the layouts come in several replies.
 *
 * The program gets a pointer to constant structs, and frees all of them by one call. Each view is
 * checked here as strictly as one that the program makes, so that the program can rely on shapes
 * and extents; a fault of the daemon is an error of protocol. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/describe.h>

#include "client/base/error.h"
#include "client/base/process.h"
#include "client/base/wait.h"
#include "client/link/call.h"
#include "common/base/util.h"
#include "common/views/view.h"

/* A description and everything that it borrows, freed together. The arrays hold the views of all
 * layouts, one layout after the other. Lists of pointers lead to the structs, so that later
 * versions can add members to the structs. */
struct box {
    struct shmview_description description; /* first: its address is what the program has */
    json_t *roots[LIMIT_LAYOUTS]; /* of the replies; own the strings. The first has the segment */
    size_t n_roots;
    struct wire_layout *wire; /* owns shapes and strides */
    size_t n_wire;
    struct formats formats;
    struct shmview_view_description *views;
    const struct shmview_view_description **view_list;
    struct shmview_layout_description *layouts;
    const struct shmview_layout_description **layout_list;
    struct shmview_entry_description *entries;
    const struct shmview_entry_description **entry_list;
};

static void box_free(struct box *box)
{
    wire_layouts_free(box->wire, box->n_wire);
    formats_deinit(&box->formats);
    for (size_t i = 0; i < box->n_roots; i++)
        json_decref(box->roots[i]);
    free(box->views);
    free(box->view_list);
    free(box->layouts);
    free(box->layout_list);
    free(box->entries);
    free(box->entry_list);
    free(box);
}

void shmview_description_free(const struct shmview_description *description)
{
    if (description)
        box_free((struct box *)(uintptr_t)description);
}

/* --- Views --------------------------------------------------------------- */

/* Sets begin and end to the bytes that the elements reach. There must be elements, and no
 * suboffsets. Nothing overflows, because the view was checked. */
static void fill_extent(struct shmview_view_description *v)
{
    int64_t begin = (int64_t)v->offset, end = begin + v->itemsize;
    for (uint32_t d = 0; d < v->ndim; d++) {
        int64_t reach = (v->shape[d] - 1) * v->strides[d];
        if (reach < 0)
            begin += reach;
        else
            end += reach;
    }
    v->begin = (uint64_t)begin;
    v->end = (uint64_t)end;
}

static void fill_view(const struct wire_view *w, uint64_t nbytes,
                      struct shmview_view_description *ret)
{
    const struct view_desc *desc = &w->desc;
    *ret = (struct shmview_view_description){
        .name = w->name,
        .format = desc->item->text,
        .offset = desc->offset,
        .nbytes = nbytes,
        .begin = desc->offset,
        .end = desc->offset,
        .itemsize = desc->item->itemsize,
        .ndim = desc->ndim,
        .flags = (desc->read_only ? SHMVIEW_VIEW_READ_ONLY : 0) |
                 (desc->indirect ? SHMVIEW_VIEW_INDIRECT : 0) |
                 (desc->item->aligned ? SHMVIEW_VIEW_UNALIGNED : 0),
        .dtype = desc->item->dtype,
        .shape = desc->shape,
        .strides = desc->strides,
        .suboffsets = desc->indirect ? desc->suboffsets : NULL,
    };
    if (nbytes && !desc->indirect)
        fill_extent(ret);
}

/* A view that cannot be is a violation of the protocol, unless memory was short. */
static int fail_declared(const struct wire_view *w, const struct view_fault *fault)
{
    if (fault->error == SHMVIEW_ERR_NO_MEMORY)
        return fail_view(w->name, fault);
    return fail(SHMVIEW_ERR_PROTOCOL, "the daemon's view '%s': %s", w->name, fault->text);
}

/* Resolves and checks one view, as strictly as a program's. Returns 0 or an error. */
static int read_view(struct box *box, struct wire_view *w, struct shmview_view_description *ret)
{
    struct view_fault fault;
    uint64_t nbytes;
    if (view_resolve(&w->desc, &box->formats, w->format, w->has_strides, &fault) ||
        view_check(&w->desc, (uint64_t)box->description.size, &nbytes, &fault))
        return fail_declared(w, &fault);
    view_settle(&w->desc, 0);
    fill_view(w, nbytes, ret);
    return 0;
}

/* Fills the layouts and their views. The arrays have one entry more than needed, because calloc(0)
 * may return NULL. Returns 0 or an error. */
static int read_layouts(struct box *box)
{
    size_t n_views = 0;
    for (size_t i = 0; i < box->n_wire; i++)
        n_views += box->wire[i].n_views;
    box->views = calloc(n_views + 1, sizeof *box->views);
    box->view_list = calloc(n_views + 1, sizeof *box->view_list);
    box->layouts = calloc(box->n_wire + 1, sizeof *box->layouts);
    box->layout_list = calloc(box->n_wire + 1, sizeof *box->layout_list);
    if (!box->views || !box->view_list || !box->layouts || !box->layout_list)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0, at = 0; i < box->n_wire; i++) {
        const struct wire_layout *w = &box->wire[i];
        box->layout_list[i] = &box->layouts[i];
        box->layouts[i] = (struct shmview_layout_description){
            .name = w->name, .views = box->view_list + at, .n_views = w->n_views};
        for (size_t k = 0; k < w->n_views; k++, at++) {
            int r = read_view(box, &w->views[k], &box->views[at]);
            if (r)
                return r;
            box->view_list[at] = &box->views[at];
        }
    }
    box->description.layouts = box->layout_list;
    box->description.n_layouts = box->n_wire;
    return 0;
}

/* --- The rest ------------------------------------------------------------ */

/* Fills the entries of the access list. Returns 0 or an error. */
static int read_entries(struct box *box, const struct wire_acl_entry *acl, size_t n)
{
    static const uint32_t rights[] = {
        [WIRE_RIGHT_NONE] = 0,
        [WIRE_RIGHT_READ] = SHMVIEW_READ,
        [WIRE_RIGHT_WRITE] = SHMVIEW_WRITE,
    };
    box->entries = calloc(n + 1, sizeof *box->entries);
    box->entry_list = calloc(n + 1, sizeof *box->entry_list);
    if (!box->entries || !box->entry_list)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    for (size_t i = 0; i < n; i++) {
        box->entries[i] = (struct shmview_entry_description){
            .kind = acl[i].is_user ? SHMVIEW_USER : SHMVIEW_GROUP,
            .right = rights[acl[i].right],
            .id = acl[i].is_user ? acl[i].user : acl[i].group,
        };
        box->entry_list[i] = &box->entries[i];
    }
    box->description.entries = box->entry_list;
    box->description.n_entries = n;
    return 0;
}

/* Reads the segment and its entries. Returns 0 or an error. */
static int read_segment(struct box *box, const json_t *parameters)
{
    struct wire_fault fault;
    CLEANUP_FREE struct wire_acl_entry *acl = NULL;
    size_t n_acl = 0;
    if (wire_read_segment(parameters, "segment", &box->description, &fault) ||
        wire_read_acl(parameters, "segment", &acl, &n_acl, &fault))
        return fail_reply(&fault);
    return read_entries(box, acl, n_acl);
}

/* Adds the layouts of one reply to those that came before. *ret_next is what the reply has. Returns
 * 0 or an error. */
static int read_page(struct box *box, const json_t *parameters, int64_t *ret_next)
{
    struct wire_fault fault;
    struct wire_described page;
    if (wire_read_described(parameters, &page, &fault))
        return fail_reply(&fault);
    const size_t n = box->n_wire + page.n_layouts;
    struct wire_layout *all = realloc(box->wire, (n + 1) * sizeof *all);
    if (!all) {
        wire_layouts_free(page.layouts, page.n_layouts);
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    }
    memcpy(all + box->n_wire, page.layouts, page.n_layouts * sizeof *all);
    free(page.layouts);
    box->wire = all;
    box->n_wire = n;
    *ret_next = page.next;
    if (page.next != WIRE_ABSENT && (uint64_t)page.next != n)
        return fail(SHMVIEW_ERR_PROTOCOL, "%zu layouts came before layout %" PRId64, n, page.next);
    return 0;
}

/* Requests the segment with the layouts from describe->from on, and sets that to the index of those
 * that the next request must ask for. Returns 0 or an error. */
static int ask(struct box *box, struct shmview_connection *connection,
               struct wire_describe *describe)
{
    struct reply reply;
    int r =
        connection_call(connection, "io.shmview.Describe", wire_describe_text(describe), &reply);
    if (r)
        return r;
    const json_t *parameters = reply.wire.parameters;
    if (box->n_roots == 0)
        r = read_segment(box, parameters);
    box->roots[box->n_roots++] = json_incref(reply.wire.root);
    if (r == 0)
        r = read_page(box, parameters, &describe->from);
    reply_deinit(&reply);
    return r;
}

/* Requests the segment and all its layouts. The requests after the first have the id, because the
 * name may belong to another segment by then. Returns 0 or an error. */
static int ask_for_all(struct box *box, struct shmview_connection *connection, const char *name)
{
    struct wire_describe describe = {.name = name, .id = WIRE_ABSENT, .from = WIRE_ABSENT};
    do {
        if (box->n_roots == LIMIT_LAYOUTS)
            return fail(SHMVIEW_ERR_PROTOCOL, "more than %d replies with layouts", LIMIT_LAYOUTS);
        int r = ask(box, connection, &describe);
        if (r)
            return r;
        describe.id = box->description.id;
    } while (describe.from != WIRE_ABSENT);
    return read_layouts(box);
}

int shmview_describe(struct shmview_connection *connection, const char *name,
                     const struct shmview_description **ret_description)
{
    NOT_CANCELLED;
    int r = check_segment_name(name);
    if (r)
        return r;
    struct box *box = calloc(1, sizeof *box);
    if (!box)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    r = ask_for_all(box, connection, name);
    if (r)
        box_free(box);
    else
        *ret_description = &box->description;
    return r;
}

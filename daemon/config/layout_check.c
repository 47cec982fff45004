/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/layout_check.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "common/base/layout_hash.h"
#include "common/base/limits.h"
#include "common/base/name.h"

/* Fills *fault. Returns -1, so that a caller can return the result. */
__attribute__((format(printf, 6, 7))) static int fault_set(struct layout_fault *fault, int error,
                                                           const char *fact, const char *subject,
                                                           size_t view, const char *format, ...)
{
    va_list ap;
    *fault = (struct layout_fault){.error = error, .fact = fact, .view = view};
    snprintf(fault->subject, sizeof fault->subject, "%s", subject);
    va_start(ap, format);
    vsnprintf(fault->text, sizeof fault->text, format, ap);
    va_end(ap);
    return -1;
}

static int fault_name(struct layout_fault *fault, size_t view, const char *name)
{
    return fault_set(
        fault, SHMVIEW_ERR_INVALID, "parameter", "layout", view,
        "'%.70s' is not a valid name: 1 to %d of A-Z a-z 0-9 . _ -, not starting with a dot", name,
        LIMIT_VIEW_NAME_BYTES);
}

/* Compares hashes first: 256 views have 32,640 pairs of names, and a connection may send many such
 * layouts. n_views is LIMIT_VIEWS at most, because the reader of the message has checked it. */
static int check_names(const struct wire_layout *layout, struct layout_fault *fault)
{
    uint64_t hashes[LIMIT_VIEWS];
    if (!name_is_valid(layout->name, LIMIT_VIEW_NAME_BYTES))
        return fault_name(fault, LAYOUT_NO_VIEW, layout->name);
    for (size_t i = 0; i < layout->n_views; i++) {
        const struct wire_view *v = &layout->views[i];
        if (!name_is_valid(v->name, LIMIT_VIEW_NAME_BYTES))
            return fault_name(fault, i, v->name);
        hashes[i] = layout_hash(v->name);
        for (size_t k = 0; k < i; k++)
            if (hashes[k] == hashes[i] && strcmp(layout->views[k].name, v->name) == 0)
                return fault_set(fault, SHMVIEW_ERR_INVALID, "parameter", "layout.views", i,
                                 "layout.views has two views '%s'", v->name);
    }
    return 0;
}

static int fault_view(struct layout_fault *ret, size_t index, const char *name,
                      const struct view_fault *fault)
{
    /* INVALID means that a parameter has no valid form; other errors are about the view's fit */
    bool is_invalid = fault->error == SHMVIEW_ERR_INVALID;
    return fault_set(ret, (int)fault->error, is_invalid ? "parameter" : "view",
                     is_invalid ? "layout.views" : name, index, "view '%s': %s", name, fault->text);
}

int layout_resolve(struct wire_layout *layout, struct formats *formats, struct layout_fault *fault)
{
    struct view_fault of_view;
    if (check_names(layout, fault))
        return -1;
    for (size_t i = 0; i < layout->n_views; i++) {
        struct wire_view *v = &layout->views[i];
        if (view_resolve(&v->desc, formats, v->format, v->has_strides, &of_view))
            return fault_view(fault, i, v->name, &of_view);
    }
    return 0;
}

int layout_fit(struct wire_layout *layout, uint64_t segment_bytes, struct layout_fault *fault)
{
    struct view_fault of_view;
    for (size_t i = 0; i < layout->n_views; i++) {
        struct wire_view *v = &layout->views[i];
        if (view_check(&v->desc, segment_bytes, NULL, &of_view))
            return fault_view(fault, i, v->name, &of_view);
        view_settle(&v->desc, 0);
        v->format = v->desc.item->text;
    }
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/layouts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/layout_hash.h"

static void layout_deinit(struct wire_layout *layout)
{
    for (size_t i = 0; i < layout->n_views; i++) {
        free((char *)layout->views[i].name);
        free((char *)layout->views[i].format);
    }
    free(layout->views);
    free((char *)layout->name);
}

void layouts_deinit(struct layouts *layouts)
{
    for (size_t i = 0; i < layouts->n; i++)
        layout_deinit(&layouts->list[i]);
    free(layouts->list);
    free(layouts->text);
    *layouts = (struct layouts){0};
}

static int copy_view(struct wire_view *to, const struct wire_view *from)
{
    *to = *from;
    to->name = strdup(from->name);
    to->format = strdup(from->format);
    return to->name && to->format ? 0 : -ENOMEM;
}

/* Adds layout to the text. */
static int add_text(struct layouts *layouts, const struct wire_layout *layout)
{
    size_t n, at = layouts->text_bytes, comma = at > 0;
    char *text = wire_layout_text(layout, &n);
    char *all = text ? realloc(layouts->text, at + comma + n) : NULL;
    if (all) {
        layouts->text = all;
        all[at] = ',';
        memcpy(all + at + comma, text, n);
        layouts->last_at = at;
        layouts->text_bytes = at + comma + n - 1; /* without the NUL */
    }
    free(text);
    return all ? 0 : -ENOMEM;
}

struct wire_text layouts_text(const struct layouts *layouts)
{
    return (struct wire_text){layouts->text ? layouts->text : "", layouts->text_bytes};
}

struct wire_text layouts_text_of_last(const struct layouts *layouts)
{
    size_t from = layouts->last_at + (layouts->last_at > 0);
    return (struct wire_text){layouts->text + from, layouts->text_bytes - from};
}

int layouts_add(struct layouts *layouts, const struct wire_layout *layout)
{
    struct wire_layout *list = realloc(layouts->list, (layouts->n + 1) * sizeof *list);
    if (!list)
        return -ENOMEM;
    layouts->list = list;
    struct wire_layout copy = {
        .name = strdup(layout->name),
        .views = calloc(layout->n_views, sizeof *copy.views),
        .n_views = layout->n_views,
    };
    int r = copy.name && copy.views ? 0 : -ENOMEM;
    if (!copy.views)
        copy.n_views = 0;
    for (size_t i = 0; r == 0 && i < copy.n_views; i++)
        r = copy_view(&copy.views[i], &layout->views[i]);
    if (r == 0)
        r = add_text(layouts, layout);
    if (r) {
        layout_deinit(&copy);
        return r;
    }
    list[layouts->n] = copy;
    return (int)layouts->n++;
}

void layouts_drop_last(struct layouts *layouts)
{
    layout_deinit(&layouts->list[--layouts->n]);
    layouts->text_bytes = layouts->last_at;
}

const struct wire_layout *layouts_find(const struct layouts *layouts, const char *name)
{
    uint64_t hash = layout_hash(name);
    for (size_t i = 0; i < layouts->n; i++)
        if (layout_hash(layouts->list[i].name) == hash)
            return &layouts->list[i];
    return NULL;
}

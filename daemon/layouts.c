/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/layouts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

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
    *layouts = (struct layouts){0};
}

static int copy_view(struct wire_view *to, const struct wire_view *from)
{
    *to = *from;
    to->name = strdup(from->name);
    to->format = strdup(from->format);
    return to->name && to->format ? 0 : -ENOMEM;
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
}

const struct wire_layout *layouts_find(const struct layouts *layouts, const char *name)
{
    for (size_t i = 0; i < layouts->n; i++)
        if (strcmp(layouts->list[i].name, name) == 0)
            return &layouts->list[i];
    return NULL;
}

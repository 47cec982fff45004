/* SPDX-License-Identifier: Apache-2.0 */
#include "client/segment/known.h"

#include <stdlib.h>
#include <string.h>

#include "client/base/error.h"
#include "client/base/process.h"
#include "common/base/layout_hash.h"
#include "common/base/limits.h"

/* The views of one layout and a hash table of them, in one block with their strings. The table has
 * at least twice as many places as there are views, so that a search ends after few comparisons. */
struct known_views {
    struct wire_view *list; /* owned; its strings are after the table */
    size_t n;
    uint32_t mask;    /* places of the table less 1 */
    uint16_t table[]; /* index + 1 of the view; 0: empty */
};

_Static_assert(LIMIT_VIEWS < UINT16_MAX, "an index fits into the table");
_Static_assert(LIMIT_LAYOUTS < UINT8_MAX, "so does that of a layout");

static void views_free(struct known_views *views)
{
    if (views)
        free(views->list);
    free(views);
}

/* Copies a string to *room, which advances, and returns the copy. */
static const char *copy_to(char **room, const char *s)
{
    size_t n = strlen(s) + 1;
    char *copy = memcpy(*room, s, n);
    *room += n;
    return copy;
}

/* Returns a new table of n views. Copies their strings and takes *list. Returns NULL if memory is
 * short. */
static struct known_views *views_new(struct wire_view **list, size_t n)
{
    size_t places = 2, bytes = 0;
    while (places < 2 * n)
        places *= 2;
    for (size_t i = 0; i < n; i++)
        bytes += strlen((*list)[i].name) + strlen((*list)[i].format) + 2;
    struct known_views *views = calloc(1, sizeof *views + places * sizeof views->table[0] + bytes);
    if (!views)
        return NULL;
    char *room = (char *)&views->table[places];
    views->list = *list;
    views->n = n;
    views->mask = (uint32_t)places - 1;
    for (size_t i = 0; i < n; i++) {
        struct wire_view *v = &views->list[i];
        uint32_t at = (uint32_t)layout_hash(v->name) & views->mask;
        while (views->table[at])
            at = (at + 1) & views->mask;
        views->table[at] = (uint16_t)(i + 1);
        v->name = copy_to(&room, v->name);
        v->format = copy_to(&room, v->format);
    }
    *list = NULL;
    return views;
}

void known_deinit(struct known *known)
{
    for (size_t i = 0; i < known->n; i++) {
        views_free(known->list[i].views);
        free(known->list[i].name);
    }
    free(known->list);
    free(known->text);
    *known = (struct known){0};
}

/* Enters a layout into the table. */
static void enter(struct known *known, size_t index)
{
    const size_t mask = 2 * known->room - 1;
    size_t at = layout_hash(known->list[index].name) & mask;
    while (known->table[at])
        at = (at + 1) & mask;
    known->table[at] = (uint8_t)(index + 1);
}

/* Makes room for the index. Returns false if memory is short. */
static bool extend(struct known *known, size_t index)
{
    size_t room = known->room ? known->room : 1;
    if (index < known->room)
        return true;
    while (room <= index)
        room *= 2;
    struct known_layout *list = calloc(room, sizeof *list + 2 * sizeof *known->table);
    if (!list)
        return false;
    NOT_FORKED;
    if (known->n)
        memcpy(list, known->list, known->n * sizeof *list);
    free(known->list);
    known->list = list;
    known->table = (uint8_t *)&list[room];
    known->room = room;
    for (size_t i = 0; i < known->n; i++)
        if (list[i].name)
            enter(known, i);
    return true;
}

int known_add(struct known *known, size_t index, struct wire_layout *layout)
{
    if (index >= LIMIT_LAYOUTS)
        return fail(SHMVIEW_ERR_PROTOCOL, "the daemon has a layout %zu, the limit is %d", index,
                    LIMIT_LAYOUTS);
    if (!extend(known, index))
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    struct known_layout *l = &known->list[index];
    if (l->views)
        return 0;
    char *name = l->name ? l->name : strdup(layout->name);
    struct known_views *views = layout->views ? views_new(&layout->views, layout->n_views) : NULL;
    if (!name || (layout->views && !views)) {
        views_free(views);
        if (!l->name)
            free(name);
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    }
    NOT_FORKED;
    const bool is_new = !l->name;
    *l = (struct known_layout){name, views};
    if (index >= known->n)
        known->n = index + 1;
    if (is_new)
        enter(known, index);
    return 0;
}

int known_read(struct known *known)
{
    struct wire_fault fault;
    struct wire_layout *list;
    json_t *root;
    size_t n;
    int r = 0;
    if (!known->text)
        return 0;
    if (wire_layouts_parse(known->text, strlen(known->text), &root, &list, &n, &fault))
        return fail_reply(&fault);
    for (size_t i = 0; r == 0 && i < n; i++)
        r = known_add(known, i, &list[i]);
    wire_layouts_free(list, n);
    json_decref(root);
    if (r == 0) {
        NOT_FORKED;
        free(known->text);
        known->text = NULL;
    }
    return r;
}

int known_find(const struct known *known, const char *name)
{
    const size_t mask = 2 * known->room - 1;
    for (size_t at = layout_hash(name); known->room; at++) {
        const int place = known->table[at & mask];
        if (!place)
            break;
        if (strcmp(known->list[place - 1].name, name) == 0)
            return place - 1;
    }
    return -1;
}

const char *known_name(const struct known *known, size_t index)
{
    return index < known->n ? known->list[index].name : NULL;
}

bool known_has_views(const struct known *known, int index)
{
    return known->list[index].views;
}

const char *known_view_name(const struct known *known, int index, size_t i)
{
    const struct known_views *views = known->list[index].views;
    return i < views->n ? views->list[i].name : NULL;
}

struct wire_view *known_view(const struct known *known, int index, const char *name)
{
    const struct known_views *views = known->list[index].views;
    for (uint32_t at = (uint32_t)layout_hash(name);; at++) {
        uint16_t place = views->table[at & views->mask];
        if (!place)
            return NULL;
        if (strcmp(views->list[place - 1].name, name) == 0)
            return &views->list[place - 1];
    }
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/config/config_stream.h"

#include <stdlib.h>
#include <string.h>

#include "common/base/util.h"
#include "common/stream/plan.h"
#include "daemon/config/layout_check.h"

/* --- Members ------------------------------------------------------------- */

static void read_mode(struct config_reader *reader, const json_t *value, void *at)
{
    const char *name = json_string_value(value);
    if (name && strcmp(name, "latest") == 0)
        *(uint32_t *)at = SHMVIEW_LATEST;
    else if (name && strcmp(name, "lossless") == 0)
        *(uint32_t *)at = SHMVIEW_LOSSLESS;
    else
        config_fault(reader, "must be \"latest\" or \"lossless\"");
}

static void read_writers(struct config_reader *reader, const json_t *value, void *at)
{
    const char *name = json_string_value(value);
    if (name && strcmp(name, "one") == 0)
        *(uint32_t *)at = 0;
    else if (name && strcmp(name, "many") == 0)
        *(uint32_t *)at = SHMVIEW_MANY_WRITERS;
    else
        config_fault(reader, "must be \"one\" or \"many\"");
}

static void read_count(struct config_reader *reader, const json_t *value, unsigned least,
                       unsigned most, uint32_t *ret)
{
    json_int_t n = json_integer_value(value);
    if (!json_is_integer(value) || n < least || n > most)
        config_fault(reader, "must be an integer from %u to %u", least, most);
    else
        *ret = (uint32_t)n;
}

static void read_slots(struct config_reader *reader, const json_t *value, void *at)
{
    read_count(reader, value, 2, SHMVIEW_STREAM_SLOTS_MAX, at);
}

static void read_history(struct config_reader *reader, const json_t *value, void *at)
{
    read_count(reader, value, 0, SHMVIEW_STREAM_SLOTS_MAX - 1, at);
}

static void read_stages(struct config_reader *reader, const json_t *value, void *at)
{
    read_count(reader, value, 1, SHMVIEW_STREAM_STAGES_MAX, at);
}

/* Reads the views as those of a layout "frame". The texts stay in the configuration's own JSON. */
static void read_views(struct config_reader *reader, const json_t *value, void *at)
{
    struct config_segment *s = CONTAINER_OF(at, struct config_segment, stream);
    struct wire_fault fault;
    size_t n = json_array_size(value);
    if (!json_is_array(value) || n < 1 || n > SHMVIEW_STREAM_VIEWS_MAX) {
        config_fault(reader, "must be an array of 1 to %u views", SHMVIEW_STREAM_VIEWS_MAX);
        return;
    }
    json_t *layout = json_pack("{s:s, s:O}", "name", STREAM_LAYOUT, "views", value);
    s->layouts = calloc(1, sizeof *s->layouts);
    if (!layout || !s->layouts) {
        config_fault_memory(reader);
        json_decref(layout);
        return;
    }
    s->n_layouts = 1;
    if (wire_read_layout(layout, &s->layouts[0], &fault)) {
        /* the fault names the member from "views" on, which the path ends with */
        const char *rest = strchr(fault.parameter, '[');
        size_t mark = strlen(reader->path);
        size_t room = sizeof reader->path - mark;
        if (rest && strlen(rest) < room)
            memcpy(reader->path + mark, rest, strlen(rest) + 1);
        config_fault(reader, "%s", fault.reason);
        config_path_cut(reader, mark);
    }
    s->layouts[0].name = STREAM_LAYOUT;
    json_decref(layout);
}

void config_read_stream(struct config_reader *reader, const json_t *value, void *segment)
{
#define AT(member) offsetof(struct shmview_stream_header, member)
    static const struct config_key keys[] = {
        {"mode", read_mode, AT(mode), true},
        {"slots", read_slots, AT(n_slots), false},
        {"history", read_history, AT(history), false},
        {"stages", read_stages, AT(n_stages), false},
        {"writers", read_writers, AT(flags), false},
        {"views", read_views, 0, true},
        {.name = NULL},
    };
#undef AT
    struct config_segment *s = segment;
    s->is_stream = true;
    config_read_object(reader, value, keys, &s->stream);
}

/* --- The plan ------------------------------------------------------------ */

/* Reports what is wrong with view i, or with the stream if i is LAYOUT_NO_VIEW. */
static void fault_view(struct config_reader *reader, size_t i, const char *name, const char *text)
{
    size_t mark = config_path_key(reader, "stream");
    if (i != LAYOUT_NO_VIEW) {
        config_path_key(reader, "views");
        config_path_index(reader, i);
        config_fault(reader, "does not fit: %s%s%s%s", name ? "view '" : "", name ? name : "",
                     name ? "': " : "", text);
    } else {
        config_fault(reader, "cannot be made: %s", text);
    }
    config_path_cut(reader, mark);
}

/* Whether the views have the offsets that they state. If none of them states one above 0, they are
 * placed one after the other. */
static bool is_placed(const struct wire_layout *layout)
{
    for (size_t i = 0; i < layout->n_views; i++)
        if (layout->views[i].desc.offset)
            return true;
    return false;
}

/* Reports the first view that cannot be placed alone, or else the fault of all together. */
static void find_fault(struct config_reader *reader, const struct wire_layout *layout, bool placed,
                       const struct view_fault *of_all)
{
    struct view_fault fault;
    uint64_t bytes;
    for (size_t i = 0; i < layout->n_views; i++) {
        struct view_desc desc = layout->views[i].desc;
        if (stream_place(&desc, 1, placed, &bytes, &fault)) {
            fault_view(reader, i, layout->views[i].name, fault.text);
            return;
        }
    }
    fault_view(reader, LAYOUT_NO_VIEW, NULL, of_all->text);
}

/* Moves the offsets of the views to where they are in slot 0. Returns whether that succeeded. */
static bool place(struct config_reader *reader, struct config_segment *s)
{
    struct wire_layout *layout = &s->layouts[0];
    bool placed = is_placed(layout);
    struct view_fault fault;
    CLEANUP_FREE struct view_desc *descs = calloc(layout->n_views, sizeof *descs);
    if (!descs) {
        config_reader_passing(reader);
        fault_view(reader, LAYOUT_NO_VIEW, NULL, "out of memory");
        return false;
    }
    for (size_t i = 0; i < layout->n_views; i++)
        descs[i] = layout->views[i].desc;
    if (stream_place(descs, layout->n_views, placed, &s->stream.frame_bytes, &fault)) {
        find_fault(reader, layout, placed, &fault);
        return false;
    }
    s->stream.n_views = (uint32_t)layout->n_views;
    if (stream_plan(&s->stream, &s->size, &fault)) {
        fault_view(reader, LAYOUT_NO_VIEW, NULL, fault.text);
        return false;
    }
    if (s->size > LIMIT_SEGMENT_BYTES) {
        fault_view(reader, LAYOUT_NO_VIEW, NULL, "its slots have more than 2^56 bytes");
        return false;
    }
    for (size_t i = 0; i < layout->n_views; i++)
        layout->views[i].desc.offset = s->stream.frames_offset + descs[i].offset;
    return true;
}

void config_plan_stream(struct config_reader *reader, struct config_segment *segment)
{
    struct wire_layout *layout = &segment->layouts[0];
    struct layout_fault fault;
    if (layout_resolve(layout, &reader->config->formats, &fault)) {
        fault_view(reader, fault.view, NULL, fault.text);
        return;
    }
    /* after place() each view is within the segment, and layout_fit() sets the canonical formats */
    if (place(reader, segment) && layout_fit(layout, segment->size, &fault))
        fault_view(reader, fault.view, NULL, fault.text);
}

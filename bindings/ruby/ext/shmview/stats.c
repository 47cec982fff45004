/* SPDX-License-Identifier: Apache-2.0 */
/* Figures of the daemon and its segments, for Shmview.stats, list and exist?. lib/shmview/stats.rb
 * has the classes of the results, in the order of whose members this file builds them. */
#include "facts.h"

#include <shmview/stats.h>

/* One request. The caller frees stats. */
struct asking {
    struct shmview_connection *connection;
    const char *name; /* NULL: all segments */
    const struct shmview_stats *stats;
    int r;
};

static int get_stats(void *arg)
{
    struct asking *a = arg;
    const struct shmview_stats_options options = {
        .struct_bytes = sizeof options,
        .limit = SHMVIEW_STATS_ALL,
        .names = &a->name,
        .n_names = a->name ? 1 : 0,
    };
    a->stats = NULL; /* a forked child calls again: then the figures are those of its parent */
    return a->r = shmview_stats_get(a->connection, &options, &a->stats);
}

static VALUE build_party(VALUE class, const struct shmview_party_stats *p)
{
    return rb_struct_new(class, LL2NUM(p->attachment), LL2NUM(p->pid), LL2NUM(p->uid),
                         text_of(p->command), access_of(p->access), mode_of(p->holds),
                         mode_of(p->waits), LL2NUM(p->slot), time_of(p->since_us));
}

static VALUE build_segment(VALUE class, VALUE party_class, const struct shmview_segment_stats *s)
{
    VALUE parties = rb_ary_new();
    for (size_t i = 0; i < s->n_parties; i++)
        rb_ary_push(parties, build_party(party_class, s->parties[i]));
    return rb_struct_new(
        class, rb_utf8_str_new_cstr(s->name), LL2NUM(s->id), LL2NUM(s->size), truth(s->is_named),
        truth(s->has_lock), lifetime_of(s->lifetime), UINT2NUM(s->mode), LL2NUM(s->owner),
        LL2NUM(s->group), LL2NUM(s->attachments), LL2NUM(s->layouts), time_of(s->created_us),
        LL2NUM(s->resident), LL2NUM(s->generation), text_or_nil(s->layout), LL2NUM(s->changes),
        LL2NUM(s->owner_deaths), parties, rb_utf8_str_new_cstr(s->label), backing_of(s->backing),
        frozen_of(s->frozen), s->paid_by < 0 ? Qnil : LL2NUM(s->paid_by));
}

static VALUE build_stats(VALUE arg)
{
    const struct shmview_stats *s = ((struct asking *)arg)->stats;
    VALUE class = rb_path2class("Shmview::SegmentStats");
    VALUE party_class = rb_path2class("Shmview::AttachmentStats");
    VALUE segments = rb_ary_new();
    for (size_t i = 0; i < s->n_segments; i++)
        rb_ary_push(segments, build_segment(class, party_class, s->segments[i]));
    return rb_struct_new(
        rb_path2class("Shmview::Stats"), rb_utf8_str_new_cstr(s->version), LL2NUM(s->pid),
        time_of(s->started_us), DBL2NUM((double)s->uptime_us / 1e6), LL2NUM(s->starts),
        LL2NUM(s->connections), LL2NUM(s->attachments), LL2NUM(s->n_all_segments),
        LL2NUM(s->allocated_bytes), LL2NUM(s->memory_free), LL2NUM(s->memory_limit), segments);
}

static VALUE free_stats(VALUE arg)
{
    shmview_stats_free(((struct asking *)arg)->stats);
    return Qnil;
}

/* Core.stats(name, connection): returns a Stats with the segments of that name; nil: all. */
static VALUE core_stats(VALUE module, VALUE name, VALUE connection)
{
    (void)module;
    if (!NIL_P(name))
        name = name_of(name);
    connection = connection_value(connection);
    struct asking a = {
        .connection = connection_use(connection)->handle,
        .name = NIL_P(name) ? NULL : StringValueCStr(name),
    };
    struct told told;
    int state = call_unlocked(connection, get_stats, &a, &told);
    RB_GC_GUARD(name);
    if (state) {
        shmview_stats_free(a.stats);
        rb_jump_tag(state);
    }
    if (a.r)
        raise_told(&told, NIL_P(name) ? Qnil : fact("name", name));
    return rb_ensure(build_stats, (VALUE)&a, free_stats, (VALUE)&a);
}

void Init_stats(void)
{
    rb_define_module_function(rb_path2class("Shmview::Core"), "stats", core_stats, 2);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "crash/world.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <shmview/freeze.h>
#include <shmview/layout.h>
#include <shmview/stats.h>

#include "support/await.h"
#include "support/client.h"
#include "support/place.h"
#include "support/raw.h"

/* --- Doing --------------------------------------------------------------- */

static char byte_of(const struct thing *thing, uint64_t at)
{
    return (char)((uint64_t)thing->name[0] + thing->size + at);
}

static void fill(struct thing *thing)
{
    char *bytes = shmview_data(thing->handle);
    for (uint64_t i = 0; i < thing->size; i += i < 4096 ? 1 : 4096)
        bytes[i] = byte_of(thing, i);
}

static void check_bytes(const struct thing *thing, struct shmview_segment *segment)
{
    const char *bytes = shmview_data(segment);
    for (uint64_t i = 0; i < thing->size; i += i < 4096 ? 1 : 4096)
        if (bytes[i] != byte_of(thing, i))
            ck_abort_msg("byte %ju of '%s' is lost", (uintmax_t)i, thing->name);
}

uint32_t world_backing(void)
{
    return getenv("SHMVIEW_CRASH_SEALED") ? SHMVIEW_BACKING_SEALED : SHMVIEW_BACKING_FILE;
}

struct thing *world_create(struct world *world, const char *name, uint64_t size, uint32_t lifetime)
{
    struct shmview_create_options o = {
        .struct_bytes = sizeof o, .lifetime = lifetime, .backing = world_backing()};
    struct thing *t = &world->things[world->n_things++];
    ck_assert_uint_le(world->n_things, WORLD_SEGMENTS);
    *t = (struct thing){.name = name, .size = size, .lifetime = lifetime, .named = true};
    int r = shmview_create(world->conn, name, size, &o, &t->handle);
    if (r == -SHMVIEW_ERR_DISCONNECTED) {
        DONE(shmview_ping(world->conn));
        r = shmview_create(world->conn, name, size, &o, &t->handle);
    }
    /* the request whose reply was lost created it, and it exists without attachments */
    if (r == -SHMVIEW_ERR_EXISTS && lifetime == SHMVIEW_MANUAL)
        r = AGAIN(shmview_attach(world->conn, name, SHMVIEW_WRITE, 0, &t->handle));
    OK(r);
    t->exists = true;
    t->slots = 1;
    fill(t);
    world_check(world, false);
    return t;
}

void world_define(struct world *world, struct thing *thing, const char *layout)
{
    const int64_t ten = 10;
    struct shmview_view_spec spec = {.name = "A", .format = "f", .ndim = 1, .shape = &ten};
    int r = shmview_define(thing->handle, layout, &spec, 1);
    if (r == -SHMVIEW_ERR_DISCONNECTED)
        r = AGAIN(shmview_define(thing->handle, layout, &spec, 1));
    if (r != -SHMVIEW_ERR_LAYOUT_EXISTS)
        OK(r);
    thing->layouts[thing->n_layouts++] = layout;
    world_check(world, false);
}

void world_set_mode(struct world *world, struct thing *thing, uint32_t mode)
{
    const struct shmview_access_entry user = {SHMVIEW_USER, SHMVIEW_READ, "65531"};
    const struct shmview_access_change change = {.struct_bytes = sizeof change,
                                                 .set = SHMVIEW_SET_MODE | SHMVIEW_SET_ENTRIES,
                                                 .mode = mode,
                                                 .n_entries = 1,
                                                 .entries = &user};
    DONE(shmview_set_access(world->conn, thing->name, &change));
    thing->mode = mode;
    world_check(world, false);
}

void world_freeze(struct world *world, struct thing *thing, unsigned flags)
{
    int r = shmview_freeze(thing->handle, flags);
    if (r == -SHMVIEW_ERR_DISCONNECTED) {
        ck_assert_int_eq(shmview_is_frozen(thing->handle), 0);
        r = AGAIN(shmview_freeze(thing->handle, flags));
    }
    OK(r);
    thing->frozen = flags & SHMVIEW_FREEZE_FUTURE ? SHMVIEW_FROZEN_FUTURE : SHMVIEW_FROZEN_ALL;
    world_check(world, false);
}

void world_remove(struct world *world, struct thing *thing)
{
    int r = shmview_remove(world->conn, thing->name);
    if (r == -SHMVIEW_ERR_DISCONNECTED) {
        r = AGAIN(shmview_remove(world->conn, thing->name));
        if (r == -SHMVIEW_ERR_NOT_FOUND)
            r = 0;
    }
    OK(r);
    thing->named = false;
    thing->exists = thing->slots || thing->peeks;
    world_check(world, false);
}

void world_detach(struct world *world, struct thing *thing)
{
    if (shmview_access(thing->handle) == SHMVIEW_PEEK)
        thing->peeks--;
    else
        thing->slots--;
    OK(shmview_detach(thing->handle));
    thing->handle = NULL;
    if (thing->slots + thing->peeks == 0 && (!thing->named || thing->lifetime == SHMVIEW_ATTACHED))
        thing->exists = false;
    DONE(shmview_ping(world->conn)); /* a daemon that was gone gets this detach now */
    world_check(world, false);
}

/* --- Comparing ----------------------------------------------------------- */

static const json_t *find_listed(const json_t *list, const char *name)
{
    size_t i;
    const json_t *segment;
    json_array_foreach (json_object_get(list, "segments"), i, segment) {
        if (strcmp(json_string_value(json_object_get(segment, "name")), name) == 0)
            return segment;
    }
    return NULL;
}

/* Counts the slots of living clients in a liveness object. Stores the segment's id. */
static unsigned living(int fd, uint64_t *ret_id)
{
    struct shmview_liveness live;
    unsigned n = 0;
    ck_assert_int_eq(pread(fd, &live, sizeof live, 0), sizeof live);
    *ret_id = live.header.segment_id;
    for (uint32_t i = 0; i < live.high; i++)
        n += live.generation[i] && !(live.generation[i] & SHMVIEW_GENERATION_DEAD);
    return n;
}

/* Checks that no slot was lost or assigned twice, and that each segment that must exist has three
 * objects, and nothing else has any. Only for files, because sealed objects have no names. */
static void check_objects(const struct world *world, const json_t *list)
{
    char path[400], directory[120];
    unsigned n_objects = 0, n_things = 0, unnamed = 0, unnamed_found = 0;
    for (unsigned i = 0; i < world->n_things; i++) {
        n_things += world->things[i].exists;
        if (world->things[i].exists && !world->things[i].named)
            unnamed += world->things[i].slots;
    }
    if (world_backing() == SHMVIEW_BACKING_SEALED)
        return;
    snprintf(directory, sizeof directory, "/dev/shm/shmview.%s", world->keeper.daemon.instance);
    DIR *dir = opendir(directory);
    for (struct dirent *e; (e = readdir(dir));) {
        uint64_t id;
        size_t k, n = strlen(e->d_name);
        const json_t *segment;
        bool named = false;
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 ||
            strcmp(e->d_name, "+daemon") == 0 || strcmp(e->d_name, "+presence") == 0)
            continue;
        n_objects++;
        if (strcmp(e->d_name + n - 4, "ness") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", directory, e->d_name);
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        unsigned slots = living(fd, &id);
        close(fd);
        json_array_foreach (json_object_get(list, "segments"), k, segment) {
            if ((uint64_t)raw_int(segment, "id") != id)
                continue;
            named = true;
            for (unsigned i = 0; i < world->n_things; i++) {
                const struct thing *t = &world->things[i];
                if (t->exists && t->named &&
                    strcmp(t->name, json_string_value(json_object_get(segment, "name"))) == 0)
                    ck_assert_msg(slots == t->slots, "'%s' has %u slots in use, not %u", t->name,
                                  slots, t->slots);
            }
        }
        unnamed_found += named ? 0 : slots;
    }
    closedir(dir);
    ck_assert_uint_eq(n_objects, 3 * n_things);
    ck_assert_uint_eq(unnamed_found, unnamed);
}

/* Returns the seals that the kernel has for the data of a segment. */
static int kernel_seals(const struct world *world, const struct thing *t)
{
    struct raw raw;
    char call[64];
    snprintf(call, sizeof call, "{'name':'%s','access':'peek'}", t->name);
    raw_connect(&raw, world->keeper.daemon.socket);
    json_decref(raw_call(&raw, "Attach", call));
    int seals = fcntl(raw.fds[0], F_GET_SEALS);
    raw_close_fds(&raw);
    raw_close(&raw);
    return seals;
}

/* Checks that kernel, daemon and library agree on how far a segment is frozen, and that nobody else
 * can attach it for writing. */
static void check_frozen(const struct world *world, const struct thing *t, const json_t *listed)
{
    const char *const told = json_string_value(json_object_get(listed, "frozen"));
    const bool all = t->frozen == SHMVIEW_FROZEN_ALL;
    struct shmview_segment *none;
    ck_assert_str_eq(told ? told : "not", all ? "all" : t->frozen ? "future" : "not");
    if (t->handle)
        ck_assert_int_eq(shmview_is_frozen(t->handle), all);
    if (!t->frozen)
        return;
    int seals = kernel_seals(world, t);
    ck_assert_int_eq(seals & (F_SEAL_WRITE | F_SEAL_FUTURE_WRITE),
                     all ? F_SEAL_WRITE : F_SEAL_FUTURE_WRITE);
    REFUSED(shmview_attach(world->conn, t->name, SHMVIEW_WRITE, 0, &none), READ_ONLY, "is frozen");
}

/* Checks that no attachment has access write any longer. */
static void check_readers(const struct world *world, const struct thing *t)
{
    const struct shmview_stats *stats;
    const struct shmview_stats_options o = {
        .struct_bytes = sizeof o, .limit = SHMVIEW_STATS_ALL, .names = &t->name, .n_names = 1};
    OK(shmview_stats_get(world->conn, &o, &stats));
    ck_assert_uint_eq(stats->n_segments, 1);
    for (size_t i = 0; i < stats->segments[0]->n_parties; i++)
        ck_assert_uint_ne(stats->segments[0]->parties[i]->access, SHMVIEW_WRITE);
    shmview_stats_free(stats);
}

static void check_thing(const struct world *world, const struct thing *t, const json_t *list)
{
    const json_t *listed = find_listed(list, t->name);
    if (t->handle)
        check_bytes(t, t->handle);
    if (!t->exists || !t->named)
        return;
    ck_assert_msg(listed, "'%s' is lost", t->name);
    ck_assert_uint_eq((uint64_t)raw_int(listed, "size"), t->size);
    ck_assert_msg(raw_int(listed, "attachments") == t->slots + t->peeks,
                  "'%s' has %d attachments, not %u", t->name, (int)raw_int(listed, "attachments"),
                  t->slots + t->peeks);
    ck_assert_uint_eq((uint64_t)raw_int(listed, "mode"), t->mode ? t->mode : 0600);
    ck_assert_uint_eq(json_array_size(json_object_get(listed, "acl")), t->mode ? 1 : 0);
    check_frozen(world, t, listed);
    if (t->frozen == SHMVIEW_FROZEN_ALL)
        check_readers(world, t);
    struct shmview_segment *s =
        client_attach(world->conn, t->name, t->frozen ? SHMVIEW_READ : SHMVIEW_WRITE);
    struct shmview_view v;
    ck_assert_int_eq(shmview_is_frozen(s), t->frozen == SHMVIEW_FROZEN_ALL);
    check_bytes(t, s);
    for (unsigned i = 0; i < t->n_layouts; i++)
        OK(shmview_view_open(s, t->layouts[i], "A", &v));
    if (t->is_locked) {
        REFUSED(shmview_trylock(s), TIMED_OUT, "");
    } else {
        OK(shmview_trylock(s));
        OK(shmview_unlock(s));
    }
    OK(shmview_detach(s));
}

void world_check(struct world *world, bool always)
{
    struct raw raw;
    unsigned deaths = keeper_deaths(&world->keeper), n = 0;
    if (world->keeper.is_armed && !keeper_at_point(&world->keeper))
        return;
    if (!always && deaths == world->deaths_seen)
        return;
    DONE(shmview_ping(world->conn)); /* reconnects, which claims this client's attachments */
    world->deaths_seen = deaths;
    if (!world->keeper.daemon.instance[0])
        keeper_find_instance(&world->keeper);
    raw_connect(&raw, world->keeper.daemon.socket);
    json_t *list = raw_call(&raw, "List", "{}");
    raw_close(&raw);
    check_objects(world, list);
    for (unsigned i = 0; i < world->n_things; i++) {
        check_thing(world, &world->things[i], list);
        n += world->things[i].exists && world->things[i].named;
    }
    ck_assert_uint_eq(json_array_size(json_object_get(list, "segments")), n);
    json_decref(list);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* Every client that may see a segment can have it described, attached or not. */
#include <unistd.h>

#include <shmview/describe.h>

#include "support/client.h"
#include "support/person.h"
#include "support/suite.h"

#define ALICE 65533
#define BOB   65532

static struct daemon d;
static struct shmview_connection *conn;
static const struct shmview_description *told;

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    shmview_description_free(told);
    told = NULL;
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

static const struct shmview_description *ask(const char *name)
{
    shmview_description_free(told);
    told = NULL;
    OK(shmview_describe(conn, name, &told));
    return told;
}

START_TEST(facts)
{
    begin();
    struct shmview_segment *seg = client_create_with(conn, "seg", 5000, SHMVIEW_MANUAL, 0);
    const struct shmview_description *s = ask("seg");
    ck_assert_str_eq(s->name, "seg");
    ck_assert(s->size == 5000 && s->has_lock && s->lifetime == SHMVIEW_MANUAL);
    ck_assert(s->owner == getuid() && s->group == getgid() && s->mode == 0600);
    ck_assert(s->attachments == 1 && s->n_entries == 0 && s->n_layouts == 0);
    int64_t id = s->id;
    OK(shmview_detach(seg));
    s = ask("seg");
    ck_assert(s->id == id && s->attachments == 0);
    OK(shmview_remove(conn, "seg"));
    shmview_description_free(told);
    told = NULL;
    REFUSED(shmview_describe(conn, "seg", &told), NOT_FOUND, "no segment 'seg'");

    seg = client_create_with(conn, "bare", 1, SHMVIEW_CREATOR, SHMVIEW_NO_LOCK);
    s = ask("bare");
    ck_assert(!s->has_lock && s->lifetime == SHMVIEW_CREATOR);
    OK(shmview_detach(seg));
    end();
}
END_TEST

/* A description of a view agrees with the view that shmview_view_open() returns. */
START_TEST(layouts)
{
    static const int64_t shape[] = {3, 4}, strides[] = {-16, 4}, rows[] = {2, 4};
    static const int64_t row_strides[] = {8, 1}, suboffsets[] = {0, -1};
    const struct shmview_view_spec floats[] = {
        {.name = "A", .format = "float32", .ndim = 2, .shape = shape, .offset = 64},
        {.name = "B",
         .format = "f",
         .ndim = 2,
         .shape = shape,
         .strides = strides,
         .offset = 128,
         .flags = SHMVIEW_VIEW_READ_ONLY},
    };
    const struct shmview_view_spec odd[] = {
        {.name = "one", .format = "T{i:a:d:b:}", .offset = 8},
        {.name = "rows",
         .format = "b",
         .ndim = 2,
         .shape = rows,
         .strides = row_strides,
         .suboffsets = suboffsets},
    };
    begin();
    struct shmview_segment *seg = client_create(conn, "seg", 4096);
    OK(shmview_define(seg, "float", floats, 2));
    OK(shmview_define(seg, "odd", odd, 2));
    const struct shmview_description *s = ask("seg");
    ck_assert_uint_eq(s->n_layouts, 2);
    ck_assert_str_eq(s->layouts[0]->name, "float");
    ck_assert_str_eq(s->layouts[1]->name, "odd");
    for (size_t i = 0; i < 2; i++) {
        ck_assert_uint_eq(s->layouts[i]->n_views, 2);
        for (size_t k = 0; k < 2; k++) {
            const struct shmview_view_description *v = s->layouts[i]->views[k];
            struct shmview_view opened;
            OK(shmview_view_open(seg, s->layouts[i]->name, v->name, &opened));
            ck_assert_str_eq(v->format, opened.format);
            ck_assert_uint_eq(v->offset,
                              (uint64_t)(opened.data - (unsigned char *)shmview_data(seg)));
            ck_assert(v->ndim == opened.ndim && v->itemsize == opened.itemsize);
            ck_assert(v->nbytes == opened.nbytes && v->flags == opened.flags);
            for (uint32_t dim = 0; dim < v->ndim; dim++) {
                ck_assert_int_eq(v->shape[dim], opened.shape[dim]);
                ck_assert_int_eq(v->strides[dim], opened.strides[dim]);
                ck_assert_int_eq(v->suboffsets ? v->suboffsets[dim] : -1, opened.suboffsets[dim]);
            }
        }
    }
    ck_assert_uint_eq(s->layouts[0]->views[0]->begin, 64);
    ck_assert_uint_eq(s->layouts[0]->views[0]->end, 112);
    ck_assert_uint_eq(s->layouts[0]->views[1]->begin, 96);
    ck_assert_uint_eq(s->layouts[0]->views[1]->end, 144);
    OK(shmview_detach(seg));
    end();
}
END_TEST

static void see_nothing(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    const struct shmview_description *s;
    REFUSED(shmview_describe(c, "seg", &s), NOT_FOUND, "no segment 'seg'");
    OK(shmview_disconnect(c));
}

static void see_entries(struct child *me, void *arg)
{
    (void)me;
    (void)arg;
    struct shmview_connection *c = client_connect(&d);
    const struct shmview_description *s;
    OK(shmview_describe(c, "seg", &s));
    ck_assert_uint_eq(s->n_entries, 2);
    for (size_t i = 0; i < 2; i++) {
        const struct shmview_entry_description *e = s->entries[i];
        bool is_user = e->kind == SHMVIEW_USER;
        ck_assert_int_eq(e->id, is_user ? ALICE : 7);
        ck_assert_uint_eq(e->right, is_user ? SHMVIEW_READ : SHMVIEW_WRITE);
    }
    shmview_description_free(s);
    OK(shmview_disconnect(c));
}

START_TEST(who_may_see_it)
{
    const struct shmview_access_entry entries[] = {
        {.kind = SHMVIEW_USER, .right = SHMVIEW_READ, .name = "65533"},
        {.kind = SHMVIEW_GROUP, .right = SHMVIEW_WRITE, .name = "7"},
    };
    const struct shmview_access_change change = {.struct_bytes = sizeof change,
                                                 .set = SHMVIEW_SET_ENTRIES,
                                                 .entries = entries,
                                                 .n_entries = 2};
    struct child child;
    struct person alice = {.uid = ALICE, .gid = ALICE}, bob = {.uid = BOB, .gid = BOB};
    if (!person_possible())
        return;
    begin();
    person_open_door(&d);
    struct shmview_segment *seg = client_create(conn, "seg", 1);
    person_start(&child, &alice, see_nothing, NULL);
    child_wait(&child);
    OK(shmview_set_access(conn, "seg", &change));
    person_start(&child, &alice, see_entries, NULL);
    child_wait(&child);
    person_start(&child, &bob, see_nothing, NULL);
    child_wait(&child);
    OK(shmview_detach(seg));
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(facts),
        SUITE_TEST(layouts),
        SUITE_TEST(who_may_see_it),
        SUITE_END,
    };
    return suite_main("describe", tests);
}

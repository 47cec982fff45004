/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts whose text is too long for the reply to an attachment. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/describe.h>

#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

#define MAX_LAYOUTS 64
#define MAX_VIEWS   256

static struct daemon d;
static struct shmview_connection *conn;
static struct shmview_segment *seg;
static char names[MAX_VIEWS][16];
static struct shmview_view_spec views[MAX_VIEWS];

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
    seg = client_create(conn, "seg", 4096);
    for (size_t i = 0; i < MAX_VIEWS; i++) {
        snprintf(names[i], sizeof names[i], "view-%zu", i);
        views[i] = (struct shmview_view_spec){.name = names[i], .format = "f", .offset = 4 * i};
    }
}

static void end(void)
{
    OK(shmview_detach(seg));
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* Opens the view with that number and checks its place. */
static void open_view(struct shmview_segment *s, const char *layout, size_t i)
{
    struct shmview_view v;
    OK(shmview_view_open(s, layout, names[i], &v));
    ck_assert_ptr_eq(v.data, (unsigned char *)shmview_data(s) + 4 * i);
}

START_TEST(a_layout_is_requested_once)
{
    struct shmview_view v;
    struct shmview_phase phase;
    begin();
    OK(shmview_define(seg, "large", views, MAX_VIEWS));
    OK(shmview_define(seg, "small", views, 1));
    struct shmview_segment *other = client_attach(conn, "seg", SHMVIEW_READ);
    open_view(other, "large", 255);
    daemon_kill(&d);
    open_view(other, "large", 0);
    REFUSED(shmview_view_open(other, "large", "none", &v), NO_LAYOUT, "no view 'none'");
    /* the names of all layouts came with the attachment */
    OK(shmview_lock(seg));
    OK(shmview_switch(seg, "small"));
    OK(shmview_unlock(seg));
    OK(shmview_phase_get(other, &phase));
    ck_assert_str_eq(phase.name, "small");
    REFUSED(shmview_view_open(other, "small", names[0], &v), DISCONNECTED, "");
    daemon_restart(&d);
    open_view(other, "small", 0);
    OK(shmview_detach(other));
    end();
}
END_TEST

/* An attachment that exists keeps its rights, and the segment outlives its name. */
START_TEST(after_the_name_is_gone)
{
    struct shmview_view v;
    begin();
    OK(shmview_define(seg, "large", views, MAX_VIEWS));
    struct shmview_segment *other = client_attach(conn, "seg", SHMVIEW_READ);
    OK(shmview_remove(conn, "seg"));
    struct shmview_segment *namesake = client_create(conn, "seg", 4096);
    open_view(other, "large", 7);
    REFUSED(shmview_view_open(namesake, "large", names[7], &v), NO_LAYOUT, "");
    OK(shmview_detach(namesake));
    OK(shmview_detach(other));
    end();
}
END_TEST

START_TEST(a_description_has_all_of_them)
{
    const struct shmview_description *s;
    char name[24];
    begin();
    for (int i = 0; i < MAX_LAYOUTS; i++) {
        snprintf(name, sizeof name, "layout-%d", i);
        OK(shmview_define(seg, name, views, i % 2 ? MAX_VIEWS : 0));
    }
    OK(shmview_describe(conn, "seg", &s));
    ck_assert_uint_eq(s->n_layouts, MAX_LAYOUTS);
    for (int i = 0; i < MAX_LAYOUTS; i++) {
        snprintf(name, sizeof name, "layout-%d", i);
        ck_assert_str_eq(s->layouts[i]->name, name);
        ck_assert_uint_eq(s->layouts[i]->n_views, i % 2 ? MAX_VIEWS : 0);
        for (size_t k = 0; k < s->layouts[i]->n_views; k++)
            ck_assert_str_eq(s->layouts[i]->views[k]->name, names[k]);
    }
    shmview_description_free(s);
    end();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_layout_is_requested_once),
        SUITE_TEST(after_the_name_is_gone),
        SUITE_TEST(a_description_has_all_of_them),
        SUITE_END,
    };
    return suite_main("large_layouts", tests);
}

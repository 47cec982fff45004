/* SPDX-License-Identifier: Apache-2.0 */
/* Checks layouts.c of the library: opening views by name, and what a handle knows of layouts. */
#include "client/views/handle.h"

#include "unit/faults.h"
#include "unit/stub.h"

static unsigned char bytes[4096] __attribute__((aligned(64)));
static struct shmview_connection *conn;
static struct stub stub;

/* Returns a segment that needs no daemon. */
static struct shmview_segment local(int access)
{
    ck_assert_int_eq(process_init(), 0);
    return (struct shmview_segment){.lock.process = process_epoch(),
                                    .connection = conn,
                                    .data = bytes,
                                    .size = 4000,
                                    .id = 77,
                                    .access = access,
                                    .name = "seg"};
}

static void assert_fails(int r, int error, const char *text)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    ck_assert_str_eq(shmview_error_text(), text);
}

static void expect_known(struct shmview_segment *s, uint32_t index, const char *name)
{
    char known[65] = "";
    layout_known_name(s, index, known, sizeof known);
    ck_assert_str_eq(known, name);
}

#define TOLD                                                                                       \
    "'segment':{'name':'seg','id':77,'size':4000,'lock':true,'lifetime':'manual','owner':0,'"      \
    "attachments':1}"
#define DESCRIBED(layouts, index) "{'parameters':{" TOLD ",'layouts':[" layouts "]" index "}}"
#define FLOATS                                                                                     \
    "{'name':'float','views':[{'name':'A','format':'f','shape':[10]},{'name':'B','format':'f',"    \
    "'shape':[2,3],'strides':[-12,4],'offset':100,'readonly':true}]}"
#define INTEGERS "{'name':'int','views':[{'name':'A','format':'i','shape':[4],'offset':40}]}"

START_TEST(open_asks_once)
{
    const struct stub_step steps[] = {
        STUB_GREETING,
        {.method = "io.shmview.Describe", .reply = DESCRIBED(FLOATS, ",'index':0")},
        {.method = "io.shmview.Describe", .reply = DESCRIBED(INTEGERS, ",'index':2")},
        {.method = "io.shmview.Describe", .reply = DESCRIBED("", "")}};
    struct shmview_view v;
    stub_start(&stub, steps, 4);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    struct shmview_segment s = local(SHMVIEW_WRITE);
    ck_assert_int_eq(shmview_view_open(&s, "float", "A", &v), 0);
    ck_assert_uint_eq(v.layout, 0);
    ck_assert_uint_eq(v.dtype, SHMVIEW_FLOAT32);
    ck_assert_uint_eq(v.nbytes, 40);
    ck_assert_ptr_eq(v.data, bytes);
    ck_assert_int_eq(shmview_view_open(&s, "float", "B", &v), 0); /* known by now */
    ck_assert_ptr_eq(v.data, bytes + 100);
    ck_assert_int_eq(v.strides[0], -12);
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
    ck_assert_int_eq(shmview_view_open(&s, "int", "A", &v), 0); /* declared since */
    ck_assert_uint_eq(v.layout, 2);
    ck_assert_uint_eq(v.dtype, SHMVIEW_INT32);
    /* a layout does not change, so nobody asks for more of it */
    assert_fails(shmview_view_open(&s, "int", "B", &v), SHMVIEW_ERR_NO_LAYOUT,
                 "segment 'seg' has no view 'B' in a layout 'int'");
    assert_fails(shmview_view_open(&s, "double", "A", &v), SHMVIEW_ERR_NO_LAYOUT,
                 "segment 'seg' has no view 'A' in a layout 'double'");
    unit_assert_holds(stub.requests[1], "\"id\":77,\"layout\":\"float\"}");
    unit_assert_holds(stub.requests[2], "\"id\":77,\"layout\":\"int\"}");
    known_deinit(&s.known);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}
END_TEST

/* The text that came with the attachment is read when a layout is looked for first. The views of a
 * layout of which it has the name only are requested. */
START_TEST(layouts_that_came_with_the_attachment)
{
    const struct stub_step steps[] = {
        STUB_GREETING,
        {.method = "io.shmview.Describe", .reply = DESCRIBED(FLOATS, ",'index':1")},
        {.method = "io.shmview.Describe", .reply = DESCRIBED(INTEGERS, ",'index':2")}};
    struct shmview_view v;
    stub_start(&stub, steps, 3);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
    struct shmview_segment s = local(SHMVIEW_WRITE);
    s.known.text = strdup(unit_json("[" INTEGERS ",{'name':'float'}]"));
    ck_assert_int_eq(shmview_view_open(&s, "int", "A", &v), 0);
    ck_assert_ptr_null(s.known.text);
    expect_known(&s, 0, "int");
    expect_known(&s, 1, "float");
    ck_assert_int_eq(shmview_view_open(&s, "float", "B", &v), 0);
    ck_assert_uint_eq(v.layout, 1);
    ck_assert_int_eq(shmview_view_open(&s, "float", "A", &v), 0);
    char name[65];
    ck_assert_int_eq(layout_name(&s, 2, name, sizeof name), 0); /* in the phase of a later one */
    ck_assert_str_eq(name, "int");
    unit_assert_holds(stub.requests[2], "\"id\":77,\"from\":2}");
    known_deinit(&s.known);
    s.known.text = strdup("[{}]");
    ck_assert_int_eq(shmview_view_open(&s, "int", "A", &v), -SHMVIEW_ERR_PROTOCOL);
    expect_known(&s, 0, "");
    known_deinit(&s.known);
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}
END_TEST

/* Each view of a large layout is found by its name, and no other name is. */
START_TEST(each_of_many_views)
{
    struct shmview_segment s = local(SHMVIEW_WRITE);
    struct shmview_view v;
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fputs("[{\"name\":\"l\",\"views\":[", f);
    for (int i = 0; i < LIMIT_VIEWS; i++)
        fprintf(f, "%s{\"name\":\"v%d\",\"format\":\"b\",\"shape\":[],\"offset\":%d}", i ? "," : "",
                i, i);
    fputs("]}]", f);
    fclose(f);
    s.known.text = text;
    for (int i = 0; i < LIMIT_VIEWS; i++) {
        char name[16];
        snprintf(name, sizeof name, "v%d", i);
        ck_assert_int_eq(shmview_view_open(&s, "l", name, &v), 0);
        ck_assert_ptr_eq(v.data, bytes + i);
    }
    ck_assert_int_eq(shmview_view_open(&s, "l", "v256", &v), -SHMVIEW_ERR_NO_LAYOUT);
    ck_assert_int_eq(shmview_view_open(&s, "l", "", &v), -SHMVIEW_ERR_NO_LAYOUT);
    known_deinit(&s.known);
}
END_TEST

/* After each lack of memory the view can be opened. */
START_TEST(every_allocation_of_an_open_fails)
{
    struct shmview_view v;
    int r = 1;
    conn = NULL;
    for (unsigned n = 1; r; n++) {
        struct shmview_segment s = local(SHMVIEW_WRITE);
        s.known.text = strdup(unit_json("[" INTEGERS "," FLOATS "]"));
        faults_begin(FAULTS_MEMORY, n);
        r = shmview_view_open(&s, "float", "B", &v);
        if (faults_end()) {
            ck_assert_int_eq(r, -SHMVIEW_ERR_NO_MEMORY);
            ck_assert_int_eq(shmview_view_open(&s, "float", "B", &v), 0);
        }
        ck_assert_ptr_eq(v.data, bytes + 100);
        known_deinit(&s.known);
        formats_deinit(&s.formats);
    }
}
END_TEST

/* The library checks the views that a daemon describes like any others. */
START_TEST(open_what_does_not_hold)
{
    static const struct {
        const char *view;
        int error;
    } cases[] = {
        {"'format':'f','shape':[1001]", SHMVIEW_ERR_BOUNDS},
        {"'format':'f','shape':[2],'offset':4000", SHMVIEW_ERR_BOUNDS},
        {"'format':'f','shape':[2],'strides':[-4]", SHMVIEW_ERR_BOUNDS},
        {"'format':'f','shape':[2],'offset':2", SHMVIEW_ERR_MISALIGNED},
        {"'format':'y','shape':[2]", SHMVIEW_ERR_FORMAT},
        {"'format':'f','shape':[-2]", SHMVIEW_ERR_INVALID},
        {"'format':'f','shape':[4611686018427387904,4]", SHMVIEW_ERR_OVERFLOW},
        {"'format':'f','shape':[1,2],'strides':[4000]", SHMVIEW_ERR_PROTOCOL},
        {"'format':'f','shape':[1],'strides':[4],'suboffsets':[-1,-1]", SHMVIEW_ERR_PROTOCOL},
        {"'format':'f','shape':[1],'suboffsets':[-1]", SHMVIEW_ERR_INVALID},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char reply[600];
        snprintf(reply, sizeof reply,
                 "{'parameters':{" TOLD ",'layouts':[{'name':'l','views':[{'name':'A',%s}]}]}}",
                 cases[i].view);
        const struct stub_step steps[] = {STUB_GREETING, {.method = "Describe", .reply = reply}};
        struct shmview_view v;
        stub_start(&stub, steps, 2);
        ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
        struct shmview_segment s = local(SHMVIEW_WRITE);
        int r = shmview_view_open(&s, "l", "A", &v);
        ck_assert_msg(r == -cases[i].error, "%s: %d: %s", cases[i].view, r, shmview_error_text());
        known_deinit(&s.known);
        ck_assert_int_eq(shmview_disconnect(conn), 0);
        stub_end(&stub);
    }
}
END_TEST

START_TEST(open_when_the_daemon_talks_nonsense)
{
    static const struct {
        const char *reply;
        int error;
    } cases[] = {
        {"{'error':'io.shmview.SegmentNotFound','parameters':{}}", SHMVIEW_ERR_NOT_FOUND},
        {"{'parameters':{}}", SHMVIEW_ERR_PROTOCOL},
        {"{'parameters':{" TOLD "}}", SHMVIEW_ERR_PROTOCOL},
        {"{'parameters':{" TOLD ",'layouts':[{}]}}", SHMVIEW_ERR_PROTOCOL},
        {"{'parameters':{" TOLD ",'layouts':[" FLOATS ",{'name':'l','views':[1]}]}}",
         SHMVIEW_ERR_PROTOCOL},
        {"{'parameters':{'segment':{'name':'seg','id':78,'size':4000,'lock':true,"
         "'lifetime':'manual','owner':0,'attachments':1},'layouts':[" FLOATS "]}}",
         SHMVIEW_ERR_PROTOCOL},
        {NULL, SHMVIEW_ERR_DISCONNECTED},
    };
    for (size_t i = 0; i < 7; i++) {
        /* the library asks again after a hang-up, three times in all */
        const struct stub_step step = {.method = "Describe", .reply = cases[i].reply};
        const struct stub_step steps[] = {STUB_GREETING, step,          STUB_GREETING,
                                          step,          STUB_GREETING, step};
        struct shmview_view v = {.nbytes = 99};
        stub_start(&stub, steps, cases[i].reply ? 2 : 6);
        ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
        struct shmview_segment s = local(SHMVIEW_WRITE);
        ck_assert_int_eq(shmview_view_open(&s, "float", "A", &v), -cases[i].error);
        ck_assert_uint_eq(v.nbytes, 99);
        ck_assert_uint_eq(s.known.n, 0);
        ck_assert_int_eq(shmview_disconnect(conn), 0);
        stub_end(&stub);
    }
}
END_TEST

UNIT_MAIN("client_layouts", UNIT_TEST(open_asks_once),
          UNIT_TEST(layouts_that_came_with_the_attachment), UNIT_TEST(each_of_many_views),
          UNIT_TEST(every_allocation_of_an_open_fails), UNIT_TEST(open_what_does_not_hold),
          UNIT_TEST(open_when_the_daemon_talks_nonsense))

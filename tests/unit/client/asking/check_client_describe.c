/* SPDX-License-Identifier: Apache-2.0 */
/* Checks describe.c of the library with the replies of a stub: full ones, those of an older daemon,
 * and nonsense. */
#include <shmview/describe.h>

#include "client/views/handle.h"
#include "common/base/util.h"

#include "unit/faults.h"
#include "unit/stub.h"

static struct shmview_connection *conn;
static struct stub stub;

#define SEGMENT                                                                                    \
    "'segment':{'name':'seg','id':7,'size':4096,'lock':true,'lifetime':'manual','owner':1000,"     \
    "'group':100,'mode':432,'attachments':3,'newer':[1],"                                          \
    "'acl':[{'user':5,'right':'read'},{'group':6,'right':'write'},{'user':8,'right':'none'}]}"
#define LAYOUTS                                                                                    \
    "'layouts':[{'name':'float','views':[{'name':'A','format':'f','shape':[2,3],'offset':8},"      \
    "{'name':'R','format':'<h','shape':[4],'strides':[-4],'offset':16,'readonly':true}]},"         \
    "{'name':'none','views':[]},"                                                                  \
    "{'name':'odd','views':[{'name':'scalar','format':'d','shape':[]},"                            \
    "{'name':'empty','format':'d','shape':[0,5],'offset':64},"                                     \
    "{'name':'rows','format':'b','shape':[2,4],'strides':[8,1],'suboffsets':[0,-1]}]}]"
#define REPLY "{'parameters':{" SEGMENT "," LAYOUTS "}}"
#define BOTH  "{'parameters':{'held':[]," SEGMENT "," LAYOUTS "}}"

static void connect_stub(const struct stub_step *steps, size_t n)
{
    stub_start(&stub, steps, n);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
}

static void disconnect_stub(void)
{
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
}

static void assert_view(const struct shmview_view_description *v, const char *name, uint64_t begin,
                        uint64_t end, uint64_t nbytes, uint32_t flags)
{
    ck_assert_str_eq(v->name, name);
    ck_assert_uint_eq(v->begin, begin);
    ck_assert_uint_eq(v->end, end);
    ck_assert_uint_eq(v->nbytes, nbytes);
    ck_assert_uint_eq(v->flags, flags);
}

START_TEST(everything_is_told)
{
    const struct stub_step steps[] = {STUB_GREETING, {.method = "Describe", .reply = REPLY}};
    const struct shmview_description *d;
    connect_stub(steps, 2);
    ck_assert_int_eq(shmview_describe(conn, "seg", &d), 0);
    unit_assert_holds(stub.requests[1], "\"name\":\"seg\"");
    ck_assert_str_eq(d->name, "seg");
    ck_assert(d->id == 7 && d->size == 4096 && d->has_lock && d->lifetime == SHMVIEW_MANUAL);
    ck_assert(d->owner == 1000 && d->group == 100 && d->mode == 0660 && d->attachments == 3);

    ck_assert_uint_eq(d->n_entries, 3);
    ck_assert(d->entries[0]->kind == SHMVIEW_USER && d->entries[0]->id == 5 &&
              d->entries[0]->right == SHMVIEW_READ);
    ck_assert(d->entries[1]->kind == SHMVIEW_GROUP && d->entries[1]->id == 6 &&
              d->entries[1]->right == SHMVIEW_WRITE);
    ck_assert(d->entries[2]->id == 8 && d->entries[2]->right == 0);

    ck_assert_uint_eq(d->n_layouts, 3);
    const struct shmview_layout_description *l = d->layouts[0];
    ck_assert_str_eq(l->name, "float");
    ck_assert_uint_eq(l->n_views, 2);
    const struct shmview_view_description *a = l->views[0];
    assert_view(a, "A", 8, 32, 24, 0);
    ck_assert_str_eq(a->format, "f");
    ck_assert(a->offset == 8 && a->itemsize == 4 && a->ndim == 2 && a->dtype == SHMVIEW_FLOAT32);
    ck_assert(a->shape[0] == 2 && a->shape[1] == 3 && a->strides[0] == 12 && a->strides[1] == 4);
    ck_assert_ptr_null(a->suboffsets);
    assert_view(l->views[1], "R", 4, 18, 8, SHMVIEW_VIEW_READ_ONLY);
    ck_assert_str_eq(d->layouts[1]->name, "none");
    ck_assert_uint_eq(d->layouts[1]->n_views, 0);
    assert_view(d->layouts[2]->views[0], "scalar", 0, 8, 8, 0);
    assert_view(d->layouts[2]->views[1], "empty", 64, 64, 0, 0);
    assert_view(d->layouts[2]->views[2], "rows", 0, 0, 8, SHMVIEW_VIEW_INDIRECT);
    ck_assert_int_eq(d->layouts[2]->views[2]->suboffsets[1], -1);
    shmview_description_free(d);
    shmview_description_free(NULL);
    disconnect_stub();
}
END_TEST

/* A daemon from before access control sends no group, mode or list. */
START_TEST(what_is_not_known)
{
    const struct stub_step steps[] = {
        STUB_GREETING,
        {.method = "Describe",
         .reply = "{'parameters':{'segment':{'name':'seg','id':7,'size':1,'lock':false,"
                  "'lifetime':'attached','owner':1,'attachments':0},'layouts':[]}}"}};
    const struct shmview_description *d;
    connect_stub(steps, 2);
    ck_assert_int_eq(shmview_describe(conn, "seg", &d), 0);
    ck_assert(d->group == -1 && d->mode == -1 && d->n_entries == 0 && d->n_layouts == 0);
    shmview_description_free(d);
    disconnect_stub();
}
END_TEST

START_TEST(refusals)
{
    const struct stub_step steps[] = {STUB_GREETING};
    const struct shmview_description *d = NULL;
    connect_stub(steps, 1);
    ck_assert_int_eq(shmview_describe(conn, "no name", &d), -SHMVIEW_ERR_INVALID);
    ck_assert_int_eq(shmview_describe(conn, NULL, &d), -SHMVIEW_ERR_INVALID);
    ck_assert_ptr_null(d);
    disconnect_stub();
}
END_TEST

/* A reply that makes no sense is an error, and none of it is used. */
START_TEST(nonsense)
{
#define VIEW(text)                                                                                 \
    "{'parameters':{" SEGMENT ",'layouts':[{'name':'l','views':[{'name':'V'," text "}]}]}}"
    static const struct {
        const char *reply;
        int error;
        const char *text;
    } cases[] = {
        {"{'parameters':{'layouts':[]}}", SHMVIEW_ERR_PROTOCOL, "segment"},
        {"{'parameters':{" SEGMENT "}}", SHMVIEW_ERR_PROTOCOL, "layouts"},
        {VIEW("'format':'$','shape':[1]"), SHMVIEW_ERR_PROTOCOL, "'V'"},
        {VIEW("'format':'d','shape':[513]"), SHMVIEW_ERR_PROTOCOL, "'V'"},
        {VIEW("'format':'d','shape':[1],'offset':4"), SHMVIEW_ERR_PROTOCOL, "'V'"},
        {VIEW("'format':'d','shape':[9223372036854775807,4]"), SHMVIEW_ERR_PROTOCOL, "'V'"},
        {VIEW("'format':'d','shape':[1],'strides':[8,8]"), SHMVIEW_ERR_PROTOCOL,
         "strides has 2 integers for 1 dimensions"},
        {VIEW("'format':'d','shape':[1],'strides':[8],'suboffsets':[0,0]"), SHMVIEW_ERR_PROTOCOL,
         "suboffsets has 2 integers for 1 dimensions"},
        {"{'parameters':{'segment':{'name':'s','id':7,'size':1,'lock':false,'lifetime':'attached',"
         "'owner':1,'attachments':0,'acl':[{'user':1,'right':'all'}]},'layouts':[]}}",
         SHMVIEW_ERR_PROTOCOL, "acl"},
        {"{'error':'io.shmview.SegmentNotFound','parameters':{'name':'seg','reason':'none'}}",
         SHMVIEW_ERR_NOT_FOUND, "none"},
        {NULL, SHMVIEW_ERR_DISCONNECTED, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        /* the library asks again after a hang-up, three times in all */
        const struct stub_step step = {.method = "Describe", .reply = cases[i].reply};
        const struct stub_step steps[] = {STUB_GREETING, step,          STUB_GREETING,
                                          step,          STUB_GREETING, step};
        const struct shmview_description *d = NULL;
        connect_stub(steps, cases[i].reply ? 2 : 6);
        int r = shmview_describe(conn, "seg", &d);
        ck_assert_msg(r == -cases[i].error, "case %zu: %d, %s", i, r, shmview_error_text());
        unit_assert_holds(shmview_error_text(), cases[i].text);
        ck_assert_ptr_null(d);
        ck_assert_int_eq(shmview_disconnect(conn), 0);
        stub_end(&stub);
    }
}
END_TEST

START_TEST(every_allocation_fails)
{
    static struct stub_step steps[4000];
    /* each serves as the reply to the claim and to the question */
    for (size_t i = 0; i < ARRAY_LEN(steps); i++)
        steps[i] = (struct stub_step){.method = "", .reply = BOTH};
    stub_start(&stub, steps, ARRAY_LEN(steps));
    int r = 1;
    unsigned n_short = 0;
    for (unsigned n = 1; r; n++) {
        const struct shmview_description *d = NULL;
        ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
        faults_begin(FAULTS_MEMORY, n);
        r = shmview_describe(conn, "seg", &d);
        bool failed = faults_end();
        ck_assert((r == 0) == (d != NULL));
        n_short += r == -SHMVIEW_ERR_NO_MEMORY;
        shmview_description_free(d);
        if (failed && r == 0)
            r = 1; /* jansson may succeed without some of them */
        ck_assert_int_eq(shmview_disconnect(conn), 0);
    }
    ck_assert_uint_gt(n_short, 6);
    shutdown(stub.listener, SHUT_RDWR);
    pthread_join(stub.thread, NULL);
    close(stub.listener);
}
END_TEST

UNIT_MAIN("describe", UNIT_TEST(everything_is_told), UNIT_TEST(what_is_not_known),
          UNIT_TEST(refusals), UNIT_TEST(nonsense), UNIT_TEST(every_allocation_fails))

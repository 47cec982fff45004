/* SPDX-License-Identifier: Apache-2.0 */
/* Checks wire.c: which parameters each method refuses. */
#include "unit/unit.h"

#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/wire/wire.h"

static json_t *json_of(const char *text)
{
    json_error_t e;
    json_t *j = json_loads(unit_json(text), 0, &e);
    ck_assert_msg(j, "%s: %s", text, e.text);
    return j;
}

/* Reads parameters of the method and frees the result. Returns the result of the call. */
static int read_as(char method, const char *text, struct wire_fault *fault)
{
    json_t *j = text ? json_of(text) : NULL;
    struct wire_create create;
    struct wire_set_access set_access;
    struct wire_attach attach;
    struct wire_claim claim;
    struct wire_define define;
    struct wire_describe describe;
    const char *name;
    int64_t i;
    int r = -2;
    *fault = (struct wire_fault){0};
    switch (method) {
    case 'P':
        r = wire_read_none(j, fault);
        break;
    case 'C':
        r = wire_read_create(j, &create, fault);
        free(create.grant.acl); /* NULL after a fault */
        break;
    case 'G':
        r = wire_read_set_access(j, &set_access, fault);
        free(set_access.grant.acl);
        break;
    case 'K':
        r = wire_read_claim(j, &claim, fault);
        if (r == 0)
            free(claim.held);
        break;
    case 'A':
        r = wire_read_attach(j, &attach, fault);
        break;
    case 'S':
        r = wire_read_describe(j, &describe, fault);
        break;
    case 'N':
        r = wire_read_name(j, "name", &name, fault);
        break;
    case 'D':
        r = wire_read_int(j, "attachment", &i, fault);
        break;
    case 'L':
        r = wire_read_define(j, &define, fault);
        if (r == 0)
            free(define.layout.views);
        else
            ck_assert_ptr_null(define.layout.views);
        break;
    }
    json_decref(j);
    return r;
}

static void refuses(char method, const char *text, const char *parameter, const char *reason)
{
    struct wire_fault fault;
    ck_assert_msg(read_as(method, text, &fault) == -1, "accepted: %s", text ? text : "nothing");
    ck_assert_str_eq(fault.parameter, parameter);
    unit_assert_holds(fault.reason, reason);
}

static void accepts(char method, const char *text)
{
    struct wire_fault fault;
    ck_assert_msg(read_as(method, text, &fault) == 0, "%s: %s %s", text ? text : "nothing",
                  fault.parameter, fault.reason);
}

START_TEST(parameters_of_ping)
{
    accepts('P', NULL);
    accepts('P', "{}");
    refuses('P', "{'x':1}", "x", "not a known member");
}
END_TEST

START_TEST(parameters_of_claim)
{
    accepts('K', "{'client':1,'held':[],'presence':'kept'}");
    accepts('K', "{'client':1,'held':[0,9223372036854775807]}");
    refuses('K', "{'client':1,'held':{}}", "held", "must be an array of integers");
    refuses('K', "{'client':1,'held':[1,-1]}", "held", "element 1 must be an integer from 0 on");
    refuses('K', "{'client':1,'held':['1']}", "held", "element 0 must be an integer from 0 on");
    refuses('K', "{'client':1,'held':[],'presence':'maybe'}", "presence",
            "must be \"wanted\" or \"kept\"");
}
END_TEST

START_TEST(parameters_of_create)
{
    accepts('C', "{'name':'a','size':1}");
    accepts('C', "{'name':'a','size':1,'access':null,'lifetime':null,'lock':null}");
    accepts('C', "{'name':'a','size':72057594037927936,'access':'write','lifetime':'creator',"
                 "'lock':false}");
    refuses('C', NULL, "name", "is missing");
    refuses('C', "{'name':'a'}", "size", "is missing");
    refuses('C', "{'size':1}", "name", "is missing");
    refuses('C', "{'name':'a','size':0}", "size", "is 0, must be 1 to 72057594037927936");
    refuses('C', "{'name':'a','size':-1}", "size", "is -1");
    refuses('C', "{'name':'a','size':72057594037927937}", "size", "must be 1 to");
    refuses('C', "{'name':'a','size':1.0}", "size", "must be an integer");
    refuses('C', "{'name':'a','size':'1'}", "size", "must be an integer");
    refuses('C', "{'name':'a','size':1,'access':'admin'}", "access",
            "\"peek\", \"read\" or \"write\"");
    refuses('C', "{'name':'a','size':1,'access':3}", "access", "must be");
    refuses('C', "{'name':'a','size':1,'lifetime':'forever'}", "lifetime",
            "\"attached\", \"manual\" or \"creator\"");
    refuses('C', "{'name':'a','size':1,'lock':0}", "lock", "must be true or false");
    refuses('C', "{'name':'a','size':1,'colour':384}", "colour", "not a known member");
    refuses('C', "{'name':'a','size':1,'mode':512}", "mode", "must be 0 to 511");
    refuses('C', "{'name':'a','size':1,'owner':4294967295}", "owner", "must be 0 to 4294967294");
    refuses('C', "{'name':'a','size':1,'group':-1}", "group", "must be 0 to");
    refuses('C', "{'name':'a','size':1,'acl':{}}", "acl", "must be an array");
    refuses('C', "{'name':'a','size':1,'acl':[{'right':'all'}]}", "acl[0].right",
            "must be \"none\", \"read\" or \"write\"");
    refuses('C', "{'name':'a','size':1,'acl':[{'user':1,'right':'read'},{'user':1}]}",
            "acl[1].right", "is missing");
    accepts('C', "{'name':'a','size':1,'mode':384,'owner':0,'group':5,'acl':[]}");
    accepts('C', "{'name':'a','size':1,'acl':[{'user':1,'right':'none'}]}");
    refuses('G', "{'name':'a','mode':'0600'}", "mode", "must be an integer");
    refuses('G', "{'mode':384}", "name", "is missing");
    accepts('G', "{'name':'a','id':3,'mode':384,'acl':[{'group':1,'right':'write'}]}");
    refuses('C', "{'name':['a'],'size':1}", "name", "must be a string");
}
END_TEST

START_TEST(defaults_of_create)
{
    struct wire_create create;
    struct wire_fault fault;
    json_t *j = json_of("{'name':'a','size':5}");
    ck_assert_int_eq(wire_read_create(j, &create, &fault), 0);
    ck_assert(create.lock);
    ck_assert_int_eq(create.access, 0);
    ck_assert_int_eq(create.lifetime, 0);
    ck_assert_int_eq(create.size, 5);
    json_decref(j);
}
END_TEST

START_TEST(length_of_names)
{
    char name[400], text[500];
    for (size_t n = 0; n <= 130; n++) {
        memset(name, 'n', n);
        name[n] = '\0';
        snprintf(text, sizeof text, "{'name':'%s','size':1}", name);
        if (n <= LIMIT_NAME_BYTES)
            accepts('C', text);
        else
            refuses('C', text, "name", "the limit is 128");
        snprintf(text, sizeof text, "{'name':'%s'}", name);
        if (n <= LIMIT_NAME_BYTES)
            accepts('N', text);
        else
            refuses('N', text, "name", "the limit is 128");
    }
}
END_TEST

START_TEST(parameters_of_the_others)
{
    accepts('A', "{'name':'a','access':'peek'}");
    accepts('A', "{'name':'a','access':'read','id':0}");
    accepts('A', "{'name':'a','access':'write','id':9223372036854775807}");
    accepts('A', "{'name':'a','access':'write','id':null}");
    refuses('A', "{'name':'a'}", "access", "is missing");
    refuses('A', "{'name':'a','access':null}", "access", "must be");
    refuses('A', "{'name':'a','access':'write','id':-1}", "id", "is -1");
    refuses('A', "{'name':'a','access':'write','id':'1'}", "id", "must be an integer");
    refuses('A', "{'access':'write'}", "name", "is missing");
    accepts('S', "{'name':'a'}");
    accepts('S', "{'name':'a','id':null}");
    accepts('S', "{'name':'a','id':7}");
    refuses('S', "{'id':7}", "name", "is missing");
    refuses('S', "{'name':'a','id':-1}", "id", "is -1");
    refuses('S', "{'name':'a','access':'read'}", "access", "not a known member");
    accepts('D', "{'attachment':0}");
    accepts('D', "{'attachment':9223372036854775807}");
    refuses('D', "{'attachment':-1}", "attachment", "is -1");
    refuses('D', "{'attachment':null}", "attachment", "must be an integer");
    refuses('D', "{}", "attachment", "is missing");
    refuses('D', "{'attachment':1,'id':1}", "id", "not a known member");
    accepts('N', "{'name':''}"); /* wire.c does not check names */
    refuses('N', "{'name':null}", "name", "must be a string");
    refuses('N', "{'name':'a','x':1}", "x", "not a known member");
    refuses('N', NULL, "name", "is missing");
}
END_TEST

#define LAYOUT(views) "{'name':'s','layout':{'name':'l','views':[" views "]}}"

START_TEST(parameters_of_define_layout)
{
    accepts('L', LAYOUT(""));
    accepts('L', LAYOUT("{'name':'v','format':'i','shape':[]}"));
    accepts('L', LAYOUT("{'name':'v','format':'i','shape':[2],'strides':[-4],'offset':4,"
                        "'readonly':true}"));
    accepts('L', LAYOUT("{'name':'v','format':'i','shape':[2],'strides':null,'offset':null,"
                        "'readonly':null}"));
    accepts('L', "{'name':'s','id':9,'layout':{'name':'l','views':[]}}");
    refuses('L', "{'name':'s','id':-9,'layout':{'name':'l','views':[]}}", "id", "is -9");
    refuses('L', "{'name':'s'}", "layout", "is missing");
    refuses('L', "{'name':'s','layout':null}", "layout", "must be an object");
    refuses('L', "{'name':'s','layout':{}}", "layout.name", "is missing");
    refuses('L', "{'name':'s','layout':{'name':'l'}}", "layout.views", "is missing");
    refuses('L', "{'name':'s','layout':{'name':'l','views':{}}}", "layout.views", "array");
    refuses('L', LAYOUT("1"), "layout.views[0]", "must be an object");
    refuses('L', LAYOUT("{}"), "layout.views[0].name", "is missing");
    refuses('L', LAYOUT("{'name':'v','format':'i'}"), "layout.views[0].shape", "is missing");
    refuses('L', LAYOUT("{'name':'v','shape':[]}"), "layout.views[0].format", "is missing");
    refuses('L', LAYOUT("{'name':'v','format':'i','shape':[1,2,3,4,5,6,7,8,9]}"),
            "layout.views[0].shape", "has 9 dimensions, the limit is 8");
    refuses('L', LAYOUT("{'name':'v','format':'i','shape':[1],'strides':[1,2,3,4,5,6,7,8,9]}"),
            "layout.views[0].strides", "has 9 dimensions");
    refuses('L',
            LAYOUT("{'name':'v','format':'i','shape':[1]},{'name':'w','format':'i',"
                   "'shape':[true]}"),
            "layout.views[1].shape", "element 0 must be an integer");
    refuses('L', LAYOUT("{'name':'v','format':'i','shape':[1],'offset':-1}"),
            "layout.views[0].offset", "is -1");
    refuses('L', LAYOUT("{'name':'v','format':'i','shape':[1],'subofsets':[]}"),
            "layout.views[0].subofsets", "not a known member");
    refuses('L', "{'name':'s','layout':{'name':'l','views':[],'x':1}}", "layout.x",
            "not a known member");
    refuses('L',
            "{'name':'s','layout':{'name':'l','views':[{'name':'v','format':'i','shape':[]}],"
            "'x':1}}",
            "layout.x", "not a known member"); /* after views that were read already */
}
END_TEST

START_TEST(length_of_view_names_and_formats)
{
    char name[200], text[400];
    for (size_t n = 60; n <= 70; n++) {
        memset(name, 'n', n);
        name[n] = '\0';
        snprintf(text, sizeof text, LAYOUT("{'name':'%s','format':'i','shape':[]}"), name);
        if (n <= LIMIT_VIEW_NAME_BYTES)
            accepts('L', text);
        else
            refuses('L', text, "layout.views[0].name", "the limit is 64");
        snprintf(text, sizeof text, LAYOUT("{'name':'v','format':'%s','shape':[]}"), name);
        if (n <= LIMIT_FORMAT_BYTES)
            accepts('L', text);
        else
            refuses('L', text, "layout.views[0].format", "the limit is 64");
        snprintf(text, sizeof text, "{'name':'s','layout':{'name':'%s','views':[]}}", name);
        if (n <= LIMIT_VIEW_NAME_BYTES)
            accepts('L', text);
        else
            refuses('L', text, "layout.name", "the limit is 64");
    }
}
END_TEST

START_TEST(number_of_views)
{
    for (size_t n = LIMIT_VIEWS - 1; n <= LIMIT_VIEWS + 1; n++) {
        struct wire_define define;
        struct wire_fault fault;
        json_t *views = json_array();
        for (size_t i = 0; i < n; i++)
            json_array_append_new(
                views, json_pack("{s:s, s:s, s:[]}", "name", "v", "format", "i", "shape"));
        json_t *j =
            json_pack("{s:s, s:{s:s, s:o}}", "name", "s", "layout", "name", "l", "views", views);
        int r = wire_read_define(j, &define, &fault);
        ck_assert_int_eq(r, n > LIMIT_VIEWS ? -1 : 0);
        if (r)
            unit_assert_holds(fault.reason, "has 257 elements, the limit is 256");
        else
            ck_assert_uint_eq(define.layout.n_views, n);
        free(define.layout.views);
        json_decref(j);
    }
}
END_TEST

UNIT_MAIN("wire", UNIT_TEST(parameters_of_ping), UNIT_TEST(parameters_of_claim),
          UNIT_TEST(parameters_of_create), UNIT_TEST(defaults_of_create),
          UNIT_TEST(length_of_names), UNIT_TEST(parameters_of_the_others),
          UNIT_TEST(parameters_of_define_layout), UNIT_TEST(length_of_view_names_and_formats),
          UNIT_TEST(number_of_views))

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks methods.c: DefineLayout, and errors that repeat a text of the peer. */
#include "daemon/requests/methods.h"
#include "unit/house.h"

static struct house house;

/* Begins with a guest that has attached segment "s" of 4000 bytes for writing. */
static struct guest *begin(void)
{
    house_open(&house);
    struct guest *g = house_admit(&house);
    house_call(g, "Create", "{'name':'s','size':4000,'access':'write'}");
    return g;
}

#define LAYOUT(name, views) "{'name':'s','layout':{'name':'" name "','views':[" views "]}}"
#define VIEW(name, rest)    "{'name':'" name "'," rest "}"

static json_int_t define(struct guest *g, const char *parameters)
{
    return house_int(house_call(g, "DefineLayout", parameters), NULL, "index");
}

START_TEST(define_and_describe)
{
    struct guest *g = begin();
    ck_assert_int_eq(
        define(g, LAYOUT("float", VIEW("A", "'format':'float32','shape':[10,10]") "," VIEW(
                                      "B", "'format':'<i4','shape':[5],'strides':[-8],"
                                           "'offset':400,'readonly':true"))),
        0);
    ck_assert_int_eq(define(g, LAYOUT("int", "")), 1);
    ck_assert_int_eq(define(g, LAYOUT("again", VIEW("A", "'format':'b','shape':[]"))), 2);
    json_t *p = house_call(g, "Describe", "{'name':'s'}"), *layouts = json_object_get(p, "layouts");
    ck_assert_uint_eq(json_array_size(layouts), 3);
    json_t *wanted = json_loads(
        unit_json("[{'name':'float','views':[{'name':'A','format':'f','shape':[10,10],'offset':0,"
                  "'readonly':false},{'name':'B','format':'i','shape':[5],'strides':[-8],"
                  "'offset':400,'readonly':true}]},{'name':'int','views':[]},{'name':'again',"
                  "'views':[{'name':'A','format':'b','shape':[],'offset':0,'readonly':false}]}]"),
        0, NULL);
    ck_assert(json_equal(layouts, wanted)); /* formats in the canonical form */
    p = house_call(g, "Attach", "{'name':'s','access':'peek'}");
    layouts = json_object_get(json_object_get(p, "attachment"), "layouts");
    ck_assert(json_equal(layouts, wanted));
    json_decref(wanted);
    house_close(&house);
}
END_TEST

/* Returns how many layouts a Describe returns. The first of them must have the name that is
 * expected, and the index. */
static size_t described(struct guest *g, const char *parameters, const char *name, json_int_t index,
                        json_int_t next)
{
    json_t *p = house_call(g, "Describe", parameters), *layouts = json_object_get(p, "layouts");
    const json_t *first = json_array_get(layouts, 0);
    ck_assert_pstr_eq(json_string_value(json_object_get(first, "name")), name);
    const json_t *at = json_object_get(p, "index"), *then = json_object_get(p, "next");
    ck_assert_int_eq(at ? json_integer_value(at) : -1, index);
    ck_assert_int_eq(then ? json_integer_value(then) : -1, next);
    return json_array_size(layouts);
}

static void define_large(struct guest *g, const char *name, size_t views)
{
    char *text = NULL;
    size_t n;
    FILE *f = open_memstream(&text, &n);
    fprintf(f, "{'name':'s','layout':{'name':'%s','views':[", name);
    for (size_t i = 0; i < views; i++)
        fprintf(f, "%s{'name':'v%02zu','format':'b','shape':[]}", i ? "," : "", i);
    fputs("]}}", f);
    fclose(f);
    house_call(g, "DefineLayout", text);
    free(text);
}

/* 16 layouts of 4 KB fit into one reply to Describe, and a 17th one does not. The daemon keeps the
 * text in parts of that size, and a reply ends with its part, wherever it begins. */
START_TEST(describe_in_parts)
{
    struct guest *g = begin();
    ck_assert_uint_eq(described(g, "{'name':'s'}", NULL, -1, -1), 0);
    for (int i = 0; i < 18; i++) {
        char name[16];
        snprintf(name, sizeof name, "l%02d", i);
        define_large(g, name, 60);
    }
    ck_assert_uint_eq(described(g, "{'name':'s'}", "l00", 0, 16), 16);
    ck_assert_uint_eq(described(g, "{'name':'s','from':1}", "l01", 1, 16), 15);
    ck_assert_uint_eq(described(g, "{'name':'s','from':2}", "l02", 2, 16), 14);
    ck_assert_uint_eq(described(g, "{'name':'s','from':17}", "l17", 17, -1), 1);
    ck_assert_uint_eq(described(g, "{'name':'s','from':18}", NULL, -1, -1), 0);
    ck_assert_uint_eq(described(g, "{'name':'s','from':64}", NULL, -1, -1), 0);
    ck_assert_uint_eq(described(g, "{'name':'s','layout':'l09'}", "l09", 9, -1), 1);
    ck_assert_uint_eq(described(g, "{'name':'s','layout':'l18'}", NULL, -1, -1), 0);
    house_refused(g, "Describe", "{'name':'s','from':65}", INVALID, "");
    house_refused(g, "Describe", "{'name':'s','from':-1}", INVALID, "");
    house_close(&house);
}
END_TEST

/* The reply to an attachment has at most 4096 bytes of layouts: otherwise it has only names. */
START_TEST(attach_with_large_layouts)
{
    struct guest *g = begin();
    house_call(g, "DefineLayout", LAYOUT("small", VIEW("A", "'format':'b','shape':[]")));
    define_large(g, "most-------------------------x", 59); /* 4096 bytes with the other one */
    json_t *p = house_call(g, "Attach", "{'name':'s','access':'peek'}");
    json_t *layouts = json_object_get(json_object_get(p, "attachment"), "layouts");
    ck_assert_uint_eq(json_array_size(json_object_get(json_array_get(layouts, 0), "views")), 1);
    ck_assert_uint_eq(json_array_size(json_object_get(json_array_get(layouts, 1), "views")), 59);
    define_large(g, "more", 1);
    p = house_call(g, "Attach", "{'name':'s','access':'peek'}");
    layouts = json_object_get(json_object_get(p, "attachment"), "layouts");
    json_t *wanted = json_loads(
        unit_json("[{'name':'small'},{'name':'most-------------------------x'},{'name':'more'}]"),
        0, NULL);
    ck_assert(json_equal(layouts, wanted));
    json_decref(wanted);
    house_close(&house);
}
END_TEST

START_TEST(needs_a_writer_on_this_connection)
{
    struct guest *g = begin(), *other = house_admit(&house);
    const char *denied = SERVICE "PermissionDenied", *parameters = LAYOUT("l", "");
    house_refused(other, "DefineLayout", parameters, denied, "access write on this connection");
    house_call(other, "Attach", "{'name':'s','access':'read'}");
    house_refused(other, "DefineLayout", parameters, denied, "access write");
    json_int_t id =
        house_int(house_call(other, "Attach", "{'name':'s','access':'write'}"), "attachment", "id");
    ck_assert_int_eq(define(other, parameters), 0);
    char detach[64];
    snprintf(detach, sizeof detach, "{'attachment':%lld}", id);
    house_call(other, "Detach", detach);
    house_refused(other, "DefineLayout", LAYOUT("m", ""), denied, "access write");
    house_refused(g, "DefineLayout", "{'name':'none','layout':{'name':'l','views':[]}}",
                  "SegmentNotFound", "no segment 'none'");
    house_close(&house);
}
END_TEST

/* A forked child, or a client that attached earlier, means the segment and not its name. */
START_TEST(by_id_when_the_name_is_gone)
{
    struct guest *g = begin();
    json_int_t id = house_int(house_call(g, "Describe", "{'name':'s'}"), "segment", "id");
    char text[200];
    house_call(g, "Remove", "{'name':'s'}");
    house_refused(g, "DefineLayout", LAYOUT("l", ""), "SegmentNotFound", "");
    house_call(g, "Create", "{'name':'s','size':10}");
    house_refused(g, "DefineLayout", LAYOUT("l", ""), SERVICE "PermissionDenied", "");
    snprintf(text, sizeof text, "{'name':'s','id':%lld,'layout':{'name':'old','views':[]}}", id);
    ck_assert_int_eq(define(g, text), 0);
    snprintf(text, sizeof text, "{'name':'s','id':%lld}", id);
    json_t *p = house_call(g, "Describe", text);
    ck_assert_int_eq(house_int(p, "segment", "size"), 4000);
    ck_assert_uint_eq(json_array_size(json_object_get(p, "layouts")), 1);
    p = house_call(g, "Describe", "{'name':'s'}");
    ck_assert_int_eq(house_int(p, "segment", "size"), 10);
    ck_assert_uint_eq(json_array_size(json_object_get(p, "layouts")), 0);
    house_refused(g, "Describe", "{'name':'s','id':12345}", "SegmentNotFound", "");
    house_close(&house);
}
END_TEST

START_TEST(names)
{
    struct guest *g = begin();
    static const char *const bad[] = {"", ".a", "a b", "a/b", "\xc3\xa9", "a\\u0007"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        char text[200];
        snprintf(text, sizeof text, LAYOUT("%s", ""), bad[i]);
        house_refused(g, "DefineLayout", text, INVALID, "is not a valid name");
        snprintf(text, sizeof text, LAYOUT("l", VIEW("%s", "'format':'b','shape':[]")), bad[i]);
        house_refused(g, "DefineLayout", text, INVALID, "is not a valid name");
    }
    house_refused(
        g, "DefineLayout",
        LAYOUT("l", VIEW("A", "'format':'b','shape':[]") "," VIEW(
                        "B", "'format':'b','shape':[]") "," VIEW("A", "'format':'b','shape':[]")),
        INVALID, "layout.views has two views 'A'");
    ck_assert_int_eq(define(g, LAYOUT("l", "")), 0);
    json_t *p = house_refused(g, "DefineLayout", LAYOUT("l", ""), "LayoutExists",
                              "segment 's' has a layout 'l' already");
    ck_assert_str_eq(json_string_value(json_object_get(p, "layout")), "l");
    ck_assert_int_eq(define(g, LAYOUT("L", "")), 1);
    ck_assert_int_eq(define(g, LAYOUT("8yn0iYCKYHlIj4-BwPqk", "")), 2);
    house_refused(g, "DefineLayout", LAYOUT("GReLUrM4wMqfg9yzV3KQ", ""), "LayoutExists",
                  "has a layout '8yn0iYCKYHlIj4-BwPqk' already, whose name has the same hash");
    house_close(&house);
}
END_TEST

START_TEST(views_that_do_not_hold)
{
    static const struct {
        const char *view, *error, *part;
    } cases[] = {
        {"'format':'y','shape':[]", "InvalidFormat", "view 'A': format \"y\": character 0"},
        {"'format':'','shape':[]", "InvalidFormat", "a type code is missing"},
        {"'format':'<n','shape':[]", "InvalidFormat", "no standard size"},
        {"'format':'i','shape':[1],'offset':2", "MisalignedView", "byte 2 is not a multiple of 4"},
        {"'format':'d','shape':[2],'strides':[12]", "MisalignedView", "stride 12"},
        {"'format':'f','shape':[1001]", "ViewOutOfBounds",
         "view 'A': dimension 0 ends at byte 4004, the segment has 4000 bytes"},
        {"'format':'b','shape':[2],'strides':[-1]", "ViewOutOfBounds", "byte -1, before byte 0"},
        {"'format':'b','shape':[],'offset':4000", "ViewOutOfBounds", "the first element"},
        {"'format':'b','shape':[],'offset':9223372036854775807", "ViewOutOfBounds", "the first"},
        {"'format':'b','shape':[9223372036854775807,2],'strides':[0,0]", "ViewOverflow",
         "overflows"},
        {"'format':'b','shape':[9223372036854775807,2]", "ViewOverflow", "overflow 2^63"},
        {"'format':'b','shape':[3],'strides':[-9223372036854775808]", "ViewOverflow", "overflow"},
        {"'format':'b','shape':[-1]", INVALID, "length -1 < 0"},
        {"'format':'b','shape':[1],'strides':[]", INVALID,
         "[1].strides has 0 integers for 1 dimensions"},
        {"'format':'b','shape':[],'strides':[1]", INVALID,
         "[1].strides has 1 integers for 0 dimensions"},
        {"'format':'b','shape':[1,1],'strides':[1]", INVALID, "1 integers for 2 dimensions"},
        {"'format':'b','shape':[1],'suboffsets':[0]", INVALID, "suboffsets without strides"},
        {"'format':'b','shape':[1],'strides':[1],'suboffsets':[]", INVALID,
         "suboffsets has 0 integers for 1 dimensions"},
    };
    struct guest *g = begin();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char text[400];
        snprintf(text, sizeof text,
                 LAYOUT("l", VIEW("good", "'format':'b','shape':[4000]") "," VIEW("A", "%s")),
                 cases[i].view);
        json_t *p = house_refused(g, "DefineLayout", text, cases[i].error, cases[i].part);
        if (strcmp(cases[i].error, INVALID) != 0)
            ck_assert_str_eq(json_string_value(json_object_get(p, "view")), "A");
        else
            ck_assert_ptr_nonnull(strstr(json_string_value(json_object_get(p, "parameter")), "."));
    }
    json_t *p = house_call(g, "Describe", "{'name':'s'}");
    ck_assert_uint_eq(json_array_size(json_object_get(p, "layouts")), 0);
    house_close(&house);
}
END_TEST

START_TEST(number_of_layouts)
{
    struct guest *g = begin();
    char text[100];
    for (int i = 0; i < LIMIT_LAYOUTS; i++) {
        snprintf(text, sizeof text, LAYOUT("l%d", ""), i);
        ck_assert_int_eq(define(g, text), i);
    }
    json_t *p = house_refused(g, "DefineLayout", LAYOUT("more", ""), "LimitExceeded",
                              "has 64 layouts, which is the limit");
    ck_assert_int_eq(house_int(p, NULL, "limit"), LIMIT_LAYOUTS);
    p = house_call(g, "Attach", "{'name':'s','access':'peek'}");
    p = json_object_get(json_object_get(p, "attachment"), "layouts");
    ck_assert_uint_eq(json_array_size(p), LIMIT_LAYOUTS);
    house_close(&house);
}
END_TEST

/* --- Texts of a peer, cut to fit ----------------------------------------- */

/* Returns n letters of two bytes each. A text cut within a letter is not UTF-8, which JSON cannot
 * hold, but the error must still have its members. */
static const char *letters(size_t n)
{
    static char text[LIMIT_FORMAT_BYTES + 4];
    for (size_t i = 0; i < n; i++)
        memcpy(text + 2 * i, "\xc3\xa9", 2);
    text[2 * n] = '\0';
    return text;
}

static uint64_t charged(uid_t uid)
{
    return quota_usage(&house.state.quota, uid, false, QUOTA_LAYOUT_BYTES).used;
}

/* Layouts are charged to the owner of the segment, whichever client defines them, until they
 * end. */
START_TEST(layouts_are_charged)
{
    const json_int_t one = (json_int_t)strlen(unit_json("{'name':'l0','views':[]}")) + 1;
    house_open(&house);
    struct guest *owner = house_admit(&house), *writer = house_admit(&house);
    struct quota_limit *limits = &house.state.config->limits.user;
    owner->connection->peer.uid = 7;
    writer->connection->peer.uid = 8;
    limits->layout_bytes = 3 * (uint64_t)one;
    house_call(owner, "Create", "{'name':'s','size':4000,'access':'write','mode':438}");
    house_call(writer, "Attach", "{'name':'s','access':'write'}");
    ck_assert_int_eq(define(owner, LAYOUT("l0", "")), 0);
    ck_assert_int_eq(define(writer, LAYOUT("l1", "")), 1);
    ck_assert_int_eq(define(owner, LAYOUT("l2", "")), 2);
    json_t *p = house_refused(writer, "DefineLayout", LAYOUT("l3", ""), "QuotaExceeded",
                              "layout_bytes asked for; uid 7 may have ");
    ck_assert_str_eq(json_string_value(json_object_get(p, "what")), "layout_bytes");
    ck_assert_int_eq(house_int(p, NULL, "asked"), one);
    ck_assert_int_eq(house_int(p, NULL, "used"), 3 * one);
    ck_assert_int_eq(house_int(p, NULL, "limit"), 3 * one);
    p = house_call(writer, "Describe", "{'name':'s'}");
    ck_assert_uint_eq(json_array_size(json_object_get(p, "layouts")), 3);
    house_call(writer, "Create", "{'name':'o','size':4000,'access':'write'}");
    house_call(writer, "DefineLayout", "{'name':'o','layout':{'name':'l0','views':[]}}");
    ck_assert_uint_eq(charged(8), (uint64_t)one);
    writer->connection->peer.uid = 0; /* an administrator, who does not pay for it */
    house_refused(writer, "DefineLayout", LAYOUT("l3", ""), "QuotaExceeded", "uid 7");
    house_refused(writer, "SetAccess", "{'name':'s','owner':8}", "QuotaExceeded", "uid 8");
    ck_assert_uint_eq(charged(7), 3 * (uint64_t)one);
    limits->layout_bytes = 4 * (uint64_t)one;
    house_call(writer, "SetAccess", "{'name':'s','owner':8}");
    ck_assert_uint_eq(charged(7), 0);
    ck_assert_uint_eq(charged(8), 4 * (uint64_t)one);
    limits->layout_bytes = 1; /* which keeps existing layouts and refuses only new ones */
    writer->connection->peer.uid = 8;
    house_call(writer, "Create", "{'name':'p','size':1}");
    house_call(writer, "Remove", "{'name':'o'}");
    house_end(writer);
    ck_assert_uint_eq(charged(8), 3 * (uint64_t)one);
    house_end(owner);
    ck_assert_uint_eq(charged(8), 0);
    ck_assert_uint_eq(house.state.quota.used[QUOTA_LAYOUT_BYTES], 0);
    house_close(&house);
}
END_TEST

START_TEST(format_that_is_cut)
{
    struct guest *g = begin();
    for (size_t n = 1; n <= 40; n++)
        for (int odd = 0; odd < 2 && 2 * n + (size_t)odd <= LIMIT_FORMAT_BYTES; odd++) {
            char text[LIMIT_FORMAT_BYTES + 400];
            snprintf(text, sizeof text, LAYOUT("l", VIEW("A", "'format':'%s%s','shape':[]")),
                     odd ? "x" : "", letters(n));
            house_refused(g, "DefineLayout", text, "InvalidFormat", "is no type code");
        }
    house_close(&house);
}
END_TEST

START_TEST(member_that_is_cut)
{
    struct guest *g = begin();
    for (size_t n = 60; n <= 100; n++)
        for (int odd = 0; odd < 2; odd++) {
            char text[LIMIT_FORMAT_BYTES + 400];
            snprintf(text, sizeof text, "{'%s%s':1}", odd ? "x" : "", letters(n));
            house_refused(g, "Ping", text, INVALID, "is not a known member");
        }
    house_close(&house);
}
END_TEST

START_TEST(inner_member_that_is_cut)
{
    struct guest *g = begin();
    for (size_t n = 25; n <= 100; n++)
        for (int odd = 0; odd < 2; odd++) {
            char text[LIMIT_FORMAT_BYTES + 400];
            snprintf(text, sizeof text, LAYOUT("l", VIEW("A", "'format':'b','shape':[],'%s%s':1")),
                     odd ? "x" : "", letters(n));
            house_refused(g, "DefineLayout", text, INVALID, "is not a known member");
        }
    house_close(&house);
}
END_TEST

START_TEST(names_that_are_said_again)
{
    struct guest *g = begin();
    char text[LIMIT_FORMAT_BYTES + 400];
    for (size_t n = 1; n <= LIMIT_NAME_BYTES / 2; n++) {
        snprintf(text, sizeof text, "{'name':'%s'}", letters(n));
        house_refused(g, "Describe", text, "SegmentNotFound", letters(n));
    }
    for (size_t n = 1; n <= LIMIT_VIEW_NAME_BYTES / 2; n++) {
        snprintf(text, sizeof text, LAYOUT("%s", ""), letters(n));
        house_refused(g, "DefineLayout", text, INVALID, letters(n));
    }
    snprintf(text, sizeof text, "io.shmview.%s", letters(100));
    house_refused(g, text, "{}", SERVICE "MethodNotFound", "");
    for (size_t n = 120; n <= 125; n++) {
        snprintf(text, sizeof text, "%s.Ping", letters(n));
        house_refused(g, text, "{}", SERVICE "InterfaceNotFound", "");
    }
    house_close(&house);
}
END_TEST

UNIT_MAIN("methods_layout", UNIT_TEST(define_and_describe), UNIT_TEST(describe_in_parts),
          UNIT_TEST(attach_with_large_layouts), UNIT_TEST(needs_a_writer_on_this_connection),
          UNIT_TEST(by_id_when_the_name_is_gone), UNIT_TEST(names),
          UNIT_TEST(views_that_do_not_hold), UNIT_TEST(number_of_layouts),
          UNIT_TEST(layouts_are_charged), UNIT_TEST(format_that_is_cut),
          UNIT_TEST(member_that_is_cut), UNIT_TEST(inner_member_that_is_cut),
          UNIT_TEST(names_that_are_said_again))

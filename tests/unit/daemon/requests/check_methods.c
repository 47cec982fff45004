/* SPDX-License-Identifier: Apache-2.0 */
/* Checks methods.c and creation.c: the result of each method, and what it refuses. */
#include "daemon/requests/methods.h"
#include "unit/house.h"

static struct house house;

static struct guest *begin(void)
{
    house_open(&house);
    return house_admit(&house);
}

static void end(void)
{
    house_close(&house);
}

/* --- Introspection ------------------------------------------------------- */

START_TEST(info)
{
    struct guest *g = begin();
    json_t *p = house_call(g, SERVICE "GetInfo", "{}");
    ck_assert_str_eq(json_string_value(json_object_get(p, "product")), "shmviewd");
    ck_assert_str_eq(json_string_value(json_object_get(p, "version")), SHMVIEW_VERSION);
    ck_assert_uint_eq(json_array_size(json_object_get(p, "interfaces")), 2);
    house_refused(g, SERVICE "GetInfo", "{'x':1}", INVALID, "x is not a known member");
    end();
}
END_TEST

START_TEST(descriptions)
{
    struct guest *g = begin();
    const char *ask[] = {"{'interface':'io.shmview'}", "{'interface':'org.varlink.service'}"};
    const char *texts[] = {varlink_text_io_shmview, varlink_text_org_varlink_service};
    for (int i = 0; i < 2; i++) {
        json_t *p = house_call(g, SERVICE "GetInterfaceDescription", ask[i]);
        ck_assert_str_eq(json_string_value(json_object_get(p, "description")), texts[i]);
    }
    json_t *p = house_refused(g, SERVICE "GetInterfaceDescription", "{'interface':'io.other'}",
                              SERVICE "InterfaceNotFound", "");
    ck_assert_str_eq(json_string_value(json_object_get(p, "interface")), "io.other");
    house_refused(g, SERVICE "GetInterfaceDescription", "{}", INVALID, "interface is missing");
    end();
}
END_TEST

START_TEST(unknown_methods)
{
    static const struct {
        const char *method, *error, *value;
    } cases[] = {
        {"io.shmview.Nothing", "MethodNotFound", "io.shmview.Nothing"},
        {"io.shmview.ping", "MethodNotFound", "io.shmview.ping"},
        {"io.shmview.", "MethodNotFound", "io.shmview."},
        {"io.shmview.PingPong", "MethodNotFound", "io.shmview.PingPong"},
        {"org.varlink.service.X", "MethodNotFound", "org.varlink.service.X"},
        {"io.shmview2.Ping", "InterfaceNotFound", "io.shmview2"},
        {"io.shmview.sub.Ping", "InterfaceNotFound", "io.shmview.sub"},
        {".", "InterfaceNotFound", ""},
        {".Ping", "InterfaceNotFound", ""},
    };
    struct guest *g = begin();
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char error[64];
        snprintf(error, sizeof error, SERVICE "%s", cases[i].error);
        json_t *p = house_refused(g, cases[i].method, "{}", error, "");
        const char *value = json_string_value(
            json_object_get(p, cases[i].error[0] == 'M' ? "method" : "interface"));
        ck_assert_str_eq(value, cases[i].value);
    }
    end();
}
END_TEST

START_TEST(upgrade_and_oneway)
{
    struct guest *g = begin();
    house_send(g, "{'method':'io.shmview.Ping','upgrade':true}");
    unit_assert_holds(house_receive(g), SERVICE "MethodNotImplemented");
    house_send(g, "{'method':'io.shmview.Create','oneway':true,"
                  "'parameters':{'name':'quiet','size':1}}");
    house_send(g, "{'method':'io.shmview.Nothing','oneway':true}");
    house_send(g, "{'method':'io.shmview.Create','oneway':true,"
                  "'parameters':{'name':'lost','size':1,'access':'write'}}");
    house_call(g, "Describe", "{'name':'quiet'}"); /* before the client has read anything */
    house_call(g, "Describe", "{'name':'lost'}");
    ck_assert_uint_eq(g->fds.n, 0);
    end();
}
END_TEST

START_TEST(methods_refuse_unknown_members)
{
    static const char *const methods[] = {"Ping",   "Create", "Attach",   "Detach",
                                          "Remove", "List",   "Describe", "DefineLayout"};
    struct guest *g = begin();
    for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
        char text[200];
        snprintf(text, sizeof text,
                 "{'name':'a','size':1,'access':'write','attachment':1,'layout':%s,'bogus':1}",
                 strcmp(methods[i], "Describe") == 0 ? "'l'" : "{'name':'l','views':[]}");
        house_refused(g, methods[i], text, INVALID, "is not a known member");
        if (i != 0 && i != 5)
            house_refused(g, methods[i], "{}", INVALID, "is missing");
    }
    house_call(g, "Ping", "{}");
    end();
}
END_TEST

/* --- Create -------------------------------------------------------------- */

START_TEST(create_without_access)
{
    struct guest *g = begin();
    json_t *p = house_call(g, "Create", "{'name':'a','size':5000}");
    ck_assert_ptr_null(json_object_get(p, "attachment"));
    ck_assert_uint_eq(g->fds.n, 0);
    ck_assert_int_eq(house_int(p, "segment", "size"), 5000);
    ck_assert_int_eq(house_int(p, "segment", "attachments"), 0);
    ck_assert_int_eq(house_int(p, "segment", "owner"), geteuid());
    json_t *s = json_object_get(p, "segment");
    ck_assert_str_eq(json_string_value(json_object_get(s, "lifetime")), "manual");
    ck_assert(json_is_true(json_object_get(s, "lock")));
    ck_assert_uint_eq(unit_objects(), 3);
    house_call(g, "Remove", "{'name':'a'}");
    ck_assert_uint_eq(unit_objects(), 0);
    end();
}
END_TEST

START_TEST(create_with_access)
{
    static const char *const accesses[] = {"peek", "read", "write"};
    struct guest *g = begin();
    for (int i = 0; i < 3; i++) {
        char parameters[100];
        snprintf(parameters, sizeof parameters, "{'name':'a','size':1,'access':'%s'}", accesses[i]);
        json_t *p = house_call(g, "Create", parameters);
        json_t *s = json_object_get(p, "segment"), *a = json_object_get(p, "attachment");
        ck_assert_str_eq(json_string_value(json_object_get(s, "lifetime")), "attached");
        ck_assert_str_eq(json_string_value(json_object_get(a, "access")), accesses[i]);
        ck_assert_int_eq(house_int(p, "attachment", "descriptors"), (json_int_t)g->fds.n);
        ck_assert_uint_eq(g->fds.n, i ? 3 : 1);
        json_int_t id = house_int(p, "attachment", "id");
        snprintf(parameters, sizeof parameters, "{'attachment':%lld}", id);
        house_call(g, "Detach", parameters);
        ck_assert_uint_eq(unit_objects(), 0); /* it was the last one */
    }
    end();
}
END_TEST

START_TEST(create_refused)
{
    struct guest *g = begin();
    house_call(g, "Create", "{'name':'taken','size':1}");
    json_t *p = house_refused(g, "Create", "{'name':'taken','size':2}", "SegmentExists",
                              "'taken' exists already");
    ck_assert_str_eq(json_string_value(json_object_get(p, "name")), "taken");
    static const char *const names[] = {"", ".a", "a/b", "..", "a b", "\xc3\xa9", "a\\u0001"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char parameters[100];
        snprintf(parameters, sizeof parameters, "{'name':'%s','size':1}", names[i]);
        p = house_refused(g, "Create", parameters, INVALID, "name must be 1 to 128 of");
        ck_assert_str_eq(json_string_value(json_object_get(p, "parameter")), "name");
    }
    house_refused(g, "Create", "{'name':'a','size':1,'label':'a\\u001bb'}", INVALID, "UTF-8");
    p = house_refused(g, "Create", "{'name':'a','size':1,'lifetime':'attached'}", INVALID,
                      "lifetime \"attached\" needs an access");
    ck_assert_str_eq(json_string_value(json_object_get(p, "parameter")), "lifetime");
    ck_assert_uint_eq(unit_objects(), 3);
    house_call(g, "Create", "{'name':'a','size':1,'lifetime':'creator'}");
    end();
}
END_TEST

START_TEST(create_more_than_there_is)
{
    struct guest *g = begin();
    json_t *p = house_refused(g, "Create", "{'name':'a','size':72057594037927936}", "NoSpace",
                              "asks for 72057594037927936 bytes");
    ck_assert_int_eq(house_int(p, NULL, "asked"), (json_int_t)1 << 56);
    ck_assert_int_gt(house_int(p, NULL, "free"), 0);
    ck_assert_int_ge(house_int(p, NULL, "limit"), house_int(p, NULL, "free"));
    ck_assert_uint_eq(unit_objects(), 0);
    house_refused(g, "Describe", "{'name':'a'}", "SegmentNotFound", "no segment 'a'");
    house_call(g, "Create", "{'name':'a','size':1}"); /* the name is free again */
    end();
}
END_TEST

START_TEST(create_over_a_foreign_object)
{
    struct guest *g = begin();
    const char *path = unit_object("a");
    close(open(path, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, 0600));
    house_refused(g, "Create", "{'name':'a','size':1}", "SegmentExists", "that no segment owns");
    ck_assert_int_eq(unlink(path), 0);
    house_call(g, "Create", "{'name':'a','size':1}");
    end();
}
END_TEST

/* While its memory is allocated, a segment has its name but no client can see it. */
START_TEST(creation_under_way)
{
    struct guest *g = begin(), *other = house_admit(&house);
    house_send(g, "{'method':'io.shmview.Create','parameters':{'name':'slow','size':50000000}}");
    while (house.state.n_jobs == 0)
        house_run(&house);
    /* the loop does not run in between, so the job cannot be finished yet */
    struct answer answer = {0};
    struct wire_call call = {.method = "io.shmview.Create",
                             .parameters = json_pack("{s:s, s:i}", "name", "slow", "size", 1)};
    methods_call(&house.state, other->connection, &call, &answer);
    ck_assert_int_eq(answer.error, SHMVIEW_ERR_EXISTS);
    answer_deinit(&answer);
    json_decref(call.parameters);
    call = (struct wire_call){.method = "io.shmview.Describe",
                              .parameters = json_pack("{s:s}", "name", "slow")};
    methods_call(&house.state, other->connection, &call, &answer);
    ck_assert_int_eq(answer.error, SHMVIEW_ERR_NOT_FOUND);
    answer_deinit(&answer);
    call.method = "io.shmview.Remove";
    methods_call(&house.state, other->connection, &call, &answer);
    ck_assert_int_eq(answer.error, SHMVIEW_ERR_NOT_FOUND);
    answer_deinit(&answer);
    json_decref(call.parameters);
    call = (struct wire_call){.method = "io.shmview.List"};
    methods_call(&house.state, other->connection, &call, &answer);
    ck_assert_uint_eq(json_array_size(json_object_get(answer.parameters, "segments")), 0);
    answer_deinit(&answer);
    unit_assert_holds(house_receive(g), "slow");
    house_call(other, "Describe", "{'name':'slow'}");
    end();
}
END_TEST

START_TEST(creator_leaves_while_creating)
{
    for (int i = 0; i < 20; i++) {
        struct guest *g = begin(), *other = house_admit(&house);
        house_send(g, "{'method':'io.shmview.Create','parameters':{'name':'slow',"
                      "'size':200000000,'access':'write'}}");
        while (house.state.n_jobs == 0)
            house_run(&house);
        house_leave(g);
        while (g->connection || house.state.n_jobs)
            house_run(&house);
        ck_assert_uint_eq(unit_objects(), 0);
        house_call(other, "Create", "{'name':'slow','size':1}");
        end();
        ck_assert_uint_eq(unit_objects(), 0);
    }
}
END_TEST

/* --- Attach, detach, remove ---------------------------------------------- */

START_TEST(attach_and_detach)
{
    struct guest *g = begin(), *other = house_admit(&house);
    house_call(g, "Create", "{'name':'a','size':100}");
    json_t *p = house_call(g, "Attach", "{'name':'a','access':'write'}");
    json_int_t one = house_int(p, "attachment", "id");
    ck_assert_int_eq(house_int(p, "attachment", "slot"), 0);
    ck_assert_int_eq(house_int(p, "segment", "attachments"), 1);
    p = house_call(other, "Attach", "{'name':'a','access':'read'}");
    ck_assert_int_eq(house_int(p, "attachment", "slot"), 1);
    ck_assert_int_ne(house_int(p, "attachment", "id"), one);
    char detach[64];
    snprintf(detach, sizeof detach, "{'attachment':%lld}", one);
    p = house_refused(other, "Detach", detach, "NotAttached", "this connection has no attachment");
    ck_assert_int_eq(house_int(p, NULL, "attachment"), one); /* another's is none */
    house_call(g, "Detach", detach);
    house_refused(g, "Detach", detach, "NotAttached", "");
    house_refused(g, "Detach", "{'attachment':0}", "NotAttached", "");
    house_refused(g, "Detach", "{'attachment':9223372036854775807}", "NotAttached", "");
    p = house_call(other, "Attach", "{'name':'a','access':'write'}");
    ck_assert_int_eq(house_int(p, "attachment", "slot"), 0);
    ck_assert_int_eq(house_int(p, "attachment", "generation"), 2);
    end();
}
END_TEST

START_TEST(attach_refused)
{
    struct guest *g = begin();
    json_t *p = house_refused(g, "Attach", "{'name':'no','access':'read'}", "SegmentNotFound",
                              "no segment 'no'");
    ck_assert_str_eq(json_string_value(json_object_get(p, "name")), "no");
    house_refused(g, "Attach", "{'name':'a/../b','access':'read'}", "SegmentNotFound", "a/../b");
    house_refused(g, "Attach", "{'name':'\xf0\x9f\x90\x9a','access':'read'}", "SegmentNotFound",
                  "");
    house_refused(g, "Attach", "{'name':'no','access':'read','id':1}", "SegmentNotFound", "");
    house_refused(g, "Attach", "{'name':'no','access':'all'}", INVALID, "access must be");
    end();
}
END_TEST

START_TEST(attach_by_id_when_the_name_is_gone)
{
    struct guest *g = begin();
    json_t *p = house_call(g, "Create", "{'name':'a','size':100,'access':'write'}");
    json_int_t id = house_int(p, "segment", "id");
    char attach[100];
    house_call(g, "Remove", "{'name':'a'}");
    house_refused(g, "Attach", "{'name':'a','access':'read'}", "SegmentNotFound", "");
    house_refused(g, "Remove", "{'name':'a'}", "SegmentNotFound", "");
    p = house_call(g, "Create", "{'name':'a','size':200}");
    ck_assert_int_ne(house_int(p, "segment", "id"), id);
    snprintf(attach, sizeof attach, "{'name':'a','access':'read','id':%lld}", id);
    p = house_call(g, "Attach", attach);
    ck_assert_int_eq(house_int(p, "segment", "id"), id);
    ck_assert_int_eq(house_int(p, "segment", "size"), 100);
    p = house_call(g, "Attach", "{'name':'a','access':'read'}");
    ck_assert_int_eq(house_int(p, "segment", "size"), 200);
    end();
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

/* Stats counts a refusal under the error name that was sent. */
START_TEST(refusals_are_counted_by_name)
{
    struct guest *g = begin();
    house_refused(g, "Nothing", "{}", SERVICE "MethodNotFound", "");
    house_refused(g, "a.b.C", "{}", SERVICE "InterfaceNotFound", "");
    house_refused(g, "Monitor", "{}", SERVICE "ExpectedMore", "");
    house_refused(g, "Ping", "{'a':1}", INVALID, "a is not a known member");
    const json_t *p = house_call(g, "Stats", "{'limit':0}");
    const json_t *list = json_object_get(json_object_get(p, "instance"), "refusals");
    static const char *const names[] = {INVALID, SERVICE "MethodNotFound",
                                        SERVICE "InterfaceNotFound", SERVICE "ExpectedMore"};
    ck_assert_uint_eq(json_array_size(list), 4);
    for (size_t i = 0; i < 4; i++) {
        const json_t *refusal = json_array_get(list, i);
        ck_assert_str_eq(json_string_value(json_object_get(refusal, "error")), names[i]);
        ck_assert_int_eq(house_int(refusal, NULL, "count"), 1);
    }
    end();
}
END_TEST

START_TEST(every_slot_taken)
{
    struct guest *g = begin();
    house_call(g, "Create", "{'name':'a','size':100}");
    for (int i = 0; i < 1000; i++)
        house_call(g, "Attach", "{'name':'a','access':'read'}");
    json_t *p = house_refused(g, "Attach", "{'name':'a','access':'write'}", "SlotsExhausted",
                              "has 1000 attachments, which is the limit");
    ck_assert_int_eq(house_int(p, NULL, "limit"), 1000);
    house_call(g, "Attach", "{'name':'a','access':'peek'}");
    p = house_call(g, "Describe", "{'name':'a'}");
    ck_assert_int_eq(house_int(p, "segment", "attachments"), 1001);
    end();
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

START_TEST(lifetimes_end_with_their_connection)
{
    struct guest *g = begin(), *other = house_admit(&house);
    house_call(g, "Create", "{'name':'manual','size':1}");
    house_call(g, "Create", "{'name':'attached','size':1,'access':'write'}");
    house_call(g, "Create", "{'name':'creator','size':1,'lifetime':'creator'}");
    house_call(g, "Create", "{'name':'shared','size':1,'lifetime':'creator','access':'read'}");
    house_call(g, "Create", "{'name':'kept','size':1,'access':'read'}");
    house_call(g, "Create", "{'name':'removed','size':1,'lifetime':'creator','access':'read'}");
    house_call(g, "Remove", "{'name':'removed'}");
    house_call(other, "Attach", "{'name':'shared','access':'read'}");
    house_call(other, "Attach", "{'name':'kept','access':'read'}");
    house_end(g);
    json_t *list = json_object_get(house_call(other, "List", "{}"), "segments");
    ck_assert_uint_eq(json_array_size(list), 2);
    house_call(other, "Describe", "{'name':'manual'}");
    house_call(other, "Describe", "{'name':'kept'}");
    ck_assert_uint_eq(unit_objects(), 3 * 3); /* and those of "shared", which has no name */
    end();
    ck_assert_uint_eq(unit_objects(), 0);
}
END_TEST

/* --- Who may ------------------------------------------------------------- */

START_TEST(other_users)
{
    struct guest *g = begin(), *alice = house_admit(&house), *bob = house_admit(&house);
    g->connection->peer.uid = 0;
    alice->connection->peer.uid = 1001;
    bob->connection->peer.uid = 1002;
    json_t *p = house_call(alice, "Create", "{'name':'hers','size':1}");
    json_int_t id = house_int(p, "segment", "id");
    char attach[100];
    snprintf(attach, sizeof attach, "{'name':'hers','access':'peek','id':%lld}", id);
    house_refused(bob, "Attach", "{'name':'hers','access':'peek'}", "SegmentNotFound", "");
    house_refused(bob, "Attach", attach, "SegmentNotFound", "no segment 'hers'");
    house_refused(bob, "Remove", "{'name':'hers'}", "SegmentNotFound", "");
    house_refused(bob, "Describe", "{'name':'hers'}", "SegmentNotFound", "");
    house_refused(bob, "DefineLayout", "{'name':'hers','layout':{'name':'l','views':[]}}",
                  "SegmentNotFound", "");
    p = house_call(bob, "List", "{}");
    ck_assert_uint_eq(json_array_size(json_object_get(p, "segments")), 0);
    p = house_call(g, "List", "{}"); /* root sees every segment */
    ck_assert_uint_eq(json_array_size(json_object_get(p, "segments")), 1);
    house_call(g, "Attach", attach);
    house_call(g, "Create", "{'name':'roots','size':1}");
    house_refused(alice, "Describe", "{'name':'roots'}", "SegmentNotFound", "");
    house_call(g, "Remove", "{'name':'hers'}");
    house_refused(alice, "Describe", "{'name':'hers'}", "SegmentNotFound", "");
    end();
}
END_TEST

START_TEST(list_and_describe)
{
    struct guest *g = begin();
    json_t *p = house_call(g, "List", "{}");
    ck_assert_uint_eq(json_array_size(json_object_get(p, "segments")), 0);
    for (int i = 0; i < 50; i++) {
        char create[64];
        snprintf(create, sizeof create, "{'name':'s%d','size':%d,'lock':false}", i, i + 1);
        house_call(g, "Create", create);
    }
    p = house_call(g, "List", "{}");
    ck_assert_uint_eq(json_array_size(json_object_get(p, "segments")), 50);
    p = house_call(g, "Describe", "{'name':'s7'}");
    ck_assert_int_eq(house_int(p, "segment", "size"), 8);
    ck_assert(json_is_false(json_object_get(json_object_get(p, "segment"), "lock")));
    ck_assert_uint_eq(json_array_size(json_object_get(p, "layouts")), 0);
    end();
}
END_TEST

/* Counts the segments that all parts of a list have, and checks their order. */
static unsigned count_all(struct guest *g, json_int_t last, unsigned *ret_parts)
{
    unsigned n = 0;
    json_int_t after = 0;
    for (*ret_parts = 0; after >= 0; ++*ret_parts) {
        char parameters[64];
        size_t i;
        json_t *s;
        snprintf(parameters, sizeof parameters, "{'after':%lld}", (long long)after);
        json_t *p = house_call(g, "List", parameters), *next = json_object_get(p, "next");
        ck_assert_uint_le(json_array_size(json_object_get(p, "segments")), 100);
        json_array_foreach (json_object_get(p, "segments"), i, s) {
            json_int_t id = json_integer_value(json_object_get(s, "id"));
            ck_assert_int_gt(id, after);
            after = id;
            n++;
        }
        ck_assert(!next || json_integer_value(next) >= after);
        after = next ? json_integer_value(next) : -1;
        ck_assert_int_le(after, last);
    }
    return n;
}

START_TEST(long_lists_come_in_parts)
{
    struct guest *g = begin(), *other = house_admit(&house);
    json_int_t last = 0;
    unsigned parts;
    g->connection->peer.uid = 1001;
    other->connection->peer.uid = 1002;
    for (int i = 0; i < 250; i++) {
        char text[64];
        snprintf(text, sizeof text, "{'name':'s%d','size':1,'lock':false}", i);
        last = house_int(house_call(i % 50 ? g : other, "Create", text), "segment", "id");
    }
    ck_assert_uint_eq(count_all(g, last, &parts), 245);
    ck_assert_uint_eq(parts, 3);
    ck_assert_uint_eq(count_all(other, last, &parts), 5);
    ck_assert_uint_eq(parts, 1);
    house_call(g, "Remove", "{'name':'s120'}");
    ck_assert_uint_eq(count_all(g, last, &parts), 244);
    json_t *p = house_call(g, "List", "{'after':9223372036854775807}");
    ck_assert_uint_eq(json_array_size(json_object_get(p, "segments")), 0);
    ck_assert_ptr_null(json_object_get(p, "next"));
    house_refused(g, "List", "{'after':-1}", INVALID, "after");
    end();
}
END_TEST

UNIT_MAIN("methods", UNIT_TEST(info), UNIT_TEST(descriptions), UNIT_TEST(unknown_methods),
          UNIT_TEST(upgrade_and_oneway), UNIT_TEST(methods_refuse_unknown_members),
          UNIT_TEST(create_without_access), UNIT_TEST(create_with_access),
          UNIT_TEST(create_refused), UNIT_TEST(create_more_than_there_is),
          UNIT_TEST(create_over_a_foreign_object), UNIT_TEST(creation_under_way),
          UNIT_TEST(creator_leaves_while_creating), UNIT_TEST(attach_and_detach),
          UNIT_TEST(attach_refused), UNIT_TEST(attach_by_id_when_the_name_is_gone),
          UNIT_TEST(refusals_are_counted_by_name), UNIT_TEST(every_slot_taken),
          UNIT_TEST(lifetimes_end_with_their_connection), UNIT_TEST(other_users),
          UNIT_TEST(list_and_describe), UNIT_TEST(long_lists_come_in_parts))

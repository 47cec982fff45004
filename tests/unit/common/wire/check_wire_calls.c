/* SPDX-License-Identifier: Apache-2.0 */
/* Checks wire.c: which messages are calls, and which are refused. */
#include "unit/unit.h"

#include "common/base/limits.h"
#include "common/base/util.h"
#include "common/wire/wire.h"

static int parse_bytes(const char *text, size_t n, struct wire_fault *fault)
{
    struct wire_call call;
    *fault = (struct wire_fault){0};
    int r = wire_call_parse(&call, text, n, fault);
    if (r == 0) {
        ck_assert_ptr_nonnull(call.method);
        wire_call_deinit(&call);
        ck_assert_ptr_null(call.root);
    }
    return r;
}

static int parse_text(const char *text, struct wire_fault *fault)
{
    const char *json = unit_json(text);
    return parse_bytes(json, strlen(json), fault);
}

START_TEST(call_with_everything)
{
    struct wire_call call;
    struct wire_fault fault;
    const char *text = unit_json("{'method':'a.b.C','parameters':{'x':1},'oneway':true,"
                                 "'more':true,'upgrade':true}");
    ck_assert_int_eq(wire_call_parse(&call, text, strlen(text), &fault), 0);
    ck_assert_str_eq(call.method, "a.b.C");
    ck_assert_int_eq(json_integer_value(json_object_get(call.parameters, "x")), 1);
    ck_assert(call.oneway && call.more && call.upgrade);
    wire_call_deinit(&call);
    text = unit_json("{'method':'a.b.C'}");
    ck_assert_int_eq(wire_call_parse(&call, text, strlen(text), &fault), 0);
    ck_assert_ptr_null(call.parameters);
    ck_assert(!call.oneway && !call.more && !call.upgrade);
    wire_call_deinit(&call);
    text = unit_json("{'method':'a.b.C','oneway':false,'more':false,'upgrade':false}");
    ck_assert_int_eq(wire_call_parse(&call, text, strlen(text), &fault), 0);
    ck_assert(!call.oneway && !call.more && !call.upgrade);
    wire_call_deinit(&call);
}
END_TEST

START_TEST(what_is_no_call)
{
    static const char *const texts[] = {
        "",
        " ",
        "{",
        "}",
        "{}",
        "[]",
        "null",
        "1",
        "'x'",
        "true",
        "{'method'}",
        "{'method':}",
        "{'method':1}",
        "{'method':null}",
        "{'method':['a']}",
        "{'parameters':{}}",
        "{'method':'a.b','parameters':[]}",
        "{'method':'a.b','parameters':1}",
        "{'method':'a.b','parameters':'x'}",
        "{'method':'a.b','parameters':null}",
        "{'method':'a.b','oneway':1}",
        "{'method':'a.b','more':'true'}",
        "{'method':'a.b','upgrade':null}",
        "{'method':'a.b'} x",
        "{'method':'a.b'}{}",
        "{'method':'a.b',}",
        "{method:'a.b'}",
        "{'method':'a.b'",
        "[{'method':'a.b'}]",
        "{'method':'a.b','parameters':{'x':01}}",
        "{'method':'a.b','parameters':{'x':+1}}",
        "{'method':'a.b','parameters':{'x':NaN}}",
        "{'method':'a.b','parameters':{'x':.5}}",
        "// c\n{'method':'a.b'}",
        "{'method':'a\tb'}",
        "{'method':'\\x41'}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct wire_fault fault;
        ck_assert_msg(parse_text(texts[i], &fault) == -1, "accepted: %s", texts[i]);
        ck_assert_msg(fault.reason[0], "no reason: %s", texts[i]);
    }
}
END_TEST

START_TEST(duplicate_members)
{
    static const char *const texts[] = {
        "{'method':'a.b','method':'a.b'}",
        "{'method':'a.b','oneway':true,'oneway':true}",
        "{'method':'a.b','parameters':{},'parameters':{}}",
        "{'method':'a.b','parameters':{'x':1,'x':1}}",
        "{'method':'a.b','parameters':{'x':{'y':[{'z':1,'z':2}]}}}",
        "{'method':'a.b','parameters':{'x':1,'\\u0078':2}}",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct wire_fault fault;
        ck_assert_msg(parse_text(texts[i], &fault) == -1, "accepted: %s", texts[i]);
        unit_assert_holds(fault.reason, "duplicate");
    }
}
END_TEST

START_TEST(invalid_utf8_and_nul)
{
    static const char *const texts[] = {
        "{'method':'a\xff'}",
        "{'method':'\xc3'}",
        "{'method':'\xc0\x80'}",
        "{'method':'\xed\xa0\x80'}",
        "{'method':'\\ud800'}",
        "{'method':'\\udc00\\ud800'}",
        "{'method':'a\\u0000b'}",
        "{'method':'\\u0000'}",
        "{'\\u0000':1,'method':'a'}",
        "{'meth\xffod':1,'method':'a'}",
        "{'method':'a','x':'\xf8\x88\x80\x80\x80'}",
        "{'method':'\xf4\x90\x80\x80'}",
        "{'method':'a','parameters':{'n':'write\\u0000x'}}",
    };
    struct wire_fault fault;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        ck_assert_msg(parse_text(texts[i], &fault) == -1, "accepted: %s", texts[i]);
    /* frame.c never delivers a raw NUL, but it must be refused too */
    ck_assert_int_eq(parse_bytes("{\"method\":\"a\0b\"}", 16, &fault), -1);
    ck_assert_int_eq(parse_bytes("{\"method\":\"a\"}\0", 15, &fault), -1);
    ck_assert_int_eq(parse_text("{'method':'\xc3\xa9\\u00e9\\ud83d\\ude00'}", &fault), 0);
}
END_TEST

START_TEST(huge_numbers)
{
    struct wire_fault fault;
    ck_assert_int_eq(parse_text("{'method':'a','parameters':{'x':9223372036854775807}}", &fault),
                     0);
    ck_assert_int_eq(parse_text("{'method':'a','parameters':{'x':9223372036854775808}}", &fault),
                     -1);
    ck_assert_int_eq(parse_text("{'method':'a','parameters':{'x':-9223372036854775808}}", &fault),
                     0);
    ck_assert_int_eq(parse_text("{'method':'a','parameters':{'x':-9223372036854775809}}", &fault),
                     -1);
    ck_assert_int_eq(parse_text("{'method':'a','parameters':{'x':1e400}}", &fault), -1);
    char text[4096] = "{\"method\":\"a\",\"parameters\":{\"x\":";
    size_t n = strlen(text);
    memset(text + n, '9', 3000);
    strcpy(text + n + 3000, "}}");
    ck_assert_int_eq(parse_bytes(text, strlen(text), &fault), -1);
}
END_TEST

START_TEST(deep_nesting)
{
    static char text[400000];
    for (unsigned depth = 1; depth <= 100000; depth *= 10)
        for (int object = 0; object < 2; object++) {
            struct wire_fault fault;
            size_t n = (size_t)sprintf(text, "{\"method\":\"a\",\"parameters\":{\"x\":");
            for (unsigned i = 0; i < depth; i++)
                n += (size_t)sprintf(text + n, object && n < 300000 ? "{\"k\":" : "[");
            int r = parse_bytes(text, n, &fault);
            ck_assert_int_eq(r, -1); /* refused at any depth, because it is not closed */
        }
    struct wire_fault fault;
    size_t n = (size_t)sprintf(text, "{\"method\":\"a\",\"parameters\":{\"x\":");
    memset(text + n, '[', 100000);
    memset(text + n + 100000, ']', 100000);
    strcpy(text + n + 200000, "}}");
    ck_assert_int_eq(parse_bytes(text, strlen(text), &fault), -1);
    unit_assert_holds(fault.reason, "depth");
}
END_TEST

START_TEST(method_names)
{
    struct wire_fault fault;
    char text[600] = "{\"method\":\"";
    size_t n = strlen(text);
    memset(text + n, 'm', 256);
    strcpy(text + n + 256, "\"}");
    ck_assert_int_eq(parse_bytes(text, strlen(text), &fault), 0);
    memset(text + n, 'm', 257);
    strcpy(text + n + 257, "\"}");
    ck_assert_int_eq(parse_bytes(text, strlen(text), &fault), -1);
    ck_assert_str_eq(fault.parameter, "method");
    unit_assert_holds(fault.reason, "257 bytes");
    ck_assert_int_eq(parse_text("{'method':''}", &fault), 0); /* refused later as unknown */
}
END_TEST

/* Reads or refuses every prefix of a call, and every call with one byte changed. */
START_TEST(damaged_calls)
{
    static const char text[] = "{\"method\":\"io.shmview.DefineLayout\",\"parameters\":{\"name\":"
                               "\"n\",\"layout\":{\"name\":\"l\",\"views\":[{\"name\":\"v\","
                               "\"format\":\"i\",\"shape\":[1,2]}]}},\"oneway\":false}";
    char damaged[sizeof text];
    struct wire_fault fault;
    uint64_t seed = 42;
    for (size_t n = 0; n < sizeof text - 1; n++)
        ck_assert_int_eq(parse_bytes(text, n, &fault), -1);
    for (int i = 0; i < 20000; i++) {
        struct wire_call call;
        struct wire_define define;
        memcpy(damaged, text, sizeof text);
        for (uint64_t k = unit_random(&seed) % 3 + 1; k > 0; k--)
            damaged[unit_random(&seed) % (sizeof text - 1)] = (char)unit_random(&seed);
        if (wire_call_parse(&call, damaged, sizeof text - 1, &fault))
            continue;
        if (wire_read_define(call.parameters, &define, &fault) == 0)
            free(define.layout.views);
        wire_call_deinit(&call);
    }
}
END_TEST

/* Checks that the strict reader accepts a call that was scanned, and reads the same. */
static void check_scanned(const struct wire_call *scanned, const char *text)
{
    struct wire_call call;
    struct wire_fault fault;
    struct wire_attach attach;
    int64_t attachment;
    ck_assert_msg(wire_call_parse(&call, text, strlen(text), &fault) == 0, "%s", text);
    ck_assert_str_eq(call.method, scanned->method);
    ck_assert(call.oneway == scanned->oneway && !call.more && !call.upgrade);
    ck_assert(!scanned->more && !scanned->upgrade && !scanned->root && !scanned->parameters);
    if (scanned->scanned == WIRE_SCANNED_ATTACH) {
        ck_assert_msg(wire_read_attach(call.parameters, &attach, &fault) == 0, "%s", text);
        ck_assert_str_eq(attach.name, scanned->attach.name);
        ck_assert_int_eq(attach.access, scanned->attach.access);
        ck_assert_int_eq(attach.id, scanned->attach.id);
    } else {
        ck_assert_int_eq(scanned->scanned, WIRE_SCANNED_DETACH);
        ck_assert(wire_read_int(call.parameters, "attachment", &attachment, &fault) == 0);
        ck_assert_int_eq(attachment, scanned->attachment);
    }
    wire_call_deinit(&call);
}

START_TEST(usual_calls_are_scanned)
{
    static struct wire_call call;
    CLEANUP_FREE char *attach = wire_attach_text(
        &(struct wire_attach){.name = "demo/1", .access = SHMVIEW_READ, .id = WIRE_ABSENT});
    CLEANUP_FREE char *again =
        wire_attach_text(&(struct wire_attach){.name = "x", .access = SHMVIEW_WRITE, .id = 77});
    CLEANUP_FREE char *detach = wire_detach_text(INT64_C(12345));
    const char *const texts[] = {attach, again, detach};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        ck_assert(wire_call_scan(&call, texts[i]));
        check_scanned(&call, texts[i]);
    }
}
END_TEST

START_TEST(unusual_calls_are_not_scanned)
{
    static struct wire_call call;
    static const char *const texts[] = {
        "",
        "{'method':'io.shmview.Attach'}",
        "{'method':'io.shmview.Attach','parameters':{}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'a'}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'a','access':'write'}} ",
        "{'method':'io.shmview.Attach','parameters':{'name':'a','access':'write'}}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'a','access':'write'}",
        "{'method':'io.shmview.Attach','parameters':{'name':'a','access':'write','x':1}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'a','access':'write','id':-1}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'a','access':'write','id':1e3}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'a','access':'all'}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'\\u0061','access':'write'}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'\xc3\xa4','access':'write'}}",
        "{'method':'io.shmview.Attach','parameters':{'name':'a','access':'write'},'more':true}",
        "{'method':'io.shmview.Detach','parameters':{'attachment':1}}",
        "{'method':'io.shmview.Detach','parameters':{'attachment':01},'oneway':true}",
        "{'method':'io.shmview.Detach','parameters':{'attachment':1},'oneway':true,'more':true}",
        "{'method':'io.shmview.Ping','parameters':{}}",
    };
    char name[LIMIT_NAME_BYTES + 2], text[sizeof name + 100];
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        ck_assert_msg(!wire_call_scan(&call, unit_json(texts[i])), "%s", texts[i]);
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    for (int over = 1; over >= 0; over--) {
        snprintf(text, sizeof text,
                 "{\"method\":\"io.shmview.Attach\",\"parameters\":{\"name\":\"%s\","
                 "\"access\":\"peek\"}}",
                 name + !over);
        ck_assert_int_eq(wire_call_scan(&call, text), !over);
    }
}
END_TEST

START_TEST(damaged_calls_are_scanned_as_they_are_parsed)
{
    static struct wire_call call;
    static const char bytes[] = "\"\\{}[],:0019-.eatrue \x7f\xc3\n";
    uint64_t seed = 17;
    unsigned accepted = 0;
    CLEANUP_FREE char *attach =
        wire_attach_text(&(struct wire_attach){.name = "name", .access = SHMVIEW_WRITE, .id = 10});
    CLEANUP_FREE char *detach = wire_detach_text(1000);
    for (int i = 0; i < 200000; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s", i % 2 ? attach : detach);
        size_t n = strlen(text);
        for (uint64_t k = unit_random(&seed) % 2 + 1; k > 0; k--)
            text[unit_random(&seed) % n] = bytes[unit_random(&seed) % (sizeof bytes - 1)];
        if (!wire_call_scan(&call, text))
            continue;
        accepted++;
        check_scanned(&call, text);
    }
    ck_assert_uint_gt(accepted, 1000);
}
END_TEST

UNIT_MAIN("wire_calls", UNIT_TEST(usual_calls_are_scanned),
          UNIT_TEST(unusual_calls_are_not_scanned),
          UNIT_TEST(damaged_calls_are_scanned_as_they_are_parsed), UNIT_TEST(call_with_everything),
          UNIT_TEST(what_is_no_call), UNIT_TEST(duplicate_members), UNIT_TEST(invalid_utf8_and_nul),
          UNIT_TEST(huge_numbers), UNIT_TEST(deep_nesting), UNIT_TEST(method_names),
          UNIT_TEST(damaged_calls))

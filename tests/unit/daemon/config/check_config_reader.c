/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the meaning of each key, and the line that reports each fault. */
#include "daemon/config/config_reader.h"
#include "unit/config_text.h"

static void quota_is(const struct quota_limit *q, uint64_t bytes, uint64_t segments,
                     uint64_t attachments, uint64_t connections, uint64_t rate, uint64_t burst)
{
    ck_assert_uint_eq(q->bytes, bytes);
    ck_assert_uint_eq(q->segments, segments);
    ck_assert_uint_eq(q->attachments, attachments);
    ck_assert_uint_eq(q->connections, connections);
    ck_assert_uint_eq(q->requests_per_second, rate);
    ck_assert_uint_eq(q->burst, burst);
}

#define NO QUOTA_UNLIMITED

/* --- What holds ----------------------------------------------------------- */

START_TEST(nothing_is_said)
{
    struct config *c = reads("{}");
    quota_is(&c->limits.user, NO, NO, NO, NO, NO, NO);
    quota_is(&c->limits.total, NO, NO, NO, NO, NO, NO);
    ck_assert_uint_eq(c->limits.user.layout_bytes, CONFIG_LAYOUT_BYTES);
    ck_assert_uint_eq(c->limits.total.layout_bytes, NO);
    ck_assert_uint_eq(c->default_mode, 0600);
    ck_assert(c->create.everybody && c->create.n_entries == 0);
    ck_assert(!c->has_admin_group);
    ck_assert_int_eq(c->log_level, LOG_INFO);
    ck_assert_uint_eq(c->pool_bytes, 0);
    ck_assert_uint_eq(c->n_segments, 0);
    config_free(c);
}
END_TEST

START_TEST(scalars)
{
    struct config *c =
        reads("{'quotas':{'user':{'bytes':'50%','segments':1,'attachments':2,'connections':3,"
              "'requests_per_second':4,'burst':5,'layout_bytes':'unlimited'},"
              "'total':{'bytes':'64KiB','requests_per_second':9,'layout_bytes':'1MiB',"
              "'segments':'unlimited'}},'defaults':{'mode':'0664'},'admin_group':'lab',"
              "'log_level':'warning'}");
    quota_is(&c->limits.user, MEMORY / 2, 1, 2, 3, 4, 5);
    quota_is(&c->limits.total, 65536, NO, NO, NO, 9, 9); /* a burst of one second */
    ck_assert_uint_eq(c->limits.user.layout_bytes, NO);
    ck_assert_uint_eq(c->limits.total.layout_bytes, 1 << 20);
    ck_assert_uint_eq(c->default_mode, 0664);
    ck_assert(c->has_admin_group);
    ck_assert_uint_eq(c->admin_group, 2001);
    ck_assert_int_eq(c->log_level, LOG_WARNING);
    config_free(c);
}
END_TEST

START_TEST(pool)
{
    static const struct {
        const char *text;
        uint64_t bytes;
    } sizes[] = {{"{'pool':0}", 0},
                 {"{'pool':4096}", 4096},
                 {"{'pool':'1MiB'}", 1 << 20},
                 {"{'pool':'5%'}", 50000}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct config *c = reads(sizes[i].text);
        ck_assert_uint_eq(c->pool_bytes, sizes[i].bytes);
        config_free(c);
    }
    refuses("{'pool':-1}", "f:1: pool must be 0 to 72057594037927936 bytes, or 1% to 100%\n");
    refuses("{'pool':true}",
            "f:1: pool must be a number of bytes, or a string like \"64MiB\" or \"1%\"\n");
}
END_TEST

START_TEST(only_sealed)
{
    struct config *c = reads("{'only_sealed':true,'segments':[{'name':'a','size':1}]}");
    ck_assert(c->only_sealed);
    ck_assert_int_eq(c->default_backing, SHMVIEW_BACKING_SEALED);
    config_free(c);
    c = reads("{'only_sealed':true,'defaults':{'backing':'sealed'}}");
    ck_assert_int_eq(c->default_backing, SHMVIEW_BACKING_SEALED);
    config_free(c);
    c = reads("{'only_sealed':false,'defaults':{'backing':'file'}}");
    ck_assert(!c->only_sealed);
    ck_assert_int_eq(c->default_backing, SHMVIEW_BACKING_FILE);
    config_free(c);
    refuses("{'only_sealed':1}", "f:1: only_sealed must be true or false\n");
    refuses("{'defaults':{'backing':'file'},'only_sealed':true,\n"
            "'segments':[{'name':'a','size':1},\n{'name':'b','size':1,'backing':'file'}]}",
            "configuration: defaults.backing is \"file\", but only_sealed is true\n"
            "f:3: the backing of segment 'b' is \"file\", but only_sealed is true\n");
}
END_TEST

START_TEST(who_creates)
{
    struct config *c = reads("{'create':[]}");
    ck_assert(!c->create.everybody && c->create.n_entries == 0);
    config_free(c);
    c = reads("{'create':['user:ann','group:lab','user:7']}");
    ck_assert(!c->create.everybody);
    ck_assert_uint_eq(c->create.n_entries, 3);
    ck_assert_uint_eq(c->create.entries[0].id, 1001);
    ck_assert_uint_eq(c->create.entries[0].kind, ACCESS_USER);
    ck_assert_uint_eq(c->create.entries[1].id, 2001);
    ck_assert_uint_eq(c->create.entries[1].kind, ACCESS_GROUP);
    ck_assert_uint_eq(c->create.entries[2].id, 7);
    config_free(c);
    c = reads("{'create':['user:ann','*']}");
    ck_assert(c->create.everybody);
    config_free(c);
}
END_TEST

START_TEST(declared)
{
    struct config *c = reads(
        "{'segments':[{'name':'small','size':1},\n"
        "{'name':'all','size':'1MiB','owner':'ann','group':'lab','mode':'0640','lifetime':"
        "'attached','lock':false,'acl':['user:7:rw','group:lab:-'],'layouts':[{'name':'l','views':"
        "[{'name':'v','format':'uint8','shape':[2,3],'strides':[-3,1],'offset':3}]},"
        "{'name':'m','views':[]}]}],'defaults':{'mode':'0604'}}");
    ck_assert_uint_eq(c->n_segments, 2);
    const struct config_segment *s = config_find_segment(c, "small");
    ck_assert_uint_eq(s->size, 1);
    ck_assert_uint_eq(s->access.uid, geteuid());
    ck_assert_uint_eq(s->access.gid, getegid());
    ck_assert_uint_eq(s->access.mode, 0604); /* the default, wherever it is set */
    ck_assert_uint_eq(s->access.n_entries, 0);
    ck_assert_int_eq(s->lifetime, SHMVIEW_MANUAL);
    ck_assert(s->lock && s->n_layouts == 0);
    ck_assert_str_eq(s->file, "f");
    ck_assert_uint_eq(s->line, 1);
    s = config_find_segment(c, "all");
    ck_assert_uint_eq(s->size, 1048576);
    ck_assert_uint_eq(s->access.uid, 1001);
    ck_assert_uint_eq(s->access.gid, 2001);
    ck_assert_uint_eq(s->access.mode, 0640);
    ck_assert_uint_eq(s->access.n_entries, 2);
    ck_assert_uint_eq(s->access.entries[0].id, 7);
    ck_assert_uint_eq(s->access.entries[0].perms, ACCESS_READ | ACCESS_WRITE);
    ck_assert_uint_eq(s->access.entries[1].kind, ACCESS_GROUP);
    ck_assert_uint_eq(s->access.entries[1].perms, 0);
    ck_assert_int_eq(s->lifetime, SHMVIEW_ATTACHED);
    ck_assert(!s->lock);
    ck_assert_uint_eq(s->line, 2);
    ck_assert_uint_eq(s->n_layouts, 2);
    ck_assert_str_eq(s->layouts[0].name, "l");
    ck_assert_str_eq(s->layouts[0].views[0].format, "B"); /* the canonical form */
    ck_assert_int_eq(s->layouts[0].views[0].desc.strides[0], -3);
    ck_assert_ptr_null(config_find_segment(c, "none"));
    config_free(c);
}
END_TEST

START_TEST(later_files_override_and_add)
{
    begin();
    add("a", "{'quotas':{'user':{'bytes':10,'segments':5},'total':{'bytes':20}},'create':["
             "'user:1'],'segments':[{'name':'a','size':1}],'log_level':'error'}");
    add("b", "{'quotas':{'user':{'bytes':11}},'create':['user:2'],'segments':[{'name':'b',"
             "'size':2}]}");
    add("c", "{'quotas':{'total':{'bytes':'unlimited'}},'log_level':'info'}");
    struct config *c = config_reader_end(&reader);
    ck_assert_ptr_nonnull(c);
    quota_is(&c->limits.user, 11, 5, NO, NO, NO, NO);
    quota_is(&c->limits.total, NO, NO, NO, NO, NO, NO);
    ck_assert(!c->create.everybody);
    ck_assert_uint_eq(c->create.n_entries, 2);
    ck_assert_uint_eq(c->n_segments, 2);
    ck_assert_str_eq(c->segments[1].file, "b");
    ck_assert_int_eq(c->log_level, LOG_INFO);
    config_free(c);
}
END_TEST

/* --- What is refused -------------------------------------------------------- */

START_TEST(syntax)
{
    refuses("", "f:1: '[' or '{' expected near end of file\n");
    refuses("{\n'a' 1}", "f:2: ':' expected near '1'\n");
    refuses("{'log_level':'info'\n}\n\nx", "f:4: end of file expected near 'x'\n");
    refuses("{'create':[],\n'create':[]}", "f:2: duplicate object key near '\"create\"'\n");
    refuses("{'log_level':\n'\xff'}", "f:2: unable to decode byte 0xff near '\"'\n");
    refuses("[]", "f:1: must be an object\n");
    refuses("\n{'segments':[{'name':'a','size':99999999999999999999}]}",
            "f:2: too big integer near '99999999999999999999'\n");
}
END_TEST

START_TEST(unknown_keys)
{
    refuses("{\n'segmnts':[]}", "f:2: segmnts is not a known key\n");
    refuses("{'quotas':\n{'users':{}}}", "f:2: quotas.users is not a known key\n");
    refuses("{'quotas':{'user':{'bytes':1,\n\n'byts':1}}}",
            "f:3: quotas.user.byts is not a known key\n");
    refuses("{'defaults':{\n'owner':'ann'}}", "f:2: defaults.owner is not a known key\n");
    refuses("{'segments':[{'name':'a','size':1,\n'colour':1}]}",
            "f:2: segments[0].colour is not a known key\n");
    refuses("{'segments':[{'name':'a','size':1,'layouts':[{'name':'l','views':[\n"
            "{'name':'v','format':'b','shape':[],\n'x':1}]}]}]}",
            "f:3: segments[0].layouts[0].views[0].x is not a known member\n");
    refuses("{\n'a\\nb\\u001b':1}", "f:2: a?b? is not a known key\n");
}
END_TEST

START_TEST(wrong_types)
{
    refuses("{\n'quotas':[]}", "f:2: quotas must be an object\n");
    refuses("{'quotas':{\n'user':1}}", "f:2: quotas.user must be an object\n");
    refuses("{'quotas':{'user':{\n'bytes':1.5}}}",
            "f:2: quotas.user.bytes must be a number of bytes, or a string like \"64MiB\", "
            "\"50%\" or \"unlimited\"\n");
    refuses("{'quotas':{'user':{'segments':'1'\n}}}",
            "f:1: quotas.user.segments must be an integer or \"unlimited\"\n");
    refuses("{'defaults':\n{'mode':640}}",
            "f:2: defaults.mode must be a string of octal digits, at most \"0666\"\n");
    refuses("{'create':'*'}", "f:1: create must be an array\n");
    refuses("{'create':['*',\n1]}", "f:2: create[1] must be a string\n");
    refuses("{'admin_group':7}", "f:1: admin_group must be a string\n");
    refuses("{'log_level':null}", "f:1: log_level must be \"error\", \"warning\" or \"info\"\n");
    refuses("{'segments':{}}", "f:1: segments must be an array\n");
    refuses("{'segments':[\n1]}", "f:2: segments[0] must be an object\n");
    refuses("{'segments':[{'name':1,\n'size':true,\n'owner':[],\n'group':-1,\n'mode':6,\n'acl':"
            "'x',\n'lifetime':1,\n'lock':0,\n'layouts':{}}]}",
            "f:1: segments[0].name must be a string\n"
            "f:2: segments[0].size must be a number of bytes, or a string like \"64MiB\"\n"
            "f:3: segments[0].owner must be a name or a uid\n"
            "f:4: segments[0].group must be a name or a gid\n"
            "f:5: segments[0].mode must be a string of octal digits, at most \"0666\"\n"
            "f:6: segments[0].acl must be an array\n"
            "f:7: segments[0].lifetime must be \"manual\" or \"attached\"\n"
            "f:8: segments[0].lock must be true or false\n"
            "f:9: segments[0].layouts must be an array\n");
    refuses("{'segments':[{'name':'a','size':1,'layouts':[\n1]}]}",
            "f:2: segments[0].layouts[0] must be an object\n");
    refuses("{'segments':[{'name':'a','size':1,'layouts':[{'name':'l',\n'views':[{'name':'v',\n"
            "'format':'b',\n'shape':1}]}]}]}",
            "f:4: segments[0].layouts[0].views[0].shape must be an array of integers\n");
}
END_TEST

START_TEST(wrong_words)
{
    refuses("{'defaults':{'backing':'paper',\n'mode':'0888'}}",
            "f:1: defaults.backing must be \"file\" or \"sealed\"\n"
            "f:2: defaults.mode must be a string of octal digits, at most \"0666\"\n");
    refuses("{'defaults':{'backing':1}}", "f:1: defaults.backing must be \"file\" or \"sealed\"\n");
    refuses("{'log_level':'loud'}", "f:1: log_level must be \"error\", \"warning\" or \"info\"\n");
    refuses("{'segments':[{'name':'a','size':1,'label':'a\\u001bb',\n'lifetime':'creator',\n"
            "'owner':4294967295,\n'group':1.5}]}",
            "f:1: segments[0].label must be 1 to 63 bytes of UTF-8 without control characters\n"
            "f:2: segments[0].lifetime must be \"manual\" or \"attached\"\n"
            "f:3: segments[0].owner must be a name or a uid\n"
            "f:4: segments[0].group must be a name or a gid\n");
    refuses("{'segments':[{'name':'a','size':1,'label':7}]}",
            "f:1: segments[0].label must be a string\n");
    struct config *c = reads("{'segments':[{'name':'a','size':1,'label':'b','lifetime':'manual',"
                             "'lock':true,'owner':0,'group':4294967294}]}");
    ck_assert_str_eq(c->segments[0].label, "b");
    ck_assert_int_eq(c->segments[0].lifetime, SHMVIEW_MANUAL);
    ck_assert(c->segments[0].lock);
    ck_assert_uint_eq(c->segments[0].access.uid, 0);
    ck_assert_uint_eq(c->segments[0].access.gid, 4294967294u);
    config_free(c);
}
END_TEST

START_TEST(out_of_range)
{
    refuses("{'pool':72057594037927937}",
            "f:1: pool must be 0 to 72057594037927936 bytes, or 1% to 100%\n");
    refuses("{'segments':[{'name':'a','size':72057594037927937}]}",
            "f:1: segments[0].size must be 1 to 72057594037927936 bytes\n");

    refuses("{'quotas':{'user':{\n'bytes':0,\n'segments':0,\n'burst':1000000001}}}",
            "f:2: quotas.user.bytes must be 1 to 72057594037927936 bytes, or 1% to 100%\n"
            "f:3: quotas.user.segments is 0, must be 1 to 1000000000\n"
            "f:4: quotas.user.burst is 1000000001, must be 1 to 1000000000\n");
    refuses("{'quotas':{'total':{\n'bytes':'101%'}}}",
            "f:2: quotas.total.bytes must be 1 to 72057594037927936 bytes, or 1% to 100%\n");
    refuses("{'segments':[{'name':'a','size':0},\n{'name':'b','size':'65537TiB'},\n"
            "{'name':'c','size':'50%'}]}",
            "f:1: segments[0].size must be 1 to 72057594037927936 bytes\n"
            "f:2: segments[1].size must be 1 to 72057594037927936 bytes\n"
            "f:3: segments[2].size must be a number of bytes, or a string like \"64MiB\"\n");
    refuses("{'segments':[{'name':'.a','size':1}]}",
            "f:1: segments[0].name must be 1 to 128 of A-Z a-z 0-9 . _ -, not starting with a "
            "dot\n");
}
END_TEST

START_TEST(people)
{
    refuses("{'create':['bob',\n'user:bob',\n'group:ann',\n'user:slow']}",
            "f:1: create[0] must be \"*\", \"user:NAME\" or \"group:NAME\"\n"
            "f:2: create[1] is 'user:bob': there is no such user\n"
            "f:3: create[2] is 'group:ann': there is no such group\n"
            "f:4: create[3] is 'user:slow': the user cannot be looked up: Connection timed out\n");
    ck_assert_uint_eq(reader.n_passing, 1); /* the last one */
    refuses("{'segments':[{'name':'a','size':1,'owner':'slow','acl':['user:slow:r']}],"
            "'admin_group':'slow'}",
            "f:1: segments[0].owner is 'slow': the user cannot be looked up: Connection timed out\n"
            "f:1: segments[0].acl[0] is 'user:slow:r': the user cannot be looked up: Connection "
            "timed out\n"
            "f:1: admin_group is 'slow': the group cannot be looked up: Connection timed out\n");
    ck_assert_uint_eq(reader.n_passing, reader.n_errors);
    refuses("{'admin_group':'ann'}", "f:1: admin_group is 'ann': there is no such group\n");
    ck_assert_uint_eq(reader.n_passing, 0);
    refuses("{'segments':[{'name':'a','size':1,'owner':'lab',\n'group':'4294967295'}]}",
            "f:1: segments[0].owner is 'lab': there is no such user\n"
            "f:2: segments[0].group is '4294967295': there is no such group\n");
    refuses("{'segments':[{'name':'a','size':1,'acl':['user:ann',\n'user:bob:r',\n'user:ann:r',\n"
            "'user:1001:w',\n'group:1001:w']}]}",
            "f:1: segments[0].acl[0] must be \"user:NAME:\" or \"group:NAME:\", followed by r, "
            "w, rw or -\n"
            "f:2: segments[0].acl[1] is 'user:bob:r': there is no such user\n"
            "f:4: segments[0].acl[3] is 'user:1001:w': this list has that user already\n");
}
END_TEST

START_TEST(segments)
{
    refuses("{'segments':[\n{'size':1},\n{'name':'a'}]}", "f:2: segments[0] has no \"name\"\n"
                                                          "f:3: segments[1] has no \"size\"\n");
    refuses("{'segments':[{'name':'a','size':1},\n\n{'name':'a','size':1}]}",
            "f:3: segments[1] declares 'a' again: it is declared at f:1\n");
    begin();
    add("one", "{\n'segments':[\n{'name':'a','size':1}]}");
    add("two", "{'segments':[{'name':'b','size':1},\n{'name':'a','size':1}]}");
    ck_assert_ptr_null(config_reader_end(&reader));
    ck_assert_str_eq(said, "two:2: segments[1] declares 'a' again: it is declared at one:3\n");
}
END_TEST

START_TEST(layouts)
{
    refuses("{'segments':[{'name':'a','size':8,'layouts':[{'name':'l','views':[\n"
            "{'name':'v','format':'i','shape':[2]},\n"
            "{'name':'w','format':'i','shape':[3]}]}]}]}",
            "f:3: segments[0].layouts[0].views[1] does not fit: view 'w': dimension 0 ends at byte "
            "12, the segment has 8 bytes\n");
    refuses("{'segments':[{'name':'a','size':8,'layouts':[{'name':'l','views':[]},\n"
            "{'name':'l','views':[]},\n{'name':'.','views':[]}]}]}",
            "f:2: segments[0].layouts[1] is a second layout 'l'\n"
            "f:3: segments[0].layouts[2] does not fit: '.' is not a valid name: 1 to 64 of A-Z a-z "
            "0-9 . _ "
            "-, not starting with a dot\n");
    refuses("{'segments':[{'name':'a','size':8,'layouts':[{'name':'l','views':[\n"
            "{'name':'v','format':'no','shape':[]}]}]}]}",
            "f:2: segments[0].layouts[0].views[0] does not fit: view 'v': format \"no\": character "
            "1: 'o' is no type code\n");
}
END_TEST

START_TEST(everything_is_limited)
{
    static char text[200000];
    size_t n = (size_t)sprintf(text, "{'segments':[{'name':'a','size':1,'acl':[");
    for (int i = 0; i <= LIMIT_ACL_ENTRIES; i++)
        n += (size_t)sprintf(text + n, "%s'user:%d:r'", i ? "," : "", i);
    n += (size_t)sprintf(text + n, "],\n'layouts':[");
    for (int i = 0; i <= LIMIT_LAYOUTS; i++)
        n += (size_t)sprintf(text + n, "%s{'name':'l%d','views':[]}", i ? "," : "", i);
    sprintf(text + n, "]}]}");
    refuses(text, "f:1: segments[0].acl has 33 entries, the limit is 32\n"
                  "f:2: segments[0].layouts has 65 layouts, the limit is 64\n");
}
END_TEST

/* Adds a text that is too long for unit_json(). */
static void add_long(char *text)
{
    for (char *p = text; *p; p++)
        *p = *p == '\'' ? '"' : *p;
    config_reader_add(&reader, "f", text, strlen(text));
}

START_TEST(many_segments)
{
    static char text[400000];
    for (int extra = 0; extra < 3; extra++) {
        size_t n = (size_t)sprintf(text, "{'segments':[");
        for (int i = 0; i < LIMIT_CONFIG_SEGMENTS + (extra == 1); i++)
            n += (size_t)sprintf(text + n, "%s\n{'name':'s%d','size':1}", i ? "," : "", i);
        sprintf(text + n, "]}");
        begin();
        add_long(text);
        if (extra == 2)
            add("g", "{'segments':[{'name':'other','size':1}]}");
        struct config *c = config_reader_end(&reader);
        if (extra == 0) {
            ck_assert_str_eq(said, "");
            ck_assert_uint_eq(c->n_segments, LIMIT_CONFIG_SEGMENTS);
            ck_assert_uint_eq(c->segments[LIMIT_CONFIG_SEGMENTS - 1].line,
                              LIMIT_CONFIG_SEGMENTS + 1);
        } else {
            ck_assert_ptr_null(c);
            ck_assert_str_eq(said, extra == 1
                                       ? "f:1: segments has 4097 segments, the limit is 4096\n"
                                       : "g:1: segments[0] is one segment too many: the limit is "
                                         "4096\n");
        }
        config_free(c);
    }
}
END_TEST

START_TEST(many_people)
{
    static char text[40000];
    size_t n = (size_t)sprintf(text, "{'create':[");
    for (int i = 0; i <= LIMIT_CONFIG_PEOPLE; i++)
        n += (size_t)sprintf(text + n, "%s\n'user:%d'", i ? "," : "", i);
    sprintf(text + n, "]}");
    begin();
    add_long(text);
    ck_assert_ptr_null(config_reader_end(&reader));
    ck_assert_str_eq(said, "f:1026: create[1024] is one user or group too many: the limit is "
                           "1024\n");
}
END_TEST

START_TEST(many_errors)
{
    static char text[8000] = "{";
    for (int i = 0; i < LIMIT_CONFIG_ERRORS + 7; i++)
        sprintf(text + strlen(text), "%s\n'k%d':0", i ? "," : "", i);
    strcat(text, "}");
    begin();
    add("f", text);
    ck_assert_ptr_null(config_reader_end(&reader));
    unit_assert_holds(said, "\nf:41: k39 is not a known key\nconfiguration: 7 more errors\n");
    ck_assert_ptr_null(strstr(said, "k40 "));
}
END_TEST

UNIT_MAIN("config_reader", UNIT_TEST(nothing_is_said), UNIT_TEST(scalars), UNIT_TEST(pool),
          UNIT_TEST(only_sealed), UNIT_TEST(who_creates), UNIT_TEST(declared),
          UNIT_TEST(later_files_override_and_add), UNIT_TEST(syntax), UNIT_TEST(unknown_keys),
          UNIT_TEST(wrong_types), UNIT_TEST(wrong_words), UNIT_TEST(out_of_range),
          UNIT_TEST(people), UNIT_TEST(segments), UNIT_TEST(layouts),
          UNIT_TEST(everything_is_limited), UNIT_TEST(many_segments), UNIT_TEST(many_people),
          UNIT_TEST(many_errors))

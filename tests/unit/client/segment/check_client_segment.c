/* SPDX-License-Identifier: Apache-2.0 */
/* Checks segment.c of the library: it checks what a daemon hands out before using it, and gives it
 * back if it is wrong. */
#include "client/link/connection.h"
#include "client/views/handle.h"

#include <shmview/many.h>

#include "unit/faults.h"
#include "unit/objects.h"

static struct stub stub;
static struct shmview_connection *conn;
static struct shmview_segment *seg;

static void assert_fails(int r, int error, const char *part)
{
    ck_assert_msg(r == -error, "%d, not %d: %s", r, -error, shmview_error_text());
    unit_assert_holds(shmview_error_text(), part);
}

static void begin(const struct stub_step *steps, size_t n)
{
    stub_start(&stub, steps, n);
    ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
}

static void end(void)
{
    ck_assert_int_eq(shmview_disconnect(conn), 0);
    stub_end(&stub);
    ck_assert_uint_eq(n_mapped(), 0);
}

/* Attaches by a reply that must be refused. given_back: the library must send a Detach for it. */
static void refuses(const char *reply, size_t n_fds, bool given_back, int error, const char *part)
{
    struct stub_step steps[] = {STUB_GREETING, attach_step(reply), detach_step};
    struct shmview_segment *untouched = seg = (void *)&objects;
    steps[1].n_fds = n_fds;
    begin(steps, given_back ? 3 : 2);
    unsigned before = unit_fds();
    int r = shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg);
    ck_assert_msg(r == -error, "%d, not %d (%s): %s", r, -error, shmview_error_text(), reply);
    unit_assert_holds(shmview_error_text(), part);
    ck_assert_ptr_eq(seg, untouched);
    ck_assert_uint_eq(unit_fds(), before);
    end();
}

/* --- What is good -------------------------------------------------------- */

START_TEST(attach_and_detach)
{
    objects_make();
    const struct stub_step steps[] = {STUB_GREETING, attach_step(REPLY(SEGMENT, ATTACHMENT)),
                                      detach_step};
    begin(steps, 3);
    unsigned before = unit_fds();
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg), 0);
    ck_assert_uint_eq(unit_fds(), before); /* mapped, and the descriptors are closed */
    ck_assert_uint_eq(n_mapped(), 3);
    ck_assert_str_eq(shmview_name(seg), "seg");
    ck_assert_uint_eq(shmview_size(seg), SIZE);
    ck_assert_int_eq(shmview_access(seg), SHMVIEW_WRITE);
    ck_assert_mem_eq(shmview_data(seg), "hello", 5);
    ck_assert_uint_eq((uintptr_t)shmview_data(seg) % 4096, 0);
    memcpy(shmview_data(seg), "HELLO", 5);
    char bytes[5];
    ck_assert_int_eq(pread(objects.data, bytes, 5, 0), 5);
    ck_assert_mem_eq(bytes, "HELLO", 5);
    unit_assert_holds(stub.requests[1], "\"name\":\"seg\",\"access\":\"write\"");
    ck_assert_int_eq(-shmview_disconnect(conn), SHMVIEW_ERR_BUSY);
    /* the first lock signs the slot with the process, for clients that outlive it */
    ck_assert_int_eq(shmview_trylock(seg), 0);
    ck_assert_int_eq(shmview_unlock(seg), 0);
    struct shmview_slot slot;
    ck_assert_int_eq(pread(objects.control, &slot, sizeof slot, 1536), (ssize_t)sizeof slot);
    ck_assert_uint_eq(slot.id, 5u << SHMVIEW_SLOT_BITS);
    ck_assert_uint_eq(slot.pid, (uint32_t)getpid());
    ck_assert_int_eq(shmview_detach(seg), 0);
    end();
    unit_assert_holds(stub.requests[2], "\"attachment\":9");
    objects_close();
}
END_TEST

START_TEST(attach_to_peek)
{
    objects_make();
    struct stub_step steps[] = {
        STUB_GREETING,
        attach_step(REPLY(SEGMENT, "'attachment':{'id':9,'access':'peek','descriptors':1,"
                                   "'data':0,'layouts':[]}")),
        detach_step};
    steps[1].n_fds = 1;
    begin(steps, 3);
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_PEEK, SHMVIEW_POPULATE, &seg), 0);
    ck_assert_uint_eq(n_mapped(), 1);
    assert_fails(shmview_lock(seg), SHMVIEW_ERR_NO_LOCK, "");
    struct shmview_view v;
    ck_assert_int_eq(shmview_view_cast(seg, "b", 0, 5, &v), 0);
    ck_assert_uint_eq(v.flags, SHMVIEW_VIEW_READ_ONLY);
    ck_assert_int_eq(shmview_detach(seg), 0);
    end();
    objects_close();
}
END_TEST

START_TEST(detach_while_locked)
{
    objects_make();
    const struct stub_step steps[] = {STUB_GREETING, attach_step(REPLY(SEGMENT, ATTACHMENT)),
                                      detach_step};
    begin(steps, 3);
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg), 0);
    ck_assert_int_eq(shmview_lock(seg), 0);
    assert_fails(shmview_detach(seg), SHMVIEW_ERR_BUSY, "holds the lock of 'seg'");
    ck_assert_int_eq(shmview_unlock(seg), 0);
    ck_assert_int_eq(shmview_detach(seg), 0);
    ck_assert_int_eq(shmview_detach(NULL), 0);
    end();
    objects_close();
}
END_TEST

/* A detach waits for no reply, so the next call notices that the daemon has gone. */
START_TEST(detach_from_a_daemon_that_leaves)
{
    objects_make();
    const struct stub_step steps[] = {STUB_GREETING, attach_step(REPLY(SEGMENT, ATTACHMENT)),
                                      detach_step,   {.method = "Ping"},
                                      STUB_GREETING, STUB_PONG};
    begin(steps, 6);
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg), 0);
    ck_assert_int_eq(shmview_detach(seg), 0);
    ck_assert_int_eq(shmview_ping(conn), 0);
    unit_assert_holds(stub.requests[4], "\"held\":[]");
    end();
    objects_close();
}
END_TEST

/* The claim to the next daemon omits the attachment, which has the same effect. */
START_TEST(detach_from_a_daemon_that_is_gone)
{
    objects_make();
    const struct stub_step gone = {.method = "Ping"};
    const struct stub_step steps[] = {STUB_GREETING, attach_step(REPLY(SEGMENT, ATTACHMENT)),
                                      gone,          STUB_GREETING,
                                      gone,          STUB_GREETING,
                                      gone,          STUB_GREETING};
    begin(steps, 8);
    ck_assert_int_eq(shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg), 0);
    assert_fails(shmview_ping(conn), SHMVIEW_ERR_DISCONNECTED, "hung up");
    unit_assert_holds(stub.requests[3], "\"held\":[9]");
    ck_assert_int_eq(shmview_detach(seg), 0);
    end();
    unit_assert_holds(stub.requests[7], "\"held\":[]");
    objects_close();
}
END_TEST

/* --- What is no good ----------------------------------------------------- */

START_TEST(replies_that_do_not_fit)
{
    static const struct {
        const char *attachment;
        size_t n_fds;
        bool given_back; /* if the reply had its id */
    } cases[] = {
        {ATTACHMENT, 0, true},
        {ATTACHMENT, 2, true},
        {ATTACHMENT, 4, true},
#define A(rest) "'attachment':{'id':9,'access':'write'," rest ",'layouts':[]}"
        {A("'descriptors':2,'data':0,'control':1,'liveness':2,'slot':0,'generation':5"), 3, true},
        {A("'descriptors':3,'data':3,'control':1,'liveness':2,'slot':0,'generation':5"), 3, true},
        {A("'descriptors':3,'data':0,'control':3,'liveness':2,'slot':0,'generation':5"), 3, true},
        {A("'descriptors':3,'data':0,'control':1,'liveness':3,'slot':0,'generation':5"), 3, true},
        {A("'descriptors':3,'data':0,'liveness':2,'slot':0,'generation':5"), 3, true},
        {A("'descriptors':3,'data':0,'control':1,'slot':0,'generation':5"), 3, true},
        {A("'descriptors':3,'data':0,'control':1,'liveness':2,'generation':5"), 3, true},
        {A("'descriptors':3,'data':0,'control':1,'liveness':2,'slot':0"), 3, true},
        {A("'descriptors':0,'data':0"), 0, true},
        {A("'descriptors':3,'data':0,'control':1,'liveness':2,'slot':1000,'generation':5"), 3,
         true},
        {A("'descriptors':3,'data':0,'control':1,'liveness':2,'slot':0,'generation':0"), 3, true},
        {A("'descriptors':-1,'data':0"), 0, true},
        {A("'data':0"), 1, true},
        {"'attachment':{}", 3, false},
        {"'attachment':7", 3, false},
        {"'x':1", 3, false},
    };
    objects_make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char reply[600];
        snprintf(reply, sizeof reply, "{'parameters':{" SEGMENT ",%s}}", cases[i].attachment);
        refuses(reply, cases[i].n_fds, cases[i].given_back, SHMVIEW_ERR_PROTOCOL, "");
    }
    refuses("{'parameters':{" ATTACHMENT "}}", 3, true, SHMVIEW_ERR_PROTOCOL, "segment");
    refuses("{'parameters':{'segment':{'name':'seg'}," ATTACHMENT "}}", 3, true,
            SHMVIEW_ERR_PROTOCOL, "segment.id is missing");
    refuses("{}", 0, false, SHMVIEW_ERR_PROTOCOL, "attachment is missing");
    objects_close();
}
END_TEST

START_TEST(objects_that_are_too_short)
{
    const char *parts[] = {"the data object has 4999 bytes, 5000 are needed",
                           "the control object has 1663 bytes, 1664 are needed",
                           "the liveness object has 4095 bytes, 4096 are needed"};
    const off_t sizes[] = {SIZE - 1, 1536 + 127, 4095};
    for (int i = 0; i < 3; i++) {
        objects_make();
        int *fds[] = {&objects.data, &objects.control, &objects.live};
        ck_assert_int_eq(ftruncate(*fds[i], sizes[i]), 0);
        refuses(REPLY(SEGMENT, ATTACHMENT), 3, true, SHMVIEW_ERR_LAYOUT_VERSION, parts[i]);
        objects_close();
    }
}
END_TEST

/* An unknown magic, version or feature, or another object, is refused with its name. */
START_TEST(headers_that_are_not_known)
{
    char part[200];
    for (int object = 0; object < 2; object++)
        for (int member = 0; member < 5; member++) {
            objects_make();
            struct shmview_object_header h = object ? objects.liveness.header : objects.head.header;
            uint32_t *words[] = {&h.magic, &h.version, &h.header_bytes, &h.features};
            if (member < 4)
                *words[member] ^= member == 2 ? 32 : 1u << 31;
            else
                h.segment_id++;
            ck_assert_int_eq(pwrite(object ? objects.live : objects.control, &h, sizeof h, 0),
                             (ssize_t)sizeof h);
            snprintf(part, sizeof part,
                     "the %s object has magic %08x, version %u, features %x, a header of %u bytes, "
                     "segment %llu; expected are %08x, %u, 0, %u and 77",
                     object ? "liveness" : "control", h.magic, h.version, h.features,
                     h.header_bytes, (unsigned long long)h.segment_id,
                     object ? SHMVIEW_LIVENESS_MAGIC : SHMVIEW_CONTROL_MAGIC,
                     SHMVIEW_LAYOUT_VERSION, object ? 96 : 1536);
            refuses(REPLY(SEGMENT, ATTACHMENT), 3, true, SHMVIEW_ERR_LAYOUT_VERSION, part);
            objects_close();
        }
}
END_TEST

START_TEST(what_cannot_be_mapped)
{
    objects_make();
    close(objects.data);
    objects.data = open("/dev/null", O_RDWR | O_CLOEXEC);
    refuses(REPLY(SEGMENT, ATTACHMENT), 3, true, SHMVIEW_ERR_LAYOUT_VERSION, "data object has 0");
    objects_close();
    objects_make();
    refuses("{'parameters':{'segment':{'name':'seg','id':77,'size':9223372036854775807,"
            "'lock':true,'lifetime':'attached','owner':0,'attachments':1}," ATTACHMENT "}}",
            3, true, SHMVIEW_ERR_LAYOUT_VERSION, "9223372036854775807 are needed");
    objects_close();
}
END_TEST

/* --- What is undone ------------------------------------------------------ */

/* Gives attachment 9 or 10. */
static struct stub_step create_step(bool first, size_t n_fds)
{
    struct stub_step step = attach_step(
        first ? REPLY(SEGMENT, ATTACHMENT)
              : REPLY(SEGMENT, "'attachment':{'id':10,'access':'write','descriptors':3,'data':0,"
                               "'control':1,'liveness':2,'slot':0,'generation':5,'layouts':[]}"));
    step.method = "io.shmview.Create";
    step.n_fds = n_fds;
    return step;
}

static const struct stub_step remove_step = {.method = "io.shmview.Remove",
                                             .reply = "{'parameters':{}}"};
static const struct stub_step exists_step = {
    .method = "io.shmview.Create",
    .reply = "{'error':'io.shmview.SegmentExists','parameters':{'name':'b','reason':'b exists'}}"};

/* Creates a and b, the second of which fails. */
static void undoes(const struct stub_step *steps, size_t n, int error, const char *part)
{
    const char *const names[] = {"a", "b"};
    const uint64_t sizes[] = {SIZE, SIZE};
    struct shmview_segment *segments[2];
    begin(steps, n);
    unsigned before = unit_fds();
    assert_fails(shmview_create_many(conn, names, sizes, 2, NULL, segments), error, part);
    ck_assert_ptr_null(segments[0]);
    ck_assert_ptr_null(segments[1]);
    ck_assert_uint_eq(unit_fds(), before);
    end();
}

/* With the end of its attachment a segment may end. If the library removed the name after that, it
 * could remove the segment to which another process has given the name. */
START_TEST(a_segment_is_removed_before_its_attachment_ends)
{
    objects_make();
    const struct stub_step second_fails[] = {STUB_GREETING, create_step(true, 3), exists_step,
                                             remove_step, detach_step};
    undoes(second_fails, 5, SHMVIEW_ERR_EXISTS, "b exists");
    const struct stub_step first_is_wrong[] = {
        STUB_GREETING, create_step(true, 2), create_step(false, 3), remove_step, detach_step,
        remove_step,   detach_step};
    undoes(first_is_wrong, 7, SHMVIEW_ERR_PROTOCOL, "2 descriptors came");
    unit_assert_holds(stub.requests[3], "\"name\":\"a\"");
    unit_assert_holds(stub.requests[4], "\"attachment\":9");
    unit_assert_holds(stub.requests[5], "\"name\":\"b\"");
    const struct stub_step alone[] = {STUB_GREETING, create_step(true, 2), remove_step,
                                      detach_step};
    begin(alone, 4);
    assert_fails(shmview_create(conn, "a", SIZE, NULL, &seg), SHMVIEW_ERR_PROTOCOL,
                 "2 descriptors came");
    end();
    objects_close();
}
END_TEST

/* --- Arguments ----------------------------------------------------------- */

START_TEST(bad_arguments)
{
    const struct stub_step steps[] = {STUB_GREETING};
    const char *names[] = {"", ".a", "a/b", "a b", "\xff", NULL};
    char longest[140];
    struct shmview_create_options o = {.struct_bytes = sizeof o};
    begin(steps, 1); /* none of it is sent */
    for (int i = 0; i < 6; i++) {
        assert_fails(shmview_create(conn, names[i], 10, NULL, &seg), SHMVIEW_ERR_INVALID,
                     "is not a valid name for a segment");
        assert_fails(shmview_attach(conn, names[i], SHMVIEW_READ, 0, &seg), SHMVIEW_ERR_INVALID,
                     "is not a valid name for a segment");
        assert_fails(shmview_remove(conn, names[i]), SHMVIEW_ERR_INVALID,
                     "is not a valid name for a segment");
    }
    memset(longest, 'n', sizeof longest);
    longest[129] = '\0';
    assert_fails(shmview_remove(conn, longest), SHMVIEW_ERR_INVALID,
                 "is not a valid name for a segment");
    assert_fails(shmview_create(conn, "a", 0, NULL, &seg), SHMVIEW_ERR_INVALID, "size of 0");
    assert_fails(shmview_create(conn, "a", (uint64_t)INT64_MAX + 1, NULL, &seg),
                 SHMVIEW_ERR_INVALID, "9223372036854775808");
    const int accesses[] = {0, 4, -1, 1000};
    for (int i = 0; i < 4; i++)
        assert_fails(shmview_attach(conn, "a", accesses[i], 0, &seg), SHMVIEW_ERR_INVALID,
                     "access");
    assert_fails(shmview_attach(conn, "a", SHMVIEW_READ, SHMVIEW_NO_LOCK, &seg),
                 SHMVIEW_ERR_INVALID, "flags 0x1");
    o.struct_bytes = 0;
    assert_fails(shmview_create(conn, "a", 1, &o, &seg), SHMVIEW_ERR_INVALID, "options of 0 bytes");
    o.struct_bytes = sizeof o + 8;
    assert_fails(shmview_create(conn, "a", 1, &o, &seg), SHMVIEW_ERR_INVALID, "this library knows");
    o = (struct shmview_create_options){.struct_bytes = sizeof o, .lifetime = 4};
    assert_fails(shmview_create(conn, "a", 1, &o, &seg), SHMVIEW_ERR_INVALID, "lifetime 4");
    o = (struct shmview_create_options){.struct_bytes = sizeof o, .flags = 4};
    assert_fails(shmview_create(conn, "a", 1, &o, &seg), SHMVIEW_ERR_INVALID, "flags 0x4");
    o = (struct shmview_create_options){.struct_bytes = sizeof o, .backing = 3};
    assert_fails(shmview_create(conn, "a", 1, &o, &seg), SHMVIEW_ERR_INVALID, "backing 3");
    end();
}
END_TEST

START_TEST(wishes_are_passed_on)
{
    const char *error = "{'error':'io.shmview.NoSpace','parameters':{'reason':'full'}}";
    const struct stub_step steps[] = {STUB_GREETING,
                                      {.method = "io.shmview.Create", .reply = error},
                                      {.method = "io.shmview.Create", .reply = error}};
    struct shmview_create_options o = {
        .struct_bytes = sizeof o, .lifetime = SHMVIEW_CREATOR, .flags = SHMVIEW_NO_LOCK};
    begin(steps, 3);
    assert_fails(shmview_create(conn, "a", 123, NULL, &seg), SHMVIEW_ERR_NO_SPACE, "full");
    assert_fails(shmview_create(conn, "a", INT64_MAX, &o, &seg), SHMVIEW_ERR_NO_SPACE, "full");
    unit_assert_holds(stub.requests[1],
                      "{\"name\":\"a\",\"size\":123,\"access\":\"write\",\"lock\":true}");
    unit_assert_holds(stub.requests[2], "\"size\":9223372036854775807,\"access\":\"write\","
                                        "\"lifetime\":\"creator\",\"lock\":false}");
    end();
}
END_TEST

/* --- Failures ------------------------------------------------------------ */

START_TEST(every_failure_of_an_attach)
{
    static struct stub_step steps[400];
    const unsigned classes[] = {FAULTS_MEMORY, FAULTS_SYSTEM};
    objects_make();
    /* the failure decides which call comes next, so every step has a reply for either */
    for (int i = 0; i < 400; i++) {
        steps[i] = attach_step(REPLY(SEGMENT, ATTACHMENT));
        steps[i].method = "io.shmview.";
    }
    stub_start(&stub, steps, 400);
    unsigned before = unit_fds();
    for (int i = 0; i < 2; i++) {
        int r = 1;
        for (unsigned n = 1; r; n++) {
            ck_assert_int_eq(shmview_connect(stub.path, 0, &conn), 0);
            faults_begin(classes[i], n);
            r = shmview_attach(conn, "seg", SHMVIEW_WRITE, 0, &seg);
            bool failed = faults_end();
            if (r == 0)
                ck_assert_int_eq(shmview_detach(seg), 0);
            else
                ck_assert_str_ne(shmview_error_text(), "");
            ck_assert_int_eq(shmview_disconnect(conn), 0);
            ck_assert_uint_eq(n_mapped(), 0);
            if (r == 0 && failed)
                r = 1; /* the library worked without it; try the next */
        }
    }
    shutdown(stub.listener, SHUT_RDWR);
    pthread_join(stub.thread, NULL);
    ck_assert_str_eq(stub.wrong, "");
    ck_assert_uint_eq(unit_fds(), before);
    close(stub.listener);
    objects_close();
}
END_TEST

/* The daemon ends after the first bytes of a reply, with which its descriptors have come. */
START_TEST(half_a_reply_to_a_batch)
{
    static const char none[] = "{'error':'io.shmview.SegmentNotFound','parameters':{'name':'a',"
                               "'reason':'none a'}}";
    const struct stub_step steps[] = {
        STUB_GREETING,
        {.method = "io.shmview.Attach", .reply = "{\"par", .bytes = 5, .n_fds = 2},
        {.method = "io.shmview.Attach"},
        {.method = "io.shmview.Attach", .reply = none}};
    const char *const names[] = {"a", "b"};
    struct shmview_segment *segments[2];
    begin(steps, 4);
    unsigned before = unit_fds();
    assert_fails(shmview_attach_many(conn, names, 2, SHMVIEW_READ, 0, segments),
                 SHMVIEW_ERR_NOT_FOUND, "none a");
    ck_assert_uint_eq(unit_fds(), before);
    end();
}
END_TEST

/* The program closes the socket, and opens a file that gets its number. */
START_TEST(a_batch_without_its_socket)
{
    objects_make();
    const struct stub_step steps[] = {STUB_GREETING, create_step(true, 3), create_step(false, 3),
                                      detach_step, detach_step};
    const char *const names[] = {"a", "b"};
    const uint64_t sizes[] = {SIZE, SIZE};
    struct shmview_segment *segments[2];
    begin(steps, 5);
    int fd = conn->fd, null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(dup2(null, fd), fd);
    int r = shmview_create_many(conn, names, sizes, 2, NULL, segments);
    ck_assert_msg(r == 0, "%d: %s", r, shmview_error_text());
    ck_assert_int_eq(shmview_detach(segments[0]), 0);
    ck_assert_int_eq(shmview_detach(segments[1]), 0);
    ck_assert_int_eq(close(fd), 0); /* the library has not closed it */
    close(null);
    end();
    objects_close();
}
END_TEST

UNIT_MAIN("client_segment", UNIT_TEST(attach_and_detach), UNIT_TEST(attach_to_peek),
          UNIT_TEST(detach_while_locked), UNIT_TEST(detach_from_a_daemon_that_leaves),
          UNIT_TEST(detach_from_a_daemon_that_is_gone), UNIT_TEST(replies_that_do_not_fit),
          UNIT_TEST(objects_that_are_too_short), UNIT_TEST(headers_that_are_not_known),
          UNIT_TEST(what_cannot_be_mapped),
          UNIT_TEST(a_segment_is_removed_before_its_attachment_ends), UNIT_TEST(bad_arguments),
          UNIT_TEST(half_a_reply_to_a_batch), UNIT_TEST(a_batch_without_its_socket),
          UNIT_TEST(wishes_are_passed_on), UNIT_TEST(every_failure_of_an_attach))

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that a segment which differs from its declaration stays as it is, and that the log has the
 * difference. */
#include "unit/house_config.h"

#include <shmview/placement.h>

#include "daemon/requests/declared.h"

static struct house house;
static int logged = -1; /* a file with all that is logged */

static void done(struct state *state)
{
    (void)state;
}

/* Declares "a" with these members besides its name. Returns the lines of the log since then. */
static const char *declare(const char *members)
{
    static char log[4000];
    char text[1000];
    int64_t deadline = now_ns() + HOUSE_WAIT_NS;
    snprintf(text, sizeof text, "{'segments':[{'name':'a',%s}]}", members);
    house_configure(&house, text);
    ck_assert_int_eq(ftruncate(logged, 0), 0);
    declared_start(&house.state);
    while ((house.state.declared.n_pending || house.state.n_jobs) && now_ns() < deadline)
        uv_run(&house.loop, UV_RUN_NOWAIT);
    ssize_t n = pread(logged, log, sizeof log - 1, 0);
    ck_assert_int_ge(n, 0);
    log[n] = '\0';
    return log;
}

static struct segment *get(void)
{
    struct segment *s = registry_find(&house.state.registry, "a");
    ck_assert_ptr_nonnull(s);
    return s;
}

/* Begins with a segment that was declared so. */
static void begin(const char *members)
{
    char path[100];
    house_open(&house);
    house.state.declared.done = done;
    snprintf(path, sizeof path, "%s/log", unit_directory());
    logged = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600);
    ck_assert_int_ge(logged, 0);
    ck_assert_int_ge(dup2(logged, STDERR_FILENO), 0);
    ck_assert_str_eq(declare(members), "");
    ck_assert_str_eq(declare(members), ""); /* it differs by nothing */
}

static void end(void)
{
    house_close(&house);
    close(logged);
}

/* Asserts that the segment differs by one thing from its declaration. */
static void differs(const char *members, const char *text)
{
    const struct segment *s = get();
    uint64_t id = s->id, size = s->size;
    bool lock = s->lock, sealed = s->sealed;
    const char *log = declare(members);
    unit_assert_holds(log, "segment 'a' is left as it is: f:1 declares it otherwise: ");
    unit_assert_holds(log, text);
    ck_assert_ptr_eq(strchr(log, '\n'), log + strlen(log) - 1);
    s = get();
    ck_assert(s->id == id && s->size == size && s->lock == lock && s->sealed == sealed);
}

START_TEST(the_lock)
{
    begin("'size':8");
    differs("'size':8,'lock':false", ": without a lock\n");
    end();
    begin("'size':8,'lock':false");
    differs("'size':8,'lock':true", ": with a lock\n");
    end();
}
END_TEST

/* A declaration that names no backing differs from none. */
START_TEST(the_backing)
{
    begin("'size':8,'backing':'file'");
    differs("'size':8,'backing':'sealed'", ": backing sealed, not file\n");
    ck_assert_str_eq(declare("'size':8"), "");
    end();
    begin("'size':8,'backing':'sealed'");
    differs("'size':8,'backing':'file'", ": backing file, not sealed\n");
    ck_assert_str_eq(declare("'size':8"), "");
    end();
}
END_TEST

START_TEST(the_label)
{
    begin("'size':8");
    differs("'size':8,'label':'one'", ": another label\n");
    ck_assert_str_eq(segment_label(get()), "");
    end();
    begin("'size':8,'label':'one'");
    differs("'size':8,'label':'two'", ": another label\n");
    differs("'size':8", ": another label\n");
    ck_assert_str_eq(segment_label(get()), "one");
    end();
}
END_TEST

/* A segment keeps how it was placed when it was created. A machine may lack nodes and huge pages,
 * so here it is written into the segment. */
START_TEST(the_placement)
{
    static const char text[] = ": another placement (huge, numa)\n";
    begin("'size':8");
    differs("'size':8,'huge':'wanted'", text);
    differs("'size':8,'numa':'interleaved'", text);
    differs("'size':8,'numa':0", text);
    struct placement *p = calloc(1, sizeof *p);
    ck_assert_ptr_nonnull(p);
    get()->placement = p;
    p->numa = SHMVIEW_NUMA_NODE;
    p->node = 1;
    ck_assert_str_eq(declare("'size':8,'numa':1"), "");
    differs("'size':8,'numa':0", text);
    differs("'size':8,'numa':'interleaved'", text);
    differs("'size':8", text);
    p->numa = SHMVIEW_NUMA_INTERLEAVED;
    ck_assert_str_eq(declare("'size':8,'numa':'interleaved'"), "");
    p->huge = SHMVIEW_HUGE_WANTED;
    differs("'size':8,'numa':'interleaved'", text);
    ck_assert_str_eq(declare("'size':8,'numa':'interleaved','huge':'wanted'"), "");
    end();
}
END_TEST

#define LAYOUT(format)                                                                             \
    "'size':8,'layouts':[{'name':'l','views':[{'name':'v','format':" format "}]}]"

START_TEST(a_layout)
{
    begin(LAYOUT("'i','shape':[2]"));
    differs(LAYOUT("'f','shape':[2]"), ": layout 'l'\n");
    differs(LAYOUT("'i','shape':[1,2]"), ": layout 'l'\n");
    ck_assert_uint_eq(get()->layouts.n, 1);
    ck_assert_str_eq(declare(LAYOUT("'i','shape':[2]")), "");
    end();
}
END_TEST

/* --- Streams ------------------------------------------------------------- */

#define STREAM                                                                                     \
    "'stream':{'mode':'latest','slots':3,'views':[{'name':'v','format':'i','shape':[2]}]}"

/* Opens the data of the segment. */
static int open_data(void)
{
    struct object object;
    segment_object(get(), DATA, &object);
    int fd = object_open(&object, O_RDWR);
    ck_assert_int_ge(fd, 0);
    return fd;
}

START_TEST(another_stream)
{
    struct shmview_stream_header before, after;
    begin(STREAM);
    int fd = open_data();
    ck_assert_int_eq(pread(fd, &before, sizeof before, 0), sizeof before);
    unsigned char slots[4] = {9}; /* another number of slots, as another declaration had it */
    memcpy(&before.n_slots, slots, sizeof slots);
    ck_assert_int_eq(pwrite(fd, &before, sizeof before, 0), sizeof before);
    differs(STREAM, ": another stream\n");
    ck_assert_int_eq(pread(fd, &after, sizeof after, 0), sizeof after);
    ck_assert_mem_eq(&before, &after, sizeof after);
    before.magic ^= 1; /* no stream, but bytes of a client */
    ck_assert_int_eq(pwrite(fd, &before, sizeof before, 0), sizeof before);
    differs(STREAM, ": a stream\n");
    ck_assert_int_eq(pread(fd, &after, sizeof after, 0), sizeof after);
    ck_assert_mem_eq(&before, &after, sizeof after);
    close(fd);
    end();
}
END_TEST

/* A client of the daemon's user can truncate a file. */
START_TEST(a_stream_without_bytes)
{
    begin(STREAM);
    int fd = open_data();
    ck_assert_int_eq(ftruncate(fd, 10), 0);
    const char *log = declare(STREAM);
    unit_assert_holds(log, "the stream of segment 'a' cannot be written: ");
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    ck_assert_int_eq(st.st_size, 10);
    close(fd);
    end();
}
END_TEST

/* A stream needs the lock that the segment does not have. */
START_TEST(a_stream_without_a_lock)
{
    char text[64];
    struct shmview_stream_header h = {0}, none = {0};
    begin(STREAM);
    uint64_t size = get()->size;
    end();
    snprintf(text, sizeof text, "'size':%ju,'lock':false", (uintmax_t)size);
    begin(text);
    const char *log = declare(STREAM);
    unit_assert_holds(log, ": with a lock\n");
    int fd = open_data();
    ck_assert_int_eq(pread(fd, &h, sizeof h, 0), sizeof h);
    ck_assert_mem_eq(&h, &none, sizeof h);
    close(fd);
    end();
}
END_TEST

UNIT_MAIN("declared_differs", UNIT_TEST(the_lock), UNIT_TEST(the_backing), UNIT_TEST(the_label),
          UNIT_TEST(the_placement), UNIT_TEST(a_layout), UNIT_TEST(another_stream),
          UNIT_TEST(a_stream_without_bytes), UNIT_TEST(a_stream_without_a_lock))

/* SPDX-License-Identifier: Apache-2.0 */
/* A client truncates the control object of a stream that metrics and top read. */
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "support/suite.h"
#include "unit/gone.h"

#include "cli/text/bus_error.h"
#include "cli/text/stream_metrics.h"
#include "cli/top/top_streams.h"

/* Where the object is truncated. */
static enum {
    NOWHERE,
    AFTER_OPEN,
    BEFORE_QUERY,
} cut_at;

static bool is_hurried;             /* nanosleep() returns at once */
static struct shmview_stream *left; /* by the jump out of the query, like its facts */
static struct stream_facts *left_facts;
static int memory_fd; /* stream_header() keeps it open */

static struct context context;
static const struct shmview_stats *stats;

/* Replaces the function of the C library: the handler of the signal sleeps until the repair. */
int nanosleep(const struct timespec *time, struct timespec *rest)
{
    if (gone_is_cut)
        gone_continue();
    return is_hurried ? 0 : -clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest);
}

/* Replace functions of the library. */
int shmview_stream_open(struct shmview_connection *connection, const char *name, int access,
                        struct shmview_stream **ret_stream)
{
    __typeof__(shmview_stream_open) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "shmview_stream_open");
    int r = real(connection, name, access, ret_stream);
    if (cut_at == AFTER_OPEN)
        gone_cut();
    return r;
}

int shmview_stream_query(struct shmview_stream *stream, struct shmview_stream_status *status,
                         struct shmview_stream_slot_status *slots, size_t n_slots,
                         struct shmview_stream_reader_status *readers, size_t n_readers)
{
    __typeof__(shmview_stream_query) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "shmview_stream_query");
    if (cut_at == BEFORE_QUERY) {
        left = stream;
        left_facts = (void *)((char *)status - offsetof(struct stream_facts, status));
        gone_cut();
    }
    return real(stream, status, slots, n_slots, readers, n_readers);
}

static void begin(void)
{
    static const char *const names[] = {GONE_NAME};
    const struct shmview_stats_options options = {
        .struct_bytes = sizeof options, .names = names, .n_names = 1};
    gone_begin();
    context.connection = gone_connection;
    OK(shmview_stats_get(gone_connection, &options, &stats));
    ck_assert_uint_eq(stats->n_segments, 1);
    memory_fd = dup(STDIN_FILENO); /* the next number */
    close(memory_fd);
    ck_assert(stream_is(shmview_stream_segment(gone_stream)));
    bus_error_catch();
}

static void end(void)
{
    cut_at = NOWHERE;
    close(memory_fd);
    shmview_stats_free(stats);
    gone_end();
}

/* Gets the figures of the stream. Returns whether there are any. */
static bool has_metrics(void)
{
    struct stream_metrics m;
    ck_assert_int_eq(stream_metrics_get(&context, stats->segments, 1, false, &m), 0);
    free(m.figures);
    ck_assert_uint_eq(m.n + m.n_omitted, 1);
    return m.n;
}

START_TEST(metrics_before_the_first_query)
{
    begin();
    cut_at = BEFORE_QUERY;
    ck_assert(!has_metrics());
    gone_mend();
    gone_assert_library_works();
    OK(shmview_stream_close(left));
    free(left_facts);
    cut_at = NOWHERE;
    ck_assert(has_metrics());
    end();
}
END_TEST

START_TEST(metrics_after_the_stream_was_opened)
{
    begin();
    cut_at = AFTER_OPEN;
    bool is_there = has_metrics();
    gone_assert_library_works();
    ck_assert(is_there);
    ck_assert(!gone_is_cut);
    end();
}
END_TEST

/* Updates the figures of top while the control object is truncated, and waits for the repair. */
static void top_update_gone(struct top_streams *streams, const struct top *t)
{
    cut_at = BEFORE_QUERY;
    ck_assert_int_eq(top_streams_update(streams, &context, t), 0);
    ck_assert_uint_eq(streams->n, 1);
    ck_assert_ptr_null(streams->list[0].now);
    ck_assert_ptr_nonnull(strstr(streams->list[0].trouble, "its memory is gone"));
    gone_mend();
    gone_assert_library_works();
    OK(shmview_stream_close(left));
    cut_at = NOWHERE;
}

/* After a repair top shows the stream. After many of them it does not look at it again. */
START_TEST(top)
{
    struct top_streams streams = {.n = 0};
    struct top_row row;
    begin();
    row = (struct top_row){.segment = stats->segments[0]};
    const struct top t = {.rows = &row, .n_rows = 1};
    top_update_gone(&streams, &t);
    ck_assert_int_eq(top_streams_update(&streams, &context, &t), 0);
    ck_assert_ptr_nonnull(streams.list[0].now);
    ck_assert_str_eq(streams.list[0].trouble, "");
    streams.list[0].n_gone = 7;
    top_update_gone(&streams, &t);
    ck_assert_int_eq(top_streams_update(&streams, &context, &t), 0);
    ck_assert_ptr_null(streams.list[0].now);
    ck_assert_ptr_nonnull(strstr(streams.list[0].trouble, "its memory is gone"));
    top_streams_deinit(&streams);
    end();
}
END_TEST

/* --- Waits --------------------------------------------------------------- */

static void touch(void *byte)
{
    ++*(volatile unsigned char *)byte;
}

static void await_touch(void *byte)
{
    bus_error_await(touch, byte);
}

static int ends[2]; /* a pipe */

static void note_end(void)
{
    ck_assert_int_eq(write(ends[1], "e", 1), 1);
}

START_TEST(a_wait_without_a_repair_ends_the_program)
{
    int fd = memfd_create("gone", MFD_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    void *page = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    bus_error_catch();
    ck_assert(!bus_error_guard(touch, page));
    is_hurried = true;
    ck_assert_int_eq(pipe(ends), 0);
    pid_t pid = fork();
    if (pid == 0) {
        bus_error_at_end(note_end);
        bus_error_guard(await_touch, page);
        _exit(77);
    }
    int status = process_wait(pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), EXIT_FAILED);
    char bytes[2];
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], bytes, sizeof bytes), 1);
    close(ends[0]);
    ck_assert(!bus_error_guard(touch, page)); /* a wait of another process */
    munmap(page, 1);
    close(fd);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(metrics_before_the_first_query), SUITE_TEST(metrics_after_the_stream_was_opened),
        SUITE_TEST(top), SUITE_TEST(a_wait_without_a_repair_ends_the_program), SUITE_END};
    return suite_main("cli_bus_error", tests);
}

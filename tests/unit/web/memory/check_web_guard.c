/* SPDX-License-Identifier: Apache-2.0 */
/* A client truncates an object of a segment that the page reads. */
#include <dlfcn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include <microhttpd.h>

#include "support/suite.h"
#include "unit/gone_backend.h"

#include "web/api/api.h"
#include "web/memory/guard.h"
#include "web/memory/look.h"

static bool cuts; /* before the next query, or before a frame is taken */

static bool is_hurried;      /* nanosleep() returns at once */
static int repaired_fd;      /* memory that a call of nanosleep() restores */
static unsigned repair_step; /* after so many; 0: never */
static volatile unsigned n_steps;

/* Replaces the function of the C library: the handler of the signal sleeps until the repair. */
int nanosleep(const struct timespec *time, struct timespec *rest)
{
    if (!is_hurried)
        return -clock_nanosleep(CLOCK_MONOTONIC, 0, time, rest);
    if (++n_steps == repair_step)
        ck_assert_int_eq(ftruncate(repaired_fd, 1), 0);
    return 0;
}

/* Replaces the function of libmicrohttpd: each parameter is the name of the stream. */
enum MHD_Result MHD_lookup_connection_value_n(struct MHD_Connection *connection,
                                              enum MHD_ValueKind kind, const char *key,
                                              size_t key_bytes, const char **ret, size_t *ret_bytes)
{
    (void)connection, (void)kind, (void)key, (void)key_bytes;
    *ret = GONE_NAME;
    *ret_bytes = strlen(GONE_NAME);
    return MHD_YES;
}

/* Replaces the function of the library, and calls it when the object is gone. */
int shmview_stream_query(struct shmview_stream *stream, struct shmview_stream_status *status,
                         struct shmview_stream_slot_status *slots, size_t n_slots,
                         struct shmview_stream_reader_status *readers, size_t n_readers)
{
    __typeof__(shmview_stream_query) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "shmview_stream_query");
    if (cuts)
        gone_cut();
    return real(stream, status, slots, n_slots, readers, n_readers);
}

/* Likewise. */
int shmview_stream_take_latest(struct shmview_stream *stream, int64_t deadline_ns,
                               struct shmview_frame *frame)
{
    __typeof__(shmview_stream_take_latest) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "shmview_stream_take_latest");
    if (cuts)
        gone_cut();
    return real(stream, deadline_ns, frame);
}

/* Likewise: the page closes the stream right after the query, and then waits for the repair. */
int shmview_stream_close(struct shmview_stream *stream)
{
    __typeof__(shmview_stream_close) *real;
    *(void **)&real = dlsym(RTLD_NEXT, "shmview_stream_close");
    if (gone_is_cut) {
        gone_mend();
        gone_assert_library_works();
    }
    return real(stream);
}

/* Uses the slot of the handle, as a read of a segment that is no stream does. */
static int begin_read(void *arg)
{
    const struct look *look = arg;
    uint64_t version;
    shmview_read_begin(look->held->segment, &version);
    return 0;
}

START_TEST(the_first_read_of_a_view)
{
    const struct look_at at = {.segment = GONE_NAME};
    struct look look;
    backend_begin();
    OK(look_open(&backend, gone_connection, &at, SHMVIEW_READ, &look));
    gone_cut();
    ck_assert_int_eq(look_read(&look, begin_read, &look), -SHMVIEW_ERR_LOST);
    ck_assert(look.is_gone);
    gone_mend();
    gone_assert_library_works();
    look_close(&look);
    OK(look_open(&backend, gone_connection, &at, SHMVIEW_READ, &look));
    OK(look_read(&look, begin_read, &look));
    look_close(&look);
    backend_end();
}
END_TEST

START_TEST(the_newest_frame_of_a_stream)
{
    const struct look_at at = {.segment = GONE_NAME, .layout = "frame", .view = "image"};
    struct look look;
    backend_begin();
    snprintf(gone_path, sizeof gone_path, "/dev/shm/shmview.%s/" GONE_NAME, gone_daemon.instance);
    cuts = true;
    ck_assert_int_eq(look_open(&backend, gone_connection, &at, SHMVIEW_READ, &look),
                     -SHMVIEW_ERR_LOST);
    ck_assert(look.is_gone);
    gone_mend();
    look_close(&look);
    gone_assert_library_works();
    cuts = false;
    /* the page attaches it again, and sees zeroes, which are no stream */
    OK(look_open(&backend, gone_connection, &at, SHMVIEW_READ, &look));
    ck_assert(!look.is_stream);
    look_close(&look);
    backend_end();
}
END_TEST

START_TEST(the_facts_of_a_stream)
{
    const struct request request = {.context = &backend};
    struct reply reply = {.status = 0};
    backend_begin();
    cuts = true;
    api_stream(&request, &reply);
    ck_assert_uint_eq(reply.status, 409);
    reply_free(&reply);
    cuts = false;
    reply = (struct reply){.status = 0};
    api_stream(&request, &reply);
    ck_assert_uint_eq(reply.status, 0);
    reply_free(&reply);
    backend_end();
}
END_TEST

/* --- Waits --------------------------------------------------------------- */

static void touch(void *byte)
{
    ++*(volatile unsigned char *)byte;
}

/* Maps a byte of a memfd, which is empty. */
static void *begin_waits(void)
{
    repaired_fd = memfd_create("gone", MFD_CLOEXEC);
    ck_assert_int_ge(repaired_fd, 0);
    void *byte = mmap(NULL, 1, PROT_READ | PROT_WRITE, MAP_SHARED, repaired_fd, 0);
    ck_assert_ptr_ne(byte, MAP_FAILED);
    guard_init();
    is_hurried = true;
    return byte;
}

static void end_waits(void *byte)
{
    munmap(byte, 1);
    close(repaired_fd);
}

START_TEST(each_wait_has_a_limit_of_its_own)
{
    void *byte = begin_waits();
    repair_step = 1000;
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_int_eq(ftruncate(repaired_fd, 0), 0);
        n_steps = 0;
        touch(byte);
        ck_assert_uint_eq(n_steps, repair_step);
    }
    end_waits(byte);
}
END_TEST

START_TEST(a_wait_without_a_repair_ends_the_program)
{
    void *byte = begin_waits();
    pid_t pid = fork();
    if (pid == 0) {
        touch(byte);
        _exit(77);
    }
    int status = process_wait(pid);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 1);
    end_waits(byte);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {SUITE_TEST(the_first_read_of_a_view),
                                       SUITE_TEST(the_newest_frame_of_a_stream),
                                       SUITE_TEST(the_facts_of_a_stream),
                                       SUITE_TEST(each_wait_has_a_limit_of_its_own),
                                       SUITE_TEST(a_wait_without_a_repair_ends_the_program),
                                       SUITE_END};
    return suite_main("web_guard", tests);
}

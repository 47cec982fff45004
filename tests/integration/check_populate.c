/* SPDX-License-Identifier: Apache-2.0 */
/* shmview_populate() maps pages of a segment before they are used: those that the caller names, by
 * as many threads as call it, and without a change of the bytes. */
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <shmview/placement.h>

#include "support/child.h"
#include "support/client.h"
#include "support/daemon.h"
#include "support/suite.h"

#define PAGE  4096
#define BYTES ((uint64_t)8 << 20)

static struct daemon d;
static struct shmview_connection *conn;

static void begin(void)
{
    daemon_start(&d);
    conn = client_connect(&d);
}

static void end(void)
{
    OK(shmview_disconnect(conn));
    daemon_stop(&d);
}

/* How many pages of these bytes are in the page table of this process. */
static unsigned n_present(const void *data, uint64_t bytes)
{
    unsigned n = 0;
    uint64_t entry;
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    ck_assert_int_ge(fd, 0);
    for (uint64_t at = 0; at < bytes; at += PAGE) {
        off_t where = (off_t)(((uintptr_t)data + at) / PAGE * sizeof entry);
        ck_assert_int_eq(pread(fd, &entry, sizeof entry, where), sizeof entry);
        n += entry >> 63 != 0;
    }
    close(fd);
    return n;
}

/* Whether the pages are in the page table. The kernel may take some of them out at any time, when
 * it looks for memory that is not used. */
static bool are_present(const void *data, uint64_t bytes)
{
    unsigned all = (unsigned)(bytes / PAGE);
    return n_present(data, bytes) >= all - all / 16;
}

START_TEST(a_part)
{
    begin();
    struct shmview_segment *s = client_create(conn, "part", BYTES);
    char *data = shmview_data(s);
    ck_assert_uint_eq(n_present(data, BYTES), 0);
    OK(shmview_populate(s, 2 * PAGE + 1, PAGE)); /* has bytes of two pages */
    ck_assert_uint_eq(n_present(data, BYTES), 2);
    ck_assert_uint_eq(n_present(data + 2 * PAGE, 2 * PAGE), 2);
    OK(shmview_populate(s, BYTES - 1, 1));
    ck_assert_uint_eq(n_present(data + BYTES - PAGE, PAGE), 1);
    OK(shmview_populate(s, 0, 0));
    OK(shmview_populate(s, BYTES, 0));
    ck_assert_uint_eq(n_present(data, BYTES), 3);
    OK(shmview_populate(s, 0, BYTES));
    ck_assert(are_present(data, BYTES));
    OK(shmview_detach(s));
    end();
}
END_TEST

START_TEST(bytes_do_not_change)
{
    begin();
    struct shmview_segment *w = client_create(conn, "same", BYTES);
    memset(shmview_data(w), 7, BYTES);
    struct shmview_segment *r = client_attach(conn, "same", SHMVIEW_PEEK);
    OK(shmview_populate(w, 0, BYTES));
    OK(shmview_populate(r, 0, BYTES)); /* for reading; writing would be refused */
    ck_assert(are_present(shmview_data(r), BYTES));
    const char *data = shmview_data(r);
    ck_assert(data[0] == 7 && memcmp(data, data + 1, BYTES - 1) == 0);
    OK(shmview_detach(r));
    OK(shmview_detach(w));
    end();
}
END_TEST

START_TEST(not_all_in_the_segment)
{
    begin();
    struct shmview_segment *s = client_create(conn, "bounds", BYTES);
    ck_assert_int_eq(shmview_populate(s, 0, BYTES + 1), -SHMVIEW_ERR_BOUNDS);
    ck_assert_str_eq(shmview_error_text(), "bytes 0 to 8388609 of 'bounds', which has 8388608");
    ck_assert_int_eq(shmview_populate(s, BYTES + 1, 0), -SHMVIEW_ERR_BOUNDS);
    ck_assert_int_eq(shmview_populate(s, 1, UINT64_MAX), -SHMVIEW_ERR_BOUNDS);
    ck_assert_uint_eq(n_present(shmview_data(s), BYTES), 0);
    OK(shmview_detach(s));
    end();
}
END_TEST

static struct shmview_segment *shared;

static void *populate_part(void *arg)
{
    int r = shmview_populate(shared, (uintptr_t)arg * (BYTES / 4), BYTES / 4);
    return (void *)(intptr_t)r;
}

START_TEST(several_threads)
{
    pthread_t threads[4];
    void *r;
    begin();
    shared = client_create(conn, "threads", BYTES);
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, populate_part, (void *)i), 0);
    for (size_t i = 0; i < 4; i++) {
        ck_assert_int_eq(pthread_join(threads[i], &r), 0);
        ck_assert_ptr_null(r);
    }
    ck_assert(are_present(shmview_data(shared), BYTES));
    OK(shmview_detach(shared));
    end();
}
END_TEST

START_TEST(memory_of_the_program)
{
    struct shmview_segment *s;
    char *data = aligned_alloc(PAGE, 4 * PAGE);
    ck_assert_ptr_nonnull(data);
    memset(data, 5, 4 * PAGE);
    OK(shmview_wrap(data + 100, 2 * PAGE, 0, NULL, NULL, &s));
    OK(shmview_populate(s, 0, 2 * PAGE));
    ck_assert_uint_eq(n_present(data, 3 * PAGE), 3);
    ck_assert_int_eq(data[100], 5);
    OK(shmview_detach(s));
    free(data);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_part),
        SUITE_TEST(bytes_do_not_change),
        SUITE_TEST(not_all_in_the_segment),
        SUITE_TEST(several_threads),
        SUITE_TEST(memory_of_the_program),
        SUITE_END,
    };
    return suite_main("populate", tests);
}

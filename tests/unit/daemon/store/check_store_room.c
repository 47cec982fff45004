/* SPDX-License-Identifier: Apache-2.0 */
/* The registry on a file system that becomes full: layouts are refused first and records still
 * work. The file grows in steps. */
#include "unit/unit.h"

#include <dlfcn.h>
#include <shmview/shmview.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "daemon/store/store.h"

#define MIB        ((size_t)1 << 20)
#define TEXT_BYTES 400000

/* The size of the file system, and what other files use of it. */
static size_t all, others;
static size_t longest_step;

/* Replaces that of libc. */
int fstatvfs(int fd, struct statvfs *ret)
{
    struct stat st;
    ck_assert_int_eq(fstat(fd, &st), 0);
    *ret = (struct statvfs){.f_frsize = 4096,
                            .f_blocks = all / 4096,
                            .f_bavail = all ? (all - others - (size_t)st.st_size) / 4096 : 0};
    return 0;
}

int posix_fallocate(int fd, off_t at, off_t n)
{
    static int (*real)(int, off_t, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "posix_fallocate");
    if (all && (size_t)(at + n) + others > all)
        return ENOSPC;
    if (at > 0 && (size_t)n > longest_step) /* a start fills the file from byte 0 */
        longest_step = (size_t)n;
    return real(fd, at, n);
}

static struct store *begin(size_t bytes)
{
    struct store *store = NULL;
    bool was_bad;
    char path[100];
    all = bytes;
    others = longest_step = 0;
    snprintf(path, sizeof path, "%s/registry", unit_directory());
    ck_assert_int_eq(store_open(AT_FDCWD, path, NULL, &store, &was_bad), 0);
    return store;
}

static int put_segment(struct store *store, uint64_t id)
{
    struct store_segment s = {
        .id = id, .size = 100, .lifetime = SHMVIEW_MANUAL, .flags = STORE_NAMED, .name = "s"};
    return store_put_segment(store, &s);
}

static int put_attachment(struct store *store, uint64_t id)
{
    struct store_attachment a = {.id = id, .segment = 1, .access = SHMVIEW_READ, .slot = 7};
    return store_put_attachment(store, &a);
}

/* Puts layouts of one segment until one is refused. Returns how many there are. */
static uint32_t fill(struct store *store, uint64_t segment)
{
    static char text[TEXT_BYTES];
    uint32_t n = 0;
    int r;
    memset(text, 'x', sizeof text - 1);
    while ((r = store_put_layout(store, segment, n, text)) == 0)
        n++;
    ck_assert_int_eq(r, -ENOSPC);
    return n;
}

/* Attaches, detaches and creates, in more transactions than the free pages are enough for. */
static void serve(struct store *store, uint64_t from)
{
    for (uint64_t id = from; id < from + 3000; id++) {
        ck_assert_int_eq(put_attachment(store, id), 0);
        ck_assert_int_eq(put_segment(store, id), 0);
    }
    for (uint64_t id = from; id < from + 3000; id++) {
        ck_assert_int_eq(store_delete_attachment(store, id), 0);
        ck_assert_int_eq(store_delete_segment(store, id), 0);
    }
}

START_TEST(records_have_room)
{
    struct store *store = begin(16 * MIB);
    ck_assert_int_eq(put_segment(store, 1), 0);
    uint32_t n = fill(store, 1);
    ck_assert_uint_gt(n * (size_t)TEXT_BYTES, all * 3 / 4);
    for (int i = 0; i < 3; i++) {
        serve(store, 10);
        fill(store, 2); /* space of records is not used for layouts */
    }
    serve(store, 10);
    ck_assert_int_eq(store_delete_segment(store, 1), 0);
    ck_assert_uint_gt(fill(store, 3), n / 2); /* but space of layouts is */
    serve(store, 10);
    store_close(store, true);
}
END_TEST

/* Other files fill it. The pages of the file itself are used, a part of them only for records. */
START_TEST(nothing_but_the_file)
{
    struct store *store = begin(16 * MIB);
    others = 15 * MIB;
    ck_assert_int_eq(put_segment(store, 1), 0);
    ck_assert_uint_ge(fill(store, 1), 1);
    for (uint64_t id = 2; id < 300; id++)
        ck_assert_int_eq(put_attachment(store, id), 0);
    store_close(store, true);
}
END_TEST

/* The last space is used too, although it is less than a step. */
START_TEST(all_of_it)
{
    struct store *store = begin(4 * MIB - 320 * 1024);
    uint64_t id = 1;
    struct stat st;
    char path[100];
    int r;
    while ((r = put_attachment(store, id)) == 0)
        id++;
    ck_assert_int_eq(r, -ENOSPC);
    snprintf(path, sizeof path, "%s/registry", unit_directory());
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_int_eq(st.st_size, (off_t)all);
    all += 64 * 1024; /* other files have become smaller */
    ck_assert_int_eq(put_attachment(store, id), 0);
    store_close(store, true);
}
END_TEST

/* A tmpfs without a limit reports no space at all. */
START_TEST(in_steps)
{
    static char text[TEXT_BYTES];
    struct store *store = begin(0);
    memset(text, 'x', sizeof text - 1);
    for (uint32_t i = 0; i < 200; i++)
        ck_assert_int_eq(store_put_layout(store, 1, i, text), 0);
    ck_assert_uint_eq(longest_step, MIB / 4);
    store_close(store, true);
}
END_TEST

UNIT_MAIN("store_room", UNIT_TEST(records_have_room), UNIT_TEST(nothing_but_the_file),
          UNIT_TEST(all_of_it), UNIT_TEST(in_steps))

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks store.c and store_check.c while memory, the system or LMDB fails. A change is made or not,
 * a sound file is never set aside, and the store works again afterwards. */
#include "unit/unit.h"

#include <dlfcn.h>
#include <shmview/shmview.h>
#include <sys/mman.h>

#include "daemon/store/store_check.h"
#include "unit/faults.h"
#include "unit/faults_store.h"

#define ERRORS                                                                                     \
    {                                                                                              \
        ENOMEM, EMFILE, ENOSPC                                                                     \
    }

/* Replaces that of libc, for LMDB. */
static bool maps_fail;
void *mmap(void *p, size_t n, int protection, int flags, int fd, off_t at)
{
    static void *(*real)(void *, size_t, int, int, int, off_t);
    if (!real)
        *(void **)&real = dlsym(RTLD_NEXT, "mmap");
    if (maps_fail && fd >= 0) {
        errno = ENOMEM;
        return MAP_FAILED;
    }
    return real(p, n, protection, flags, fd, at);
}

static const char *path(void)
{
    static char text[100];
    snprintf(text, sizeof text, "%s/registry", unit_directory());
    return text;
}

static bool is_set_aside(void)
{
    char bad[120];
    snprintf(bad, sizeof bad, "%s.bad", path());
    return access(bad, F_OK) == 0;
}

static struct store *open_store(void)
{
    struct store *store = NULL;
    bool was_bad;
    ck_assert_int_eq(store_open(AT_FDCWD, path(), NULL, &store, &was_bad), 0);
    ck_assert(!was_bad);
    return store;
}

static struct store_segment segment(uint64_t id)
{
    struct store_segment s = {
        .id = id, .size = 100, .lifetime = SHMVIEW_MANUAL, .flags = STORE_NAMED};
    snprintf(s.name, sizeof s.name, "s%d", (int)id);
    return s;
}

static int put_segment(struct store *store, uint64_t id)
{
    struct store_segment s = segment(id);
    return store_put_segment(store, &s);
}

static int put_attachment(struct store *store, uint64_t id)
{
    struct store_attachment a = {.id = id, .segment = 1, .access = SHMVIEW_READ, .slot = 7};
    return store_put_attachment(store, &a);
}

static void fill(struct store *store)
{
    for (uint64_t id = 1; id < 4; id++) {
        ck_assert_int_eq(put_segment(store, id), 0);
        ck_assert_int_eq(store_put_layout(store, id, 0, "{\"a\":0}"), 0);
        ck_assert_int_eq(store_put_layout(store, id, 1, "{\"b\":1}"), 0);
        ck_assert_int_eq(put_attachment(store, 100 + id), 0);
    }
}

/* --- Opening ------------------------------------------------------------- */

static void every_opening(bool exists, unsigned classes, int error)
{
    char before[sizeof(struct store_text)] = "";
    bool failed = true;
    struct store *store = open_store();
    fill(store);
    if (exists)
        strcpy(before, store_tell(store)->text);
    store = store_close(store, !exists);
    const char *file = path();
    faults_errno(error);
    for (unsigned n = 1; failed; n++) {
        bool was_bad = false;
        faults_begin(classes, n);
        int r = store_open(AT_FDCWD, file, NULL, &store, &was_bad);
        failed = faults_end();
        ck_assert_msg(r == 0 || r == (classes == FAULTS_MEMORY ? -ENOMEM : -error), "%s: %s",
                      faults_name(), strerror(-r));
        ck_assert(!was_bad && !is_set_aside());
        if (r)
            ck_assert_uint_eq(unit_fds(), unit_fds_before);
        store = r ? open_store() : store;
        ck_assert_str_eq(store_tell(store)->text, before);
        store = store_close(store, !exists);
    }
    store_close(open_store(), true);
}

START_TEST(opening)
{
    static const int errors[] = ERRORS;
    for (int exists = 0; exists < 2; exists++) {
        every_opening(exists, FAULTS_MEMORY, ENOMEM);
        for (int i = 0; i < 3; i++) {
            every_opening(exists, FAULTS_SYSTEM, errors[i]);
            every_opening(exists, FAULTS_STORE, errors[i]);
        }
    }
}
END_TEST

/* --- Changes ------------------------------------------------------------- */

static int change(struct store *store, int which)
{
    switch (which) {
    case 0:
        return put_segment(store, 9);
    case 1:
        return put_segment(store, 2);
    case 2:
        return put_attachment(store, 900);
    case 3:
        return store_put_layout(store, 3, 2, "{\"c\":2}");
    case 4:
        return store_delete_segment(store, 1);
    case 5:
        return store_delete_attachment(store, 101);
    default:
        return 1;
    }
}

/* Each change is made completely or not at all, and a later call makes it. */
static void every_change(int error)
{
    faults_errno(error);
    for (int which = 0; which < 6; which++) {
        bool failed = true;
        for (unsigned n = 1; failed; n++) {
            struct store *store = open_store();
            fill(store);
            const struct store_text *before = store_tell(store);
            faults_begin(FAULTS_MEMORY | FAULTS_SYSTEM | FAULTS_STORE, n);
            int r = change(store, which);
            failed = faults_end();
            ck_assert_int_eq(r, failed ? -error : 0);
            if (r)
                ck_assert_str_eq(store_tell(store)->text, before->text);
            ck_assert_uint_eq(store_last_id(store), r == 0 && which == 0 ? 9 : 3);
            ck_assert_int_eq(change(store, which), 0);
            static char after[sizeof before->text];
            strcpy(after, store_tell(store)->text);
            store_close(store, false);
            store = open_store();
            ck_assert_str_eq(store_tell(store)->text, after);
            ck_assert_uint_eq(store_last_id(store), which == 0 ? 9 : 3);
            store_close(store, true);
        }
    }
}

START_TEST(changes)
{
    every_change(ENOMEM);
    every_change(ENOSPC);
}
END_TEST

static void see_segment(void *arg, uint64_t id, const struct store_segment *s)
{
    (void)id;
    *(unsigned *)arg += s != NULL;
}

static void see_attachment(void *arg, uint64_t id, const struct store_attachment *a)
{
    (void)id;
    *(unsigned *)arg += a != NULL;
}

static void see_layout(void *arg, uint32_t index, const char *text)
{
    (void)index;
    *(unsigned *)arg += text != NULL;
}

static int visit(struct store *store, int which, unsigned *ret_n)
{
    *ret_n = 0;
    if (which == 0)
        return store_each_segment(store, see_segment, ret_n);
    return which == 1 ? store_each_attachment(store, see_attachment, ret_n)
                      : store_each_layout(store, 2, see_layout, ret_n);
}

/* A reader gets an error if entries are missing. */
START_TEST(visits)
{
    struct store *store = open_store();
    fill(store);
    faults_errno(ENOMEM);
    for (int which = 0; which < 3; which++) {
        bool failed = true;
        for (unsigned n = 1, seen; failed; n++) {
            faults_begin(FAULTS_MEMORY | FAULTS_SYSTEM | FAULTS_STORE, n);
            int r = visit(store, which, &seen);
            failed = faults_end();
            ck_assert_int_eq(r, failed ? -ENOMEM : 0);
            ck_assert(r || seen == (which == 2 ? 2 : 3));
        }
    }
    store_close(store, true);
}
END_TEST

/* --- Growing ------------------------------------------------------------- */

#define TEXT_BYTES 60000

/* Puts layouts, from *n on, until one is refused or `until` are there. */
static int put_many(struct store *store, uint32_t *n, uint32_t until)
{
    static char text[TEXT_BYTES];
    memset(text, 'x', sizeof text - 1);
    int r = 0;
    while (*n < until && (r = store_put_layout(store, 1, *n, text)) == 0)
        ++*n;
    return r;
}

static void count_layout(void *arg, uint32_t index, const char *text)
{
    ck_assert_uint_eq(index, (*(uint32_t *)arg)++);
    ck_assert_uint_eq(strlen(text), TEXT_BYTES - 1);
}

static uint32_t count(struct store *store)
{
    uint32_t n = 0;
    ck_assert_int_eq(store_each_layout(store, 1, count_layout, &n), 0);
    return n;
}

/* A store that cannot grow refuses, keeps its contents, and goes on when it can. */
START_TEST(growing)
{
    uint32_t n = 0;
    struct store *store = open_store();
    ck_assert_int_eq(put_segment(store, 1), 0);
    faults_begin_call("posix_fallocate", 1, ENOSPC, true);
    ck_assert_int_eq(put_many(store, &n, 100), -ENOSPC);
    ck_assert_int_eq(put_many(store, &n, 100), -ENOSPC);
    faults_end();
    ck_assert_uint_eq(count(store), n);
    maps_fail = true;
    ck_assert_int_eq(put_many(store, &n, 100), -ENOMEM);
    ck_assert_int_eq(put_many(store, &n, 100), -ENOMEM);
    unsigned seen;
    ck_assert_int_eq(visit(store, 0, &seen), -ENOMEM);
    ck_assert_uint_eq(unit_fds(), unit_fds_before + 1); /* closed for now, except the file */
    maps_fail = false;
    ck_assert_uint_eq(count(store), n);
    ck_assert_int_eq(put_many(store, &n, 100), 0);
    store_close(store, false);
    store = open_store();
    ck_assert_uint_eq(count(store), 100);
    store_close(store, true);
}
END_TEST

/* Every call of a growth fails once, and the put with it, but for madvise(), which only saves time.
 */
static void every_growth(int error)
{
    bool failed = true;
    unsigned n_in_spite = 0;
    faults_errno(error);
    for (unsigned k = 1; failed; k++) {
        uint32_t n = 0;
        struct store *store = open_store();
        ck_assert_int_eq(put_segment(store, 1), 0);
        faults_begin_call("posix_fallocate", 1, ENOSPC, true);
        put_many(store, &n, 100);
        faults_end();
        faults_errno(error);
        faults_begin(FAULTS_MEMORY | FAULTS_SYSTEM | FAULTS_STORE, k);
        int r = put_many(store, &n, n + 1);
        failed = faults_end();
        ck_assert(r == 0 || (failed && r == -error));
        n_in_spite += failed && r == 0;
        ck_assert_uint_eq(count(store), n);
        ck_assert_int_eq(put_many(store, &n, 30), 0);
        ck_assert_uint_eq(count(store), 30);
        store_close(store, true);
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
    ck_assert_uint_le(n_in_spite, 1);
}

/* Room that was made needs no growth; a file that cannot grow does not spoil the store. */
START_TEST(making_room)
{
    const size_t largest = 256 << 10;
    uint32_t n = 0;
    struct store *store = open_store();
    struct stat before, after;
    ck_assert_int_eq(put_segment(store, 1), 0);
    faults_begin_call("posix_fallocate", 1, ENOSPC, true);
    put_many(store, &n, 100);
    store_make_room(store, largest);
    faults_end();
    ck_assert_uint_eq(count(store), n);
    ck_assert_int_eq(stat(path(), &before), 0);
    store_make_room(store, largest);
    store_make_room(store, largest); /* a step may be too small */
    ck_assert_int_eq(stat(path(), &after), 0);
    ck_assert_int_gt(after.st_size, before.st_size);
    store_make_room(store, largest); /* there is room already */
    ck_assert_int_eq(stat(path(), &before), 0);
    ck_assert_int_eq(after.st_size, before.st_size);
    faults_begin_call("posix_fallocate", 1, ENOSPC, true);
    ck_assert_int_eq(put_many(store, &n, n + 3), 0);
    faults_end();
    ck_assert_uint_eq(count(store), n);
    store_make_room(NULL, largest);
    store_close(store, true);
}
END_TEST

START_TEST(growth_fails)
{
    every_growth(ENOMEM);
}
END_TEST

/* --- Checking ------------------------------------------------------------ */

static int open_checked(struct store **ret, bool *ret_was_bad)
{
    struct store_check check;
    int r = store_check_begin(&check, AT_FDCWD, path());
    return r ? r : store_open(AT_FDCWD, path(), &check, ret, ret_was_bad);
}

/* A shortage does not condemn the file. The checking process has it as well. */
START_TEST(checking)
{
    static const char *const calls[] = {"fork",   "openat",         "fstat",         "pread",
                                        "pwrite", "mdb_env_create", "mdb_txn_begin", "realloc"};
    bool was_bad = false;
    struct store *store = open_store();
    fill(store);
    store_close(store, false);
    path();
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        faults_begin_call(calls[i], 1, ENOMEM, false);
        int r = open_checked(&store, &was_bad);
        faults_end();
        ck_assert_msg(r == -ENOMEM, "%s: %d", calls[i], r);
        ck_assert(!was_bad && !is_set_aside());
        ck_assert_uint_eq(unit_fds(), unit_fds_before);
    }
    ck_assert_int_eq(open_checked(&store, &was_bad), 0);
    ck_assert(!was_bad);
    ck_assert_uint_eq(store_tell(store)->n_segments, 3);
    store_close(store, true);
}
END_TEST

static void spoil(off_t at, const void *bytes, size_t n)
{
    int fd = open(path(), O_WRONLY | O_CLOEXEC);
    ck_assert_int_eq(pwrite(fd, bytes, n, at), (ssize_t)n);
    close(fd);
}

/* A store that cannot be set aside stays where it is. */
START_TEST(setting_aside)
{
    struct store *store = open_store();
    bool was_bad;
    fill(store);
    store_close(store, false);
    spoil(0, "rubbish rubbish rubbish rubbish", 32);
    faults_begin_call("renameat", 1, EACCES, false);
    int r = open_checked(&store, &was_bad);
    ck_assert(faults_end());
    ck_assert_int_eq(r, -EACCES);
    ck_assert(!was_bad && !is_set_aside());
    ck_assert_int_eq(open_checked(&store, &was_bad), 0);
    ck_assert(was_bad && is_set_aside());
    store_close(store, true);
}
END_TEST

/* Replaces the file between its opening and its check. */
static void exchange(void)
{
    char other[120];
    snprintf(other, sizeof other, "%s.other", path());
    ck_assert_int_eq(rename(path(), other), 0);
    ck_assert_int_eq(rename(other, path()), 0);
    snprintf(other, sizeof other, "%s.new", path());
    int fd = open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    close(fd);
    ck_assert_int_eq(rename(other, path()), 0);
}

START_TEST(exchanged)
{
    struct store *store = open_store();
    struct store_check check;
    fill(store);
    store_close(store, false);
    int fd = open(path(), O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path()), 0);
    exchange();
    ck_assert_int_eq(store_check_end(&check, fd), -EUCLEAN);
    close(fd);
    ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path()), 0);
    ck_assert_int_eq(store_check_end(&check, -1), 0);
    unlink(path());
}
END_TEST

/* Only a file with one name that no other user may write is accepted. */
START_TEST(not_a_file_of_ours)
{
    for (int i = 0; i < 6; i++) {
        char other[120];
        struct store *store;
        bool was_bad = false;
        snprintf(other, sizeof other, "%s.other", path());
        close(open(other, O_CREAT | O_WRONLY | O_CLOEXEC, 0600));
        if (i == 0)
            ck_assert_int_eq(symlink(other, path()), 0);
        else if (i == 1)
            ck_assert_int_eq(link(other, path()), 0);
        else if (i == 2)
            ck_assert_int_eq(mkfifo(path(), 0600), 0);
        else if (i == 3)
            ck_assert_int_eq(mkdir(path(), 0700), 0);
        else
            ck_assert_int_eq(rename(other, path()), 0);
        if (i == 4)
            ck_assert_int_eq(chmod(path(), 0620), 0);
        if (i == 5 && (geteuid() || chown(path(), 12345, 12345)))
            continue;
        ck_assert_int_eq(open_checked(&store, &was_bad), 0);
        ck_assert_msg(was_bad && is_set_aside(), "%d", i);
        struct stat st;
        if (lstat(other, &st) == 0)
            ck_assert_int_eq(st.st_size, 0);
        store_close(store, true);
        unlink(other);
        snprintf(other, sizeof other, "%s.bad", path());
        remove(other);
    }
}
END_TEST

UNIT_MAIN("store_faults", UNIT_TEST(opening), UNIT_TEST(changes), UNIT_TEST(visits),
          UNIT_TEST(growing), UNIT_TEST(growth_fails), UNIT_TEST(making_room), UNIT_TEST(checking),
          UNIT_TEST(setting_aside), UNIT_TEST(exchanged), UNIT_TEST(not_a_file_of_ours))

/* SPDX-License-Identifier: Apache-2.0 */
/* Changes bytes and words of a store. It must be set aside or be usable, and it must never end the
 * daemon. */
#include "unit/unit.h"

#include <signal.h>
#include <sys/wait.h>

#include <lmdb.h>
#include <shmview/shmview.h>

#include "common/base/util.h"
#include "daemon/store/store.h"
#include "daemon/store/store_check.h"

#define PAGE_BYTES 4096
#define FILE_BYTES ((size_t)1 << 20) /* the first bytes of the file, which the test changes */
#define N_SEGMENTS 60

static unsigned char good[FILE_BYTES], bytes[FILE_BYTES];
static size_t used_bytes;

static const char *path(void)
{
    static char text[100];
    snprintf(text, sizeof text, "%s/registry", unit_directory());
    return text;
}

static void remove_files(void)
{
    char bad[120];
    snprintf(bad, sizeof bad, "%s.bad", path());
    unlink(bad);
    unlink(path());
}

static int open_checked(struct store **ret, bool *ret_was_bad)
{
    struct store_check check;
    int r = store_check_begin(&check, AT_FDCWD, path());
    return r ? r : store_open(AT_FDCWD, path(), &check, ret, ret_was_bad);
}

static void put(struct store *store, uint64_t id)
{
    struct store_segment s = {.id = id, .size = 100, .lifetime = SHMVIEW_MANUAL};
    struct store_attachment a = {.id = id, .segment = 1, .access = SHMVIEW_READ, .slot = 7};
    char text[6000];
    memset(text, 'x', sizeof text);
    text[id % 7 == 0 ? 5999 : 100] = '\0';
    snprintf(s.name, sizeof s.name, "s%d", (int)id);
    store_put_segment(store, &s);
    store_put_attachment(store, &a);
    for (uint32_t k = 0; k < 3; k++)
        store_put_layout(store, id, k, text);
}

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
    *(unsigned *)arg += (unsigned)strlen(text);
}

/* Makes tables with several pages, long values, and free pages. */
static void make(void)
{
    struct store *store;
    bool was_bad;
    ck_assert_int_eq(store_open(AT_FDCWD, path(), NULL, &store, &was_bad), 0);
    for (uint64_t id = 1; id <= N_SEGMENTS; id++)
        put(store, id);
    for (uint64_t id = 2; id <= N_SEGMENTS; id += 3)
        store_delete_segment(store, id);
    for (uint64_t id = 20; id <= N_SEGMENTS; id++)
        store_delete_attachment(store, id);
    store_close(store, false);
    int fd = open(path(), O_RDONLY | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, good, sizeof good, 0), sizeof good);
    close(fd);
    used_bytes = FILE_BYTES;
    while (used_bytes && good[used_bytes - 1] == 0)
        used_bytes--;
}

static void put_file(const void *from)
{
    int fd = open(path(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(pwrite(fd, from, FILE_BYTES, 0), FILE_BYTES);
    close(fd);
}

/* Uses the store as a daemon does. */
static void use(struct store *store)
{
    unsigned n = 0;
    store_each_segment(store, see_segment, &n);
    store_each_attachment(store, see_attachment, &n);
    for (uint64_t id = 1; id <= N_SEGMENTS; id++)
        store_each_layout(store, id, see_layout, &n);
    for (uint64_t id = N_SEGMENTS + 1; id < N_SEGMENTS + 60; id++)
        put(store, id);
    for (uint64_t id = 1; id < N_SEGMENTS + 60; id += 2) {
        store_delete_attachment(store, id);
        store_delete_segment(store, id);
    }
    for (uint64_t id = 1; id < N_SEGMENTS + 60; id += 4)
        put(store, id);
    for (uint64_t id = 1; id < N_SEGMENTS + 60; id++) {
        store_delete_attachment(store, id);
        store_delete_segment(store, id);
    }
}

/* Returns the status of a process that opens and uses the file: 0: the file was set aside; 1: it
 * was used. */
static int try_it(void)
{
    int status;
    pid_t pid = fork();
    if (pid == 0) {
        struct store *store;
        bool was_bad;
        signal(SIGALRM, SIG_DFL); /* check has set a handler */
        alarm(100);
        int r = open_checked(&store, &was_bad);
        if (r)
            _exit(10);
        use(store);
        _exit(was_bad ? 0 : 1);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 256 + WTERMSIG(status);
}

static unsigned n_tried, n_used;

static void expect_service(const char *what, size_t at)
{
    remove_files();
    put_file(bytes);
    int status = try_it();
    n_tried++;
    n_used += status == 1;
    ck_assert_msg(status <= 1, "%s at byte %zu (%zu of page %zu): status %d", what, at,
                  at % PAGE_BYTES, at / PAGE_BYTES, status);
}

/* SHMVIEW_SEED selects other places, and ten times as many. */
static uint64_t seed_of(uint64_t fixed)
{
    const char *text = getenv("SHMVIEW_SEED");
    return text ? strtoull(text, NULL, 10) : fixed;
}

static bool is_due(uint64_t *seed, unsigned one_of)
{
    return unit_random(seed) % (getenv("SHMVIEW_SEED") ? one_of / 10 : one_of) == 0;
}

START_TEST(bytes_change)
{
    uint64_t seed = seed_of(4711);
    make();
    for (size_t at = 0; at < used_bytes; at++) {
        bool is_header = at % PAGE_BYTES < 64;
        if (!is_due(&seed, is_header ? 50 : 2000))
            continue;
        memcpy(bytes, good, sizeof bytes);
        bytes[at] = (unsigned char)(good[at] ^ (1 + unit_random(&seed) % 255));
        expect_service("a byte", at);
    }
    ck_assert_uint_gt(n_used, 0);
    ck_assert_uint_gt(n_tried, n_used);
    remove_files();
}
END_TEST

START_TEST(words_change)
{
    static const uint64_t words[] = {0, 1, 2, 3, 5, 16, 4095, 4096, 65535, UINT64_MAX, 1u << 31};
    uint64_t seed = seed_of(12345);
    make();
    for (size_t at = 0; at < used_bytes; at += 2) {
        if (!is_due(&seed, at % PAGE_BYTES < 64 ? 25 : 1000))
            continue;
        size_t n = (size_t)2 << unit_random(&seed) % 3;
        if (at + n > FILE_BYTES)
            break;
        memcpy(bytes, good, sizeof bytes);
        memcpy(bytes + at, &words[unit_random(&seed) % 11], n);
        expect_service("a word", at);
    }
    remove_files();
}
END_TEST

/* Lists used pages as free, by the way in which LMDB writes its list. */
static void name_page(size_t page, bool is_last)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    remove_files();
    put_file(good);
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(mdb_env_open(env, path(), MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    ck_assert_int_eq(mdb_cursor_open(txn, 0, &cursor), 0);
    bool found = false;
    while (!found && mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
        found = ((size_t *)value.mv_data)[0] > 0;
    ck_assert(found);
    size_t list[512], n = ((size_t *)value.mv_data)[0];
    memcpy(list, value.mv_data, (n + 1) * sizeof *list);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    memcpy(bytes, good, sizeof bytes);
    /* free pages may have older copies of the list */
    for (size_t at = 0; at + (n + 1) * sizeof *list <= sizeof bytes; at += 2)
        if (memcmp(good + at, list, (n + 1) * sizeof *list) == 0)
            memcpy(bytes + at + (is_last ? n : 1) * sizeof *list, &page, sizeof page);
    expect_service("a page that is said to be free", page);
}

/* The store must not take this for a lack of memory, because then the daemon would not start. */
START_TEST(more_pages_than_there_can_be)
{
    make();
    for (size_t page = 0; page < 2; page++)
        for (size_t at = 136; at < 144; at++) {
            memcpy(bytes, good, sizeof bytes);
            bytes[page * PAGE_BYTES + at] ^= 0x20;
            bytes[(1 - page) * PAGE_BYTES + at] ^= 0x20;
            expect_service("the last page's number", at);
        }
    remove_files();
}
END_TEST

START_TEST(free_list_names_pages_in_use)
{
    make();
    for (size_t page = 0; page < 12; page++)
        for (int is_last = 0; is_last < 2; is_last++)
            name_page(page, is_last);
    ck_assert_uint_lt(n_used, 4); /* one in the middle belongs to no tree */
    remove_files();
}
END_TEST

/* A sound store must be accepted after any history. */
START_TEST(sound_ones_are_used)
{
    uint64_t seed = seed_of(99);
    struct store *store;
    bool was_bad;
    for (int round = 0; round < 30; round++) {
        ck_assert_int_eq(open_checked(&store, &was_bad), 0);
        ck_assert(!was_bad);
        for (int i = 0; i < 100; i++) {
            uint64_t id = 1 + unit_random(&seed) % 300;
            if (unit_random(&seed) % 2) {
                put(store, id);
            } else {
                store_delete_segment(store, id);
                store_delete_attachment(store, id);
            }
        }
        store_close(store, false);
    }
    remove_files();
}
END_TEST

/* A start packs the pages of the file. The trial of the next start splits all of them, which takes
 * three times as much room. */
START_TEST(large_ones_are_used)
{
    struct store_segment s = {.size = 100, .lifetime = SHMVIEW_MANUAL};
    struct store *store;
    bool was_bad;
    strcpy(s.name, "segment000000"); /* of 30 such records no byte of a page is left */
    for (int round = 0; round < 3; round++) {
        ck_assert_int_eq(open_checked(&store, &was_bad), 0);
        ck_assert(!was_bad);
        for (s.id = 1; round == 0 && s.id <= 50000; s.id++)
            ck_assert_int_eq(store_put_segment(store, &s), 0);
        unsigned n = 0;
        ck_assert_int_eq(store_each_segment(store, see_segment, &n), 0);
        ck_assert_uint_eq(n, 50000);
        store_close(store, false);
    }
    remove_files();
}
END_TEST

/* Replies name these values by tables, so a value beyond its table must not reach the daemon. */
START_TEST(placements_have_limits)
{
    static const struct store_placement wrong[] = {
        {.huge = 3},    {.numa = 4},           {.by = 3},
        {.missing = 5}, {.nodes = UINT64_MAX}, {.huge_bytes = UINT64_MAX},
    };
    struct store_segment s = {.size = 100,
                              .lifetime = SHMVIEW_MANUAL,
                              .flags = STORE_PLACED,
                              .placement = {.huge = 2, .numa = 3, .by = 2, .missing = 4}};
    struct store *store;
    bool was_bad;
    remove_files();
    ck_assert_int_eq(store_open(AT_FDCWD, path(), NULL, &store, &was_bad), 0);
    for (unsigned i = 0; i <= ARRAY_LEN(wrong); i++) {
        unsigned n = 0;
        s.id = i + 1;
        snprintf(s.name, sizeof s.name, "s%u", i);
        store_put_segment(store, &s);
        store_each_segment(store, see_segment, &n);
        ck_assert_msg(n == 1, "%u segments with placement %u", n, i);
        if (i < ARRAY_LEN(wrong))
            s.placement = wrong[i];
    }
    store_close(store, false);
    remove_files();
}
END_TEST

UNIT_MAIN("store_damage", UNIT_TEST(bytes_change), UNIT_TEST(words_change),
          UNIT_TEST(more_pages_than_there_can_be), UNIT_TEST(free_list_names_pages_in_use),
          UNIT_TEST(sound_ones_are_used), UNIT_TEST(large_ones_are_used),
          UNIT_TEST(placements_have_limits))

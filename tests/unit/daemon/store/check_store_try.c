/* SPDX-License-Identifier: Apache-2.0 */
/* Checks store_try.c and store_check.c: a file of another form is damaged, and a sound file is not,
 * whichever call fails while it is tried. */
#include "unit/unit.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <shmview/shmview.h>

#include "daemon/store/store_check.h"
#include "daemon/store/store_env.h"
#include "daemon/store/store_try.h"
#include "unit/faults.h"
#include "unit/faults_store.h"

static const char *path(const char *tail)
{
    static char texts[2][100];
    static unsigned turn;
    char *text = texts[turn++ % 2];
    snprintf(text, sizeof texts[0], "%s/registry%s", unit_directory(), tail);
    return text;
}

static struct store *open_store(void)
{
    struct store *store = NULL;
    bool was_bad;
    ck_assert_int_eq(store_open(AT_FDCWD, path(""), NULL, &store, &was_bad), 0);
    ck_assert(!was_bad);
    return store;
}

/* Makes a file with records in each table, and with free pages. */
static void make(void)
{
    struct store_segment s = {.size = 100, .lifetime = SHMVIEW_MANUAL};
    struct store_attachment a = {.segment = 1, .access = SHMVIEW_READ};
    char text[6000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    struct store *store = open_store();
    for (s.id = 1; s.id < 6; s.id++) {
        a.id = 100 + s.id;
        snprintf(s.name, sizeof s.name, "s%d", (int)s.id);
        ck_assert_int_eq(store_put_segment(store, &s), 0);
        ck_assert_int_eq(store_put_attachment(store, &a), 0);
        ck_assert_int_eq(store_put_layout(store, s.id, 0, text), 0);
    }
    ck_assert_int_eq(store_delete_segment(store, 3), 0);
    store_close(store, false);
}

/* Copies the file, because a trial destroys it. Returns its length. */
static size_t copy(void)
{
    static char bytes[1 << 20];
    struct stat st;
    int from = open(path(""), O_RDONLY | O_CLOEXEC);
    int to = open(path(".copy"), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0600);
    ck_assert_int_eq(fstat(from, &st), 0);
    ck_assert_int_le(st.st_size, (off_t)sizeof bytes);
    ck_assert_int_eq(read(from, bytes, sizeof bytes), st.st_size);
    ck_assert_int_eq(write(to, bytes, (size_t)st.st_size), st.st_size);
    close(from);
    close(to);
    return (size_t)st.st_size;
}

static void remove_files(void)
{
    static const char *const tails[] = {"", ".copy", ".bad"};
    for (size_t i = 0; i < 3; i++)
        unlink(path(tails[i]));
}

struct outcome {
    int result;
    bool failed;
    char name[40]; /* of the call that failed */
};

/* Tries a copy in a child, in which the n-th call of these classes fails (0: none). */
static struct outcome try_copy(unsigned classes, unsigned n, int error)
{
    struct outcome outcome = {0};
    int ends[2], status;
    const size_t bytes = copy();
    const char *file = path(".copy");
    ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
    pid_t pid = fork();
    if (pid == 0) {
        faults_errno(error);
        if (n)
            faults_begin(classes, n);
        outcome.result = store_try(file, bytes);
        outcome.failed = faults_end();
        snprintf(outcome.name, sizeof outcome.name, "%s", faults_name());
        _exit(write(ends[1], &outcome, sizeof outcome) == sizeof outcome ? 0 : 1);
    }
    close(ends[1]);
    ck_assert_int_eq(read(ends[0], &outcome, sizeof outcome), sizeof outcome);
    close(ends[0]);
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
    return outcome;
}

/* --- Shortages ----------------------------------------------------------- */

/* Whether these calls need the same memory for each file. A damaged file can make the others need
 * more than there is: then its ENOMEM must not keep the daemon from starting. */
static bool is_same_for_each_file(const char *name)
{
    static const char *const others[] = {"mdb_env_open", "mdb_cursor_get", "mdb_get",
                                         "mdb_put",      "mdb_del",        "mdb_drop"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    /* these take no memory */
    return !strstr(name, "stat") && !strstr(name, "_info") && !strstr(name, "_flags");
}

START_TEST(shortage_is_no_damage)
{
    unsigned n_short = 0;
    make();
    ck_assert_int_eq(try_copy(0, 0, 0).result, 0);
    struct outcome o = {.failed = true};
    for (unsigned n = 1; o.failed; n++) {
        o = try_copy(FAULTS_MEMORY | FAULTS_SYSTEM | FAULTS_STORE, n, ENOMEM);
        bool may_be_bad = o.failed && !is_same_for_each_file(o.name);
        ck_assert_msg(o.result == (o.failed ? -ENOMEM : 0) || (may_be_bad && o.result == -EUCLEAN),
                      "%s, call %u: %s", o.name, n, strerror(-o.result));
        n_short += o.result == -ENOMEM;
    }
    ck_assert_uint_gt(n_short, 40);
    remove_files();
}
END_TEST

/* An error of LMDB's own condemns the file, at whichever call. */
START_TEST(errors_of_the_file_are_damage)
{
    make();
    struct outcome o = {.failed = true};
    for (unsigned n = 1; o.failed; n++) {
        o = try_copy(FAULTS_STORE, n, MDB_CORRUPTED);
        ck_assert_msg(o.result == (o.failed ? -EUCLEAN : 0), "%s, call %u: %s", o.name, n,
                      strerror(-o.result));
    }
    remove_files();
}
END_TEST

START_TEST(descriptors_are_short)
{
    static const int errors[] = {EMFILE, ENFILE, EAGAIN};
    make();
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
        unsigned n = 1;
        struct outcome o = try_copy(FAULTS_STORE, n, errors[i]);
        while (strcmp(o.name, "mdb_env_open") != 0)
            o = try_copy(FAULTS_STORE, ++n, errors[i]);
        ck_assert_int_eq(o.result, -errors[i]);
    }
    remove_files();
}
END_TEST

/* --- Other forms --------------------------------------------------------- */

/* Changes a sound file by LMDB. */
static void with_txn(void (*change)(struct store *, MDB_txn *))
{
    MDB_txn *txn;
    make();
    struct store *store = open_store();
    ck_assert_int_eq(mdb_txn_begin(store->env, NULL, 0, &txn), 0);
    change(store, txn);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    store_close(store, false);
}

static void put_raw(MDB_txn *txn, MDB_dbi table, const void *key, size_t key_bytes,
                    const void *value, size_t value_bytes)
{
    MDB_val k = {key_bytes, (void *)(uintptr_t)key}, v = {value_bytes, (void *)(uintptr_t)value};
    ck_assert_int_eq(mdb_put(txn, table, &k, &v, 0), 0);
}

static void key_of_another_size(struct store *store, MDB_txn *txn)
{
    put_raw(txn, store->tables[STORE_LAYOUTS], "abc", 3, "x", 2);
}

static void another_entry(struct store *store, MDB_txn *txn)
{
    (void)store;
    put_raw(txn, 1, "other", 5, "x", 2); /* in the table of tables, which LMDB numbers 1 */
}

static void no_table(struct store *store, MDB_txn *txn)
{
    ck_assert_int_eq(mdb_drop(txn, store->tables[STORE_LAYOUTS], 1), 0);
}

static void table_of_another_form(struct store *store, MDB_txn *txn)
{
    MDB_dbi dbi;
    no_table(store, txn);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
    ck_assert_int_eq(mdb_txn_begin(store->env, NULL, 0, &txn), 0);
    ck_assert_int_eq(mdb_dbi_open(txn, "layouts", MDB_CREATE | MDB_REVERSEKEY, &dbi), 0);
    ck_assert_int_eq(mdb_txn_commit(txn), 0);
}

static void meta_of_another_size(struct store *store, MDB_txn *txn)
{
    const uint64_t one = 1;
    put_raw(txn, store->tables[STORE_META], &one, sizeof one, "short", 5);
}

static void meta_of_another_version(struct store *store, MDB_txn *txn)
{
    const uint64_t one = 1, meta[3] = {99, 0, 0};
    put_raw(txn, store->tables[STORE_META], &one, sizeof one, meta, sizeof meta);
}

static int open_checked(struct store **ret, bool *ret_was_bad)
{
    struct store_check check;
    int r = store_check_begin(&check, AT_FDCWD, path(""));
    return r ? r : store_open(AT_FDCWD, path(""), &check, ret, ret_was_bad);
}

/* Opens the file as a daemon does. Returns whether it was set aside; then the store is empty. */
static bool is_set_aside(void)
{
    bool was_bad;
    struct store *store;
    ck_assert_int_eq(open_checked(&store, &was_bad), 0);
    ck_assert_int_eq(was_bad, access(path(".bad"), F_OK) == 0);
    ck_assert_uint_eq(store_last_id(store), was_bad ? 0 : 5);
    ck_assert_uint_eq(store_tell(store)->n_segments, was_bad ? 0 : 4);
    store_close(store, true);
    remove_files();
    return was_bad;
}

START_TEST(other_forms_are_damage)
{
    with_txn(key_of_another_size);
    ck_assert_int_eq(try_copy(0, 0, 0).result, -EUCLEAN);
    ck_assert(is_set_aside());
    with_txn(another_entry);
    ck_assert_int_eq(try_copy(0, 0, 0).result, -EUCLEAN);
    ck_assert(is_set_aside());
    with_txn(no_table); /* an older file may lack one, which is made */
    ck_assert_int_eq(try_copy(0, 0, 0).result, 0);
    ck_assert(!is_set_aside());
}
END_TEST

START_TEST(another_form_of_a_table)
{
    MDB_txn *txn;
    make();
    struct store *store = open_store();
    ck_assert_int_eq(mdb_txn_begin(store->env, NULL, 0, &txn), 0);
    table_of_another_form(store, txn);
    store_close(store, false);
    ck_assert_int_eq(try_copy(0, 0, 0).result, -EUCLEAN);
    ck_assert(is_set_aside());
}
END_TEST

/* Such a file passes the trial, and the daemon must not go on with it. */
START_TEST(another_version_is_set_aside)
{
    with_txn(meta_of_another_size);
    ck_assert_int_eq(try_copy(0, 0, 0).result, 0);
    ck_assert(is_set_aside());
    with_txn(meta_of_another_version);
    ck_assert_int_eq(try_copy(0, 0, 0).result, 0);
    ck_assert(is_set_aside());
}
END_TEST

/* A list of free pages that claims more pages than it has room for. */
START_TEST(free_list_beyond_its_end)
{
    MDB_env *env;
    MDB_txn *txn;
    MDB_cursor *cursor;
    MDB_val key, value;
    static char bytes[1 << 20];
    size_t list[64], n = 0;
    make();
    ck_assert_int_eq(mdb_env_create(&env), 0);
    ck_assert_int_eq(mdb_env_open(env, path(""), MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0), 0);
    ck_assert_int_eq(mdb_txn_begin(env, NULL, MDB_RDONLY, &txn), 0);
    ck_assert_int_eq(mdb_cursor_open(txn, 0, &cursor), 0);
    while (n == 0 && mdb_cursor_get(cursor, &key, &value, MDB_NEXT) == 0)
        n = ((size_t *)value.mv_data)[0];
    ck_assert(n > 0 && n < 60);
    memcpy(list, value.mv_data, (n + 1) * sizeof *list);
    mdb_cursor_close(cursor);
    mdb_txn_abort(txn);
    mdb_env_close(env);
    int fd = open(path(""), O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(pread(fd, bytes, sizeof bytes, 0), sizeof bytes);
    const size_t more = 1000;
    for (size_t at = 0; at + (n + 1) * sizeof *list <= sizeof bytes; at += 2)
        if (memcmp(bytes + at, list, (n + 1) * sizeof *list) == 0)
            ck_assert_int_eq(pwrite(fd, &more, sizeof more, (off_t)at), sizeof more);
    close(fd);
    ck_assert_int_eq(try_copy(0, 0, 0).result, -EUCLEAN);
    ck_assert(is_set_aside());
}
END_TEST

/* --- The child ----------------------------------------------------------- */

/* A lack of the child alone does not condemn the file. */
START_TEST(the_child_is_short)
{
    static const char *const calls[] = {"openat", "fstat", "pread", "pwrite"};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        struct store_check check;
        make();
        int fd = open(path(""), O_RDWR | O_CLOEXEC);
        faults_begin_call(calls[i], 1, EIO, false);
        ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path("")), 0);
        faults_end();
        ck_assert_int_eq(store_check_end(&check, fd), -ENOMEM);
        close(fd);
        ck_assert(!is_set_aside());
    }
}
END_TEST

/* The trial needs a longer file than the registry. */
START_TEST(files_are_limited)
{
    struct store_check check;
    struct rlimit limit;
    make();
    int fd = open(path(""), O_RDWR | O_CLOEXEC);
    signal(SIGXFSZ, SIG_IGN); /* as the daemon does */
    ck_assert_int_eq(getrlimit(RLIMIT_FSIZE, &limit), 0);
    const struct rlimit less = {.rlim_cur = 4 << 20, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &less), 0);
    ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path("")), 0);
    ck_assert_int_eq(store_check_end(&check, fd), -ENOMEM);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path("")), 0);
    ck_assert_int_eq(store_check_end(&check, fd), 0);
    close(fd);
}
END_TEST

START_TEST(the_daemon_cannot_ask)
{
    struct store_check check;
    make();
    int fd = open(path(""), O_RDWR | O_CLOEXEC);
    ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path("")), 0);
    faults_begin_call("fstat", 1, EIO, false);
    ck_assert_int_eq(store_check_end(&check, fd), -EIO);
    ck_assert(faults_end());
    ck_assert_int_eq(waitpid(check.pid, NULL, 0), -1); /* it has ended all the same */
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path("")), 0);
    kill(check.pid, SIGKILL);
    ck_assert_int_eq(waitid(P_PID, (id_t)check.pid, NULL, WEXITED | WNOWAIT), 0);
    ck_assert_int_eq(store_check_end(&check, fd), -EPIPE);
    ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path("")), 0);
    kill(check.pid, SIGKILL);
    ck_assert_int_eq(waitpid(check.pid, NULL, 0), check.pid);
    ck_assert_int_eq(store_check_end(&check, -1), -ECHILD);
    close(fd);
    ck_assert(!is_set_aside());
}
END_TEST

/* Ends a child that cannot run, once it may begin. Returns the result. */
static int end_by(int number, int fd)
{
    struct store_check check;
    ck_assert_int_eq(store_check_begin(&check, AT_FDCWD, path("")), 0);
    kill(check.pid, SIGSTOP);
    ck_assert_int_eq(waitid(P_PID, (id_t)check.pid, NULL, WSTOPPED | WNOWAIT), 0);
    pid_t killer = fork();
    if (killer == 0) {
        /* until the daemon waits for it: then it has written to the pipe */
        for (int n = 0, i = 0; n == 0 && i < 20000; i++) {
            usleep(1000);
            ioctl(check.go, FIONREAD, &n);
        }
        kill(check.pid, number);
        kill(check.pid, SIGCONT);
        _exit(0);
    }
    int r = store_check_end(&check, fd);
    ck_assert_int_eq(waitpid(killer, NULL, 0), killer);
    return r;
}

/* SIGKILL most likely comes from the OOM killer, and SIGBUS from a page that is not to be had. Any
 * other signal comes from the file. */
START_TEST(the_child_is_killed)
{
    make();
    int fd = open(path(""), O_RDWR | O_CLOEXEC);
    signal(SIGBUS, SIG_DFL); /* a sanitizer would report it */
    ck_assert_int_eq(end_by(SIGKILL, fd), -ENOMEM);
    ck_assert_int_eq(end_by(SIGBUS, fd), -ENOMEM);
    signal(SIGSEGV, SIG_DFL);
    ck_assert_int_eq(end_by(SIGSEGV, fd), -EUCLEAN);
    close(fd);
    ck_assert(!is_set_aside());
}
END_TEST

UNIT_MAIN("store_try", UNIT_TEST(shortage_is_no_damage), UNIT_TEST(errors_of_the_file_are_damage),
          UNIT_TEST(descriptors_are_short), UNIT_TEST(other_forms_are_damage),
          UNIT_TEST(another_form_of_a_table), UNIT_TEST(another_version_is_set_aside),
          UNIT_TEST(free_list_beyond_its_end), UNIT_TEST(the_child_is_short),
          UNIT_TEST(files_are_limited), UNIT_TEST(the_daemon_cannot_ask),
          UNIT_TEST(the_child_is_killed))

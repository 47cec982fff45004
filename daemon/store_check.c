/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/store_check.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <lmdb.h>

#include "common/util.h"

#define CPU_SECONDS  20 /* a tree that has become a ring is not walked for ever */
#define TABLES_MOST  16
#define FREE_DBI     0 /* LMDB's own: pages that are free, by transaction */
#define MAIN_DBI     1
#define STATUS_SOUND 0
#define STATUS_BAD   1
#define STATUS_SHORT 2 /* of memory or descriptors: it says nothing of the file */

/* --- In the other process ------------------------------------------------ */

static void touch(const MDB_val *value)
{
    const volatile unsigned char *bytes = value->mv_data;
    for (size_t i = 0; i < value->mv_size; i++)
        (void)bytes[i];
}

/* Reads every byte of every record. */
static bool walk(MDB_txn *txn, MDB_dbi table, bool (*fits)(const MDB_val *, void *), void *arg)
{
    MDB_cursor *cursor;
    MDB_val key, value;
    MDB_stat stat;
    size_t n = 0;
    if (mdb_cursor_open(txn, table, &cursor))
        return false;
    int r;
    while ((r = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        touch(&key);
        touch(&value);
        if (fits && !fits(&value, arg))
            return false;
        n++;
    }
    mdb_cursor_close(cursor);
    return r == MDB_NOTFOUND && mdb_stat(txn, table, &stat) == 0 && stat.ms_entries == n;
}

/* A list of free pages: how many, then their numbers, falling. */
static bool is_page_list(const MDB_val *value, void *arg)
{
    const size_t *last = arg;
    size_t n = value->mv_size / sizeof(size_t);
    const size_t *list = value->mv_data;
    if (n == 0 || list[0] >= n)
        return false;
    for (size_t i = 1; i <= list[0]; i++)
        if (list[i] < 2 || list[i] > *last || (i > 1 && list[i] >= list[i - 1]))
            return false;
    return true;
}

static int begin_reading(const char *path, size_t bytes, MDB_env **ret_env, MDB_txn **ret_txn)
{
    int r = mdb_env_create(ret_env);
    if (r == 0)
        r = mdb_env_set_maxdbs(*ret_env, TABLES_MOST);
    if (r == 0)
        r = mdb_env_set_mapsize(*ret_env, bytes);
    if (r == 0)
        r = mdb_env_open(*ret_env, path, MDB_NOSUBDIR | MDB_RDONLY | MDB_NOLOCK, 0);
    return r ? r : mdb_txn_begin(*ret_env, NULL, MDB_RDONLY, ret_txn);
}

static bool walk_all(MDB_env *env, MDB_txn *txn, size_t bytes)
{
    static const char *const names[] = {"meta", "segments", "layouts", "attachments"};
    MDB_envinfo info;
    MDB_stat stat;
    if (mdb_env_info(env, &info) || mdb_env_stat(env, &stat) ||
        info.me_last_pgno >= bytes / stat.ms_psize)
        return false;
    if (!walk(txn, FREE_DBI, is_page_list, &info.me_last_pgno) || !walk(txn, MAIN_DBI, NULL, NULL))
        return false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        MDB_dbi table;
        int r = mdb_dbi_open(txn, names[i], 0, &table);
        if (r != MDB_NOTFOUND && (r || !walk(txn, table, NULL, NULL)))
            return false;
    }
    return true;
}

__attribute__((noreturn)) static void judge(const char *path, size_t bytes)
{
    static const int fatal[] = {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGXCPU};
    /* the soft limit is SIGXCPU; SIGKILL is another's */
    struct rlimit cpu = {CPU_SECONDS, CPU_SECONDS + 1}, none = {0, 0};
    MDB_env *env;
    MDB_txn *txn;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close_range(3, ~0u, 0);
    int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
    dup2(null, STDERR_FILENO); /* LMDB says what it finds wrong */
    setrlimit(RLIMIT_CPU, &cpu);
    setrlimit(RLIMIT_CORE, &none);
    for (size_t i = 0; i < ARRAY_LEN(fatal); i++)
        signal(fatal[i], SIG_DFL);
    int r = begin_reading(path, bytes, &env, &txn);
    if (r == ENOMEM || r == EMFILE || r == ENFILE || r == EAGAIN)
        _exit(STATUS_SHORT);
    _exit(r == 0 && walk_all(env, txn, bytes) ? STATUS_SOUND : STATUS_BAD);
}

/* --- In the daemon ------------------------------------------------------- */

int store_check(const char *path)
{
    struct stat st;
    int status;
    if (lstat(path, &st))
        return errno == ENOENT ? 0 : -errno;
    if (!S_ISREG(st.st_mode) || st.st_uid != geteuid() || st.st_mode & 022)
        return -EUCLEAN;
    if (st.st_size == 0)
        return 0;
    pid_t pid = fork();
    if (pid < 0)
        return -errno;
    if (pid == 0)
        judge(path, (size_t)st.st_size);
    while (waitpid(pid, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    /* SIGKILL: by whom memory is short, most likely */
    if ((WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SHORT) ||
        (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL))
        return -ENOMEM;
    return WIFEXITED(status) && WEXITSTATUS(status) == STATUS_SOUND ? 0 : -EUCLEAN;
}

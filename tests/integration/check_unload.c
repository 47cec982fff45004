/* SPDX-License-Identifier: Apache-2.0 */
/* A program that loads the library with dlopen() and lets go of it again. CMakeLists.txt keeps
 * the library out of what this program is linked with. */
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/shmview.h>

#include "support/child.h"
#include "support/daemon.h"
#include "support/suite.h"

static struct daemon d;
static void *library;

/* Loads the library, which must not be there yet. */
static void load(void)
{
    ck_assert_ptr_null(dlopen(SHMVIEW_LIBRARY, RTLD_NOW | RTLD_NOLOAD));
    library = dlopen(SHMVIEW_LIBRARY, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        ck_abort_msg("%s", dlerror());
}

/* *(void **)&p = dlsym(): ISO C has no conversion from an object's address to a function's. */
static void find(const char *name, void *ret_function)
{
    *(void **)ret_function = dlsym(library, name);
    ck_assert_ptr_nonnull(*(void **)ret_function);
}

static pthread_barrier_t unloaded;

/* Locks and gives back, so that the library looks after the end of this thread. */
static void *lock_once(void *unused)
{
    __typeof__(&shmview_connect) connect;
    __typeof__(&shmview_create) create;
    __typeof__(&shmview_lock) lock;
    __typeof__(&shmview_unlock) unlock;
    __typeof__(&shmview_detach) detach;
    __typeof__(&shmview_disconnect) disconnect;
    struct shmview_connection *conn;
    struct shmview_segment *seg;
    find("shmview_connect", &connect);
    find("shmview_create", &create);
    find("shmview_lock", &lock);
    find("shmview_unlock", &unlock);
    find("shmview_detach", &detach);
    find("shmview_disconnect", &disconnect);
    if (connect(d.socket, 0, &conn) || create(conn, "s", 4096, NULL, &seg) || lock(seg) ||
        unlock(seg) || detach(seg) || disconnect(conn))
        return "a call failed";
    pthread_barrier_wait(&unloaded); /* it is still there */
    pthread_barrier_wait(&unloaded); /* dlclose() was called */
    return unused;
}

START_TEST(a_thread_that_had_locked_ends)
{
    pthread_t thread;
    void *failed;
    daemon_start(&d);
    load();
    pthread_barrier_init(&unloaded, NULL, 2);
    ck_assert_int_eq(pthread_create(&thread, NULL, lock_once, NULL), 0);
    pthread_barrier_wait(&unloaded);
    ck_assert_int_eq(dlclose(library), 0);
    pthread_barrier_wait(&unloaded);
    ck_assert_int_eq(pthread_join(thread, &failed), 0);
    if (failed)
        ck_abort_msg("%s", (const char *)failed);
    pthread_barrier_destroy(&unloaded);
    daemon_stop(&d);
}
END_TEST

START_TEST(a_process_that_had_connected_forks)
{
    __typeof__(&shmview_connect) connect;
    __typeof__(&shmview_disconnect) disconnect;
    struct shmview_connection *conn;
    daemon_start(&d);
    load();
    find("shmview_connect", &connect);
    find("shmview_disconnect", &disconnect);
    ck_assert_int_eq(connect(d.socket, 0, &conn), 0);
    ck_assert_int_eq(disconnect(conn), 0);
    ck_assert_int_eq(dlclose(library), 0);
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    int status = process_wait(pid);
    ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 7);
    daemon_stop(&d);
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(a_thread_that_had_locked_ends),
        SUITE_TEST(a_process_that_had_connected_forks),
        SUITE_END,
    };
    return suite_main("unload", tests);
}

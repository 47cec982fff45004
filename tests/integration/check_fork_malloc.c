/* SPDX-License-Identifier: Apache-2.0 */
/* A replaced malloc() that has a lock, and takes it in a handler of pthread_atfork(), as jemalloc
 * does. It registers the handler at its first call. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <shmview/shmview.h>

#include "support/child.h"
#include "support/client.h"
#include "support/suite.h"

#define FORKS 100

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
void *__libc_malloc(size_t bytes);
void __libc_free(void *memory);

static pthread_mutex_t heap = PTHREAD_MUTEX_INITIALIZER;
static bool is_registered;

static void before(void)
{
    pthread_mutex_lock(&heap);
}

static void after(void)
{
    pthread_mutex_unlock(&heap);
}

void *malloc(size_t bytes)
{
    if (!is_registered) {
        is_registered = true;
        pthread_atfork(before, after, after);
    }
    pthread_mutex_lock(&heap);
    void *memory = __libc_malloc(bytes);
    pthread_mutex_unlock(&heap);
    return memory;
}

void free(void *memory)
{
    pthread_mutex_lock(&heap);
    __libc_free(memory);
    pthread_mutex_unlock(&heap);
}
#endif

static atomic_bool is_over;
static unsigned char bytes[64];

/* Allocates and frees memory in the library, where forks must wait. */
static void *use_the_library(void *arg)
{
    struct shmview_segment *s = arg;
    struct shmview_view v;
    struct shmview_buffer b;
    while (!is_over) {
        OK(shmview_view_cast(s, "<i4", 0, 64, &v));
        OK(shmview_buffer_get(&v, 0, &b));
        shmview_buffer_release(&b);
    }
    return NULL;
}

START_TEST(forks)
{
    struct shmview_segment *s;
    pthread_t thread;
    OK(shmview_wrap(bytes, sizeof bytes, 0, NULL, NULL, &s));
    ck_assert_int_eq(pthread_create(&thread, NULL, use_the_library, s), 0);
    for (int i = 0; i < FORKS; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(0);
        ck_assert_int_eq(process_wait(pid), 0);
    }
    is_over = true;
    pthread_join(thread, NULL);
    OK(shmview_detach(s));
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {SUITE_TEST(forks), SUITE_END};
    return suite_main("fork_malloc", tests);
}

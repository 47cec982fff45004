/* SPDX-License-Identifier: Apache-2.0 */
#include "support/bystander.h"

#include <stdio.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "support/await.h"
#include "support/client.h"

struct task {
    const struct daemon *daemon;
    _Atomic unsigned *rounds;
};

static void do_round(struct shmview_connection *conn, unsigned number)
{
    char name[32];
    snprintf(name, sizeof name, "bystander-%u", number % 8);
    struct shmview_segment *a = client_create(conn, name, 5000);
    struct shmview_segment *b = client_attach(conn, name, SHMVIEW_READ);
    OK(shmview_lock(a));
    *(unsigned *)shmview_data(a) = number;
    OK(shmview_unlock(a));
    OK(shmview_lock(b));
    ck_assert_uint_eq(*(unsigned *)shmview_data(b), number);
    OK(shmview_unlock(b));
    OK(shmview_detach(a));
    OK(shmview_detach(b));
    OK(shmview_ping(conn));
}

static void use_daemon(struct child *me, void *arg)
{
    const struct task *task = arg;
    char cue;
    struct shmview_connection *conn = client_connect(task->daemon);
    for (unsigned n = 0; recv(me->fd, &cue, 1, MSG_DONTWAIT) != 1; n++) {
        do_round(conn, n);
        atomic_fetch_add(task->rounds, 1);
    }
    OK(shmview_disconnect(conn));
}

void bystander_start(struct bystander *bystander, const struct daemon *daemon)
{
    bystander->rounds = mmap(NULL, sizeof *bystander->rounds, PROT_READ | PROT_WRITE,
                             MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne((void *)bystander->rounds, MAP_FAILED);
    struct task task = {daemon, bystander->rounds};
    child_start(&bystander->child, use_daemon, &task);
    bystander_await_rounds(bystander);
}

void bystander_await_rounds(struct bystander *bystander)
{
    unsigned before = atomic_load(bystander->rounds);
    AWAIT(atomic_load(bystander->rounds) - before > 2 || !process_lives(bystander->child.pid));
    ck_assert_msg(process_lives(bystander->child.pid), "the bystander was disturbed");
}

void bystander_stop(struct bystander *bystander)
{
    child_cue(&bystander->child);
    child_wait(&bystander->child);
    munmap((void *)bystander->rounds, sizeof *bystander->rounds);
}

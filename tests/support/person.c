/* SPDX-License-Identifier: Apache-2.0 */
#include "support/person.h"

#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <check.h>

#include "support/place.h"

/* Tries it in a child, because root of a user namespace may have no other users. */
bool person_possible(void)
{
    const gid_t group = 65531;
    int status = 1;
    pid_t pid = fork();
    if (pid == 0)
        _exit(setgroups(1, &group) || setresgid(65532, 65532, 65532) ||
              setresuid(65532, 65532, 65532));
    if (pid > 0 && waitpid(pid, &status, 0) == pid && status == 0)
        return true;
    puts("skipped: only root can be several users");
    return false;
}

void person_open_door(const struct daemon *daemon)
{
    ck_assert_int_eq(chmod(place_directory(), 0755), 0);
    ck_assert_int_eq(chmod(daemon->socket, 0666), 0);
}

struct becoming {
    const struct person *person;
    void (*run)(struct child *me, void *arg);
    void *arg;
};

static void become(struct child *me, void *arg)
{
    const struct becoming *b = arg;
    const struct person *p = b->person;
    ck_assert_int_eq(setgroups(p->n_groups, p->groups), 0);
    ck_assert_int_eq(setresgid(p->gid, p->gid, p->gid), 0);
    ck_assert_int_eq(setresuid(p->uid, p->uid, p->uid), 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* the kernel clears it when the user changes */
    b->run(me, b->arg);
}

void person_start(struct child *child, const struct person *person,
                  void (*run)(struct child *me, void *arg), void *arg)
{
    struct becoming becoming = {person, run, arg};
    child_start(child, become, &becoming);
}

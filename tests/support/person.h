/* SPDX-License-Identifier: Apache-2.0 */
/* Children that run as other users, for tests that root runs. */
#ifndef SUPPORT_PERSON_H
#define SUPPORT_PERSON_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "support/child.h"
#include "support/daemon.h"

#define PERSON_GROUPS 4

struct person {
    uid_t uid;
    gid_t gid;
    gid_t groups[PERSON_GROUPS]; /* supplementary */
    size_t n_groups;
};

/* Returns whether this process can become another user; prints the reason if not. */
bool person_possible(void);

/* Lets every user connect to the daemon, as to the system's daemon. */
void person_open_door(const struct daemon *daemon);

/* Like child_start(), but the child runs as that person. */
void person_start(struct child *child, const struct person *person,
                  void (*run)(struct child *me, void *arg), void *arg);

#endif

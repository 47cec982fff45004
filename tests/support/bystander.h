/* SPDX-License-Identifier: Apache-2.0 */
/* A well-behaved client in a process of its own that uses the daemon without pause:
 * whatever others do to the daemon, this one must not be disturbed. */
#ifndef SUPPORT_BYSTANDER_H
#define SUPPORT_BYSTANDER_H

#include <stdatomic.h>

#include "support/child.h"
#include "support/daemon.h"

struct bystander {
    struct child child;
    _Atomic unsigned *rounds; /* shared with the child */
};

/* Starts it: creates, attaches, locks, writes, detaches, pings, again and again. */
void bystander_start(struct bystander *bystander, const struct daemon *daemon);
/* Waits until it has done two whole rounds more. */
void bystander_await_rounds(struct bystander *bystander);
/* Ends it; fails the test if anything it did was refused. */
void bystander_stop(struct bystander *bystander);

#endif

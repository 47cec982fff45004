/* SPDX-License-Identifier: Apache-2.0 */
/* A well-behaved client in its own process that uses the daemon without pause. Nothing that other
 * clients do to the daemon may disturb it. */
#ifndef SUPPORT_BYSTANDER_H
#define SUPPORT_BYSTANDER_H

#include <stdatomic.h>

#include "support/child.h"
#include "support/daemon.h"

struct bystander {
    struct child child;
    _Atomic unsigned *rounds; /* shared with the child */
};

/* Starts the child, which repeats: create, attach, lock, write, detach, ping. */
void bystander_start(struct bystander *bystander, const struct daemon *daemon);
/* Waits until it has completed two more whole rounds. */
void bystander_await_rounds(struct bystander *bystander);
/* Ends it. Fails the test if any of its requests was refused. */
void bystander_stop(struct bystander *bystander);

#endif

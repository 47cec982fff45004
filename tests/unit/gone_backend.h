/* SPDX-License-Identifier: Apache-2.0 */
/* The backend of the page's server, connected to the daemon of gone.h. */
#ifndef UNIT_GONE_BACKEND_H
#define UNIT_GONE_BACKEND_H

#include "unit/gone.h"
#include "web/memory/backend.h"
#include "web/memory/guard.h"

static struct backend backend;

static inline void backend_begin(void)
{
    gone_begin();
    guard_init();
    ck_assert_int_eq(backend_init(&backend, gone_daemon.socket, 100), 0);
}

static inline void backend_end(void)
{
    backend_deinit(&backend);
    gone_end();
}

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* top on a terminal. */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include "cli/top/top.h"

/* Gets new figures into top, or says in top->trouble why not. Returns 0 or an exit status. */
typedef int (*top_refresh)(struct context *c, struct top *top);

/* Shows it until somebody leaves. top has figures. Returns an exit status. */
int top_screen(struct context *c, struct top *top, int64_t delay_ns, top_refresh refresh);

#endif

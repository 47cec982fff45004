/* SPDX-License-Identifier: Apache-2.0 */
/* Shows top on a terminal, with curses, and reads keys. */
#ifndef CLI_TOP_SCREEN_H
#define CLI_TOP_SCREEN_H

#include "cli/top/top.h"

/* Gets new figures, and passes them to top_update(). If the daemon does not reply, sets
 * top->trouble to the reason and keeps the old figures. Returns 0, or the exit status with which
 * top ends. */
typedef int (*top_refresh)(struct context *c, struct top *top);

/* Shows top until the user leaves or the terminal closes. top must have figures already. Calls
 * refresh every delay_ns, or less often if the daemon is slow. Begins with the page of streams if
 * shows_streams. Restores the terminal at the end.
 * Returns the exit status. */
int top_screen(struct context *c, struct top *top, int64_t delay_ns, bool shows_streams,
               top_refresh refresh);

#endif

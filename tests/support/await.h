/* SPDX-License-Identifier: Apache-2.0 */
/* Waiting for what must come true, never for time to pass. */
#ifndef SUPPORT_AWAIT_H
#define SUPPORT_AWAIT_H

#include <stdbool.h>
#include <stdint.h>

#include <check.h>

/* How long anything may take before the test fails. Far more than it needs. */
#define AWAIT_NS 20000000000

int64_t await_now_ns(void);

/* Sleeps a moment between two looks. Returns false once deadline_ns has passed. */
bool await_again(int64_t deadline_ns);

/* Looks at the condition again and again until it is true; fails the test if that
 * takes longer than AWAIT_NS. */
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t await_deadline = await_now_ns() + AWAIT_NS;                                        \
        while (!(condition))                                                                       \
            if (!await_again(await_deadline))                                                      \
                ck_abort_msg("still not true: %s", #condition);                                    \
    } while (0)

/* Waits until fd can be read, or has ended. Fails the test after AWAIT_NS. */
void await_readable(int fd);

#endif

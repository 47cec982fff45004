/* SPDX-License-Identifier: Apache-2.0 */
/* Tests wait for a condition, never for a fixed time. */
#ifndef SUPPORT_AWAIT_H
#define SUPPORT_AWAIT_H

#include <stdbool.h>
#include <stdint.h>

#include <check.h>

/* How long a condition may take before the test fails: far longer than any should. */
#define AWAIT_NS 20000000000

int64_t await_now_ns(void);

/* Sleeps briefly before the condition is tested again. Returns false once deadline_ns has passed.
 */
bool await_again(int64_t deadline_ns);

/* Tests the condition repeatedly until it is true. Fails the test after AWAIT_NS. */
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        int64_t await_deadline = await_now_ns() + AWAIT_NS;                                        \
        while (!(condition))                                                                       \
            if (!await_again(await_deadline))                                                      \
                ck_abort_msg("still not true: %s", #condition);                                    \
    } while (0)

/* Waits until fd is readable or at its end. Fails the test after AWAIT_NS. */
void await_readable(int fd);

#endif

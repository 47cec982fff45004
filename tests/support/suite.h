/* SPDX-License-Identifier: Apache-2.0 */
/* The main program of a check_*.c. Each test has its own TCase, so that CK_RUN_CASE=name runs it
 * alone, and its own directory (place.h).
 *
 *     START_TEST(name) ... END_TEST
 *     int main(void)
 *     {
 *         const struct suite_test tests[] = {SUITE_TEST(name), SUITE_END};
 *         return suite_main("lifecycle", tests);
 *     }
 */
#ifndef SUPPORT_SUITE_H
#define SUPPORT_SUITE_H

#include <check.h>

struct suite_test {
    const char *name;
    const TTest *test;
};

#define SUITE_TEST(function)                                                                       \
    {                                                                                              \
#function, function                                                                        \
    }
#define SUITE_END                                                                                  \
    {                                                                                              \
        NULL, NULL                                                                                 \
    }

/* Runs the tests. Returns the exit status for main(). */
int suite_main(const char *name, const struct suite_test *tests);

#endif

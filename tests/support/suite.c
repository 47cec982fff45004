/* SPDX-License-Identifier: Apache-2.0 */
#include "support/suite.h"

#include <stdlib.h>
#include <sys/wait.h>

#include "support/await.h"
#include "support/place.h"

#define TIMEOUT_S 60

static void leave(void)
{
    char text[4096];
    int64_t deadline = await_now_ns() + AWAIT_NS;
    while (waitpid(-1, NULL, WNOHANG) >= 0 && await_again(deadline))
        continue; /* the keeper of a daemon ends a little after its daemon */
    if (!place_left_nothing(text, sizeof text))
        ck_abort_msg("the test left behind:\n%s", text);
}

int suite_main(const char *name, const struct suite_test *tests)
{
    Suite *suite = suite_create(name);
    for (; tests->name; tests++) {
        TCase *tcase = tcase_create(tests->name);
        tcase_add_unchecked_fixture(tcase, place_open, place_close);
        tcase_add_checked_fixture(tcase, place_enter, leave);
        tcase_add_test(tcase, tests->test);
        if (!getenv("CK_DEFAULT_TIMEOUT"))
            tcase_set_timeout(tcase, TIMEOUT_S);
        suite_add_tcase(suite, tcase);
    }
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_ENV);
    /* fails if CK_RUN_CASE names no test */
    int good = srunner_ntests_failed(runner) == 0 && srunner_ntests_run(runner) > 0;
    srunner_free(runner);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A set-uid program takes no daemon from the environment of its caller. */
#include <limits.h>
#include <stdlib.h>

#include "support/suite.h"
#include "unit/unit.h"

#include "client/link/connection.h"

#include <shmview/shmview.h>

static bool is_secure;

/* Replaces the function of the C library. */
char *secure_getenv(const char *name)
{
    return is_secure ? NULL : getenv(name);
}

START_TEST(path)
{
    char at[PATH_MAX];
    setenv("SHMVIEW_DAEMON", "a-program", 1);
    ck_assert_int_eq(shmview_daemon_path(at, sizeof at), 0);
    ck_assert_str_eq(at, "a-program");
    is_secure = true;
    ck_assert_int_eq(shmview_daemon_path(at, sizeof at), 0);
    ck_assert_int_eq(at[0], '/');
    unsetenv("SHMVIEW_DAEMON");
    ck_assert_int_eq(shmview_daemon_path(at, sizeof at), 0);
    ck_assert_int_eq(at[0], '/');
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {SUITE_TEST(path), SUITE_END};
    return suite_main("daemon_path", tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* refusal.c and log.c: what is said of a failure, to the client and to the log. */
#include "unit/unit.h"

#include <sys/mman.h>

#include "daemon/base/log.h"
#include "daemon/clients/refusal.h"
#include "unit/faults.h"

static const char *text_of(const struct answer *answer, const char *member)
{
    return json_string_value(json_object_get(answer->parameters, member));
}

START_TEST(refuse_with_facts)
{
    struct answer a = {0};
    refuse(&a, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", 7), "%d is %s", 8, "too many");
    ck_assert_str_eq(a.error, "io.shmview.LimitExceeded");
    ck_assert_str_eq(text_of(&a, "reason"), "8 is too many");
    ck_assert_int_eq(json_integer_value(json_object_get(a.parameters, "limit")), 7);
    answer_deinit(&a);
    ck_assert_ptr_null(a.error);
    ck_assert_ptr_null(a.parameters);
    refuse(&a, SHMVIEW_ERR_DENIED, NULL, "no");
    ck_assert_str_eq(a.error, "org.varlink.service.PermissionDenied");
    ck_assert_str_eq(text_of(&a, "reason"), "no");
    answer_deinit(&a);
    answer_deinit(&a);
}
END_TEST

START_TEST(refuse_a_parameter)
{
    struct answer a = {0};
    struct wire_fault fault = {.parameter = "layout.views[3].shape", .reason = "is missing"};
    refuse_parameter(&a, &fault);
    ck_assert_str_eq(a.error, "org.varlink.service.InvalidParameter");
    ck_assert_str_eq(text_of(&a, "parameter"), "layout.views[3].shape");
    ck_assert_str_eq(text_of(&a, "reason"), "layout.views[3].shape is missing");
    answer_deinit(&a);
}
END_TEST

START_TEST(refuse_with_a_long_text)
{
    struct answer a = {0};
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refuse(&a, SHMVIEW_ERR_LIMIT, NULL, "%s", text);
    ck_assert_uint_eq(strlen(text_of(&a, "reason")), 511);
    answer_deinit(&a);
}
END_TEST

/* Short of memory, less is said; but an error stays an error. */
START_TEST(every_allocation_fails)
{
    struct answer a = {0};
    unsigned n;
    for (n = 1; faults_begin(FAULTS_MEMORY, n),
        refuse(&a, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", 7), "too many"), faults_end();
         n++) {
        ck_assert_str_eq(a.error, "io.shmview.LimitExceeded");
        answer_deinit(&a);
    }
    ck_assert_uint_gt(n, 5);
    answer_deinit(&a);
    for (n = 1;
         faults_begin(FAULTS_MEMORY, n), refuse_varlink(&a, "a.b", "fact", "value"), faults_end();
         n++) {
        ck_assert_str_eq(a.error, "a.b");
        answer_deinit(&a);
    }
    answer_deinit(&a);
}
END_TEST

/* --- The log ------------------------------------------------------------- */

static char logged[4000];
static int log_fd, saved_fd;

static void capture(void)
{
    log_fd = memfd_create("log", MFD_CLOEXEC);
    saved_fd = dup(2);
    dup2(log_fd, 2);
}

static const char *captured(void)
{
    dup2(saved_fd, 2);
    close(saved_fd);
    ssize_t n = pread(log_fd, logged, sizeof logged - 1, 0);
    logged[n > 0 ? n : 0] = '\0';
    close(log_fd);
    return logged;
}

START_TEST(failures_of_the_system)
{
    struct answer a = {0};
    unsetenv("JOURNAL_STREAM");
    log_init();
    capture();
    refuse_system(&a, "a segment cannot be kept", ENOMEM);
    ck_assert_str_eq(captured(), "shmviewd: a segment cannot be kept: Cannot allocate memory\n");
    ck_assert_str_eq(a.error, "io.shmview.Failed");
    ck_assert_str_eq(text_of(&a, "reason"), "a segment cannot be kept: Cannot allocate memory");
    answer_deinit(&a);
}
END_TEST

UNIT_MAIN("refusal", UNIT_TEST(refuse_with_facts), UNIT_TEST(refuse_a_parameter),
          UNIT_TEST(refuse_with_a_long_text), UNIT_TEST(every_allocation_fails),
          UNIT_TEST(failures_of_the_system))

/* SPDX-License-Identifier: Apache-2.0 */
/* Checks refusal.c and log.c: how a failure is reported to the client and to the log. */
#include "unit/unit.h"

#include <sys/mman.h>

#include "daemon/base/log.h"
#include "daemon/clients/refusal.h"
#include "unit/faults.h"

/* Returns the reply, parsed, or NULL if there is no memory for it. Takes over what the answer
 * has. */
static json_t *sent(struct answer *a)
{
    size_t n = 0;
    char *text = refusal_text(a, &n);
    json_t *reply = text ? json_loads(text, 0, NULL) : NULL;
    ck_assert_uint_eq(n, text ? strlen(text) + 1 : 0);
    free(text);
    answer_deinit(a);
    ck_assert_int_eq(a->error, 0);
    ck_assert_ptr_null(a->reason);
    return reply;
}

/* Asserts that the reply is this error with this member, and frees it. */
static void assert_sent(struct answer *a, const char *error, const char *member, const char *value)
{
    json_t *reply = sent(a);
    ck_assert_str_eq(json_string_value(json_object_get(reply, "error")), error);
    const json_t *parameters = json_object_get(reply, "parameters");
    ck_assert_str_eq(json_string_value(json_object_get(parameters, member)), value);
    json_decref(reply);
}

START_TEST(refuse_with_facts)
{
    struct answer a = {0};
    refuse(&a, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", 7), "%d is %s", 8, "too many");
    ck_assert_int_eq(a.error, SHMVIEW_ERR_LIMIT);
    ck_assert_str_eq(a.reason, "8 is too many");
    ck_assert_int_eq(json_integer_value(json_object_get(a.parameters, "limit")), 7);
    assert_sent(&a, "io.shmview.LimitExceeded", "reason", "8 is too many");
    refuse(&a, SHMVIEW_ERR_DENIED, NULL, "no");
    assert_sent(&a, "org.varlink.service.PermissionDenied", "reason", "no");
    refuse_varlink(&a, REFUSAL_NO_METHOD, "method", "a.B");
    assert_sent(&a, "org.varlink.service.MethodNotFound", "method", "a.B");
    refuse_varlink(&a, REFUSAL_NO_INTERFACE, "interface", "a");
    assert_sent(&a, "org.varlink.service.InterfaceNotFound", "interface", "a");
    answer_deinit(&a);
}
END_TEST

START_TEST(refuse_a_parameter)
{
    struct answer a = {0};
    struct wire_fault fault = {.parameter = "layout.views[3].shape", .reason = "is missing"};
    refuse_parameter(&a, &fault);
    ck_assert_str_eq(a.reason, "layout.views[3].shape is missing");
    assert_sent(&a, "org.varlink.service.InvalidParameter", "parameter", "layout.views[3].shape");
}
END_TEST

/* A text may be cut within a character. */
START_TEST(refuse_with_a_long_text)
{
    struct answer a = {0};
    char text[2000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    refuse(&a, SHMVIEW_ERR_LIMIT, NULL, "%s", text);
    text[511] = '\0';
    assert_sent(&a, "io.shmview.LimitExceeded", "reason", text);
    memcpy(text + 510, "\u00e9", 3);
    refuse(&a, SHMVIEW_ERR_LIMIT, NULL, "%s", text);
    text[510] = '?';
    text[511] = '\0';
    assert_sent(&a, "io.shmview.LimitExceeded", "reason", text);
}
END_TEST

/* When memory is short the reply has fewer members, but an error stays an error. */
START_TEST(every_allocation_fails)
{
    struct answer a = {0};
    unsigned n;
    for (n = 1; faults_begin(FAULTS_MEMORY, n),
        refuse(&a, SHMVIEW_ERR_LIMIT, json_pack("{s:i}", "limit", 7), "too many"), faults_end();
         n++) {
        ck_assert_int_eq(a.error, SHMVIEW_ERR_LIMIT);
        answer_deinit(&a);
    }
    ck_assert_uint_gt(n, 4);
    answer_deinit(&a);
    bool failed = true;
    for (n = 1; failed; n++) {
        size_t bytes = 0;
        refuse(&a, SHMVIEW_ERR_LIMIT, NULL, "no");
        faults_begin(FAULTS_MEMORY, n);
        char *text = refusal_text(&a, &bytes);
        failed = faults_end();
        ck_assert(!text || strncmp(text, "{\"error\":\"io.shmview.Limit", 26) == 0);
        free(text);
        answer_deinit(&a);
    }
    ck_assert_uint_gt(n, 5);
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
    ck_assert_int_eq(a.error, SHMVIEW_ERR_SYSTEM);
    assert_sent(&a, "io.shmview.Failed", "reason",
                "a segment cannot be kept: Cannot allocate memory");
}
END_TEST

UNIT_MAIN("refusal", UNIT_TEST(refuse_with_facts), UNIT_TEST(refuse_a_parameter),
          UNIT_TEST(refuse_with_a_long_text), UNIT_TEST(every_allocation_fails),
          UNIT_TEST(failures_of_the_system))

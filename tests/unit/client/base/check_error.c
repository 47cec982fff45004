/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the texts and numbers of errors, and the text that each thread keeps of its last
 * failure. */
#include "unit/unit.h"

#include <limits.h>
#include <pthread.h>

#include "client/base/error.h"

static const struct {
    int code;
    const char *name, *wire, *text;
} list[] = {
#define X(name, value, wire, text) {value, #name, wire, text},
    SHMVIEW_ERROR_LIST(X)
#undef X
};
#define N_ERRORS (sizeof list / sizeof list[0])

START_TEST(texts)
{
    for (size_t i = 0; i < N_ERRORS; i++) {
        ck_assert_str_eq(shmview_strerror(list[i].code), list[i].text);
        ck_assert_str_eq(shmview_strerror(-list[i].code), list[i].text);
        ck_assert_uint_gt(strlen(list[i].text), 0);
    }
    ck_assert_str_eq(shmview_strerror(0), "success");
    const int unknown[] = {18, 31, 51, 1000, -1000, INT_MAX, -INT_MAX};
    for (size_t i = 0; i < 7; i++)
        ck_assert_str_eq(shmview_strerror(unknown[i]), "unknown error");
}
END_TEST

/* The function returns a text for any number. */
START_TEST(text_of_the_smallest_number)
{
    ck_assert_str_eq(shmview_strerror(INT_MIN), "unknown error");
}
END_TEST

/* The values are ABI: released ones must not change. */
START_TEST(values_are_frozen)
{
    static const struct {
        const char *name;
        int code;
    } frozen[] = {
        {"INVALID", 1},         {"DENIED", 2},        {"NOT_FOUND", 3},     {"EXISTS", 4},
        {"NO_SPACE", 5},        {"LIMIT", 6},         {"NO_LAYOUT", 7},     {"LAYOUT_EXISTS", 8},
        {"NO_SLOT", 9},         {"NOT_ATTACHED", 10}, {"FORMAT", 11},       {"MISALIGNED", 12},
        {"ILL_SIZED", 13},      {"BOUNDS", 14},       {"OVERFLOW", 15},     {"UNSUPPORTED", 16},
        {"TIMED_OUT", 32},      {"NOT_OWNER", 33},    {"DEADLOCK", 34},     {"NO_LOCK", 35},
        {"READ_ONLY", 36},      {"NO_DAEMON", 37},    {"DISCONNECTED", 38}, {"PROTOCOL", 39},
        {"LAYOUT_VERSION", 40}, {"BUSY", 41},         {"NO_MEMORY", 42},    {"SYSTEM", 43},
        {"TOO_DEEP", 44},
    };
    for (size_t i = 0; i < sizeof frozen / sizeof frozen[0]; i++) {
        size_t k = 0;
        while (k < N_ERRORS && strcmp(list[k].name, frozen[i].name) != 0)
            k++;
        ck_assert_msg(k < N_ERRORS && list[k].code == frozen[i].code, "%s", frozen[i].name);
    }
    for (size_t i = 0; i < N_ERRORS; i++)
        for (size_t k = 0; k < i; k++) {
            ck_assert_int_ne(list[i].code, list[k].code);
            if (list[i].wire[0])
                ck_assert_str_ne(list[i].wire, list[k].wire);
        }
    ck_assert_int_eq(SHMVIEW_OWNER_DIED, 1);
}
END_TEST

START_TEST(story_of_a_failure)
{
    ck_assert_str_eq(shmview_error_text(), "");
    ck_assert_int_eq(fail(SHMVIEW_ERR_BOUNDS, "view '%s': %d", "A", 7), -SHMVIEW_ERR_BOUNDS);
    ck_assert_str_eq(shmview_error_text(), "view 'A': 7");
    ck_assert_int_eq(fail(SHMVIEW_ERR_BUSY, "later"), -SHMVIEW_ERR_BUSY);
    ck_assert_str_eq(shmview_error_text(), "later");
}
END_TEST

START_TEST(failures_of_the_system)
{
    char wanted[200];
    ck_assert_int_eq(fail_errno("mmap", ENOMEM), -SHMVIEW_ERR_NO_MEMORY);
    unit_assert_holds(shmview_error_text(), "mmap: ");
    const int errors[] = {EIO, EMFILE, EACCES, EPERM, 12345};
    for (size_t i = 0; i < 5; i++) {
        ck_assert_int_eq(fail_errno("fstat", errors[i]), -SHMVIEW_ERR_SYSTEM);
        snprintf(wanted, sizeof wanted, "fstat: %s", strerror(errors[i]));
        ck_assert_str_eq(shmview_error_text(), wanted);
    }
}
END_TEST

START_TEST(long_stories_are_cut)
{
    char text[3000];
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    ck_assert_int_eq(fail(SHMVIEW_ERR_INVALID, "%s", text), -SHMVIEW_ERR_INVALID);
    ck_assert_uint_eq(strlen(shmview_error_text()), 511);
    ck_assert_int_eq(fail_errno(text, EIO), -SHMVIEW_ERR_SYSTEM);
    ck_assert_uint_eq(strlen(shmview_error_text()), 511);
}
END_TEST

static void *fail_in_thread(void *arg)
{
    char wanted[32];
    if (shmview_error_text()[0])
        return "it began with a text";
    snprintf(wanted, sizeof wanted, "thread %s", (char *)arg);
    for (int i = 0; i < 20000; i++) {
        set_error_text("thread %s", (char *)arg);
        if (strcmp(shmview_error_text(), wanted) != 0)
            return "it saw another's text";
    }
    return NULL;
}

START_TEST(a_story_for_each_thread)
{
    pthread_t threads[4];
    char names[4][2] = {"a", "b", "c", "d"};
    set_error_text("mine");
    for (int i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, fail_in_thread, names[i]), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        pthread_join(threads[i], &wrong);
        ck_assert_msg(!wrong, "%s", (char *)wrong);
    }
    ck_assert_str_eq(shmview_error_text(), "mine");
}
END_TEST

START_TEST(version)
{
    char wanted[32];
    snprintf(wanted, sizeof wanted, "%d.%d.%d", SHMVIEW_VERSION_MAJOR, SHMVIEW_VERSION_MINOR,
             SHMVIEW_VERSION_PATCH);
    ck_assert_str_eq(shmview_version(), wanted);
}
END_TEST

UNIT_MAIN("error", UNIT_TEST(texts), UNIT_TEST(text_of_the_smallest_number),
          UNIT_TEST(values_are_frozen), UNIT_TEST(story_of_a_failure),
          UNIT_TEST(failures_of_the_system), UNIT_TEST(long_stories_are_cut),
          UNIT_TEST(a_story_for_each_thread), UNIT_TEST(version))

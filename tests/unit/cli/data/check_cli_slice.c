/* SPDX-License-Identifier: Apache-2.0 */
/* Selects parts of a 4 x 5 x 6 array by the texts that shmviewctl accepts, and checks each
 * refusal with its caret. */
#include "unit/unit.h"

#include <shmview/shmview.h>

#include "cli/data/slice.h"

/* A 4 x 5 x 6 array of int32 in which each element is its own number. */
static int32_t elements[4 * 5 * 6];
static struct shmview_segment *segment;
static struct shmview_view cube;

static void make_cube(void)
{
    const int64_t shape[] = {4, 5, 6};
    const struct shmview_view_spec spec = {.format = "i", .ndim = 3, .shape = shape};
    for (int32_t i = 0; i < (int32_t)(sizeof elements / sizeof elements[0]); i++)
        elements[i] = i;
    ck_assert_int_eq(shmview_wrap(elements, sizeof elements, 0, NULL, NULL, &segment), 0);
    ck_assert_int_eq(shmview_view_make(segment, &spec, &cube), 0);
}

/* The part that text selects must have this first element and these lengths. */
static void assert_part(const char *text, int first, uint32_t ndim, const ptrdiff_t *shape)
{
    struct slice slice;
    struct problem problem = {""};
    struct shmview_view v;
    ck_assert_msg(slice_parse(text, &slice, &problem) == 0, "%s: %s", text, problem.text);
    ck_assert_msg(slice_apply(&slice, &cube, &v, &problem) == 0, "%s: %s", text, problem.text);
    ck_assert_msg(v.ndim == ndim, "%s: %u dimensions", text, v.ndim);
    for (uint32_t d = 0; d < ndim; d++)
        ck_assert_msg(v.shape[d] == shape[d], "%s: length %u is %td", text, d, v.shape[d]);
    ck_assert_msg(*SHMVIEW_DATA(int32_t, &v) == first, "%s: first is %d", text,
                  *SHMVIEW_DATA(int32_t, &v));
}
#define ASSERT_PART(text, first, ...)                                                              \
    do {                                                                                           \
        const ptrdiff_t lengths[] = {__VA_ARGS__, -1};                                             \
        assert_part(text, first, sizeof lengths / sizeof lengths[0] - 1, lengths);                 \
    } while (0)

START_TEST(parts)
{
    make_cube();
    ASSERT_PART("", 0, 4, 5, 6);
    ASSERT_PART("[:]", 0, 4, 5, 6);
    ASSERT_PART("[...]", 0, 4, 5, 6);
    ASSERT_PART("[1]", 30, 5, 6);
    ASSERT_PART("[-1]", 90, 5, 6);
    ASSERT_PART("[ 1 , 2 ]", 42, 6);
    ASSERT_PART("[1,]", 30, 5, 6);
    assert_part("[1, 2, 3]", 45, 0, NULL);
    assert_part("[1][2][+3]", 45, 0, NULL);
    ASSERT_PART("[1:3]", 30, 2, 5, 6);
    ASSERT_PART("[::2, ::-1, 1:-1]", 25, 2, 5, 4);
    ASSERT_PART("[..., 2]", 2, 4, 5);
    ASSERT_PART("[1, ..., 2]", 32, 5);
    ASSERT_PART("[1, 2, ..., 3:]", 45, 3);
    assert_part("[1, 2, 3, ...]", 45, 0, NULL);
    ASSERT_PART("[1:][1:][::-1][0, 0]", 90, 6);
    ASSERT_PART("[9223372036854775807:, 0]", 0, 0, 6);
    shmview_detach(segment);
}
END_TEST

START_TEST(fields)
{
    struct {
        int32_t a;
        float b[3];
    } structs[2] = {{1, {2, 3, 4}}, {5, {6, 7, 8}}};
    struct slice slice;
    struct problem problem = {""};
    struct shmview_view v, part;
    static const char *const texts[] = {"['b'][1, 2]", "[\"b\"][1][2]", "[b][1, -1]", "[ b ][1,2]",
                                        "[1]['b'][2]"};
    ck_assert_int_eq(shmview_wrap(structs, sizeof structs, 0, NULL, NULL, &segment), 0);
    ck_assert_int_eq(shmview_view_cast(segment, "T{i:a:3f:b:}", 0, SHMVIEW_REST, &v), 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        ck_assert_msg(slice_parse(texts[i], &slice, &problem) == 0 &&
                          slice_apply(&slice, &v, &part, &problem) == 0,
                      "%s", problem.text);
        ck_assert(part.ndim == 0 && *SHMVIEW_DATA(float, &part) == 8.0f);
    }
    ck_assert_int_eq(slice_parse("['c']", &slice, &problem), 0);
    ck_assert_int_eq(slice_apply(&slice, &v, &part, &problem), -1);
    ck_assert_ptr_nonnull(strstr(problem.text, "'c'"));
    shmview_detach(segment);
}
END_TEST

#define ITEM "an index, START:STOP:STEP, '...' or the name of a field is expected"

/* Checks what each text is refused for, and the character that the caret marks. */
START_TEST(refused)
{
    static const struct {
        const char *text, *said;
        unsigned at;
    } cases[] = {
        {"x", "'[' is expected, not 'x'", 0},
        {"[", ITEM "; it ends here", 1},
        {"[]", ITEM ", not ']'", 1},
        {"[1", "',' or ']' is expected; it ends here", 2},
        {"[1]x", "'[' is expected, not 'x'", 3},
        {"[1:2:3:4]", "',' or ']' is expected, not ':'", 6},
        {"[1 2]", "',' or ']' is expected, not '2'", 3},
        {"[::0]", "a step other than 0 is expected, not '0'", 3},
        {"[,]", ITEM ", not ','", 1},
        {"[..., ...]", "only one '...' between two brackets, not '.'", 6},
        {"[99999999999999999999]", "a number from -2^63 + 1 to 2^63 - 1 is expected", 1},
        {"[-9223372036854775808:]", "a number from -2^63 + 1 to 2^63 - 1 is expected", 1},
        {"['a]", "a \"'\" is expected; it ends here", 4},
        {"['']", "the name of a field is expected, not '''", 2},
        {"[1, 'a']", "a field stands alone between its brackets, not '''", 4},
    };
    struct slice slice;
    struct problem problem;
    char caret[128];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(slice_parse(cases[i].text, &slice, &problem), -1);
        snprintf(caret, sizeof caret, "\n  %s\n  %*s^", cases[i].text, (int)cases[i].at, "");
        ck_assert_msg(strstr(problem.text, cases[i].said) && strstr(problem.text, caret), "%s",
                      problem.text);
    }
}
END_TEST

START_TEST(does_not_fit)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"[4]", "slice, character 1: "},
        {"[0, 0, 6]", "slice, character 7: "},
        {"[0, 0, 0, 0]", "slice, character 1: 4 indices, but there are 3 dimensions"},
        {"[0, 0][0, 0]", "slice, character 7: 2 indices, but there is 1 dimension\n"},
        {"['x']", "slice, character 1: "},
    };
    struct slice slice;
    struct problem problem;
    struct shmview_view v;
    make_cube();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(slice_parse(cases[i].text, &slice, &problem), 0);
        ck_assert_int_eq(slice_apply(&slice, &cube, &v, &problem), -1);
        ck_assert_msg(strncmp(problem.text, cases[i].said, strlen(cases[i].said)) == 0, "%s",
                      problem.text);
    }
    shmview_detach(segment);
}
END_TEST

START_TEST(many_parts)
{
    char text[512] = "";
    struct slice slice;
    struct problem problem;
    for (int i = 0; i < SLICE_STEPS; i++)
        strcat(text, "[:]");
    ck_assert_int_eq(slice_parse(text, &slice, &problem), 0);
    strcat(text, "[:]");
    ck_assert_int_eq(slice_parse(text, &slice, &problem), -1);
    ck_assert_ptr_nonnull(strstr(problem.text, "at most 32 parts"));
}
END_TEST

UNIT_MAIN("cli_slice", UNIT_TEST(parts), UNIT_TEST(fields), UNIT_TEST(refused),
          UNIT_TEST(does_not_fit), UNIT_TEST(many_parts))

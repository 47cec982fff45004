/* SPDX-License-Identifier: Apache-2.0 */
/* Checks part.c: prints the parts of elements as texts and compares them. */
#include <stdio.h>

#include <shmview/value.h>

#include "client/views/handle.h"
#include "unit/unit.h"

#define MAX_COMPONENTS 64

/* Prints (a@0, [b@4, b@6]@4): the offset of each part, brackets around arrays, and '+' with the
 * size of a part that has no parts. */
static void print_part(FILE *out, const struct shmview_part *whole)
{
    struct shmview_part part = {.component = NULL};
    const bool is_struct = !whole->is_array && whole->dtype == SHMVIEW_STRUCT;
    uint32_t n = 0, bytes = 0;
    if (whole->component)
        fprintf(out, "%s@%u", whole->component->name, whole->offset);
    if (whole->n_parts == 0)
        fprintf(out, "+%u", whole->nbytes);
    if (whole->n_parts || is_struct)
        fputc(whole->is_array ? '[' : '(', out);
    for (; shmview_part_next(whole, &part); n++) {
        ck_assert_uint_eq(part.index, n);
        ck_assert_uint_ge(part.offset, whole->offset);
        fputs(n ? " " : "", out);
        print_part(out, &part);
        bytes += part.nbytes;
    }
    ck_assert_uint_eq(n, whole->n_parts);
    ck_assert_uint_le(bytes, whole->nbytes);
    ck_assert(!whole->is_array || bytes == whole->nbytes);
    if (whole->n_parts || is_struct)
        fputc(whole->is_array ? ']' : ')', out);
}

static void assert_parts(const char *text, const char *want)
{
    struct shmview_component components[MAX_COMPONENTS];
    struct shmview_format format;
    struct shmview_part whole;
    char got[1024] = "";
    FILE *out = fmemopen(got, sizeof got, "w");
    ck_assert_int_eq(shmview_format_parse(text, &format, components, MAX_COMPONENTS), 0);
    shmview_part_of(&format, components, &whole);
    ck_assert_uint_eq(whole.nbytes, format.itemsize);
    print_part(out, &whole);
    fclose(out);
    ck_assert_msg(strcmp(got, want) == 0, "%s: %s, not %s", text, got, want);
}

START_TEST(parts)
{
    assert_parts("i", "+4");
    assert_parts(">d", "+8");
    assert_parts("5s", "+5");
    assert_parts("4x", "+4()");
    assert_parts("<bi", "(@0+1 @1+4)");
    assert_parts("3h", "(@0[@0+2 @2+2 @4+2])");
    assert_parts("T{i:a:}", "(a@0+4)");
    assert_parts("(2,2)b", "(@0[@0[@0+1 @1+1] @2[@2+1 @3+1]])");
    assert_parts("T{T{T{b:x:}:y:}:z:}", "(z@0(y@0(x@0+1)))");
    assert_parts("T{b:a:T{b:x:}:c:b:d:}", "(a@0+1 c@1(x@1+1) d@2+1)");
}
END_TEST

/* The offset of a component is that within the first element of the arrays around it. */
START_TEST(arrays_of_structs)
{
    assert_parts("T{4xT{b:x:h:y:}:s:}", "(s@4(x@4+1 y@6+2))");
    assert_parts("(2)T{b:x:h:y:}", "(@0[@0(x@0+1 y@2+2) @4(x@4+1 y@6+2)])");
    assert_parts("T{h:a:(2)T{b:x:(2)T{b:p:b:q:}:y:}:s:b:e:}",
                 "(a@0+2 s@2[s@2(x@2+1 y@3[y@3(p@3+1 q@4+1) y@5(p@5+1 q@6+1)]) "
                 "s@7(x@7+1 y@8[y@8(p@8+1 q@9+1) y@10(p@10+1 q@11+1)])] e@12+1)");
    assert_parts("T{(2,1)T{b:x:}:s:}", "(s@0[s@0[s@0(x@0+1)] s@1[s@1(x@1+1)]])");
}
END_TEST

/* After the last part the result stays unchanged. */
START_TEST(the_last)
{
    struct shmview_component components[2];
    struct shmview_format format;
    struct shmview_part whole, part = {.component = NULL};
    ck_assert_int_eq(shmview_format_parse("T{b:x:b:y:}", &format, components, 2), 0);
    shmview_part_of(&format, components, &whole);
    ck_assert_int_eq(shmview_part_next(&whole, &part), 1);
    ck_assert_int_eq(shmview_part_next(&whole, &part), 1);
    ck_assert_str_eq(part.component->name, "y");
    ck_assert_int_eq(shmview_part_next(&whole, &part), 0);
    ck_assert_str_eq(part.component->name, "y");
    ck_assert_int_eq(shmview_part_next(&whole, &part), 0);
}
END_TEST

UNIT_MAIN("part", UNIT_TEST(parts), UNIT_TEST(arrays_of_structs), UNIT_TEST(the_last))

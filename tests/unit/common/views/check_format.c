/* SPDX-License-Identifier: Apache-2.0 */
/* Formats: their meaning, their canonical text, and the character that an error names.
 * tests/property tests random formats. */
#include "unit/unit.h"

#include "common/views/format.h"

#define LITTLE (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__)
/* The texts are for a little-endian machine; on others this exchanges the two marks. */
static const char *here(const char *text, char buffer[SHMVIEW_FORMAT_BYTES + 8])
{
    snprintf(buffer, SHMVIEW_FORMAT_BYTES + 8, "%s", text);
    for (char *p = buffer; *p && !LITTLE; p++)
        if (*p == '<' || *p == '>')
            *p = *p == '<' ? '>' : '<';
    return buffer;
}

static struct formats pool;

__attribute__((destructor)) static void free_pool(void)
{
    formats_deinit(&pool);
}

static const struct format *get(const char *text)
{
    char buffer[SHMVIEW_FORMAT_BYTES + 8];
    struct format_fault fault;
    const struct format *f = formats_get(&pool, here(text, buffer), &fault);
    ck_assert_msg(f != NULL, "\"%s\": character %zu: %s", text, fault.at, fault.why);
    return f;
}

static void assert_format(const char *text, const char *canonical, uint32_t itemsize,
                          uint32_t align)
{
    char buffer[SHMVIEW_FORMAT_BYTES + 8];
    const struct format *f = format_aligned(get(text));
    ck_assert_msg(strcmp(f->text, here(canonical, buffer)) == 0, "\"%s\": \"%s\", not \"%s\"", text,
                  f->text, buffer);
    ck_assert_msg(f->itemsize == itemsize && f->align == align, "\"%s\": %u bytes, aligned to %u",
                  text, f->itemsize, f->align);
    ck_assert_ptr_eq(format_aligned(get(canonical)), f); /* the same text gives the same format */
}

static void assert_refused(const char *text, size_t at, const char *why)
{
    char buffer[SHMVIEW_FORMAT_BYTES + 8];
    struct format_fault fault;
    const struct format *f = formats_get(&pool, here(text, buffer), &fault);
    ck_assert_msg(f == NULL, "\"%s\" is accepted as %s", text, f ? f->text : "");
    ck_assert_msg(fault.at == at, "\"%s\": character %zu, not %zu: %s", text, fault.at, at,
                  fault.why);
    unit_assert_holds(fault.why, why);
}

/* --- Types --------------------------------------------------------------- */

static const struct {
    uint32_t code, bytes;
    const char *letters, *name, *typestr;
} types[] = {
    {SHMVIEW_INT8, 1, "b", "int8", "i1"},
    {SHMVIEW_UINT8, 1, "B", "uint8", "u1"},
    {SHMVIEW_INT16, 2, "h", "int16", "i2"},
    {SHMVIEW_UINT16, 2, "H", "uint16", "u2"},
    {SHMVIEW_INT32, 4, "i", "int32", "i4"},
    {SHMVIEW_UINT32, 4, "I", "uint32", "u4"},
    {SHMVIEW_INT64, 8, "q", "int64", "i8"},
    {SHMVIEW_UINT64, 8, "Q", "uint64", "u8"},
    {SHMVIEW_FLOAT32, 4, "f", "float32", "f4"},
    {SHMVIEW_FLOAT64, 8, "d", "float64", "f8"},
    {SHMVIEW_FLOAT16, 2, "e", "float16", "f2"},
    {SHMVIEW_COMPLEX64, 8, "Zf", "complex64", "c8"},
    {SHMVIEW_COMPLEX128, 16, "Zd", "complex128", "c16"},
    {SHMVIEW_LONGDOUBLE, sizeof(long double), "g", "longdouble", NULL},
    {SHMVIEW_BOOL, 1, "?", "bool", "b1"},
    {SHMVIEW_CHAR, 1, "c", NULL, NULL},
    {SHMVIEW_POINTER, sizeof(void *), "P", NULL, NULL},
    {SHMVIEW_BYTES, 1, "s", NULL, "S1"},
    {SHMVIEW_PASCAL, 1, "p", NULL, NULL},
    {SHMVIEW_BFLOAT16, 2, NULL, "bfloat16", NULL},
    {SHMVIEW_FLOAT8_E3M4, 1, NULL, "float8_e3m4", NULL},
    {SHMVIEW_FLOAT8_E4M3, 1, NULL, "float8_e4m3", NULL},
    {SHMVIEW_FLOAT8_E4M3B11FNUZ, 1, NULL, "float8_e4m3b11fnuz", NULL},
    {SHMVIEW_FLOAT8_E4M3FN, 1, NULL, "float8_e4m3fn", NULL},
    {SHMVIEW_FLOAT8_E4M3FNUZ, 1, NULL, "float8_e4m3fnuz", NULL},
    {SHMVIEW_FLOAT8_E5M2, 1, NULL, "float8_e5m2", NULL},
    {SHMVIEW_FLOAT8_E5M2FNUZ, 1, NULL, "float8_e5m2fnuz", NULL},
    {SHMVIEW_FLOAT8_E8M0FNU, 1, NULL, "float8_e8m0fnu", NULL},
};

START_TEST(every_type_by_every_text)
{
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        const char *text = types[i].letters ? types[i].letters : types[i].name;
        const struct format *f = get(text);
        char marked[32];
        ck_assert_uint_eq(types[i].code, i + 1); /* the values are ABI */
        ck_assert_uint_eq(f->dtype, types[i].code);
        ck_assert_uint_eq(f->itemsize, types[i].bytes);
        ck_assert_str_eq(f->text, text);
        ck_assert_uint_eq(f->n_nodes, 1);
        ck_assert_uint_eq(f->nodes[0].bytes, types[i].bytes);
        if (types[i].name) {
            ck_assert_ptr_eq(get(types[i].name), f);
            ck_assert_str_eq(format_name(f), types[i].name);
            snprintf(marked, sizeof marked, "<%s", types[i].name);
            struct format_fault fault; /* a name gives no byte order */
            ck_assert_ptr_null(formats_get(&pool, marked, &fault));
        }
        for (const char *mark = "<=|"; types[i].typestr && *mark; mark++) {
            snprintf(marked, sizeof marked, "%c%s", *mark, types[i].typestr);
            if (*mark == '|' && types[i].bytes > 1)
                assert_refused(marked, 0, "'|'");
            else
                ck_assert_ptr_eq(format_aligned(get(marked)), f);
        }
    }
}
END_TEST

START_TEST(the_other_byte_order)
{
    assert_format(">h", ">h", 2, 2);
    assert_format("!d", ">d", 8, 8);
    assert_format(">f4", ">f", 4, 4);
    assert_format(">Zf", ">Zf", 8, 4);
    assert_format(">b", "b", 1, 1);
    assert_format(">?", "?", 1, 1);
    assert_format(">5s", "5s", 5, 1);
    ck_assert_uint_eq(get(">h")->dtype, SHMVIEW_INT16 | SHMVIEW_SWAPPED);
    ck_assert_uint_eq(get(">b")->dtype, SHMVIEW_INT8);
    ck_assert_str_eq(format_name(get("<h")), "int16");
}
END_TEST

/* Python: struct.calcsize("@l") is that of C, struct.calcsize("=l") is 4. */
START_TEST(sizes_are_native_or_standard)
{
    bool wide = sizeof(long) == 8;
    assert_format("l", wide ? "q" : "i", sizeof(long), sizeof(long));
    assert_format("@L", wide ? "Q" : "I", sizeof(long), sizeof(long));
    assert_format("^l", wide ? "q" : "i", sizeof(long), sizeof(long));
    assert_format("=l", "i", 4, 4);
    assert_format("<L", "I", 4, 4);
    assert_format("n", sizeof(size_t) == 8 ? "q" : "i", sizeof(size_t), sizeof(size_t));
    assert_format("N", sizeof(size_t) == 8 ? "Q" : "I", sizeof(size_t), sizeof(size_t));
    assert_refused("=n", 1, "no standard size");
    assert_refused("<P", 1, "no standard size");
    assert_refused("i<ig", 3, "no standard size");
}
END_TEST

/* --- Elements made of others --------------------------------------------- */

START_TEST(structs_and_arrays)
{
    assert_format("bi", "T{<b3xi}", 8, 4);
    assert_format("ib", "T{<ib}", 5, 1); /* struct.calcsize("ib") is 5 */
    assert_format("T{ib}", "T{<ib3x}", 8, 4);
    assert_format("<bi", "T{<bi}", 5, 1);
    assert_format("b0i", "T{<b3x}", 4, 1);
    assert_format("T{i:a:d:b:}", "T{<i:a:4xd:b:}", 16, 8);
    assert_format("T{<i:a:>d:b:}", "T{<i:a:>d:b:}", 12, 1);
    assert_format("T{<i:a:4x>d:b:}", "T{<i:a:4x>d:b:}", 16, 8);
    assert_format("i:a:", "T{<i:a:}", 4, 4);
    assert_format("T{T{i}}", "i", 4, 4);
    assert_format("T{T{i}:a:}", "T{T{<i}:a:}", 4, 4);
    assert_format("3h", "(3)h", 6, 2);
    assert_format("1h", "h", 2, 2);
    assert_format("(2,3)f", "(2,3)f", 24, 4);
    assert_format("( 2 , 3 )2f", "(2,3,2)f", 48, 4);
    assert_format("(2)>h", "(2)>h", 4, 2);
    assert_format(">(2)h", "(2)>h", 4, 2);
    assert_format("(2)3s", "(2)3s", 6, 1);
    assert_format("5s", "5s", 5, 1);
    assert_format("S5", "5s", 5, 1);
    assert_format("7p", "7p", 7, 1);
    assert_format("4x", "T{4x}", 4, 1);
    assert_format("<(2,3)>h2x", "T{(2,3)>h2x}", 14, 2);
    assert_format("(2)T{bh}", "(2)T{<bxh}", 8, 2);
    assert_format("T{b(2)T{bh}:p:b}", "T{<bx(2)T{bxh}:p:bx}", 12, 2);
    assert_format("Pb", "T{^P<b}", sizeof(void *) + 1, 1);
    assert_format(" i \t d\n", "T{<i4xd}", 16, 8);
    assert_format("T{<h>h<h}", "T{<h>h<h}", 6, 2);
    assert_format("T{>T{h}:a:h:b:}", "T{T{>h}:a:h:b:}", 4, 2);
}
END_TEST

START_TEST(components)
{
    const struct format *f = get("T{b:flag:(2,3)T{h:x:>d:y:}:points:5s:name:}");
    const struct {
        uint32_t offset, bytes, repeat, dtype, depth;
        const char *name;
    } wanted[] = {
        {0, 1, 1, SHMVIEW_INT8, 0, "flag"},
        {1, 10, 6, SHMVIEW_STRUCT, 0, "points"},
        {1, 2, 1, SHMVIEW_INT16, 1, "x"},
        {3, 8, 1, SHMVIEW_FLOAT64 | (LITTLE ? SHMVIEW_SWAPPED : 0), 1, "y"},
        {61, 5, 1, SHMVIEW_BYTES, 0, "name"},
    };
    ck_assert_uint_eq(f->n_nodes, 5);
    ck_assert_uint_eq(f->itemsize, 66); /* the mark before y ended alignment */
    for (int i = 0; i < 5; i++) {
        const struct format_node *n = &f->nodes[i];
        ck_assert_uint_eq(n->offset, wanted[i].offset);
        ck_assert_uint_eq(n->bytes, wanted[i].bytes);
        ck_assert_uint_eq(n->repeat, wanted[i].repeat);
        ck_assert_uint_eq(n->dtype, wanted[i].dtype);
        ck_assert_uint_eq(n->depth, wanted[i].depth);
        ck_assert_uint_eq(n->name_bytes, strlen(wanted[i].name));
        ck_assert_int_eq(memcmp(f->text + n->name_at, wanted[i].name, n->name_bytes), 0);
    }
    ck_assert_uint_eq(f->nodes[1].ndim, 2);
    ck_assert_uint_eq(f->nodes[1].shape[0], 2);
    ck_assert_uint_eq(f->nodes[1].shape[1], 3);
    ck_assert_int_eq(format_find(f, "points"), 1);
    ck_assert_int_eq(format_find(f, "name"), 4);
    ck_assert_int_eq(format_find(f, "x"), -1); /* x is a member of the points */
    ck_assert_int_eq(format_find(f, "poin"), -1);
    ck_assert_int_eq(format_find(f, NULL), -1);
    ck_assert_int_eq(format_find(get("hf"), ""), -1);
    ck_assert_int_eq(format_find(get("3f"), NULL), 0);
    ck_assert_int_eq(format_find(get("hf"), NULL), -1);
    ck_assert_int_eq(format_find(get("4x"), NULL), -1);
    char buffer[SHMVIEW_FORMAT_BYTES + 8];
    ck_assert_str_eq(formats_get_node(&pool, f, 1)->text, here("T{<h:x:>d:y:}", buffer));
    ck_assert_ptr_eq(formats_get_node(&pool, f, 2), get("<h"));
    ck_assert_ptr_eq(formats_get_node(&pool, f, 3), get(">d"));
    ck_assert_ptr_eq(formats_get_node(&pool, f, 4), get("5s"));
    ck_assert_ptr_eq(formats_get_node(&pool, get("T{T{T{i}}:a:}"), 0), get("<i"));
}
END_TEST

/* --- Alignment ----------------------------------------------------------- */

static void assert_free(const char *text, const char *free_text, uint32_t align)
{
    char buffer[SHMVIEW_FORMAT_BYTES + 8];
    const struct format *f = get(text);
    ck_assert_msg(f->aligned != NULL, "\"%s\" has no free form", text);
    ck_assert_str_eq(f->text, here(free_text, buffer));
    ck_assert_uint_eq(f->align, 1);
    ck_assert_uint_eq(f->aligned->align, align);
    ck_assert_ptr_eq(get(free_text), f);
    ck_assert_uint_eq(f->aligned->dtype, f->dtype);
    ck_assert_uint_eq(f->aligned->itemsize, f->itemsize);
}

START_TEST(marks_without_alignment)
{
    static const char *const native[] = {"i",
                                         "@i",
                                         "int32",
                                         "i4",
                                         "(3)h",
                                         "T{i:a:}",
                                         "T{<h:a:@i:b:}",
                                         "bfloat16",
                                         "T{b:a:i:b:<h:c:2x}"};
    static const char *const always[] = {"<b", "=?", "<5s", "^c", "T{<b:a:f:b:}", "<b"};
    assert_free("<i", "<i", 4);
    assert_free("=i4", "<i", 4);
    assert_free("^l", "<q", 8);
    assert_free(">d", ">d", 8);
    assert_free("<Zd", "<Zd", 8);
    assert_free("^g", "^g", _Alignof(long double));
    assert_free("^P", "^P", sizeof(void *));
    assert_free("<3h", "(3)<h", 2);
    assert_free("(2,2)>h", "(2,2)>h", 2);
    assert_free("T{<i:a:h:b:2x}", "T{<i:a:h:b:2x}", 4);
    assert_free("T{b:a:3x<i:b:}", "T{<b:a:3xi:b:}", 4); /* @ aligns no byte */
    for (size_t i = 0; i < sizeof native / sizeof *native; i++)
        ck_assert_msg(!get(native[i])->aligned, "\"%s\" has a free form", native[i]);
    ck_assert_ptr_eq(formats_get_node(&pool, get("bfloat16"), 0), get("bfloat16"));
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        ck_assert_msg(!get(always[i])->aligned && get(always[i])->align == 1, "%s", always[i]);
}
END_TEST

/* --- What is refused ----------------------------------------------------- */

START_TEST(refused)
{
    assert_refused("", 0, "missing");
    assert_refused("@", 1, "missing");
    assert_refused("  ", 2, "missing");
    assert_refused("0i", 2, "no bytes");
    assert_refused("0s", 2, "no bytes");
    assert_refused("3", 1, "missing");
    assert_refused("i3", 2, "missing");
    assert_refused("(2)", 3, "missing");
    assert_refused("(2,)i", 3, "a number is missing");
    assert_refused("(2 3)i", 3, "',' or ')'");
    assert_refused("(0)i", 1, "no elements");
    assert_refused("(2)(3)i", 3, "second shape");
    assert_refused("(1,1,1,1,1,1,1,1,1)i", 17, "more than 8 dimensions");
    assert_refused("(1,1,1,1,1,1,1,1)2i", 17, "more than 8 dimensions");
    assert_refused("(2)x", 0, "padding has no shape");
    assert_refused("int", 2, "bits");
    assert_refused("*", 0, "'*' is no type code");
    assert_refused("\xc3\xa9", 0, "0xc3");
    assert_refused("\x01", 0, "0x01");
    assert_refused("O", 0, "address");
    assert_refused("ii&", 2, "address");
    assert_refused("3w", 1, "wide");
    assert_refused("t", 0, "bits");
    assert_refused("Z", 0, "before f or d");
    assert_refused("Zg", 0, "before f or d");
    assert_refused("T", 0, "before {");
    assert_refused("F", 0, "'F'");
    assert_refused("3 f", 1, "' '");
    assert_refused("T{i", 3, "missing");
    assert_refused("T{}", 0, "no bytes");
    assert_refused("T{0i}", 0, "no bytes");
    assert_refused("i}", 1, "without");
    assert_refused("T{i}}", 4, "without");
    assert_refused("i:a", 3, "missing");
    assert_refused("i::", 2, "1 to 63");
    assert_refused("i:a\tb:", 3, "printable");
    assert_refused("i:a:b:a:", 6, "second field 'a'");
    assert_refused("4x:a:i", 3, "cannot have a name");
    assert_refused("99999999999999999999i", 0, "2147483647");
    assert_refused("2147483647i", 0, "2147483647 bytes");
    assert_refused("2147483647bb", 11, "2147483647 bytes");
    assert_refused("(65536,65536)i", 0, "2147483647 bytes");
    assert_refused("bT{bT{bT{bT{bT{bT{bT{bT{bT{b}}}}}}}}}", 25, "8 deep");
    assert_refused("bT{bT{bT{bT{bT{bT{bT{bT{bT{bT{bT{b}}}}}}}}}}}", 25, "8 deep");
    ck_assert_uint_eq(get("bT{bT{bT{bT{bT{bT{bT{bT{b}}}}}}}}")->itemsize, 9);
    ck_assert_ptr_eq(get("T{T{T{T{T{T{T{T{T{i}}}}}}}}}"), get("i"));
}
END_TEST

START_TEST(limits)
{
    char text[SHMVIEW_FORMAT_BYTES + 8] = "";
    for (int i = 0; i < LIMIT_FORMAT_NODES; i++)
        strcat(text, "b");
    ck_assert_uint_eq(get(text)->n_nodes, LIMIT_FORMAT_NODES);
    strcat(text, "b");
    assert_refused(text, LIMIT_FORMAT_NODES, "64 components");
    memset(text, ' ', LIMIT_FORMAT_BYTES - 1);
    strcpy(text + LIMIT_FORMAT_BYTES - 1, "i");
    ck_assert_ptr_eq(get(text), get("i"));
    strcpy(text + LIMIT_FORMAT_BYTES, "i");
    assert_refused(text, LIMIT_FORMAT_BYTES, "1023 characters");
    char name[64];
    memset(name, 'n', 63);
    name[63] = '\0';
    snprintf(text, sizeof text, "i:%s:", name);
    ck_assert_uint_eq(get(text)->nodes[0].name_bytes, 63);
    snprintf(text, sizeof text, "i:%sn:", name);
    assert_refused(text, 2, "1 to 63");
    /* the canonical text is longer than the given one */
    text[0] = '\0';
    for (int i = 0; i < 15; i++)
        sprintf(text + strlen(text), "b:%02d%.60s:", i, name);
    for (int i = 0; i < 19; i++)
        strcat(text, "bi");
    assert_refused(text, 0, "too long");
}
END_TEST

UNIT_MAIN("format", UNIT_TEST(every_type_by_every_text), UNIT_TEST(the_other_byte_order),
          UNIT_TEST(sizes_are_native_or_standard), UNIT_TEST(structs_and_arrays),
          UNIT_TEST(components), UNIT_TEST(marks_without_alignment), UNIT_TEST(refused),
          UNIT_TEST(limits))

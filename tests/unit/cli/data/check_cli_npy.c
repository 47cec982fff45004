/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and writes headers of .npy files. Files that numpy itself reads and writes are tested in
 * tests/cli. */
#include "unit/unit.h"

#include "cli/data/npy.h"

#define PREFIX_1 10

/* Returns a header of that version with text in it, in a buffer of exactly its size. */
static unsigned char *make_header(unsigned version, const char *text, size_t *ret_bytes)
{
    size_t before = version == 1 ? PREFIX_1 : NPY_PREFIX_BYTES, n = strlen(text);
    unsigned char *header = malloc(before + n);
    ck_assert_ptr_nonnull(header);
    memcpy(header, "\x93NUMPY", 6);
    header[6] = (unsigned char)version;
    header[7] = 0;
    for (size_t i = 8; i < before; i++)
        header[i] = (unsigned char)(n >> 8 * (i - 8));
    memcpy(header + before, text, n);
    *ret_bytes = before + n;
    return header;
}

static int read_text(unsigned version, const char *text, struct npy *ret, struct problem *problem)
{
    size_t bytes, told;
    unsigned char *header = make_header(version, text, &bytes);
    ck_assert_msg(npy_header_bytes(header, NPY_PREFIX_BYTES, &told, problem) == 0, "%s",
                  problem->text);
    ck_assert_uint_eq(told, bytes);
    int r = npy_read(header, bytes, ret, problem);
    free(header);
    return r;
}

static int read_descr(const char *descr, struct npy *ret, struct problem *problem)
{
    char text[8192];
    snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (2, 3), }\n",
             descr);
    return read_text(1, text, ret, problem);
}

/* Each type in both directions: numpy's description, and the canonical format. */
static const struct {
    const char *descr, *format;
    uint32_t itemsize;
} types[] = {
    {"'|b1'", "?", 1},
    {"'|i1'", "b", 1},
    {"'|u1'", "B", 1},
    {"'<i2'", "h", 2},
    {"'>u2'", ">H", 2},
    {"'<u4'", "I", 4},
    {"'>i8'", ">q", 8},
    {"'<f2'", "e", 2},
    {"'>f4'", ">f", 4},
    {"'<f8'", "d", 8},
    {"'<c8'", "Zf", 8},
    {"'>c16'", ">Zd", 16},
    {"'|S5'", "5s", 5},
    {"[('a', '|i1'), ('', '|V3'), ('b', '>i4'), ('', '|V4')]", "T{<b:a:3x>i:b:4x}", 12},
    {"[('x', '<f4', (2, 3)), ('y', [('p', '<i2'), ('q', '|u1')], (2,))]",
     "T{(2,3)<f:x:(2)T{h:p:B:q:}:y:}", 30},
    {"[('it\\'s', '|b1')]", "T{<?:it's:}", 1},
};

/* Removes the blanks and commas that Python ignores. */
static void squeeze(char *text)
{
    char *to = text;
    for (const char *p = text; *p; p++)
        if (*p != ' ' && !(*p == ',' && (p[1] == ']' || (p[1] == ' ' && p[2] == ']'))))
            *to++ = *p;
    *to = '\0';
}

START_TEST(types_both_ways)
{
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        struct npy npy;
        struct problem problem = {""};
        char descr[512], want[512];
        ck_assert_msg(read_descr(types[i].descr, &npy, &problem) == 0, "%s: %s", types[i].descr,
                      problem.text);
        ck_assert_str_eq(npy.format, types[i].format);
        ck_assert_uint_eq(npy.itemsize, types[i].itemsize);
        ck_assert_uint_eq(npy.nbytes, 6 * types[i].itemsize);
        ck_assert(!npy.is_opaque);
        ck_assert_int_eq(npy_descr(npy.format, descr, sizeof descr, &problem), 0);
        snprintf(want, sizeof want, "%s", types[i].descr);
        squeeze(descr);
        squeeze(want);
        ck_assert_str_eq(descr, want);
    }
}
END_TEST

/* numpy lacks these types, so it gets bytes or the nearest type. */
START_TEST(what_numpy_has_not)
{
    static const char *const pairs[][2] = {
        {"bfloat16", "'|V2'"},
        {"float8_e4m3fn", "'|V1'"},
        {"5p", "'|V5'"},
        {"c", "'|S1'"},
        {"P", "'<u8'"},
        {"T{5x}", "'|V5'"},
        {"if", "[('f0', '<i4'), ('f1', '<f4'), ]"},
        {"T{i:f0:f}", "[('f0', '<i4'), ('f1', '<f4'), ]"},
    };
    char descr[256];
    struct problem problem;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        ck_assert_int_eq(npy_descr(pairs[i][0], descr, sizeof descr, &problem), 0);
        ck_assert_str_eq(descr, pairs[i][1]);
    }
}
END_TEST

START_TEST(opaque_bytes)
{
    struct npy npy;
    struct problem problem;
    ck_assert_int_eq(read_descr("'|V2'", &npy, &problem), 0);
    ck_assert(npy.is_opaque && npy.itemsize == 2);
    ck_assert_int_eq(read_descr("[('a', '|V2')]", &npy, &problem), 0);
    ck_assert(!npy.is_opaque);
}
END_TEST

START_TEST(shapes_and_versions)
{
    struct npy npy;
    struct problem problem;
    ck_assert_int_eq(
        read_text(2, "{\"shape\":(),\"fortran_order\":True,\"descr\":'<f4'}", &npy, &problem), 0);
    ck_assert(npy.ndim == 0 && npy.fortran_order && npy.nbytes == 4);
    ck_assert_int_eq(read_text(3, "{'descr': '=i2', 'shape': (7L,), 'fortran_order': False}  \n",
                               &npy, &problem),
                     0);
    ck_assert(npy.ndim == 1 && npy.shape[0] == 7 && !npy.fortran_order && npy.nbytes == 14);
    ck_assert_int_eq(read_text(1,
                               "{'descr': '<i2', 'fortran_order': False, "
                               "'shape': (9223372036854775807, 9223372036854775807, 0)}",
                               &npy, &problem),
                     0);
    ck_assert_uint_eq(npy.nbytes, 0);
}
END_TEST

START_TEST(written_and_read)
{
    struct npy npy = {
        .format = "T{<b:a:3xi:b:}", .fortran_order = true, .ndim = 3, .shape = {3, 0, 5}};
    struct npy again;
    struct problem problem;
    unsigned char *header;
    size_t bytes, told;
    ck_assert_int_eq(npy_write(&npy, &header, &bytes, &problem), 0);
    ck_assert_uint_eq(bytes % 64, 0);
    ck_assert_int_eq(header[bytes - 1], '\n');
    ck_assert_int_eq(npy_header_bytes(header, NPY_PREFIX_BYTES, &told, &problem), 0);
    ck_assert_uint_eq(told, bytes);
    ck_assert_int_eq(npy_read(header, bytes, &again, &problem), 0);
    ck_assert_str_eq(again.format, npy.format);
    ck_assert(again.fortran_order && again.ndim == 3 && again.nbytes == 0);
    ck_assert(memcmp(again.shape, npy.shape, 3 * sizeof npy.shape[0]) == 0);
    free(header);
}
END_TEST

START_TEST(refused_prefixes)
{
    static const struct {
        const char *bytes;
        size_t n;
        const char *said;
    } cases[] = {
        {"", 0, "it is empty"},
        {"PK\x03\x04", 4, "does not begin with"},
        {"\x93NUMPY\x01", 7, "more than 7 bytes"},
        {"\x93NUMPY\x04\x00\x40\x00{'d", 12, "npy version 4.0; 1.0, 2.0 and 3.0 are known"},
        {"\x93NUMPY\x01\x01\x40\x00{'d", 12, "npy version 1.1"},
        {"\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, "4294967295 bytes; at most 65536"},
        {"\x93NUMPY\x01\x00\x00\x00{}", 12, "0 bytes is too short"},
    };
    struct problem problem;
    size_t bytes;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_int_eq(
            npy_header_bytes((const unsigned char *)cases[i].bytes, cases[i].n, &bytes, &problem),
            -1);
        ck_assert_msg(strstr(problem.text, cases[i].said), "%s", problem.text);
    }
}
END_TEST

START_TEST(refused_types)
{
    static const char *const cases[][2] = {
        {"'|O'", "Python's objects cannot be shared"},
        {"'<U3'", "a.astype('S')"},
        {"'<M8[s]'", "a.view('i8')"},
        {"'<m8'", "a.view('i8')"},
        {"'<c32'", "'<c32' is not a type that a view can have"},
        {"'<i3'", "'<i3' is not a type"},
        {"'f'", "'f' is not a type"},
        {"''", "'' is not a type"},
        {"'<f4 '", "is not a type"},
        {"'|S0'", "an element has 1 byte to 2 GiB"},
        {"'|S99999999999999999999'", "is not a type"},
        {"'|V3000000000'", "an element has 1 byte to 2 GiB"},
        {"'>f16'", "a long double in the other byte order"},
        {"[]", "a struct of no bytes"},
        {"[('a', '<i2'), ('a', '<i2')]", "a second field 'a'"},
        {"[('a:b', '<i2')]", "a name without ':'"},
        {"[('a', '<i2', (0,))]", "an array of no elements"},
        {"[('a', '<i2', 3)]", "a tuple of lengths is expected"},
        {"[('a', '<i2') ('b', '<i2')]", "',' or ']' is expected"},
        {"[('a' '<i2')]", "',' is expected"},
        {"[('a', open('x'))]", "a string is expected"},
        {"[('\\x41', '<i2')]", "this escape is not known"},
        {"[(('title', ''), '<i2')]", "needs a name"},
        {"'<i2, ", "' is not a type"},
        {"'<i2222222222222222222222222222222222222", "a string has at most 31 characters here"},
    };
    struct npy npy;
    struct problem problem;
    char deep[512] = "";
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(read_descr(cases[i][0], &npy, &problem) == -1, "%s", cases[i][0]);
        ck_assert_msg(strstr(problem.text, cases[i][1]) && strstr(problem.text, "npy header"),
                      "%s: %s", cases[i][0], problem.text);
    }
    for (int i = 0; i < 20; i++)
        strcat(deep, "[('a', ");
    ck_assert_int_eq(read_descr(deep, &npy, &problem), -1);
    ck_assert_ptr_nonnull(strstr(problem.text, "more than 8 levels deep"));
}
END_TEST

START_TEST(refused_dicts)
{
    static const char *const cases[][2] = {
        {"", "'{' is expected"},
        {"          ", "'{' is expected"},
        {"{'descr': '<i2', 'shape': (2,)}", "'fortran_order' is missing"},
        {"{'descr': '<i2', 'descr': '<i2'}", "a second 'descr'"},
        {"{'order': '<i2'}  ", "an unknown key 'order'"},
        {"{'fortran_order': 1}", "True or False is expected"},
        {"{'shape': (2)}        ", "not a tuple; write (N,)"},
        {"{'shape': (-2,)}      ", "a length, 0 or more"},
        {"{'shape': (2 3)}      ", "',' or ')' is expected"},
        {"{'shape': (1,1,1,1,1,1,1,1,1)}", "at most 8 dimensions"},
        {"{'shape': (99999999999999999999,)}", "at most 2^63 - 1"},
        {"{'descr': '<i2' 'shape': (2,)}", "',' or '}' is expected"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': ()} x", "nothing but blanks"},
        {"{'descr': '<i2', 'fortran_order': False, 'shape': (4611686018427387904,)}",
         "more than 2^63 - 1 bytes"},
    };
    struct npy npy;
    struct problem problem;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char padded[256];
        snprintf(padded, sizeof padded, "%s   ", cases[i][0]);
        ck_assert_msg(read_text(1, padded, &npy, &problem) == -1, "%s", cases[i][0]);
        ck_assert_msg(strstr(problem.text, cases[i][1]), "%s: %s", cases[i][0], problem.text);
    }
}
END_TEST

UNIT_MAIN("cli_npy", UNIT_TEST(types_both_ways), UNIT_TEST(what_numpy_has_not),
          UNIT_TEST(opaque_bytes), UNIT_TEST(shapes_and_versions), UNIT_TEST(written_and_read),
          UNIT_TEST(refused_prefixes), UNIT_TEST(refused_types), UNIT_TEST(refused_dicts))

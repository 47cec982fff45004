/* SPDX-License-Identifier: Apache-2.0 */
/* Checks copy.c of the library: views that share bytes, and views with suboffsets. */
#include "client/whole/number.h"

#include <sys/mman.h>

#include "unit/faults.h"
#include "unit/shapes.h"

static unsigned char wanted[FOREIGN_BYTES], source[FOREIGN_BYTES];

/* Computes the result of a copy that saves the source first. */
static void predict(const struct shmview_view *to, const struct shmview_view *from)
{
    memcpy(source, foreign_memory, FOREIGN_BYTES);
    memcpy(wanted, foreign_memory, FOREIGN_BYTES);
    for (uint64_t i = 0; i < to->nbytes / to->itemsize; i++) {
        const unsigned char *p = source + (shapes_at(from, i) - foreign_memory);
        unsigned char *q = wanted + (shapes_at(to, i) - foreign_memory);
        if (strcmp(to->format, from->format) == 0) {
            memcpy(q, p, to->itemsize);
            continue;
        }
        struct shmview_value n = number_load(from->dtype, p);
        ck_assert(number_store(to->dtype, &n, q));
    }
}

static void assert_copies(const struct shmview_view *to, const struct shmview_view *from,
                          const char *what)
{
    predict(to, from);
    int r = shmview_copy(to, from);
    ck_assert_msg(r == 0, "%s: %s", what, shmview_error_text());
    ck_assert_msg(memcmp(wanted, foreign_memory, FOREIGN_BYTES) == 0, "%s", what);
}

/* Views of a few hundred bytes at any distance from each other. */
START_TEST(any_overlap)
{
    static const char *const formats[][2] = {{"h", "h"},   {"i", "i"},   {"i", ">i"}, {">h", "h"},
                                             {"i", "f"},   {"h", "i"},   {"d", "h"},  {"3s", "3s"},
                                             {"Zd", "Zd"}, {"Zf", ">Zf"}};
    foreign_begin();
    for (int round = 0; round < 6000; round++) {
        const char *const *pair = formats[shapes_random(10)];
        int64_t shape[8];
        uint32_t ndim = shapes_shape(shape);
        uint64_t room = 200 + shapes_random(2000);
        struct shmview_view to, from;
        if (!shapes_view(pair[0], ndim, shape, 0, room, false, &to) ||
            !shapes_view(pair[1], ndim, shape, 0, room, true, &from))
            continue;
        bool same = strcmp(pair[0], pair[1]) == 0;
        for (size_t i = 0; i < 2400; i++)
            foreign_memory[i] = (unsigned char)(same ? shapes_random(256) : 0);
        /* numbers that both types have */
        for (uint64_t i = 0; !same && i < from.nbytes / from.itemsize; i++) {
            struct shmview_value n = number_of_int64((int64_t)shapes_random(128));
            number_store(from.dtype, &n, shapes_at(&from, i));
        }
        char what[80];
        snprintf(what, sizeof what, "round %d, %s from %s, %u dimensions", round, pair[0], pair[1],
                 ndim);
        assert_copies(&to, &from, what);
    }
    foreign_end();
}
END_TEST

/* Copies elements onto themselves, in any format. */
START_TEST(onto_itself)
{
    foreign_begin();
    struct shmview_view a = foreign_row("i", 64, 1000), swapped = foreign_row(">i", 64, 1000);
    struct shmview_view f = foreign_row("f", 64, 1000), same = foreign_row("i", 64, 1000);
    for (int i = 0; i < 1000; i++)
        ((int *)(void *)(foreign_memory + 64))[i] = i * 1000;
    assert_copies(&same, &a, "the same");
    assert_copies(&swapped, &a, "in the other byte order");
    assert_copies(&a, &swapped, "and back");
    assert_copies(&f, &a, "in another format of the same size");
    ck_assert(((float *)(void *)(foreign_memory + 64))[999] == 999000.0f);
    /* one element a thousand times, which must be swapped only once */
    const int64_t n = 1000, none = 0;
    struct shmview_view_spec spec = {.format = "i", .ndim = 1, .shape = &n, .strides = &none};
    struct shmview_view one = foreign_view(&spec);
    spec.format = ">i";
    struct shmview_view turned = foreign_view(&spec);
    *(int *)(void *)foreign_memory = 0x01020304;
    assert_copies(&turned, &one, "one element");
    ck_assert_int_eq(*(int *)(void *)foreign_memory, 0x04030201);
    foreign_end();
}
END_TEST

static void shift(const char *format, int64_t distance)
{
    struct shmview_view item = foreign_row(format, 0, 1);
    int64_t size = item.itemsize, n = 3000 / size;
    shapes_scribble();
    struct shmview_view from = foreign_row(format, (uint64_t)(100 * size), n);
    struct shmview_view to = foreign_row(format, (uint64_t)((100 + distance) * size), n);
    assert_copies(&to, &from, format);
}

START_TEST(shifts_in_both_directions)
{
    foreign_begin();
    for (int64_t distance = -70; distance <= 70; distance += 7) {
        shift("b", distance);
        shift("h", distance);
        shift("d", distance);
        shift("Zd", distance);
        shift("5s", distance);
    }
    foreign_end();
}
END_TEST

/* --- A temporary copy only where it is needed ---------------------------- */

static struct shmview_view make(const char *format, uint64_t offset, const int64_t *shape,
                                const int64_t *strides, uint32_t ndim)
{
    const struct shmview_view_spec spec = {
        .format = format, .offset = offset, .ndim = ndim, .shape = shape, .strides = strides};
    return foreign_view(&spec);
}

static void assert_without_memory(const struct shmview_view *to, const struct shmview_view *from,
                                  const char *what)
{
    predict(to, from);
    faults_begin(FAULTS_MEMORY, 1);
    int r = shmview_copy(to, from);
    faults_end();
    ck_assert_msg(r == 0, "%s: %s", what, shmview_error_text());
    ck_assert_msg(memcmp(wanted, foreign_memory, FOREIGN_BYTES) == 0, "%s", what);
}

START_TEST(apart_though_among_each_other)
{
    foreign_begin();
    shapes_scribble();
    struct shmview_view even = make("i", 0, INTS(100), INTS(8), 1);
    struct shmview_view odd = make("i", 4, INTS(100), INTS(8), 1);
    assert_without_memory(&odd, &even, "odd from even columns");
    assert_without_memory(&even, &odd, "even from odd columns");
    struct shmview_view left = make("i", 0, INTS(30, 20), INTS(160, 4), 2);
    struct shmview_view right = make("i", 80, INTS(30, 20), INTS(160, 4), 2);
    assert_without_memory(&right, &left, "right half from left half");
    struct shmview_view rows = make("i", 160, INTS(14, 20), INTS(320, 4), 2);
    struct shmview_view others = make("i", 0, INTS(14, 20), INTS(320, 4), 2);
    assert_without_memory(&rows, &others, "every other row");
    struct shmview_view back = make("i", 160 * 29, INTS(15, 20), INTS(-320, 4), 2);
    struct shmview_view forth = make("i", 0, INTS(15, 20), INTS(320, 4), 2);
    assert_without_memory(&back, &forth, "rows upside down");
    struct shmview_view up = make("i", 0, INTS(30, 40), INTS(160, 4), 2);
    struct shmview_view down = make("i", 160, INTS(30, 40), INTS(160, 4), 2);
    assert_without_memory(&up, &down, "rows up by one");
    assert_without_memory(&down, &up, "rows down by one");
    struct shmview_view order = make(">i", 0, INTS(30, 20), INTS(160, 4), 2);
    assert_without_memory(&order, &left, "the other byte order in place");
    foreign_end();
}
END_TEST

START_TEST(no_memory)
{
    foreign_begin();
    struct shmview_view a = make("i", 0, INTS(100), INTS(8), 1);
    struct shmview_view b = make("i", 8, INTS(100), INTS(8), 1);
    faults_begin(FAULTS_MEMORY, 1);
    int r = shmview_copy(&b, &a);
    ck_assert(faults_end());
    assert_fails(r, SHMVIEW_ERR_NO_MEMORY,
                 "out of memory: the views overlap, and 400 bytes have to be put aside");
    ck_assert_int_eq(shmview_copy(&b, &a), 0);
    foreign_end();
}
END_TEST

/* The segment is attached a second time at another address; here the test maps it. */
START_TEST(two_addresses_of_one_segment)
{
    char path[64];
    snprintf(path, sizeof path, "/%s.twice", unit_prefix());
    int fd = shm_open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
    ck_assert_int_eq(ftruncate(fd, 4096), 0);
    ck_assert_int_eq(shm_unlink(path), 0);
    struct shmview_segment *s[2];
    struct mapping mapping[2] = {{.inode = 5}, {.inode = 5}};
    unsigned char *at[2];
    for (int i = 0; i < 2; i++) {
        at[i] = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        ck_assert_int_eq(shmview_wrap(at[i], 4096, 0, NULL, NULL, &s[i]), 0);
        s[i]->mapping = &mapping[i];
    }
    struct shmview_view to, from;
    int64_t n = 1000, stride = 4;
    struct shmview_view_spec spec = {.format = "h", .ndim = 1, .shape = &n, .strides = &stride};
    ck_assert_int_eq(shmview_view_make(s[0], &spec, &from), 0);
    spec.offset = 8; /* copying upwards would read what it has written */
    ck_assert_int_eq(shmview_view_make(s[1], &spec, &to), 0);
    for (int i = 0; i < 1000; i++)
        SHMVIEW_AT1(int16_t, &from, i) = (int16_t)i;
    ck_assert_int_eq(shmview_copy(&to, &from), 0);
    for (int i = 0; i < 1000; i++)
        ck_assert_int_eq(SHMVIEW_AT1(int16_t, &to, i), i);
    for (int i = 0; i < 2; i++) {
        s[i]->mapping = NULL;
        ck_assert_int_eq(shmview_detach(s[i]), 0);
        munmap(at[i], 4096);
    }
    close(fd);
}
END_TEST

/* --- Suboffsets ---------------------------------------------------------- */

#define ROWS 5

/* Makes rows of 7 elements at odd places, listed at `table`. If deep, the last dimension consists
 * of offsets too. */
static struct shmview_view indirect(const char *format, uint64_t table, uint64_t rows, bool deep)
{
    const struct shmview_view_spec spec = {
        .format = format,
        .offset = table,
        .ndim = 2,
        .shape = INTS(ROWS, 7),
        .strides = deep ? INTS(56, 8) : INTS(8, 16),
        .suboffsets = deep ? INTS(-1, 16) : INTS(16, -1),
    };
    uint64_t *list = (uint64_t *)(void *)(foreign_memory + table);
    for (uint64_t i = 0; i < (deep ? ROWS * 7 : ROWS); i++)
        list[i] = rows + (i * 3 % (deep ? ROWS * 7 : ROWS)) * (deep ? 16 : 200);
    return foreign_view(&spec);
}

static void *pointer(const struct shmview_view *view, ptrdiff_t i, ptrdiff_t j)
{
    void *p;
    ck_assert_int_eq(shmview_view_pointer(view, AT(i, j), &p), 0);
    return p;
}

START_TEST(suboffsets)
{
    foreign_begin();
    for (int deep = 0; deep < 2; deep++) {
        struct shmview_view a = indirect("h", 0, 2048, deep);
        struct shmview_view b = indirect("f", 1024, 8192, !deep);
        struct shmview_view c = indirect("h", 512, 16384, !deep);
        struct shmview_view plain = foreign_view(&(struct shmview_view_spec){
            .format = "i", .offset = 32768, .ndim = 2, .shape = INTS(ROWS, 7)});
        for (int i = 0; i < ROWS * 7; i++)
            *(int16_t *)pointer(&a, i / 7, i % 7) = (int16_t)(i * i);
        ck_assert_int_eq(shmview_copy(&b, &a), 0);
        ck_assert_int_eq(shmview_copy(&plain, &b), 0);
        ck_assert_int_eq(shmview_copy(&c, &a), 0);
        ck_assert_int_eq(shmview_copy(&b, &plain), 0);
        for (int i = 0; i < ROWS * 7; i++) {
            ck_assert(*(float *)pointer(&b, i / 7, i % 7) == (float)(i * i));
            ck_assert_int_eq(((int *)(void *)plain.data)[i], i * i);
            ck_assert_int_eq(*(int16_t *)pointer(&c, i / 7, i % 7), i * i);
        }
    }
    foreign_end();
}
END_TEST

/* With two segments no temporary copy is needed. */
START_TEST(suboffsets_elsewhere)
{
    static _Alignas(64) int16_t elsewhere[ROWS * 7];
    struct shmview_segment *other;
    struct shmview_view plain, swapped;
    foreign_begin();
    ck_assert_int_eq(shmview_wrap(elsewhere, sizeof elsewhere, 0, NULL, NULL, &other), 0);
    struct shmview_view_spec spec = {.format = "h", .ndim = 2, .shape = INTS(ROWS, 7)};
    ck_assert_int_eq(shmview_view_make(other, &spec, &plain), 0);
    spec.format = ">h";
    ck_assert_int_eq(shmview_view_make(other, &spec, &swapped), 0);
    struct shmview_view a = indirect("h", 0, 2048, false);
    for (int i = 0; i < ROWS * 7; i++)
        *(int16_t *)pointer(&a, i / 7, i % 7) = (int16_t)(i * i);
    faults_begin(FAULTS_MEMORY, 1);
    int r = shmview_copy(&plain, &a);
    faults_end();
    ck_assert_int_eq(r, 0);
    for (int i = 0; i < ROWS * 7; i++)
        ck_assert_int_eq(elsewhere[i], i * i);
    faults_begin(FAULTS_MEMORY, 1);
    r = shmview_copy(&swapped, &a);
    faults_end();
    ck_assert_int_eq(r, 0);
    for (int i = 0; i < ROWS * 7; i++)
        ck_assert_int_eq(elsewhere[i], (int16_t)__builtin_bswap16((uint16_t)(i * i)));
    ck_assert_int_eq(shmview_detach(other), 0);
    foreign_end();
}
END_TEST

/* A row may begin in the segment and end outside, and an offset may have any value. */
START_TEST(rows_that_lead_astray)
{
    foreign_begin();
    struct shmview_view a = indirect("h", 0, 2048, false);
    struct shmview_view plain = foreign_view(&(struct shmview_view_spec){
        .format = "i", .offset = 32768, .ndim = 2, .shape = INTS(ROWS, 7)});
    uint64_t *list = (uint64_t *)(void *)foreign_memory;
    /* 16 bytes of suboffset, and 7 elements of 2 bytes that are 16 apart */
    list[2] = FOREIGN_BYTES - 16 - 98;
    ck_assert_int_eq(shmview_copy(&plain, &a), 0);
    list[2] += 2;
    assert_fails(shmview_copy(&plain, &a), SHMVIEW_ERR_BOUNDS,
                 "a row of 7 elements that begins at byte 65440 reaches outside the segment's "
                 "65536 bytes");
    ck_assert_int_eq(shmview_copy(&a, &plain), -SHMVIEW_ERR_BOUNDS);
    list[2] = FOREIGN_BYTES;
    ck_assert_int_eq(shmview_copy(&plain, &a), -SHMVIEW_ERR_BOUNDS);
    list[2] = UINT64_MAX - 15;
    ck_assert_int_eq(shmview_copy(&plain, &a), -SHMVIEW_ERR_BOUNDS);
    list[2] = 2049;
    ck_assert_int_eq(shmview_copy(&plain, &a), -SHMVIEW_ERR_MISALIGNED);
    foreign_end();
}
END_TEST

UNIT_MAIN("copy_overlap", UNIT_TEST(any_overlap), UNIT_TEST(onto_itself),
          UNIT_TEST(shifts_in_both_directions), UNIT_TEST(apart_though_among_each_other),
          UNIT_TEST(no_memory), UNIT_TEST(two_addresses_of_one_segment), UNIT_TEST(suboffsets),
          UNIT_TEST(suboffsets_elsewhere), UNIT_TEST(rows_that_lead_astray))

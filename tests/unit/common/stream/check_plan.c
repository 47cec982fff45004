/* SPDX-License-Identifier: Apache-2.0 */
/* Checks plan.c: where the parts of a stream lie, that they do not overlap, and that no header is
 * believed that has other numbers. */
#include "unit/unit.h"

#include "common/base/limits.h"
#include "common/stream/plan.h"

static struct shmview_stream_header header_of(uint32_t mode, uint32_t n_slots, uint32_t history,
                                              uint32_t n_stages, uint32_t n_views, uint64_t bytes)
{
    return (struct shmview_stream_header){
        .mode = mode,
        .n_slots = n_slots,
        .history = history,
        .n_stages = n_stages,
        .n_views = n_views,
        .frame_bytes = bytes,
    };
}

static uint64_t planned(struct shmview_stream_header *header)
{
    struct view_fault fault = {0};
    uint64_t size = 0;
    int r = stream_plan(header, &size, &fault);
    ck_assert_msg(r == 0, "refused: %s", fault.text);
    return size;
}

START_TEST(the_parts_follow_each_other)
{
    for (uint32_t n_slots = 2; n_slots <= SHMVIEW_STREAM_SLOTS_MAX; n_slots = n_slots * 2 + 1)
        for (uint32_t n_stages = 1; n_stages < n_slots && n_stages <= 6; n_stages++)
            for (uint64_t bytes = 0; bytes < 20000; bytes = bytes * 3 + 1) {
                struct view_fault fault;
                struct shmview_stream_header h = header_of(SHMVIEW_LATEST, n_slots, 0, n_stages,
                                                           1 + (uint32_t)bytes % 64, bytes);
                uint64_t size = planned(&h);
                ck_assert(h.n_cells >= n_slots && (h.n_cells & (h.n_cells - 1)) == 0);
                ck_assert_uint_ge(h.stages_offset, sizeof h);
                ck_assert_uint_ge(h.stage_bytes,
                                  sizeof(struct shmview_stream_stage) + 8 * h.n_cells);
                ck_assert_uint_ge(h.slots_offset, h.stages_offset + n_stages * h.stage_bytes);
                ck_assert_uint_ge(h.slot_bytes, sizeof(struct shmview_stream_slot) + 8 * h.n_views);
                ck_assert_uint_ge(h.frames_offset, h.slots_offset + n_slots * h.slot_bytes);
                ck_assert_uint_ge(h.frame_bytes, bytes);
                ck_assert_uint_eq(size, h.frames_offset + n_slots * h.frame_bytes);
                ck_assert(h.stage_bytes % 128 == 0 && h.slot_bytes % 128 == 0);
                ck_assert(h.frames_offset % 4096 == 0 && h.frame_bytes % 128 == 0);
                ck_assert(bytes < 4096 || h.frame_bytes % 4096 == 0);
                ck_assert_int_eq(stream_plan_check(&h, size, &fault), 0);
                ck_assert_int_eq(stream_plan_check(&h, size - 1, &fault), -1);
            }
}
END_TEST

START_TEST(defaults)
{
    struct shmview_stream_header h = header_of(SHMVIEW_LOSSLESS, 0, 0, 0, 1, 1);
    planned(&h);
    ck_assert(h.n_slots == 8 && h.n_stages == 1 && h.frame_bytes == 128);
    ck_assert(h.magic == SHMVIEW_STREAM_MAGIC && h.version == SHMVIEW_STREAM_LAYOUT_VERSION);
}
END_TEST

static void refuses(struct shmview_stream_header h, enum shmview_error error, const char *part)
{
    struct view_fault fault = {0};
    uint64_t size = 77;
    ck_assert_int_eq(stream_plan(&h, &size, &fault), -1);
    ck_assert_msg(fault.error == error && strstr(fault.text, part), "%d: %s", fault.error,
                  fault.text);
    ck_assert_uint_eq(size, 77);
}

START_TEST(what_cannot_be)
{
    refuses(header_of(0, 4, 0, 1, 1, 1), SHMVIEW_ERR_INVALID, "mode 0");
    refuses(header_of(3, 4, 0, 1, 1, 1), SHMVIEW_ERR_INVALID, "mode 3");
    refuses(header_of(SHMVIEW_LATEST, 1, 0, 1, 1, 1), SHMVIEW_ERR_INVALID, "1 slots");
    refuses(header_of(SHMVIEW_LATEST, 513, 0, 1, 1, 1), SHMVIEW_ERR_INVALID, "513 slots");
    refuses(header_of(SHMVIEW_LATEST, 4, 3, 1, 1, 1), SHMVIEW_ERR_INVALID, "would keep 4 slots");
    refuses(header_of(SHMVIEW_LOSSLESS, 4, 4, 1, 1, 1), SHMVIEW_ERR_INVALID, "would keep 4 slots");
    refuses(header_of(SHMVIEW_LATEST, 6, 2, 2, 1, 1), SHMVIEW_ERR_INVALID, "2 stages would keep 6");
    refuses(header_of(SHMVIEW_LATEST, 4, UINT32_MAX, 6, 1, 1), SHMVIEW_ERR_INVALID, "leaves none");
    refuses(header_of(SHMVIEW_LATEST, 9, 0, 7, 1, 1), SHMVIEW_ERR_INVALID, "7 stages");
    refuses(header_of(SHMVIEW_LATEST, 4, 0, 1, 0, 1), SHMVIEW_ERR_INVALID, "0 views");
    refuses(header_of(SHMVIEW_LATEST, 4, 0, 1, 65, 1), SHMVIEW_ERR_INVALID, "65 views");
    refuses(header_of(SHMVIEW_LATEST, 4, 0, 1, 1, UINT64_MAX), SHMVIEW_ERR_OVERFLOW, "bytes");
}
END_TEST

/* Each byte of a header before its mutable part is changed in each bit: none is believed. */
START_TEST(no_other_header_is_believed)
{
    struct shmview_stream_header good = header_of(SHMVIEW_LOSSLESS, 7, 2, 2, 3, 5000), h;
    struct view_fault fault;
    uint64_t size = planned(&good);
    good.flags = SHMVIEW_MANY_WRITERS;
    ck_assert_int_eq(stream_plan_check(&good, size, &fault), 0);
    unsigned other_streams = 0;
    for (size_t bit = 0; bit < 8 * offsetof(struct shmview_stream_header, pad0); bit++) {
        h = good;
        ((unsigned char *)&h)[bit / 8] ^= (unsigned char)(1u << bit % 8);
        if (stream_plan_check(&h, size, &fault) == 0)
            other_streams++;
        else
            ck_assert(fault.error == SHMVIEW_ERR_INVALID ||
                      fault.error == SHMVIEW_ERR_LAYOUT_VERSION ||
                      fault.error == SHMVIEW_ERR_OVERFLOW);
    }
    /* fewer slots or views, and another history, may move nothing: those are sound streams too */
    ck_assert_uint_lt(other_streams, 12);
}
END_TEST

START_TEST(views_are_placed)
{
    struct formats pool = {0};
    struct view_fault fault;
    struct view_desc v[3] = {{.ndim = 1, .shape = {3}}, {.ndim = 1, .shape = {4}}, {.ndim = 0}};
    uint64_t bytes = 0;
    ck_assert_int_eq(view_resolve(&v[0], &pool, "uint8", false, &fault), 0);
    v[1].strides[0] = -8;
    ck_assert_int_eq(view_resolve(&v[1], &pool, "int32", true, &fault), 0);
    ck_assert_int_eq(view_resolve(&v[2], &pool, "float64", false, &fault), 0);
    ck_assert_int_eq(stream_place(v, 3, false, &bytes, &fault), 0);
    ck_assert_uint_eq(v[0].offset, 0);
    ck_assert_uint_ge(v[1].offset - 24, 64); /* its last element is its first byte */
    ck_assert_uint_ge(v[2].offset, v[1].offset + 4);
    ck_assert(v[2].offset % 64 == 0 && bytes == v[2].offset + 8);

    uint64_t before = bytes; /* as they are */
    ck_assert_int_eq(stream_place(v, 3, true, &bytes, &fault), 0);
    ck_assert_uint_eq(bytes, before);
    ck_assert_int_eq(stream_place(v, 3, false, &bytes, &fault), -1);
    ck_assert_ptr_nonnull(strstr(fault.text, "without SHMVIEW_PLACED"));
    v[1].offset = 0;
    ck_assert_int_eq(stream_place(&v[1], 1, true, &bytes, &fault), -1); /* before the slot */
    v[1].shape[0] = INT64_MAX;
    ck_assert_int_eq(stream_place(&v[1], 1, false, &bytes, &fault), -1);
    ck_assert_int_eq(fault.error, SHMVIEW_ERR_OVERFLOW);
    v[2].indirect = true;
    v[2].offset = 0;
    ck_assert_int_eq(stream_place(&v[2], 1, false, &bytes, &fault), -1);
    ck_assert_ptr_nonnull(strstr(fault.text, "suboffsets"));
    struct view_desc none = {.ndim = 1, .shape = {0}};
    ck_assert_int_eq(view_resolve(&none, &pool, "float64", false, &fault), 0);
    ck_assert_int_eq(stream_place(&none, 1, false, &bytes, &fault), 0);
    ck_assert_uint_eq(bytes, 0);
    formats_deinit(&pool);
}
END_TEST

UNIT_MAIN("plan", UNIT_TEST(the_parts_follow_each_other), UNIT_TEST(defaults),
          UNIT_TEST(what_cannot_be), UNIT_TEST(no_other_header_is_believed),
          UNIT_TEST(views_are_placed))

/* SPDX-License-Identifier: Apache-2.0 */
/* Creating and opening streams: where views lie, and what is refused. */
#include "streams.h"

START_TEST(what_create_refuses)
{
    struct shmview_stream *none;
    struct shmview_create_options no_lock = {.struct_bytes = sizeof no_lock,
                                             .flags = SHMVIEW_NO_LOCK};
    const int64_t rows[] = {1}, negative[] = {-1}, stored[] = {0}, strides[] = {8};
    const struct shmview_view_spec bad[] = {
        {.name = "a", .format = "no format"},
        {.name = "a", .format = "int8", .offset = 64},
        {.name = "a", .format = "int8", .ndim = 1, .shape = negative},
        {.name = "a",
         .format = "int8",
         .ndim = 1,
         .shape = rows,
         .strides = strides,
         .suboffsets = stored},
    };
    const char *texts[] = {"no format", "SHMVIEW_PLACED", "length -1", "suboffsets"};
    open_stream(SHMVIEW_LATEST, 2);
#define REFUSE(member, value, text)                                                                \
    do {                                                                                           \
        struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 4);                              \
        spec.member = (value);                                                                     \
        REFUSED(shmview_stream_create(conn, "t", &spec, &none), INVALID, text);                    \
    } while (0)
    REFUSE(struct_bytes, 4, "stream spec of 4 bytes");
    REFUSE(mode, 0, "mode 0");
    REFUSE(n_slots, 1, "1 slots");
    REFUSE(n_slots, 513, "513 slots");
    REFUSE(history, 3, "history of 3");
    REFUSE(n_stages, 4, "4 stages would keep 4 slots");
    REFUSE(n_stages, 7, "7 stages");
    REFUSE(flags, 64, "flags 0x40");
    REFUSE(n_views, 0, "0 views");
    REFUSE(n_views, 65, "65 views");
    REFUSE(views, NULL, "0 views");
    REFUSE(options, &no_lock, "needs a lock");
    for (size_t i = 0; i < 4; i++) {
        struct shmview_stream_spec spec = spec_of(SHMVIEW_LATEST, 4);
        spec.views = &bad[i];
        spec.n_views = 1;
        int r = shmview_stream_create(conn, "t", &spec, &none);
        ck_assert_msg(r == (i == 0 ? -SHMVIEW_ERR_FORMAT : -SHMVIEW_ERR_INVALID), "%d", r);
        ck_assert_ptr_nonnull(strstr(shmview_error_text(), texts[i]));
    }
    struct shmview_stream_spec again = spec_of(SHMVIEW_LATEST, 4);
    REFUSED(shmview_stream_create(conn, "s", &again, &none), EXISTS, "'s'");
    const struct shmview_view_spec twice[] = {{.name = "a", .format = "b"},
                                              {.name = "a", .format = "b"}};
    again.views = twice;
    REFUSED(shmview_stream_create(conn, "t", &again, &none), INVALID, "");
    struct shmview_segment *seg;
    REFUSED(shmview_attach(conn, "t", SHMVIEW_READ, 0, &seg), NOT_FOUND, ""); /* nothing is left */
    close_stream();
}
END_TEST

START_TEST(what_open_refuses)
{
    struct shmview_stream *none;
    open_stream(SHMVIEW_LATEST, 2);
    struct shmview_segment *bytes = client_create(conn, "bytes", 4096), *few;
    few = client_create(conn, "few", 10);
    REFUSED(shmview_stream_open(conn, "few", SHMVIEW_READ, &none), INVALID, "'few' is no stream");
    ((char *)shmview_data(bytes))[0] = 1;
    REFUSED(shmview_stream_open(conn, "bytes", SHMVIEW_READ, &none), INVALID, "is no stream");
    REFUSED(shmview_stream_open(conn, "s:1", SHMVIEW_READ, &none), INVALID, "which has 1");
    REFUSED(shmview_stream_open(conn, "s:", SHMVIEW_READ, &none), INVALID, "number of a stage");
    REFUSED(shmview_stream_open(conn, "s:10", SHMVIEW_READ, &none), INVALID, "number of a stage");
    REFUSED(shmview_stream_open(conn, NULL, SHMVIEW_READ, &none), INVALID, "");
    REFUSED(shmview_stream_open(conn, "t", SHMVIEW_READ, &none), NOT_FOUND, "");
    REFUSED(shmview_stream_open(conn, "s", 9, &none), INVALID, "access 9");
    OK(shmview_stream_close(NULL));
    OK(shmview_detach(bytes));
    OK(shmview_detach(few));
    close_stream();
}
END_TEST

START_TEST(placed_and_strided_views)
{
    const int64_t shape[] = {4, 3}, back[] = {-16, 4};
    const struct shmview_view_spec views[] = {
        {.name = "rows",
         .format = "int32",
         .ndim = 2,
         .shape = shape,
         .strides = back,
         .offset = 48},
        {.name = "all", .format = "uint8", .ndim = 1, .shape = (const int64_t[]){64}},
    };
    struct shmview_stream_spec spec = {.struct_bytes = sizeof spec,
                                       .mode = SHMVIEW_LATEST,
                                       .views = views,
                                       .n_views = 2,
                                       .flags = SHMVIEW_PLACED};
    struct shmview_frame frame;
    struct shmview_view rows, all;
    open_stream_of(&spec);
    for (int i = 0; i < 3; i++) {
        OK(shmview_stream_loan(stream, 0, &frame));
        OK(shmview_frame_view(&frame, "rows", &rows));
        OK(shmview_frame_view(&frame, "all", &all));
        ck_assert_ptr_eq(rows.data, all.data + 48);
        OK(shmview_frame_publish(&frame));
    }
    OK(shmview_stream_close(stream));
    spec.flags = 0;
    struct shmview_view_spec free_places[2] = {views[0], views[1]};
    free_places[0].offset = 0;
    spec.views = free_places;
    OK(shmview_stream_create(conn, "s", &spec, &stream));
    OK(shmview_stream_loan(stream, 0, &frame));
    OK(shmview_frame_view(&frame, "rows", &rows));
    OK(shmview_frame_view(&frame, "all", &all));
    ck_assert(rows.data - 48 + 60 <= all.data && all.shape[0] == 64);
    shmview_frame_discard(&frame);
    close_stream();
}
END_TEST

int main(void)
{
    const struct suite_test tests[] = {
        SUITE_TEST(what_create_refuses),
        SUITE_TEST(what_open_refuses),
        SUITE_TEST(placed_and_strided_views),
        SUITE_END,
    };
    return suite_main("stream_create", tests);
}

/* SPDX-License-Identifier: Apache-2.0 */
/* The lines that top shows of streams, from facts that no live stream would give. */
#include "cli/top/top_streams.h"

#include "unit/unit.h"

#define SECOND INT64_C(1000000000)

static struct stream_facts facts[2];
static struct top_stream list[2];
static struct top_streams streams;
static struct shmview_segment_stats segments[3];
static struct top_row rows[3];

/* Begins with two streams: "cam" of two stages, which two readers follow, and "mic". */
static struct top begin(void)
{
    static const char *const names[] = {"cam", "mic", "none"};
    memset(facts, 0, sizeof facts);
    memset(list, 0, sizeof list);
    for (size_t i = 0; i < 3; i++) {
        segments[i] = (struct shmview_segment_stats){.id = 10 * ((int64_t)i + 1), .name = names[i]};
        rows[i] = (struct top_row){.segment = &segments[i]};
    }
    for (size_t i = 0; i < 2; i++) {
        list[i] = (struct top_stream){.id = segments[i].id, .now = &facts[i]};
        strcpy(list[i].name, names[i]);
        facts[i].info = (struct shmview_stream_info){
            .mode = i ? SHMVIEW_LOSSLESS : SHMVIEW_LATEST,
            .n_slots = 4,
            .n_stages = i ? 1 : 2,
            .frame_bytes = 1024,
        };
        facts[i].sees_readers = true;
        facts[i].now_ns = 100 * SECOND;
    }
    facts[0].status.published[0] = 60;
    facts[0].status.published[1] = 7;
    facts[0].slots[0].state = SHMVIEW_SLOT_HELD;
    facts[0].slots[1].state = SHMVIEW_SLOT_PUBLISHED;
    facts[0].slots[2].state = SHMVIEW_SLOT_LOANED;
    facts[0].readers[0] = (struct shmview_stream_reader_status){
        .pid = 5, .next = 58, .lag = 3, .missed = 9, .n_held = 1, .command = "slow\n"};
    facts[0].readers[1] = (struct shmview_stream_reader_status){
        .pid = 6, .stage = 1, .next = 8, .missed = 1, .command = "view"};
    facts[0].n_readers = 2;
    streams = (struct top_streams){.list = list, .n = 2};
    return (struct top){.rows = rows, .n_rows = 3, .name_width = 8, .streams = &streams};
}

static const char *row(const struct top *t, size_t i)
{
    static struct top_line line;
    top_stream_row(t, &list[i], &line);
    return line.text;
}

static enum top_style style(const struct top *t, size_t i)
{
    struct top_line line;
    top_stream_row(t, &list[i], &line);
    return line.style;
}

START_TEST(a_row)
{
    struct top t = begin();
    ck_assert_str_eq(row(&t, 0), "cam      latest     2         -       -    2      3      10"
                                 " 1/1/1 of 4");
    ck_assert_str_eq(row(&t, 1), "mic      lossless   1         -       -    0      -       -"
                                 " 4/0/0 of 4");
    facts[0].sees_readers = facts[1].sees_readers = false; /* attached with SHMVIEW_PEEK */
    facts[0].n_readers = 0;
    unit_assert_holds(row(&t, 0), "    -      -       - 1/");
}
END_TEST

START_TEST(rates)
{
    struct top t = begin();
    list[0].before_ns = 98 * SECOND;
    list[0].published[0] = 10;
    list[0].missed = 10;
    unit_assert_holds(row(&t, 0), "latest     2      25.0     25K    2");
    ck_assert_int_eq(style(&t, 0), TOP_PLAIN);
    t.wants_bytes = true;
    unit_assert_holds(row(&t, 0), "25.0          25600    2");
    list[0].published[0] = 60;
    unit_assert_holds(row(&t, 0), " 0.0 ");
    list[0].published[0] = 61; /* a program has damaged the counter */
    unit_assert_holds(row(&t, 0), "latest     2         -              -    2");
    list[0].published[0] = 0;
    facts[0].status.published[0] = UINT64_MAX;
    unit_assert_holds(row(&t, 0), " -    2");
    list[0].missed = 9; /* a reader has missed a frame since then */
    ck_assert_int_eq(style(&t, 0), TOP_WARN);
}
END_TEST

START_TEST(readers_that_have_left_have_no_lag)
{
    struct top t = begin();
    struct top_line lines[9];
    facts[0].readers[0].next = UINT64_MAX;
    unit_assert_holds(row(&t, 0), "    1      0       1 ");
    ck_assert_uint_eq(top_stream_details(&t, &list[0], lines, 9), 4);
    ck_assert_str_eq(lines[1].text,
                     "           5 slow?            lag -, missed 9, holds 1, has left");
}
END_TEST

START_TEST(streams_that_cannot_be_shown)
{
    struct top t = begin();
    strcpy(list[0].trouble, "its memory is gone");
    list[1].now = NULL;
    ck_assert_str_eq(row(&t, 0), "cam      its memory is gone");
    ck_assert_int_eq(style(&t, 0), TOP_BAD);
    ck_assert_str_eq(row(&t, 1), "mic      it is no stream any more");
    list[0].is_unused = true;
    ck_assert_int_eq(style(&t, 0), TOP_DIM);
    struct top_line line;
    ck_assert_uint_eq(top_stream_details(&t, &list[0], &line, 1), 0);
    ck_assert_uint_eq(top_stream_details(&t, &list[1], &line, 1), 0);
}
END_TEST

START_TEST(details)
{
    struct top t = begin();
    struct top_line lines[9];
    facts[0].status.has_ended[1] = true;
    ck_assert_uint_eq(top_stream_details(&t, &list[0], lines, 9), 4);
    ck_assert_str_eq(lines[0].text, "  stage 0: - frames/s, -/s, 60 published");
    ck_assert_str_eq(lines[1].text, "           5 slow?            lag 3, missed 9, holds 1");
    ck_assert_str_eq(lines[2].text, "  stage 1: - frames/s, -/s, 7 published, ended");
    ck_assert_str_eq(lines[3].text, "           6 view             lag 0, missed 1, holds 0");
    for (size_t room = 0; room < 4; room++)
        ck_assert_uint_eq(top_stream_details(&t, &list[0], lines, room), room);
}
END_TEST

/* Returns the first words of all lines. */
static const char *words(const struct top *t, bool with_details)
{
    static char text[200];
    size_t n;
    struct top_line *lines = top_stream_lines(t, with_details, &n);
    ck_assert_ptr_nonnull(lines);
    text[0] = '\0';
    for (size_t i = 0; i < n; i++) {
        char word[16];
        ck_assert_int_eq(sscanf(lines[i].text, "%15s", word), 1);
        strcat(strcat(text, word), " ");
    }
    free(lines);
    return text;
}

START_TEST(lines_are_in_the_order_of_the_segments)
{
    struct top t = begin();
    ck_assert_str_eq(words(&t, false), "STREAM cam mic ");
    ck_assert_str_eq(words(&t, true), "STREAM cam stage 5 stage 6 mic stage ");
    rows[0].segment = &segments[1];
    rows[1].segment = &segments[0];
    ck_assert_str_eq(words(&t, false), "STREAM mic cam ");
    streams.n_left = 3;
    ck_assert_str_eq(words(&t, false), "STREAM mic cam 3 ");
    t.n_rows = 1; /* the filter has changed since the last update */
    ck_assert_str_eq(words(&t, false), "STREAM mic 3 ");
    streams.n = 0;
    ck_assert_str_eq(words(&t, false), "");
}
END_TEST

START_TEST(who_writes)
{
    const struct shmview_party_stats reader = {.access = SHMVIEW_READ},
                                     writer = {.access = SHMVIEW_WRITE};
    const struct shmview_party_stats *const parties[] = {&reader, &writer};
    struct shmview_segment_stats s = {.parties = parties, .n_parties = 2, .attachments = 2};
    ck_assert(top_stream_is_written(&s));
    s.n_parties = 1;
    s.attachments = 1;
    ck_assert(!top_stream_is_written(&s));
    s.attachments = 65; /* more than are listed */
    ck_assert(top_stream_is_written(&s));
    s.n_parties = 0;
    s.attachments = 0;
    ck_assert(!top_stream_is_written(&s));
}
END_TEST

UNIT_MAIN("cli_top_streams", UNIT_TEST(a_row), UNIT_TEST(rates),
          UNIT_TEST(readers_that_have_left_have_no_lag), UNIT_TEST(streams_that_cannot_be_shown),
          UNIT_TEST(details), UNIT_TEST(lines_are_in_the_order_of_the_segments),
          UNIT_TEST(who_writes))

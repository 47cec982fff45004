/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the figures, orders and pages of top, and its tree of waiting clients, without a daemon or
 * a terminal. */
#include "cli/top/top.h"

#include "cli/text/waits.h"

#include "unit/unit.h"

#define SECOND INT64_C(1000000)
#define NOW    (1000 * SECOND)

static struct shmview_party_stats parties[8];
static const struct shmview_party_stats *party_list[4][4];
static struct shmview_segment_stats segments[4];
static const struct shmview_segment_stats *const list[] = {&segments[0], &segments[1], &segments[2],
                                                           &segments[3]};

/* Replaces the library's function. The result is static, not from the heap. */
static const struct shmview_stats *stats_of(size_t n)
{
    static struct shmview_stats stats;
    stats = (struct shmview_stats){.version = "1.2",
                                   .segments = list,
                                   .n_segments = n,
                                   .uptime_us = 60 * SECOND,
                                   .total_requests = 100,
                                   .allocated_bytes = 2048,
                                   .connections = 3};
    return &stats;
}

static struct shmview_party_stats *join(size_t segment, size_t party, int64_t pid, uint32_t holds,
                                        uint32_t waits, int64_t seconds)
{
    struct shmview_segment_stats *s = &segments[segment];
    struct shmview_party_stats *p = &parties[party];
    *p = (struct shmview_party_stats){.pid = pid,
                                      .command = "c",
                                      .access = SHMVIEW_WRITE,
                                      .holds = holds,
                                      .waits = waits,
                                      .since_us = seconds ? NOW - seconds * SECOND : -1};
    party_list[segment][s->n_parties++] = p;
    s->parties = party_list[segment];
    s->attachments++;
    return p;
}

/* Begins with three segments: b is large, a is held and waited for, c is old and has seen
 * deaths. */
static struct top begin(void)
{
    static const char *const names[] = {"b", "a", "c", "d"};
    for (int i = 0; i < 4; i++)
        segments[i] = (struct shmview_segment_stats){.name = names[i],
                                                     .id = 10 * (i + 1),
                                                     .size = i == 0 ? 5000 : 100,
                                                     .resident = i == 2 ? 8192 : 4096,
                                                     .is_named = 1,
                                                     .layout = "",
                                                     .lifetime = SHMVIEW_MANUAL,
                                                     .owner_deaths = i == 2 ? 4 : 0,
                                                     .created_us = NOW - (i + 1) * SECOND};
    join(1, 0, 7, SHMVIEW_EXCLUSIVE, 0, 5);
    join(1, 1, 8, 0, SHMVIEW_SHARED, 3);
    join(1, 2, 9, 0, SHMVIEW_EXCLUSIVE, 0);
    return (struct top){.now = stats_of(3), .now_us = NOW, .name_most = 32};
}

static void end(struct top *t)
{
    free(t->rows);
}

/* Returns the names of the rows in this order. */
static const char *order(struct top *t, enum top_key key)
{
    static char names[64];
    t->key = key;
    ck_assert_int_eq(top_arrange(t), 0);
    names[0] = '\0';
    for (size_t i = 0; i < t->n_rows; i++)
        strcat(names, t->rows[i].segment->name);
    return names;
}

START_TEST(orders)
{
    struct top t = begin();
    ck_assert_str_eq(order(&t, TOP_NAME), "abc");
    ck_assert_str_eq(order(&t, TOP_SIZE), "bac");
    ck_assert_str_eq(order(&t, TOP_RESIDENT), "cab");
    ck_assert_str_eq(order(&t, TOP_ATTACHED), "abc");
    ck_assert_str_eq(order(&t, TOP_HELD), "abc");
    ck_assert_str_eq(order(&t, TOP_WAITING), "abc");
    ck_assert_str_eq(order(&t, TOP_DEATHS), "cab");
    ck_assert_str_eq(order(&t, TOP_AGE), "cab"); /* the oldest first */
    t.is_reversed = true;
    ck_assert_str_eq(order(&t, TOP_SIZE), "cab");
    ck_assert_str_eq(order(&t, TOP_NAME), "cba");
    ck_assert_uint_eq(top_find(&t, 20), 2);
    ck_assert(top_find(&t, 21) == SIZE_MAX);
    for (size_t i = 0; i < N_TOP_KEYS; i++)
        ck_assert_ptr_nonnull(top_key_names[i]);
    ck_assert_ptr_null(top_key_names[N_TOP_KEYS]);
    end(&t);
}
END_TEST

/* A segment whose time of locking is unknown is still shown as held. */
START_TEST(held_without_a_time)
{
    struct top t = begin();
    join(2, 3, 11, SHMVIEW_SHARED, 0, 0);
    join(2, 4, 12, SHMVIEW_SHARED, 0, 0);
    ck_assert_str_eq(order(&t, TOP_HELD), "acb");
    ck_assert_int_eq(t.rows[1].n_holders, 2);
    ck_assert_int_eq(t.rows[1].held_us, -1);
    ck_assert_int_eq(t.rows[0].held_us, 5 * SECOND);
    ck_assert_int_eq(t.rows[0].waited_us, 3 * SECOND);
    ck_assert_int_eq(t.rows[0].n_waiters, 2);
    end(&t);
}
END_TEST

START_TEST(filters)
{
    struct top t = begin();
    static const struct {
        const char *filter, *left;
    } cases[] = {{"", "abc"},  {"b", "b"},   {"x", ""},  {"[ab]", "ab"},
                 {"*", "abc"}, {"?", "abc"}, {"b?", ""}, {"a*", "a"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        strcpy(t.filter, cases[i].filter);
        ck_assert_str_eq(order(&t, TOP_NAME), cases[i].left);
    }
    end(&t);
}
END_TEST

START_TEST(rates)
{
    struct top t = begin();
    struct shmview_segment_stats before[2] = {{.id = 10, .changes = 0xfffffff0}, {.id = 20}};
    const struct shmview_segment_stats *const was[] = {&before[0], &before[1]};
    struct shmview_stats old = {.segments = was, .n_segments = 2, .total_requests = 40};
    struct top_line header[TOP_HEADER];
    t.before = &old;
    t.before_us = NOW - 2 * SECOND;
    segments[0].changes = 0x10; /* it wrapped: 32 in two seconds */
    segments[1].changes = 100;
    segments[2].changes = 7; /* it is new since the last figures */
    ck_assert_str_eq(order(&t, TOP_CHANGES), "abc");
    ck_assert(t.rows[0].changes == 50 && t.rows[1].changes == 16 && t.rows[2].changes == -1);
    top_header(&t, header);
    unit_assert_holds(header[2].text, "requests 30/s");
    ck_assert_int_eq(header[2].style, TOP_PLAIN);
    old.total_requests = 1000; /* the daemon was restarted */
    old.total_owner_died = -1;
    top_header(&t, header);
    unit_assert_holds(header[2].text, "requests -/s");
    ck_assert_int_eq(header[2].style, TOP_BAD);
    end(&t);
}
END_TEST

START_TEST(lines)
{
    struct top t = begin();
    struct top_line header[TOP_HEADER], line;
    order(&t, TOP_NAME);
    top_header(&t, header);
    unit_assert_holds(header[0].text, "shmviewd 1.2, up 60s, 3 of 3 segments");
    unit_assert_holds(header[1].text, "bytes 2K, ");
    unit_assert_holds(header[2].text, "clients 3, requests -/s");
    top_row_line(&t, &t.rows[0], &line);
    ck_assert_str_eq(line.text, "a          100B     4K    3 7 c                   5s    2     3s"
                                "      -      0     2s");
    ck_assert_int_eq(line.style, TOP_WARN);
    top_row_line(&t, &t.rows[1], &line);
    ck_assert_int_eq(line.style, TOP_PLAIN);
    unit_assert_holds(line.text, " 4.9K ");
    t.wants_bytes = true;
    top_row_line(&t, &t.rows[1], &line);
    unit_assert_holds(line.text, " 5000 ");
    segments[0].is_named = 0;
    top_row_line(&t, &t.rows[1], &line);
    ck_assert_int_eq(line.style, TOP_DIM);
    t.trouble = "old figures: gone";
    strcpy(t.filter, "a");
    top_header(&t, header);
    unit_assert_holds(header[0].text, ", filter a -- old figures: gone");
    ck_assert_int_eq(header[0].style, TOP_BAD);
    end(&t);
}
END_TEST

START_TEST(names_have_the_room_that_they_need)
{
    struct top t = begin();
    struct top_line line;
    segments[0].name = "a_name_that_is_longer_than_thirty_two_characters";
    order(&t, TOP_SIZE);
    ck_assert_int_eq(t.name_width, 32);
    top_row_line(&t, &t.rows[0], &line);
    ck_assert_int_eq(strncmp(line.text, "a_name_that_is_longer_than_thirt ", 33), 0);
    t.name_most = 128;
    order(&t, TOP_SIZE);
    top_row_line(&t, &t.rows[0], &line);
    unit_assert_holds(line.text, "thirty_two_characters ");
    end(&t);
}
END_TEST

/* --- Who waits for whom -------------------------------------------------- */

static void is_line(const struct waits_line *line, unsigned depth, bool is_cycle, const char *text)
{
    ck_assert_str_eq(line->text, text);
    ck_assert_uint_eq(line->depth, depth);
    ck_assert_int_eq(line->is_cycle, is_cycle);
}

START_TEST(a_tree_of_waits)
{
    struct waits_line tree[20];
    struct top t = begin();
    /* 7 holds a and waits for b, which 10 and 11 share */
    join(0, 3, 7, 0, SHMVIEW_EXCLUSIVE, 2);
    join(0, 4, 10, SHMVIEW_SHARED, 0, 4);
    join(0, 5, 11, SHMVIEW_SHARED, 0, 0);
    size_t n = waits_tree(t.now, &segments[1], NOW, tree, 20);
    ck_assert_uint_eq(n, 6);
    is_line(&tree[0], 0, false, "7 c holds a, exclusive, 5s");
    is_line(&tree[1], 1, false, "7 c waits for b, exclusive, 2s");
    is_line(&tree[2], 2, false, "10 c holds b, shared, 4s");
    is_line(&tree[3], 2, false, "11 c holds b, shared");
    is_line(&tree[4], 0, false, "8 c waits for a, shared, 3s");
    is_line(&tree[5], 0, false, "9 c waits for a, exclusive");
    ck_assert_uint_eq(waits_tree(t.now, &segments[2], NOW, tree, 20), 0);
    for (size_t room = 0; room < 6; room++)
        ck_assert_uint_eq(waits_tree(t.now, &segments[1], NOW, tree, room), room);
    end(&t);
}
END_TEST

START_TEST(a_ring_of_waits)
{
    struct waits_line tree[20];
    struct top t = begin();
    join(0, 3, 7, 0, SHMVIEW_EXCLUSIVE, 2);
    join(0, 4, 10, SHMVIEW_EXCLUSIVE, 0, 4);
    join(2, 5, 10, 0, SHMVIEW_EXCLUSIVE, 1);
    join(2, 6, 7, SHMVIEW_EXCLUSIVE, 0, 9);
    size_t n = waits_tree(t.now, &segments[1], NOW, tree, 20);
    ck_assert_uint_eq(n, 7);
    is_line(&tree[2], 2, false, "10 c holds b, exclusive, 4s");
    is_line(&tree[3], 3, false, "10 c waits for c, exclusive, 1s");
    is_line(&tree[4], 4, true, "7 c holds c, exclusive, 9s");
    end(&t);
}
END_TEST

/* All processes of other pid namespaces have the id 0. */
START_TEST(processes_without_an_id)
{
    struct waits_line tree[20];
    struct top t = begin();
    join(0, 3, 0, SHMVIEW_EXCLUSIVE, 0, 5);
    join(0, 4, 0, 0, SHMVIEW_EXCLUSIVE, 2);
    ck_assert_uint_eq(waits_tree(t.now, &segments[0], NOW, tree, 20), 2);
    is_line(&tree[0], 0, false, "0 c holds b, exclusive, 5s");
    is_line(&tree[1], 0, false, "0 c waits for b, exclusive, 2s");
    end(&t);
}
END_TEST

/* A chain of waiting clients that is too long to read is cut. */
START_TEST(two_who_hold_much)
{
    struct waits_line tree[2000];
    struct top t = begin();
    t.now = stats_of(4);
    for (size_t i = 0; i < 4; i++)
        segments[i].n_parties = 0;
    for (size_t i = 0; i < 4; i++) {
        join(i, 2 * i, (int64_t)i, SHMVIEW_SHARED, 0, 1);
        join(i, 2 * i + 1, (int64_t)(i + 1) % 4, 0, SHMVIEW_SHARED, 1);
    }
    ck_assert_uint_lt(waits_tree(t.now, &segments[0], NOW, tree, 2000), 20);
    end(&t);
}
END_TEST

START_TEST(a_page_about_a_segment)
{
    static struct top_line page[40];
    struct top t = begin();
    parties[0].uid = 0;
    segments[1].mode = 0640;
    size_t n = top_segment(&t, &segments[1], page, 40);
    ck_assert_uint_eq(n, 11);
    unit_assert_holds(page[0].text, "a, 100B, resident 4K, owner root, mode 0640, lifetime manual");
    unit_assert_holds(page[3].text, " write ");
    unit_assert_holds(page[3].text, "exclusive");
    ck_assert_int_eq(page[4].style, TOP_WARN);
    unit_assert_holds(page[4].text, "waits shared");
    ck_assert_str_eq(page[6].text, "3 attachments");
    ck_assert_str_eq(page[8].text, "  7 c holds a, exclusive, 5s");
    for (size_t room = 0; room < 40; room++)
        ck_assert_uint_le(top_segment(&t, &segments[1], page, room), room);
    n = top_segment(&t, &segments[2], page, 40);
    ck_assert_str_eq(page[n - 1].text, "  nobody holds the lock or waits for it");
    end(&t);
}
END_TEST

UNIT_MAIN("cli_top", UNIT_TEST(orders), UNIT_TEST(held_without_a_time), UNIT_TEST(filters),
          UNIT_TEST(rates), UNIT_TEST(lines), UNIT_TEST(names_have_the_room_that_they_need),
          UNIT_TEST(a_tree_of_waits), UNIT_TEST(a_ring_of_waits),
          UNIT_TEST(processes_without_an_id), UNIT_TEST(two_who_hold_much),
          UNIT_TEST(a_page_about_a_segment))

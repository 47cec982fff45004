/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the graph of waits with figures that no daemon would report, because clients can forge what
 * a lock states. */
#include "web/api/graph.h"

#include <string.h>

#include "unit/unit.h"

#define BEGUN_US 1000
#define MOST     64

/* Figures of up to MOST segments with up to MOST parties. */
static struct {
    struct shmview_stats stats;
    struct shmview_segment_stats segments[MOST];
    const struct shmview_segment_stats *segment_list[MOST];
    struct shmview_party_stats parties[MOST][MOST];
    const struct shmview_party_stats *party_list[MOST][MOST];
    struct graph graph;
} f;

static void start(size_t n_segments)
{
    memset(&f, 0, sizeof f);
    f.stats = (struct shmview_stats){.segments = f.segment_list, .n_segments = n_segments};
    for (size_t i = 0; i < n_segments; i++) {
        f.segments[i].name = "name";
        f.segments[i].parties = f.party_list[i];
        f.segment_list[i] = &f.segments[i];
    }
}

static void add(size_t segment, int64_t pid, uint32_t holds, uint32_t waits, int64_t since_us)
{
    size_t n = f.segments[segment].n_parties++;
    f.parties[segment][n] = (struct shmview_party_stats){
        .pid = pid, .command = "", .holds = holds, .waits = waits, .since_us = since_us};
    f.party_list[segment][n] = &f.parties[segment][n];
}

static void make(size_t segment)
{
    graph_make(&f.stats, &f.segments[segment], BEGUN_US, &f.graph);
}

START_TEST(a_cycle_of_two)
{
    start(2);
    add(0, 1, SHMVIEW_EXCLUSIVE, 0, 5);
    add(0, 2, 0, SHMVIEW_EXCLUSIVE, 5);
    add(1, 2, SHMVIEW_EXCLUSIVE, 0, 5);
    add(1, 1, 0, SHMVIEW_SHARED, 5);
    make(0);
    ck_assert_uint_eq(f.graph.n_cycles, 1);
    ck_assert_uint_eq(f.graph.cycles[0].n, 2);
    ck_assert_ptr_eq(f.graph.cycles[0].waits[0].party, &f.parties[0][1]);
    ck_assert_ptr_eq(f.graph.cycles[0].waits[1].party, &f.parties[1][1]);
    ck_assert_uint_eq(f.graph.n_lines, 6);
    ck_assert(f.graph.lines[5].is_closing && !f.graph.is_cut);
    ck_assert_uint_eq(f.graph.lines[5].depth, 4);
}
END_TEST

/* A wait that began after the question may have come when the other one was over. */
START_TEST(a_wait_that_is_too_young)
{
    static const int64_t times[] = {BEGUN_US, 0, -1};
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        start(2);
        add(0, 1, SHMVIEW_EXCLUSIVE, 0, 5);
        add(0, 2, 0, SHMVIEW_EXCLUSIVE, times[i]);
        add(1, 2, SHMVIEW_EXCLUSIVE, 0, 5);
        add(1, 1, 0, SHMVIEW_SHARED, BEGUN_US - 1);
        make(0);
        ck_assert_uint_eq(f.graph.n_cycles, 0);
        ck_assert(f.graph.lines[5].is_repeated && !f.graph.lines[5].is_closing);
    }
}
END_TEST

/* A thread of a process waits for another one, and processes of other containers have no pid. */
START_TEST(processes_that_wait_for_themselves)
{
    start(1);
    add(0, 1, SHMVIEW_EXCLUSIVE, SHMVIEW_EXCLUSIVE, 5);
    add(0, 0, SHMVIEW_SHARED, SHMVIEW_EXCLUSIVE, 5);
    make(0);
    ck_assert_uint_eq(f.graph.n_cycles, 0);
    ck_assert_uint_eq(f.graph.n_lines, 7);
}
END_TEST

START_TEST(nobody)
{
    start(1);
    add(0, 1, 0, 0, -1);
    make(0);
    ck_assert_uint_eq(f.graph.n_lines, 0);
    ck_assert(!f.graph.is_cut);
}
END_TEST

/* Each process holds and awaits each lock. */
START_TEST(everybody_waits_for_everybody)
{
    start(MOST);
    for (size_t i = 0; i < MOST; i++)
        for (int64_t k = 1; k <= MOST; k++)
            add(i, k, SHMVIEW_SHARED, SHMVIEW_EXCLUSIVE, 5);
    make(0);
    ck_assert(f.graph.is_cut);
    ck_assert_uint_eq(f.graph.n_lines, GRAPH_LINES);
    ck_assert_uint_le(f.graph.n_cycles, GRAPH_CYCLES);
}
END_TEST

/* Process i holds lock i, and waits for lock i + 1; the last one waits for lock 0. */
START_TEST(a_chain_that_is_too_long)
{
    for (size_t n = 2; n <= MOST; n++) {
        start(n);
        for (size_t i = 0; i < n; i++) {
            add(i, (int64_t)i + 1, SHMVIEW_EXCLUSIVE, 0, 5);
            add((i + 1) % n, (int64_t)i + 1, 0, SHMVIEW_EXCLUSIVE, 5);
        }
        make(0);
        ck_assert_int_eq(f.graph.is_cut, n > GRAPH_LEVELS);
        ck_assert_uint_eq(f.graph.n_cycles, n <= GRAPH_LEVELS);
        if (f.graph.n_cycles)
            ck_assert_uint_eq(f.graph.cycles[0].n, n);
    }
}
END_TEST

UNIT_MAIN("web_graph", UNIT_TEST(a_cycle_of_two), UNIT_TEST(a_wait_that_is_too_young),
          UNIT_TEST(processes_that_wait_for_themselves), UNIT_TEST(nobody),
          UNIT_TEST(everybody_waits_for_everybody), UNIT_TEST(a_chain_that_is_too_long))

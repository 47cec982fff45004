/* SPDX-License-Identifier: Apache-2.0 */
#include "stress/verdict.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "common/base/util.h"
#include "stress/arena.h"

void verdict_list_places(void)
{
    for (int i = 0; i < N_PLACES; i++)
        printf("%-16s %s\n", place_name(i), place_text(i));
}

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static size_t sort_latencies(void)
{
    size_t n = atomic_load(&arena->n_latencies);
    if (n > LATENCIES_MAX)
        n = LATENCIES_MAX;
    qsort(arena->latency_ns, n, sizeof *arena->latency_ns, compare);
    return n;
}

static double latency_ms(size_t n, double part)
{
    return n ? (double)arena->latency_ns[(size_t)((double)(n - 1) * part)] / 1e6 : 0;
}

static void print_table(const struct supervisor_result *result, size_t n)
{
    static const char *const names[N_COUNTS] = {
#define X(name, text) text,
        COUNT_LIST(X)
#undef X
    };
    for (int i = 0; i < N_COUNTS; i++)
        printf("%12" PRIu64 " %s\n", arena_count((enum count)i), names[i]);
    printf("%12" PRIu64 " deaths\n%12" PRIu64 " exits in order\n%12" PRIu64 " stops\n",
           result->deaths, result->exits, result->stops);
    printf("%12" PRIu64 " lulls\n%12" PRIu64 " sieges\n%12" PRIu64 " of their holders killed\n",
           result->turns, result->sieges, result->holders_killed);
    printf("from the kill to the next owner, %zu times, ms: p10 %.2f p50 %.2f p90 %.2f p99 %.2f "
           "p99.9 %.2f max %.2f\n",
           n, latency_ms(n, 0.1), latency_ms(n, 0.5), latency_ms(n, 0.9), latency_ms(n, 0.99),
           latency_ms(n, 0.999), latency_ms(n, 1));
    printf("%-16s %12s %8s\n", "place", "reached", "deaths");
    for (int i = 0; i < N_PLACES; i++)
        printf("%-16s %12" PRIu64 " %8" PRIu64 "  %s\n", place_name(i), arena_reached(i),
               atomic_load(&arena->deaths[i]), place_text(i));
}

int verdict_print(const struct supervisor_result *result, bool verbose)
{
    size_t n = sort_latencies();
    unsigned places = 0;
    uint64_t violations = arena_violations();
    uint32_t stalls = atomic_load(&arena->stalls);
    for (int i = 0; i < N_PLACES; i++)
        places += atomic_load(&arena->deaths[i]) != 0;
    if (verbose)
        print_table(result, n);
    const char *word = violations || stalls ? "FAILED" : result->interrupted ? "INTERRUPTED" : "OK";
    printf("stress: %s %" PRIu64 " deaths (at %u of %d places), %" PRIu64 " violations, %u stalls, "
           "%" PRIu64 " owner died (%" PRIu64 " torn), p50 %.2f ms p99 %.2f ms\n",
           word, result->deaths, places, N_PLACES, violations, stalls,
           arena_count(COUNT_OWNER_DIED), arena_count(COUNT_TORN), latency_ms(n, 0.5),
           latency_ms(n, 0.99));
    if (violations || stalls)
        return 1;
    return result->interrupted ? 128 + result->interrupted : 0;
}

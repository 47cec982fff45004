/* SPDX-License-Identifier: Apache-2.0 */
/* A hundred thousand segments beside a thousand, and a list of them; four thousand clients beside
 * one. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <shmview/stats.h>

#include "bench.h"
#include "storm.h"

#define MANY          100000
#define FEW           1000
#define SEGMENT_BYTES 4096
/* What a segment takes: three objects of a page, and what the kernel adds. */
#define BYTES_NEEDED ((uint64_t)MANY * 32768)
/* So few that the daemon cannot keep a thousand segments open: each attach opens them again. */
#define DESCRIPTORS 1024
#define CREATES     50
#define ATTACHES    200
#define PINGS       200
#define CLIENTS     4000
#define HOLDERS     2

/* A daemon with its segments. */
struct realm {
    struct instance instance;
    struct shmview_connection *connection;
    unsigned n;
    unsigned next;
    uint64_t seed;
    double bytes;    /* private memory of the daemon for each segment */
    double registry; /* bytes of its registry for each */
    double fill_s;
};

static void name_of(char ret[32], unsigned i)
{
    snprintf(ret, 32, "segment%06u", i);
}

/* --- Filling ------------------------------------------------------------- */

/* Returns the anonymous memory of a process, in bytes; 0 if the kernel does not report it. */
static double anonymous_bytes(pid_t pid)
{
    char path[64], line[256];
    double kib = 0;
    snprintf(path, sizeof path, "/proc/%d/smaps_rollup", pid);
    FILE *f = fopen(path, "re");
    while (f && fgets(line, sizeof line, f))
        if (sscanf(line, "Anonymous: %lf", &kib) == 1)
            break;
    if (f)
        fclose(f);
    return kib * 1024;
}

static double file_bytes(const char *path)
{
    struct stat st;
    return stat(path, &st) ? 0 : (double)st.st_blocks * 512;
}

static int create(struct shmview_connection *connection, const char *name,
                  struct shmview_segment **ret)
{
    static const struct shmview_create_options manual = {.struct_bytes = sizeof manual,
                                                         .lifetime = SHMVIEW_MANUAL};
    return shmview_create(connection, name, SEGMENT_BYTES, &manual, ret)
               ? failed("create: %s", shmview_error_text())
               : 0;
}

static int connect_to(struct realm *realm)
{
    return shmview_connect(realm->instance.socket, SHMVIEW_CONNECT_NO_START, &realm->connection)
               ? failed("%s", shmview_error_text())
               : 0;
}

static int fill(struct realm *realm, unsigned n)
{
    char name[32], registry[PATH_MAX + 16];
    snprintf(registry, sizeof registry, "%s.registry", realm->instance.socket);
    double bytes = anonymous_bytes(realm->instance.daemon), kept = file_bytes(registry);
    int64_t start = now_ns();
    for (; realm->n < n; realm->n++) {
        struct shmview_segment *s;
        name_of(name, realm->n);
        if (create(realm->connection, name, &s) || shmview_detach(s))
            return failed("segment %u: %s", realm->n, shmview_error_text());
    }
    realm->fill_s = (double)(now_ns() - start) * 1e-9;
    realm->bytes = (anonymous_bytes(realm->instance.daemon) - bytes) / n;
    realm->registry = (file_bytes(registry) - kept) / n;
    return 0;
}

static int realm_open(struct realm *realm, const struct bench *bench, const char *name, unsigned n,
                      unsigned descriptors)
{
    *realm = (struct realm){.seed = 1};
    if (instance_start_beside(&realm->instance, bench->instance, name, descriptors) ||
        connect_to(realm))
        return -1;
    place_process(&bench->cpus, PLACE_SAME, 1, realm->instance.daemon);
    return fill(realm, n);
}

static void realm_close(struct realm *realm)
{
    shmview_disconnect(realm->connection);
    if (realm->instance.directory[0])
        instance_stop(&realm->instance);
}

/* --- Segments ------------------------------------------------------------ */

static int run_create(void *arg, double *ret)
{
    struct realm *realm = arg;
    struct shmview_segment *made[CREATES];
    char name[32];
    int64_t start = now_ns();
    for (unsigned i = 0; i < CREATES; i++) {
        snprintf(name, sizeof name, "more%u", i);
        if (create(realm->connection, name, &made[i]))
            return -1;
    }
    *ret = (double)(now_ns() - start) / CREATES;
    for (unsigned i = 0; i < CREATES; i++) {
        if (shmview_remove(realm->connection, shmview_name(made[i])))
            return failed("remove: %s", shmview_error_text());
        shmview_detach(made[i]);
    }
    return 0;
}

static int attach(struct realm *realm, unsigned i)
{
    char name[32];
    struct shmview_segment *s;
    name_of(name, i);
    return shmview_attach(realm->connection, name, SHMVIEW_WRITE, 0, &s) || shmview_detach(s)
               ? failed("attach: %s", shmview_error_text())
               : 0;
}

static int run_in_turn(void *arg, double *ret)
{
    struct realm *realm = arg;
    int64_t start = now_ns();
    for (unsigned i = 0; i < ATTACHES; i++)
        if (attach(realm, realm->next++ % realm->n))
            return -1;
    *ret = (double)(now_ns() - start) / ATTACHES;
    return 0;
}

static int run_at_random(void *arg, double *ret)
{
    struct realm *realm = arg;
    int64_t start = now_ns();
    for (unsigned i = 0; i < ATTACHES; i++) {
        realm->seed = realm->seed * 6364136223846793005 + 1442695040888963407;
        if (attach(realm, (unsigned)(realm->seed >> 33) % realm->n))
            return -1;
    }
    *ret = (double)(now_ns() - start) / ATTACHES;
    return 0;
}

/* Until the new daemon answers. */
static int run_restart(void *arg, double *ret)
{
    struct realm *realm = arg;
    shmview_disconnect(realm->connection);
    realm->connection = NULL;
    int64_t start = now_ns();
    if (instance_restart(&realm->instance) || connect_to(realm) || shmview_ping(realm->connection))
        return -1;
    *ret = (double)(now_ns() - start);
    return attach(realm, realm->n - 1);
}

static void add_value(struct bench *bench, const char *what, const char *unit, double value,
                      struct target target)
{
    struct row row = {.unit = unit, .ours = value, .target = target};
    snprintf(row.what, sizeof row.what, "%s", what);
    if (bench_wants(bench, what))
        table_add(&bench->table, &row);
}

static void run_calls(struct bench *bench, struct realm *many, struct realm *few)
{
    const struct {
        const char *what;
        int (*run)(void *, double *);
        struct target target;
    } rows[] = {
        {"create, 100000 segments there", run_create, {TARGET_RATIO, 1.10}},
        {"attach+detach in turn, 100000", run_in_turn, {TARGET_RATIO, 1.15}},
        {"attach+detach at random, 100000", run_at_random, {0}},
    };
    place_process(&bench->cpus, PLACE_SAME, 0, 0);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct contest contest = {
            .unit = "us",
            .scale = 1e-3,
            .rounds = 41,
            .rounds_quick = 11,
            .n = 2,
            .list = {{"100000", rows[i].run, many, {0}},
                     {"1000 there", rows[i].run, few, rows[i].target}},
        };
        snprintf(contest.what, sizeof contest.what, "%s", rows[i].what);
        contest_run(bench, &contest);
    }
}

static int run_fill(void *arg, double *ret)
{
    const struct realm *realm = arg;
    *ret = realm->fill_s * 1e9;
    return 0;
}

/* Lists all segments, page by page. Returns how many there were, or -1. */
static int list_pages(struct caller *caller)
{
    int n = 0;
    for (json_t *next = json_integer(0); next;) {
        json_t *reply = caller_ask(caller, "io.shmview.List", json_pack("{s:o}", "after", next));
        if (!reply)
            return -1;
        n += (int)json_array_size(json_object_get(reply, "segments"));
        next = json_incref(json_object_get(reply, "next"));
        json_decref(reply);
    }
    return n;
}

/* The figures are those of a daemon that has done nothing but to take the segments over. */
static int run_list(struct bench *bench, struct realm *realm)
{
    struct caller caller = {.fd = -1};
    const struct shmview_stats *stats;
    double unused;
    if (run_restart(realm, &unused) || caller_open(&caller, realm->instance.socket, NULL))
        return -1;
    double bytes = anonymous_bytes(realm->instance.daemon);
    int n = list_pages(&caller);
    bytes = anonymous_bytes(realm->instance.daemon) - bytes;
    caller_close(&caller);
    if (n < 0 || (unsigned)n != realm->n)
        return failed("listed %d of %u segments", n, realm->n);
    if (storm_check(shmview_stats_get(realm->connection, NULL, &stats), "stats"))
        return -1;
    add_value(bench, "list of 100000, longest turn", "ms", (double)stats->longest_turn_us * 1e-3,
              (struct target){TARGET_VALUE, 1});
    add_value(bench, "list of 100000, daemon's growth", "MiB", bytes / (1 << 20),
              (struct target){TARGET_VALUE, 1});
    shmview_stats_free(stats);
    return 0;
}

static bool has_memory(void)
{
    struct sysinfo info;
    return sysinfo(&info) == 0 && (uint64_t)info.freeram * info.mem_unit > BYTES_NEEDED;
}

static void run_segments(struct bench *bench)
{
    struct realm many = {.n = 0}, few = {.n = 0};
    if (!has_memory()) {
        failed("no 100000 segments: they need %.1f GB", (double)BYTES_NEEDED * 1e-9);
        return;
    }
    if (realm_open(&few, bench, "few", FEW, DESCRIPTORS) ||
        realm_open(&many, bench, "many", MANY, DESCRIPTORS)) {
        bench->n_failed++;
    } else {
        add_value(bench, "daemon's memory a segment, 100000", "bytes", many.bytes,
                  (struct target){TARGET_VALUE, 256});
        add_value(bench, "its registry a segment, 100000", "bytes", many.registry,
                  (struct target){0});
        run_calls(bench, &many, &few);
        place_process(&bench->cpus, PLACE_FREE, 0, 0);
        place_process(&bench->cpus, PLACE_FREE, 1, many.instance.daemon);
        contest_run(bench, &(struct contest){
                               .what = "restart with 100000 segments",
                               .unit = "s",
                               .scale = 1e-9,
                               .rounds = 3,
                               .rounds_quick = 1,
                               .n = 2,
                               .list = {{"restart", run_restart, &many, {0}},
                                        {"creating them", run_fill, &many, {TARGET_VALUE, 3}}},
                           });
        if (bench_wants(bench, "list of 100000, longest turn") ||
            bench_wants(bench, "list of 100000, daemon's growth"))
            bench->n_failed += run_list(bench, &many) != 0;
    }
    realm_close(&many);
    realm_close(&few);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

/* --- Clients ------------------------------------------------------------- */

struct holder {
    const char *socket;
    volatile uint32_t *ready; /* holders that are */
};

static void raise_descriptors(void)
{
    struct rlimit limit;
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* Connects its share, and keeps that until it is killed. */
static void hold(void *arg)
{
    const struct holder *holder = arg;
    struct shmview_connection *c;
    raise_descriptors();
    for (unsigned i = 0; i < CLIENTS / HOLDERS; i++)
        if (shmview_connect(holder->socket, SHMVIEW_CONNECT_NO_START, &c) || shmview_ping(c)) {
            failed("client %u: %s", i, shmview_error_text());
            return;
        }
    __atomic_fetch_add(holder->ready, 1, __ATOMIC_SEQ_CST);
    for (;;)
        pause();
}

static int run_ping(void *arg, double *ret)
{
    struct realm *realm = arg;
    int64_t start = now_ns();
    for (int i = 0; i < PINGS; i++)
        if (shmview_ping(realm->connection))
            return failed("ping: %s", shmview_error_text());
    *ret = (double)(now_ns() - start) / PINGS;
    return 0;
}

static void run_clients(struct bench *bench)
{
    struct realm crowded = {.n = 0}, empty = {.n = 0};
    pid_t holders[HOLDERS] = {0};
    struct holder holder = {.socket = crowded.instance.socket};
    struct contest contest = {
        .what = "ping, 4000 clients, same core",
        .unit = "us",
        .scale = 1e-3,
        .rounds = 41,
        .rounds_quick = 11,
        .n = 2,
        .list = {{"5000", run_ping, &crowded, {0}},
                 {"one client", run_ping, &empty, {TARGET_RATIO, 1.1}}},
    };
    if (!bench_wants(bench, contest.what))
        return;
    holder.ready =
        mmap(NULL, sizeof *holder.ready, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (holder.ready == MAP_FAILED) {
        bench->n_failed++;
        return;
    }
    int r = realm_open(&crowded, bench, "crowded", 0, 0);
    if (r == 0)
        r = realm_open(&empty, bench, "empty", 0, 0);
    for (int i = 0; r == 0 && i < HOLDERS; i++)
        holders[i] = child_start(hold, &holder);
    if (r || wait_for(holder.ready, HOLDERS)) {
        failed("not measured: %s", contest.what);
        bench->n_failed++;
    } else {
        place_process(&bench->cpus, PLACE_SAME, 0, 0);
        contest_run(bench, &contest);
    }
    for (int i = 0; i < HOLDERS; i++)
        child_end(holders[i]);
    munmap((void *)(uintptr_t)holder.ready, sizeof *holder.ready);
    realm_close(&crowded);
    realm_close(&empty);
    place_process(&bench->cpus, PLACE_FREE, 0, 0);
}

void bench_scale(struct bench *bench)
{
    if (bench_wants(bench, "create, 100000 segments there") ||
        bench_wants(bench, "attach+detach in turn, 100000") ||
        bench_wants(bench, "attach+detach at random, 100000") ||
        bench_wants(bench, "daemon's memory a segment, 100000") ||
        bench_wants(bench, "its registry a segment, 100000") ||
        bench_wants(bench, "restart with 100000 segments") ||
        bench_wants(bench, "list of 100000, longest turn") ||
        bench_wants(bench, "list of 100000, daemon's growth"))
        run_segments(bench);
    run_clients(bench);
}

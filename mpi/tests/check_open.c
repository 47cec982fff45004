/* SPDX-License-Identifier: Apache-2.0 */
/* nodes: 2. Opening: which segments are created, adopted and refused, and which are left. */
#include <mpi.h>
#include <shmview/describe.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "mpi/job.h"
#include "mpi/link.h"
#include "mpi/verdict.h"
#include "support_ranks.h"

static const int64_t n[] = {100};
static const struct shmview_view_spec numbers = {
    .name = "numbers", .format = "float64", .ndim = 1, .shape = n};
static const struct shmview_mpi_layout layouts[] = {
    {.name = "first", .views = &numbers, .n_views = 1},
    {.name = "second", .views = &numbers, .n_views = 1}};

static struct shmview_mpi_spec spec_of(uint32_t lifetime)
{
    return (struct shmview_mpi_spec){.struct_bytes = sizeof(struct shmview_mpi_spec),
                                     .lifetime = lifetime,
                                     .size = 4096,
                                     .timeout_ns = 10000000000,
                                     .layouts = layouts,
                                     .n_layouts = 2};
}

/* The library calls this function in place of that of MPI. */
static const MPI_Comm *duplicate;

int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *copy, MPI_Request *request)
{
    duplicate = copy;
    return PMPI_Comm_idup(comm, copy, request);
}

/* The segment is one on each node, whoever writes. */
static void check_shared(void)
{
    const struct shmview_mpi_spec spec = spec_of(0);
    struct shmview_mpi *job;
    OK(shmview_mpi_open(MPI_COMM_WORLD, NULL, "open", &spec, &job));
    int *count = shmview_data(shmview_mpi_segment(job));
    __atomic_fetch_add(count, 1, __ATOMIC_SEQ_CST);
    ranks_barrier();
    int members = 0;
    const int node = shmview_mpi_node(job, ranks_me());
    for (int r = 0; r < ranks_n(); r++)
        members += shmview_mpi_node(job, r) == node;
    CHECK(__atomic_load_n(count, __ATOMIC_SEQ_CST) == members);
    CHECK(shmview_mpi_nodes(job) * members == ranks_n());
    CHECK(shmview_mpi_node(job, ranks_n()) == -1 && shmview_mpi_node(job, -1) == -1);
    /* The texts of the leaders' messages name ranks of the job, which are not those of the link. */
    for (int i = 0; job->link && i < job->n_nodes; i++)
        CHECK(link_name(job->link, i) == job_ranks(job, i)[0]);
    OK(shmview_mpi_close(job));
}

/* Ranks are on one node if they can share a segment, even where MPI uses no shared memory. */
static void check_node_comm(void)
{
    const struct shmview_mpi_spec spec = spec_of(0);
    struct shmview_mpi *job;
    MPI_Comm node = MPI_COMM_NULL;
    int place, size, members = 0, before = 0;
    OK(shmview_mpi_node_comm(MPI_COMM_WORLD, &node));
    MPI_Comm_rank(node, &place);
    MPI_Comm_size(node, &size);
    OK(shmview_mpi_open(MPI_COMM_WORLD, NULL, "node", &spec, &job));
    for (int r = 0; r < ranks_n(); r++) {
        const int is_here = shmview_mpi_node(job, r) == shmview_mpi_node(job, ranks_me());
        members += is_here;
        before += is_here && r < ranks_me();
    }
    CHECK(size == members && place == before);
    OK(shmview_mpi_close(job));
    MPI_Comm_free(&node);
    CHECK(shmview_mpi_node_comm(MPI_COMM_NULL, &node) == -SHMVIEW_ERR_INVALID);
}

/* The segment outlives the job, and belongs to the caller. */
static void check_kept(void)
{
    const struct shmview_mpi_spec spec = spec_of(0);
    struct shmview_connection *connection;
    struct shmview_segment *segment = NULL;
    struct shmview_mpi *job;
    struct shmview_view view;
    OK(shmview_connect(NULL, 0, &connection));
    OK(shmview_mpi_open(MPI_COMM_WORLD, connection, "outlives", &spec, &job));
    OK(shmview_view_cast(shmview_mpi_segment(job), "float64", 0, SHMVIEW_REST, &view));
    if (ranks_me() == 0)
        OK(shmview_fill_double(&view, 7));
    OK(shmview_mpi_bcast(job, &view, 0, NULL));
    CHECK(shmview_lock(shmview_mpi_segment(job)) == 0);
    OK(shmview_unlock(shmview_mpi_segment(job)));
    const struct shmview_segment *of_job = shmview_mpi_segment(job);
    OK(shmview_mpi_close_keeping(job, &segment));
    CHECK(segment == of_job && SHMVIEW_AT1(double, &view, 511) == 7);
    OK(shmview_detach(segment));
    OK(shmview_disconnect(connection));
    segment = NULL;
    REFUSED(shmview_mpi_close_keeping(NULL, &segment), INVALID);
    OK(shmview_mpi_open(MPI_COMM_WORLD, NULL, "outlives", &spec, &job));
    REFUSED(shmview_mpi_close_keeping(job, &segment), INVALID);
    CHECK(!segment && strstr(shmview_mpi_error_text(), "a connection of its own"));
    OK(shmview_mpi_close(job));
}

/* The label of the segment has job, leader and node. */
static void check_label(void)
{
    const struct shmview_mpi_spec spec = spec_of(0);
    const struct shmview_description *described;
    struct shmview_connection *connection;
    struct shmview_mpi *job;
    char begin[64], ranks[64], node[65] = "";
    setenv("SLURM_JOB_ID", "47\x1b[1m11 and far more than there is room for", 1);
    OK(shmview_mpi_open(MPI_COMM_WORLD, NULL, "labelled", &spec, &job));
    OK(shmview_connect(NULL, 0, &connection));
    OK(shmview_describe(connection, "labelled", &described));
    snprintf(begin, sizeof begin, "MPI job 47?[1m11?and?far?mo, rank ");
    snprintf(ranks, sizeof ranks, " of %d on ", ranks_n());
    CHECK(strncmp(described->label, begin, strlen(begin)) == 0);
    const int leader = (int)strtol(described->label + strlen(begin), NULL, 10);
    CHECK(shmview_mpi_node(job, leader) == shmview_mpi_node(job, ranks_me()));
    const char *at = strstr(described->label, ranks);
    CHECK(at && gethostname(node, sizeof node - 1) == 0);
    CHECK(at && strncmp(at + strlen(ranks), node, strlen(at + strlen(ranks))) == 0);
    shmview_description_free(described);
    OK(shmview_disconnect(connection));
    OK(shmview_mpi_close(job));
    unsetenv("SLURM_JOB_ID");
}

/* The next job finds the phase and the bytes of the one before. */
static void check_adopted(void)
{
    const struct shmview_mpi_spec spec = spec_of(SHMVIEW_MANUAL);
    struct shmview_mpi *job;
    struct shmview_view view;
    struct shmview_phase phase;
    for (int round = 0; round < 3; round++) {
        OK(shmview_mpi_open(MPI_COMM_WORLD, NULL, "kept", &spec, &job));
        struct shmview_segment *segment = shmview_mpi_segment(job);
        OK(shmview_phase_get(segment, &phase));
        CHECK(phase.generation == (uint32_t)round);
        OK(shmview_view_open(segment, "first", "numbers", &view));
        if (round > 0) {
            CHECK(strcmp(phase.name, round == 1 ? "first" : "second") == 0);
            CHECK(SHMVIEW_AT1(double, &view, 99) == round);
        }
        if (round == 2)
            break;
        ranks_barrier();
        if (ranks_me() == 0)
            OK(shmview_fill_double(&view, round + 1));
        OK(shmview_mpi_bcast(job, &view, 0, round ? "second" : "first"));
        OK(shmview_mpi_close(job));
    }
    const int is_leader = shmview_mpi_is_leader(job);
    struct shmview_connection *connection;
    OK(shmview_connect(NULL, 0, &connection));
    OK(shmview_mpi_close(job));

    /* Another size, another layout, another lifetime: every rank gets the error. */
    struct shmview_mpi_spec other = spec;
    other.size = 8192;
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "kept", &other, &job), EXISTS);
    CHECK(strstr(shmview_mpi_error_text(), "node "));
    CHECK(strstr(shmview_mpi_error_text(), "4096 bytes"));
    other = spec_of(SHMVIEW_ATTACHED);
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "kept", &other, &job), EXISTS);
    static const struct shmview_view_spec integers = {
        .name = "numbers", .format = "int64", .ndim = 1, .shape = n};
    const struct shmview_mpi_layout changed = {.name = "second", .views = &integers, .n_views = 1};
    other = spec;
    other.layouts = &changed;
    other.n_layouts = 1;
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, connection, "kept", &other, &job), LAYOUT_EXISTS);
    CHECK(strstr(shmview_mpi_error_text(), "another layout 'second'"));
    ranks_barrier();
    if (is_leader)
        OK(shmview_remove(connection, "kept"));
    OK(shmview_disconnect(connection));
}

/* The leader of the last node finds its name taken: no node keeps what it has created. */
static void check_undone(void)
{
    const struct shmview_mpi_spec spec = spec_of(SHMVIEW_MANUAL);
    struct shmview_connection *connection;
    struct shmview_segment *segment = NULL;
    struct shmview_mpi *job;
    OK(shmview_connect(NULL, 0, &connection));
    const int is_last = ranks_me() == ranks_n() - 1;
    if (is_last)
        OK(shmview_create(connection, "undone", 100, NULL, &segment));
    ranks_barrier();
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "undone", &spec, &job), EXISTS);
    char host[65] = "", wanted[80];
    gethostname(host, sizeof host - 1);
    MPI_Bcast(host, sizeof host, MPI_CHAR, ranks_n() - 1, MPI_COMM_WORLD);
    snprintf(wanted, sizeof wanted, "node %s: ", host);
    CHECK(strncmp(shmview_mpi_error_text(), wanted, strlen(wanted)) == 0);
    OK(shmview_detach(segment));
    ranks_barrier();
    struct shmview_segment *left;
    REFUSED(shmview_attach(connection, "undone", SHMVIEW_READ, 0, &left), NOT_FOUND);
    OK(shmview_disconnect(connection));
}

/* Ranks that do not agree, and arguments that are wrong everywhere. */
static void check_refused(void)
{
    struct shmview_mpi_spec spec = spec_of(0);
    struct shmview_mpi *job;
    const int is_last = ranks_me() == ranks_n() - 1;
    REFUSED(shmview_mpi_open(MPI_COMM_NULL, NULL, "refused", &spec, &job), INVALID);
    if (is_last)
        spec.size++;
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "refused", &spec, &job), INVALID);
    CHECK(strstr(shmview_mpi_error_text(), "of 4097 bytes, rank 0 has 4096"));
    spec = spec_of(0);
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, is_last ? "other" : "refused", &spec, &job),
            INVALID);
    spec.n_layouts = is_last ? 1 : 2;
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "refused", &spec, &job), INVALID);
    spec = spec_of(SHMVIEW_CREATOR);
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "refused", &spec, &job), INVALID);
    spec = spec_of(0);
    spec.size = UINT64_C(1) << 50;
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "refused", &spec, &job), NO_SPACE);
    spec.struct_bytes = is_last ? 0 : sizeof spec;
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "refused", &spec, &job), INVALID);
    OK(shmview_mpi_close(NULL));
}

/* The other ranks come to the first step of opening and not to the second one in time. Only rank 0
 * fails, and MPI still works: the other ranks use the communicator that it has given up. */
static void check_absent(void)
{
    struct shmview_mpi_spec spec = spec_of(0);
    struct verdict agreed;
    struct shmview_mpi *job = NULL;
    MPI_Comm copy = MPI_COMM_NULL;
    spec.timeout_ns = 5000000000; /* enough for the first step on a busy machine */
    ranks_barrier();
    if (ranks_me() == 0) {
        REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "absent", &spec, &job), TIMED_OUT);
        CHECK(!job && strstr(shmview_mpi_error_text(), "the ranks of a node: the deadline passed"));
    } else {
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &copy, ranks_request()));
        ranks_wait();
    }
    ranks_barrier();
    if (ranks_me() != 0) {
        OK(verdict_take(copy, 0, 0, "late", shmview_deadline(spec_of(0).timeout_ns), &agreed));
        CHECK(agreed.status == 0);
        MPI_Comm_free(&copy);
    }
    ranks_barrier();
}

/* Sends nothing to another rank, or awaits that. */
static void send_to(int rank)
{
    MPI_Isend(NULL, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
}

static void await(int rank)
{
    MPI_Irecv(NULL, 0, MPI_BYTE, rank, 0, MPI_COMM_WORLD, ranks_request());
    ranks_wait();
}

/* The deadline passes on rank 0, whose duplicate of the communicator is still to come. */
static void refuse_late(void)
{
    struct shmview_mpi_spec spec = spec_of(0);
    struct shmview_mpi *job = NULL;
    void *volatile held[8];
    spec.timeout_ns = 500000000;
    /* The allocator has no memory of the size of a job left, and gives that of the next one that is
     * freed to the allocation after it. */
    for (int i = 0; i < 8; i++)
        held[i] = malloc(sizeof(struct shmview_mpi));
    REFUSED(shmview_mpi_open(MPI_COMM_WORLD, NULL, "late", &spec, &job), TIMED_OUT);
    void *volatile next = malloc(sizeof(struct shmview_mpi));
    const uintptr_t begin = (uintptr_t)next, at = (uintptr_t)duplicate;
    CHECK(begin && (at < begin || at >= begin + sizeof(struct shmview_mpi)));
    free(next);
    for (int i = 0; i < 8; i++)
        free(held[i]);
}

/* The other ranks come to the first step after the deadline of rank 0, where MPI then ends what it
 * has begun. No collective is in the way of that. */
static void check_late(void)
{
    MPI_Comm copy = MPI_COMM_NULL;
    ranks_barrier();
    if (ranks_me() == 0) {
        refuse_late();
        for (int r = 1; r < ranks_n(); r++)
            send_to(r);
        for (int r = 1; r < ranks_n(); r++)
            await(r);
    } else {
        await(0);
        OK(MPI_Comm_idup(MPI_COMM_WORLD, &copy, ranks_request()));
        ranks_wait();
        send_to(0);
    }
    ranks_barrier();
    if (ranks_me() != 0)
        MPI_Comm_free(&copy);
    ranks_barrier();
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    check_shared();
    check_node_comm();
    check_kept();
    check_label();
    check_adopted();
    check_undone();
    check_refused();
    check_absent();
    check_late();
    return ranks_end();
}

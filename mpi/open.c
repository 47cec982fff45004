/* SPDX-License-Identifier: Apache-2.0 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job.h"
#include "node.h"
#include "place.h"
#include "text.h"
#include "verdict.h"

/* What the specification of every rank must have in common. */
struct statement {
    uint32_t version;    /* of the library and its control area */
    uint32_t byte_order; /* 0x01020304 as this machine stores it */
    uint64_t size;
    uint64_t layouts; /* a number made of their text */
    int64_t timeout_ns;
    uint32_t lifetime;
    char name[132];
};

#define STATEMENT_VERSION                                                                          \
    (SHMVIEW_VERSION_MAJOR << 24 | SHMVIEW_VERSION_MINOR << 16 | CONTROL_VERSION)

static uint64_t mix(uint64_t hash, const void *bytes, size_t n)
{
    const unsigned char *byte = bytes;
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ byte[i]) * UINT64_C(0x100000001b3);
    return hash;
}

static uint64_t mix_view(uint64_t hash, const struct shmview_view_spec *view)
{
    hash = mix(hash, view->name ? view->name : "", view->name ? strlen(view->name) + 1 : 1);
    hash = mix(hash, view->format ? view->format : "", view->format ? strlen(view->format) + 1 : 1);
    hash = mix(hash, &view->offset, sizeof view->offset);
    hash = mix(hash, &view->ndim, sizeof view->ndim);
    hash = mix(hash, &view->flags, sizeof view->flags);
    const size_t n = (view->ndim <= SHMVIEW_MAX_NDIM ? view->ndim : 0) * sizeof(int64_t);
    const int64_t *const arrays[] = {view->shape, view->strides, view->suboffsets};
    for (int i = 0; i < 3; i++)
        hash = arrays[i] ? mix(hash, arrays[i], n) : mix(hash, "-", 1);
    return hash;
}

/* Checks the arguments of this rank. */
static int check_spec(const char *name, const struct shmview_mpi_spec *spec, struct statement *ret)
{
    if (!spec || spec->struct_bytes < sizeof *spec)
        return text_fail(-SHMVIEW_ERR_INVALID, "struct_bytes of the specification is not set");
    if (!name || strlen(name) >= sizeof ret->name)
        return text_fail(-SHMVIEW_ERR_INVALID, "the segment has no name, or a longer one than 128");
    if (spec->lifetime && spec->lifetime != SHMVIEW_ATTACHED && spec->lifetime != SHMVIEW_MANUAL)
        return text_fail(-SHMVIEW_ERR_INVALID, "lifetime %u is not possible here", spec->lifetime);
    if (spec->timeout_ns < 0)
        return text_fail(-SHMVIEW_ERR_INVALID, "timeout_ns is below 0");
    if (spec->n_layouts && !spec->layouts)
        return text_fail(-SHMVIEW_ERR_INVALID, "layouts is NULL");
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < spec->n_layouts; i++) {
        const struct shmview_mpi_layout *layout = &spec->layouts[i];
        if (!layout->name || (layout->n_views && !layout->views))
            return text_fail(-SHMVIEW_ERR_INVALID, "layout %zu has no name or no views", i);
        hash = mix(hash, layout->name, strlen(layout->name) + 1);
        for (size_t k = 0; k < layout->n_views; k++)
            hash = mix_view(hash, &layout->views[k]);
    }
    ret->size = spec->size;
    ret->layouts = hash;
    ret->lifetime = spec->lifetime;
    ret->timeout_ns = spec->timeout_ns;
    strcpy(ret->name, name);
    return 0;
}

/* Compares the specification with that of rank 0. */
static int compare(const struct statement *mine, const struct statement *first)
{
    if (mine->version != first->version)
        return text_fail(-SHMVIEW_ERR_LAYOUT_VERSION,
                         "another version of libshmview-mpi than that of rank 0");
    if (mine->byte_order != first->byte_order)
        return text_fail(-SHMVIEW_ERR_INVALID, "another byte order than that of rank 0");
    if (strcmp(mine->name, first->name) != 0)
        return text_fail(-SHMVIEW_ERR_INVALID, "segment '%s' where rank 0 opens '%s'", mine->name,
                         first->name);
    if (mine->size != first->size)
        return text_fail(-SHMVIEW_ERR_INVALID, "segment '%s' of %llu bytes, rank 0 has %llu",
                         mine->name, (unsigned long long)mine->size,
                         (unsigned long long)first->size);
    if (mine->layouts != first->layouts)
        return text_fail(-SHMVIEW_ERR_INVALID, "other layouts than those of rank 0");
    if (mine->lifetime != first->lifetime || mine->timeout_ns != first->timeout_ns)
        return text_fail(-SHMVIEW_ERR_INVALID, "another lifetime or timeout_ns than rank 0");
    return 0;
}

/* Agrees with all ranks on the status. Returns the least one, or a positive outcome of any. */
static int agree_all(struct shmview_mpi *job, int status)
{
    struct verdict agreed;
    int result = verdict_take(job->all, status, 0, "the ranks of a job",
                              shmview_deadline(job->timeout_ns), &agreed);
    if (result < 0) {
        job->is_broken = true;
        return result;
    }
    return agreed.status < 0 ? agreed.status : agreed.highest;
}

static int compare_specs(struct shmview_mpi *job, const char *name,
                         const struct shmview_mpi_spec *spec)
{
    struct statement mine = {.version = STATEMENT_VERSION, .byte_order = 0x01020304};
    int status = check_spec(name, spec, &mine);
    struct statement first = mine;
    int result = verdict_copy(job->all, &first, sizeof first, 0, shmview_deadline(job->timeout_ns));
    if (result < 0) {
        job->is_broken = true;
        return result;
    }
    if (status == 0 && first.name[0])
        status = compare(&mine, &first);
    if (status < 0) {
        char text[SHMVIEW_MPI_TEXT_BYTES];
        snprintf(text, sizeof text, "%s", text_last());
        text_fail(status, "rank %d: %.400s", job->rank, text);
        place_fail(status);
    }
    return agree_all(job, status);
}

/* lowest has for each rank the lowest rank of its node. */
static void number_nodes(struct shmview_mpi *job, const int *lowest)
{
    int *first = job->first;
    for (int r = 0; r < job->n_ranks; r++) {
        job->node_of[r] = lowest[r] == r ? job->n_nodes++ : job->node_of[lowest[r]];
        first[job->node_of[r] + 1]++;
    }
    for (int i = 0; i < job->n_nodes; i++)
        first[i + 1] += first[i];
    /* Each rank moves the beginning of its node to the next place, so that all end one node too
     * far. */
    for (int r = 0; r < job->n_ranks; r++)
        job->ranks[first[job->node_of[r]]++] = r;
    for (int i = job->n_nodes; i > 0; i--)
        first[i] = first[i - 1];
    first[0] = 0;
    job->node_index = job->node_of[job->rank];
    job->is_ordered = true;
    for (int i = 0; i < job->n_ranks; i++)
        job->is_ordered &= job->ranks[i] == i;
}

/* Fills in where each rank is. */
static int map_ranks(struct shmview_mpi *job)
{
    const size_t n = (size_t)job->n_ranks;
    int *lowest = calloc(n, sizeof *lowest);
    job->node_of = calloc(n, sizeof(int));
    job->ranks = calloc(n, sizeof(int));
    job->first = calloc(n + 1, sizeof(int));
    int result = 0, mine = job->rank;
    if (!lowest || !job->node_of || !job->ranks || !job->first)
        result = text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for %d ranks", job->n_ranks);
    result = agree_all(job, result);
    /* Members are in the order of their ranks, so that the leader has the lowest. */
    if (result == 0)
        result = text_check(MPI_Bcast(&mine, 1, MPI_INT, 0, job->node), "the ranks of a node");
    if (result == 0)
        result = text_check(MPI_Allgather(&mine, 1, MPI_INT, lowest, 1, MPI_INT, job->all),
                            "the nodes of the ranks");
    if (result == 0 && lowest && job->node_of && job->ranks && job->first)
        number_nodes(job, lowest);
    free(lowest);
    return result;
}

static const char doing[] = "the communicators of a job";

/* Duplicates comm within the deadline. After a failure MPI may still write the duplicate to its
 * memory, so it is not freed. */
static int duplicate(struct shmview_mpi *job, MPI_Comm comm)
{
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Comm *copy = malloc(sizeof *copy);
    if (!copy)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "%s: no memory", doing);
    /* Until a duplicate exists, errors go where those of comm go. */
    int result = text_check(MPI_Comm_idup(comm, copy, &request), doing);
    if (result == 0)
        result = verdict_wait(&request, doing, shmview_deadline(job->timeout_ns));
    if (result < 0)
        return result;
    job->all = *copy;
    free(copy);
    return 0;
}

/* Duplicates comm and divides it. */
static int divide(struct shmview_mpi *job, MPI_Comm comm)
{
    int result = duplicate(job, comm);
    if (result < 0) {
        job->is_broken = true;
        return result;
    }
    MPI_Comm_set_errhandler(job->all, MPI_ERRORS_RETURN);
    MPI_Comm_rank(job->all, &job->rank);
    MPI_Comm_size(job->all, &job->n_ranks);
    result = node_split(job->all, shmview_deadline(job->timeout_ns), &job->node);
    if (result < 0) {
        job->is_broken = true;
        return result;
    }
    MPI_Comm_set_errhandler(job->node, MPI_ERRORS_RETURN);
    MPI_Comm_rank(job->node, &job->member);
    MPI_Comm_size(job->node, &job->n_members);
    result = text_check(
        MPI_Comm_split(job->all, job->member == 0 ? 0 : MPI_UNDEFINED, job->rank, &job->leaders),
        doing);
    if (result < 0)
        return result;
    if (job->leaders != MPI_COMM_NULL)
        MPI_Comm_set_errhandler(job->leaders, MPI_ERRORS_RETURN);
    return map_ranks(job);
}

static int keep_phases(struct shmview_mpi *job, const struct shmview_mpi_spec *spec)
{
    size_t n = 1;
    if (!spec)
        return text_fail(-SHMVIEW_ERR_INVALID, "there is no specification");
    for (size_t i = 0; i < spec->n_layouts; i++)
        n += strlen(spec->layouts[i].name) + 1;
    char *at = job->phases = calloc(1, n);
    if (!at)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for the names of the layouts");
    for (size_t i = 0; i < spec->n_layouts; i++)
        at = stpcpy(at, spec->layouts[i].name) + 1;
    return 0;
}

/* Opens the link between the leaders, whose texts name their ranks of the job. */
static int open_link(struct shmview_mpi *job)
{
    int *names = malloc((size_t)job->n_nodes * sizeof *names);
    int result = shmview_mpi_link_open(job->leaders, &job->link);
    if (result < 0 || !names) {
        free(names);
        return result < 0 ? result : text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a link");
    }
    for (int node = 0; node < job->n_nodes; node++)
        names[node] = job_ranks(job, node)[0];
    job->link->names = job->names = names;
    return 0;
}

/* Opens the segments, first on the leaders, then on the others. Returns 0 or the outcome. */
static int open_segments(struct shmview_mpi *job, const char *name,
                         const struct shmview_mpi_spec *spec)
{
    struct place place = {0};
    int result = keep_phases(job, spec);
    if (result == 0 && job->member == 0)
        result = place_lead(job, name, spec, &place);
    result = agree_all(job, result < 0 ? result : place.outcome);
    if (result < 0)
        return result;
    const int outcome = result;
    result = agree_all(job, job->member == 0 ? open_link(job) : 0);
    if (result < 0)
        return result;
    result = verdict_copy(job->node, &place, sizeof place, 0, shmview_deadline(job->timeout_ns));
    if (result == 0 && job->member != 0)
        result = place_follow(job, name, spec, &place);
    result = agree_all(job, result);
    return result < 0 ? result : outcome;
}

static void free_job(struct shmview_mpi *job)
{
    if (!job->is_broken) {
        shmview_mpi_link_close(job->link);
        if (job->leaders != MPI_COMM_NULL)
            MPI_Comm_free(&job->leaders);
        if (job->node != MPI_COMM_NULL)
            MPI_Comm_free(&job->node);
        if (job->all != MPI_COMM_NULL)
            MPI_Comm_free(&job->all);
    }
    free(job->node_of);
    free(job->ranks);
    free(job->first);
    free(job->names);
    free(job->phases);
    free(job);
}

int shmview_mpi_open(MPI_Comm comm, struct shmview_connection *connection, const char *name,
                     const struct shmview_mpi_spec *spec, struct shmview_mpi **ret_job)
{
    int is_inter = 0;
    if (comm == MPI_COMM_NULL || MPI_Comm_test_inter(comm, &is_inter) != MPI_SUCCESS || is_inter)
        return text_fail(-SHMVIEW_ERR_INVALID, "the communicator is none, or an intercommunicator");
    struct shmview_mpi *job = calloc(1, sizeof *job);
    if (!job)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory for a job");
    job->all = job->node = job->leaders = MPI_COMM_NULL;
    job->connection = connection;
    job->failed_rank = -1;
    job->timeout_ns = spec && spec->struct_bytes >= sizeof *spec && spec->timeout_ns > 0
                          ? spec->timeout_ns
                          : JOB_TIMEOUT_NS;
    int result = divide(job, comm);
    if (result == 0)
        result = compare_specs(job, name, spec);
    if (result == 0)
        result = open_segments(job, name, spec);
    if (result < 0) {
        /* What this rank stores in the meantime must not replace the text of the failure. */
        char text[SHMVIEW_MPI_TEXT_BYTES];
        snprintf(text, sizeof text, "%s", text_last());
        place_leave(job, true);
        free_job(job);
        return text_fail(result, "%s", text);
    }
    *ret_job = job;
    return result;
}

int shmview_mpi_close(struct shmview_mpi *job)
{
    if (!job)
        return 0;
    int result = 0;
    if (!job->is_broken && !job->is_closing)
        result = agree_all(job, 0);
    job->is_closing = true; /* a call that returned _BUSY is repeated by this rank alone */
    /* A transfer that has failed may still write: the segment stays mapped until the process ends.
     */
    const int left = job->is_broken && job->member == 0 ? 0 : place_leave(job, false);
    if (left < 0)
        return left;
    free_job(job);
    return result;
}

int shmview_mpi_close_keeping(struct shmview_mpi *job, struct shmview_segment **ret_segment)
{
    if (!job)
        return text_fail(-SHMVIEW_ERR_INVALID, "there is no job");
    if (job->owns_connection)
        return text_fail(-SHMVIEW_ERR_INVALID, "the job has a connection of its own");
    int result = 0;
    if (!job->is_broken && !job->is_closing)
        result = agree_all(job, 0);
    const bool may_write = job->is_broken && job->member == 0;
    *ret_segment = may_write ? NULL : job->segment;
    job->segment = NULL;
    if (!may_write)
        place_leave(job, false);
    free_job(job);
    return result;
}

struct shmview_segment *shmview_mpi_segment(const struct shmview_mpi *job)
{
    return job->segment;
}

int shmview_mpi_is_leader(const struct shmview_mpi *job)
{
    return job->member == 0;
}

int shmview_mpi_nodes(const struct shmview_mpi *job)
{
    return job->n_nodes;
}

int shmview_mpi_node(const struct shmview_mpi *job, int rank)
{
    return rank < 0 || rank >= job->n_ranks ? -1 : job->node_of[rank];
}

int shmview_mpi_failed_rank(const struct shmview_mpi *job)
{
    return job->failed_rank;
}

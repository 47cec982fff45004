/* SPDX-License-Identifier: Apache-2.0 */
#include "place.h"

#include <shmview/describe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

/* Names of control areas that the leader tries. More than one is needed only if leaders in
 * different pid namespaces use one daemon. */
#define NAMES 1000

int place_fail(int error)
{
    char node[65] = "";
    if (gethostname(node, sizeof node - 1) < 0)
        snprintf(node, sizeof node, "?");
    return text_fail(error, "node %s: %s", node, text_last());
}

static uint32_t lifetime_of(const struct shmview_mpi_spec *spec)
{
    return spec->lifetime ? spec->lifetime : SHMVIEW_ATTACHED;
}

static int connect_leader(struct shmview_mpi *job)
{
    if (job->connection)
        return 0;
    int result = shmview_connect(NULL, 0, &job->connection);
    if (result < 0)
        return text_core(result, "the connection of the leader");
    job->owns_connection = true;
    return 0;
}

#define LABEL_BYTES 64
#define ID_BYTES    20

/* Writes how the batch system or the launcher calls the job. Anybody can set the environment, so
 * only printable ASCII is copied, and no more than fits. */
static void name_job(char *ret)
{
    static const char *const names[] = {"SLURM_JOB_ID",   "PBS_JOBID", "LSB_JOBID",
                                        "PMIX_NAMESPACE", "PMI_JOBID", "OMPI_MCA_ess_base_jobid"};
    const char *id = NULL;
    for (size_t i = 0; i < sizeof names / sizeof names[0] && !(id && id[0]); i++)
        id = getenv(names[i]);
    if (!id || !id[0]) {
        snprintf(ret, ID_BYTES, "of pid %ld", (long)getppid());
        return;
    }
    size_t n = 0;
    for (; id[n] && n < ID_BYTES - 1; n++)
        ret[n] = id[n] > ' ' && id[n] < '\177' ? id[n] : '?';
    ret[n] = '\0';
}

/* Writes the label of the segments that this rank creates. */
static void label_of(const struct shmview_mpi *job, char *ret)
{
    char id[ID_BYTES], node[65] = "", whole[ID_BYTES + sizeof node + 64] = "";
    name_job(id);
    if (gethostname(node, sizeof node - 1) < 0)
        snprintf(node, sizeof node, "?");
    snprintf(whole, sizeof whole, "MPI job %s, rank %d of %d on %s", id, job->rank, job->n_ranks,
             node);
    memcpy(ret, whole, LABEL_BYTES - 1); /* the end of a long name of a node is left out */
    ret[LABEL_BYTES - 1] = '\0';
}

/* Creates a segment with a label; or without, if the daemon is older than labels. */
static int create_labelled(struct shmview_mpi *job, const char *name, uint64_t bytes,
                           struct shmview_create_options *options,
                           struct shmview_segment **ret_segment)
{
    char label[LABEL_BYTES];
    label_of(job, label);
    options->label = label;
    int result = shmview_create(job->connection, name, bytes, options, ret_segment);
    options->label = NULL;
    return result == -SHMVIEW_ERR_INVALID
               ? shmview_create(job->connection, name, bytes, options, ret_segment)
               : result;
}

/* Creates the segment, or attaches the one that there is. */
static int create_or_adopt(struct shmview_mpi *job, const char *name,
                           const struct shmview_mpi_spec *spec)
{
    struct shmview_create_options options = {.struct_bytes = sizeof options,
                                             .lifetime = lifetime_of(spec)};
    int result = create_labelled(job, name, spec->size, &options, &job->segment);
    job->has_created = result == 0;
    if (result == -SHMVIEW_ERR_EXISTS)
        result = shmview_attach(job->connection, name, SHMVIEW_WRITE, 0, &job->segment);
    return result < 0 ? text_core(result, "the segment") : 0;
}

/* Compares a layout that an adopted segment has with the wanted one. */
static int compare_layout(struct shmview_mpi *job, const struct shmview_mpi_layout *layout)
{
    for (size_t i = 0; i < layout->n_views; i++) {
        struct shmview_view wanted, found;
        int result = shmview_view_make(job->segment, &layout->views[i], &wanted);
        if (result < 0)
            return text_core(result, "a view of the layouts");
        result = shmview_view_open(job->segment, layout->name, layout->views[i].name, &found);
        if (result < 0 && result != -SHMVIEW_ERR_NO_LAYOUT)
            return text_core(result, "a view of the segment");
        const size_t bytes = wanted.ndim * sizeof wanted.shape[0];
        if (result < 0 || wanted.data != found.data || wanted.ndim != found.ndim ||
            memcmp(wanted.shape, found.shape, bytes) != 0 ||
            strcmp(wanted.format, found.format) != 0 ||
            (wanted.nbytes && memcmp(wanted.strides, found.strides, bytes) != 0))
            return text_fail(-SHMVIEW_ERR_LAYOUT_EXISTS,
                             "segment '%s' has another layout '%s': view '%s' differs",
                             shmview_name(job->segment), layout->name, layout->views[i].name);
    }
    return 0;
}

static int declare(struct shmview_mpi *job, const struct shmview_mpi_spec *spec)
{
    for (size_t i = 0; i < spec->n_layouts; i++) {
        const struct shmview_mpi_layout *layout = &spec->layouts[i];
        int result = shmview_define(job->segment, layout->name, layout->views, layout->n_views);
        if (result == -SHMVIEW_ERR_LAYOUT_EXISTS)
            result = compare_layout(job, layout);
        else if (result < 0)
            text_core(result, "a layout of the segment");
        if (result < 0)
            return result;
    }
    return 0;
}

/* Compares the adopted segment. */
static int check_adopted(struct shmview_mpi *job, const struct shmview_mpi_spec *spec)
{
    const struct shmview_description *d;
    const char *name = shmview_name(job->segment);
    if (shmview_size(job->segment) != spec->size)
        return text_fail(-SHMVIEW_ERR_EXISTS, "segment '%s' exists with %llu bytes, not %llu", name,
                         (unsigned long long)shmview_size(job->segment),
                         (unsigned long long)spec->size);
    int result = shmview_describe(job->connection, name, &d);
    if (result < 0)
        return text_core(result, "the segment");
    if (!d->has_lock)
        result = text_fail(-SHMVIEW_ERR_EXISTS, "segment '%s' exists without a lock", name);
    else if (d->lifetime != lifetime_of(spec))
        result = text_fail(-SHMVIEW_ERR_EXISTS, "segment '%s' exists with another lifetime", name);
    shmview_description_free(d);
    return result;
}

/* Finds out whether the last owner has died inside, and leaves that as it is. */
static int ask_lock(struct shmview_mpi *job, int *ret_outcome)
{
    int result = shmview_lock_until(job->segment, shmview_deadline(job->timeout_ns));
    if (result < 0)
        return text_core(result, "the lock of the segment");
    *ret_outcome = result;
    result = result == SHMVIEW_OWNER_DIED ? shmview_unlock_not_repaired(job->segment)
                                          : shmview_unlock(job->segment);
    return result < 0 ? text_core(result, "the lock of the segment") : 0;
}

static int create_control(struct shmview_mpi *job, char *ret_name, size_t n)
{
    struct shmview_create_options options = {
        .struct_bytes = sizeof options, .lifetime = SHMVIEW_ATTACHED, .flags = SHMVIEW_NO_LOCK};
    const uint64_t bytes = control_bytes(job->n_members);
    int result = -SHMVIEW_ERR_EXISTS;
    for (int i = 0; i < NAMES && result == -SHMVIEW_ERR_EXISTS; i++) {
        snprintf(ret_name, n, "mpi.%ld.%d", (long)getpid(), i);
        result = create_labelled(job, ret_name, bytes, &options, &job->control_segment);
    }
    if (result < 0)
        return text_core(result, "the control area");
    job->control = shmview_data(job->control_segment);
    control_init(job->control, job->n_members);
    return control_enter(job);
}

int place_lead(struct shmview_mpi *job, const char *name, const struct shmview_mpi_spec *spec,
               struct place *ret_place)
{
    struct place place = {0};
    int result = connect_leader(job);
    if (result == 0)
        result = create_or_adopt(job, name, spec);
    if (result == 0 && !job->has_created)
        result = check_adopted(job, spec);
    if (result == 0)
        result = declare(job, spec);
    if (result == 0 && !job->has_created)
        result = ask_lock(job, &place.outcome);
    if (result == 0)
        result = create_control(job, place.control, sizeof place.control);
    if (result < 0) {
        place_fail(result);
        place_leave(job, true);
        return result;
    }
    snprintf(place.socket, sizeof place.socket, "%s", shmview_socket_path(job->connection));
    *ret_place = place;
    return 0;
}

/* Connects and attaches. */
static int follow(struct shmview_mpi *job, const char *name, const struct shmview_mpi_spec *spec,
                  const struct place *place)
{
    int result = 0;
    if (!job->connection) {
        result = shmview_connect(place->socket, SHMVIEW_CONNECT_NO_START, &job->connection);
        if (result < 0)
            return text_core(result, "the connection to the daemon of the leader");
        job->owns_connection = true;
    }
    result =
        shmview_attach(job->connection, place->control, SHMVIEW_WRITE, 0, &job->control_segment);
    if (result < 0)
        return text_core(result, "the control area of the leader");
    job->control = shmview_data(job->control_segment);
    result = control_check(job->control, shmview_size(job->control_segment), job->n_members);
    if (result == 0)
        result = control_enter(job);
    if (result < 0)
        return result;
    result = shmview_attach(job->connection, name, SHMVIEW_WRITE, 0, &job->segment);
    if (result < 0)
        return text_core(result, "the segment");
    /* Between the leader's look and this one another program may have replaced the segment. */
    return shmview_size(job->segment) == spec->size
               ? 0
               : text_fail(-SHMVIEW_ERR_EXISTS, "segment '%s' was replaced by another one", name);
}

int place_follow(struct shmview_mpi *job, const char *name, const struct shmview_mpi_spec *spec,
                 const struct place *place)
{
    int result = follow(job, name, spec, place);
    if (result < 0) {
        place_fail(result);
        place_leave(job, false);
    }
    return result;
}

int place_leave(struct shmview_mpi *job, bool undo)
{
    if (undo && job->has_created && job->segment)
        shmview_remove(job->connection, shmview_name(job->segment));
    int result = shmview_detach(job->segment);
    if (result < 0)
        return text_core(result, "the segment");
    shmview_detach(job->control_segment);
    job->segment = job->control_segment = NULL;
    job->control = NULL;
    if (job->owns_connection)
        shmview_disconnect(job->connection);
    job->connection = NULL;
    job->owns_connection = job->has_created = false;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "choice.h"

#include <pthread.h>
#include <shmview/error.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"
#include "text.h"

#define TRIAL_BYTES 262144
#define PIECE_BYTES 65536
#define N_ROUNDS    9
/* No round begins later than this after the first one of its class, because on a busy machine each
 * takes long. */
#define CLASS_SECONDS 0.02
/* Shorter runs are packed, because loads and stores copy them faster than any MPI. */
#define FIRST_CLASS 5
#define TRIAL_TAG   1
#define VERDICT_TAG 2

static pthread_mutex_t known_mutex = PTHREAD_MUTEX_INITIALIZER;
static struct choice known = {{FIRST_CLASS, FIRST_CLASS, FIRST_CLASS}};
static bool is_known; /* measured */

/* What one rank of a pair needs: elements with gaps and without, and two pieces. */
struct trial {
    MPI_Comm comm;
    int partner;
    bool sends;
    unsigned char *gaps, *flat, *pieces;
};

bool choice_packs(const struct choice *choice, enum choice_gaps gaps, uint64_t run)
{
    unsigned class = 0;
    while (class + 1 < CHOICE_CLASSES && run >> (class + 1))
        class ++;
    return class < choice->datatype_from[gaps];
}

static void trial_pieces(const struct trial *trial, const struct layout *layout)
{
    struct layout_cursor cursor = {0};
    MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
    for (size_t i = 0; i < TRIAL_BYTES / PIECE_BYTES + 2; i++) {
        unsigned char *piece = trial->pieces + i % 2 * PIECE_BYTES;
        bool is_over = i >= TRIAL_BYTES / PIECE_BYTES;
        MPI_Wait(&requests[i % 2], MPI_STATUS_IGNORE);
        if (trial->sends && !is_over) {
            layout_pack(layout, &cursor, piece, PIECE_BYTES);
            MPI_Isend(piece, PIECE_BYTES, MPI_BYTE, trial->partner, TRIAL_TAG, trial->comm,
                      &requests[i % 2]);
        } else if (!trial->sends) {
            if (i >= 2)
                layout_unpack(layout, &cursor, piece, PIECE_BYTES);
            if (!is_over)
                MPI_Irecv(piece, PIECE_BYTES, MPI_BYTE, trial->partner, TRIAL_TAG, trial->comm,
                          &requests[i % 2]);
        }
    }
}

/* Moves the elements once and returns the seconds until the receiver has them, on the sender. */
static double trial_once(const struct trial *trial, const struct layout *layout, MPI_Datatype type)
{
    char ready = 0;
    double begin;
    if (trial->sends) {
        MPI_Recv(&ready, 1, MPI_BYTE, trial->partner, VERDICT_TAG, trial->comm, MPI_STATUS_IGNORE);
        begin = MPI_Wtime();
        if (type == MPI_DATATYPE_NULL)
            trial_pieces(trial, layout);
        else
            MPI_Send(layout->data, type == MPI_BYTE ? TRIAL_BYTES : 1, type, trial->partner,
                     TRIAL_TAG, trial->comm);
        MPI_Recv(&ready, 1, MPI_BYTE, trial->partner, VERDICT_TAG, trial->comm, MPI_STATUS_IGNORE);
    } else {
        MPI_Send(&ready, 1, MPI_BYTE, trial->partner, VERDICT_TAG, trial->comm);
        begin = MPI_Wtime();
        if (type == MPI_DATATYPE_NULL)
            trial_pieces(trial, layout);
        else
            MPI_Recv(layout->data, type == MPI_BYTE ? TRIAL_BYTES : 1, type, trial->partner,
                     TRIAL_TAG, trial->comm, MPI_STATUS_IGNORE);
        MPI_Send(&ready, 1, MPI_BYTE, trial->partner, VERDICT_TAG, trial->comm);
    }
    return MPI_Wtime() - begin;
}

/* Whether another round begins. The sender decides, for both. */
static bool trial_goes_on(const struct trial *trial, int round, double begin)
{
    char more = round == 0 || (round < N_ROUNDS && MPI_Wtime() - begin < CLASS_SECONDS);
    if (trial->sends)
        MPI_Send(&more, 1, MPI_BYTE, trial->partner, VERDICT_TAG, trial->comm);
    else
        MPI_Recv(&more, 1, MPI_BYTE, trial->partner, VERDICT_TAG, trial->comm, MPI_STATUS_IGNORE);
    return more;
}

/* Makes the datatype of runs with gaps. */
static int trial_type(int64_t run, const struct layout_loop *loop, MPI_Datatype *ret_type)
{
    MPI_Datatype type = MPI_DATATYPE_NULL;
    int result = text_check(
        MPI_Type_create_hvector((int)loop->n, (int)run, (MPI_Aint)loop->stride, MPI_BYTE, &type),
        "a datatype");
    if (result < 0)
        return result;
    result = text_check(MPI_Type_commit(&type), "a datatype");
    if (result < 0)
        MPI_Type_free(&type);
    else
        *ret_type = type;
    return result;
}

/* Lets both ranks of a pair leave together. Returns 0 if both have 0; the error of this rank; or
 * PARTNER_FAILED. */
#define PARTNER_FAILED 1
static int trial_agree(const struct trial *trial, int result)
{
    char mine = result < 0, other = 0;
    MPI_Sendrecv(&mine, 1, MPI_BYTE, trial->partner, VERDICT_TAG, &other, 1, MPI_BYTE,
                 trial->partner, VERDICT_TAG, trial->comm, MPI_STATUS_IGNORE);
    return result == 0 && other ? PARTNER_FAILED : result;
}

/* Measures runs of one length both ways, and finds whether the datatype is better. On the sender.
 * Returns what trial_agree() does. */
static int trial_class(const struct trial *trial, enum choice_gaps gaps, unsigned class,
                       bool *ret_is_better)
{
    const int64_t run = (int64_t)1 << class;
    const struct layout_loop loop = {.n = TRIAL_BYTES / run, .stride = 2 * run};
    bool has_gaps = gaps == GAPS_BOTH || (gaps == GAPS_SEND) == trial->sends;
    struct layout layout = {.data = trial->flat, .n_bytes = TRIAL_BYTES, .run = TRIAL_BYTES};
    MPI_Datatype type = MPI_BYTE;
    int result = 0;
    if (has_gaps) {
        layout_of_loops(trial->gaps, (uint64_t)run, 1, &loop, &layout);
        result = trial_type(run, &loop, &type);
    }
    result = trial_agree(trial, result);
    if (result) {
        if (type != MPI_BYTE)
            MPI_Type_free(&type);
        return result;
    }
    double datatype = 1e9, packed = 1e9, begin = MPI_Wtime();
    for (int round = 0; trial_goes_on(trial, round, begin); round++) {
        double seconds = trial_once(trial, &layout, type);
        datatype = seconds < datatype ? seconds : datatype;
        seconds = trial_once(trial, &layout, MPI_DATATYPE_NULL);
        packed = seconds < packed ? seconds : packed;
    }
    if (has_gaps)
        MPI_Type_free(&type);
    *ret_is_better = datatype <= packed;
    return 0;
}

/* Finds by bisection from which class on datatypes are better, because they gain with the length of
 * the runs. Returns what trial_agree() does. */
static int trial_all(const struct trial *trial, struct choice *ret_choice)
{
    for (unsigned gaps = 0; gaps < N_GAPS; gaps++) {
        unsigned low = FIRST_CLASS, high = CHOICE_CLASSES;
        while (low < high) {
            bool is_better = false;
            unsigned class = (low + high) / 2;
            int result = trial_class(trial, (enum choice_gaps)gaps, class, &is_better);
            if (result)
                return result;
            char verdict = is_better;
            if (trial->sends)
                MPI_Send(&verdict, 1, MPI_BYTE, trial->partner, VERDICT_TAG, trial->comm);
            else
                MPI_Recv(&verdict, 1, MPI_BYTE, trial->partner, VERDICT_TAG, trial->comm,
                         MPI_STATUS_IGNORE);
            if (verdict)
                high = class;
            else
                low = class + 1;
        }
        ret_choice->datatype_from[gaps] = low;
    }
    return 0;
}

/* Measures with the neighbour of this rank. The last of an odd number of ranks has none. If one
 * rank fails, all fail. */
static int measure(MPI_Comm comm, struct choice *ret_choice)
{
    int me = 0, n = 0, result = 0;
    MPI_Comm_rank(comm, &me);
    MPI_Comm_size(comm, &n);
    unsigned char *memory = calloc(1, 3 * TRIAL_BYTES + 2 * PIECE_BYTES);
    struct choice mine = {0};
    unsigned sums[N_GAPS + 2] = {0}, all[N_GAPS + 2] = {0};
    struct trial trial = {.comm = comm, .partner = me ^ 1, .sends = me % 2 == 0, .gaps = memory};
    int has_memory = memory != NULL, all_have = 0;
    MPI_Allreduce(&has_memory, &all_have, 1, MPI_INT, MPI_MIN, comm);
    if (!memory || !all_have) {
        free(memory);
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "no memory to measure transfers");
    }
    trial.flat = memory + 2 * TRIAL_BYTES;
    trial.pieces = memory + 3 * TRIAL_BYTES;
    if (trial.partner < n)
        result = trial_all(&trial, &mine);
    free(memory);
    /* The mean of all pairs. */
    if (result == 0 && trial.partner < n && trial.sends) {
        memcpy(sums, mine.datatype_from, sizeof mine.datatype_from);
        sums[N_GAPS] = 1;
    }
    sums[N_GAPS + 1] = result < 0;
    MPI_Allreduce(sums, all, N_GAPS + 2, MPI_UNSIGNED, MPI_SUM, comm);
    if (all[N_GAPS + 1])
        return result < 0 ? result
                          : text_fail(-SHMVIEW_ERR_PEER, "another rank cannot measure transfers");
    for (int i = 0; i < N_GAPS && all[N_GAPS]; i++)
        ret_choice->datatype_from[i] = (all[i] + all[N_GAPS] / 2) / all[N_GAPS];
    return 0;
}

int choice_find(MPI_Comm comm, struct choice *ret_choice)
{
    int n = 0;
    MPI_Comm_size(comm, &n);
    pthread_mutex_lock(&known_mutex);
    int knows = is_known, all_know = 0;
    struct choice choice = known;
    pthread_mutex_unlock(&known_mutex);
    /* One rank alone has nobody to measure with, and sends no message. */
    if (n == 1) {
        *ret_choice = choice;
        return 0;
    }
    int result = text_check(MPI_Allreduce(&knows, &all_know, 1, MPI_INT, MPI_MIN, comm), "a link");
    if (result == 0 && !all_know)
        result = measure(comm, &choice);
    if (result == 0)
        result = text_check(MPI_Bcast(&choice, sizeof choice, MPI_BYTE, 0, comm), "a link");
    if (result < 0)
        return result;
    pthread_mutex_lock(&known_mutex);
    known = choice;
    is_known = true;
    pthread_mutex_unlock(&known_mutex);
    *ret_choice = choice;
    return 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
/* ranks: 2. Every format, number of dimensions and kind of strides, on both sides: what arrives by
 * datatype, and by each way of a transfer, is what MPI sends element by element. */
#include <mpi.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support_ranks.h"
#include "support_views.h"

static const struct format {
    const char *text;
    unsigned gap_begin, gap_end; /* bytes of padding, which datatypes leave out */
} formats[] = {
    {"b", 0, 0},
    {"B", 0, 0},
    {"h", 0, 0},
    {"H", 0, 0},
    {"i", 0, 0},
    {"I", 0, 0},
    {"q", 0, 0},
    {"Q", 0, 0},
    {"e", 0, 0},
    {"f", 0, 0},
    {"d", 0, 0},
    {"Zf", 0, 0},
    {"Zd", 0, 0},
    {"g", 10, 16},
    {"?", 0, 0},
    {"c", 0, 0},
    {"P", 0, 0},
    {"5s", 0, 0},
    {"7p", 0, 0},
    {"bfloat16", 0, 0},
    {"float8_e4m3fn", 0, 0},
    {"float8_e5m2", 0, 0},
    {">i", 0, 0},
    {">d", 0, 0},
    {">Zf", 0, 0},
    {"3h", 0, 0},
    {"(2,3)f", 0, 0},
    {"T{i:a:i:b:}", 0, 0},
    {"T{b:a:i:b:}", 1, 4},
    {"T{d:a:T{2h:x:f:y:}:b:}", 0, 0},
    {"(2)T{i:a:T{hh}:c:}", 0, 0},
    {"^T{b:a:d:b:>h:c:}", 0, 0},
    {"T{5s:name:3x(2)f:at:}", 5, 8},
};
#define N_FORMATS (sizeof formats / sizeof *formats)

static const struct shape {
    uint32_t ndim;
    int64_t shape[SHMVIEW_MAX_NDIM];
} shapes[] = {
    {0, {0}},    {1, {7}},       {1, {0}},       {1, {1}},          {2, {3, 5}},
    {2, {4, 1}}, {3, {2, 3, 4}}, {3, {2, 0, 4}}, {4, {2, 1, 3, 2}}, {8, {2, 1, 2, 1, 2, 1, 2, 3}},
};
/* More than two pieces, and no whole number of them. */
static const struct shape long_shapes[] = {{1, {23011}}, {2, {211, 109}}, {3, {31, 29, 27}}};

static struct shmview_mpi_link *link_;

static int64_t soon(void)
{
    return shmview_deadline(20000000000);
}

/* The elements that plain MPI has brought, against those of the view. */
static void compare(const struct made_view *made, const struct format *format, int from, int to,
                    int way)
{
    unsigned char *elements = made_view_elements(made);
    unsigned char *plain = malloc(made->view.nbytes + 1);
    CHECK(plain);
    MPI_Recv(plain, (int)made->view.nbytes, MPI_BYTE, 0, 9, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    for (uint64_t i = 0; i < made->view.nbytes; i++) {
        uint64_t at = i % made->view.itemsize;
        if ((at >= format->gap_begin && at < format->gap_end) || elements[i] == plain[i])
            continue;
        char text[128];
        snprintf(text, sizeof text, "'%s' in %u dimensions, strides %d to %d, way %d: byte %llu",
                 format->text, made->view.ndim, from, to, way, (unsigned long long)i);
        ranks_failed(__FILE__, __LINE__, text);
    }
    CHECK(made_view_is_clean(made));
    free(plain);
    free(elements);
}

/* Sends once by way 0 (datatype of the caller) or by a transfer of the carry way - 1. */
static void try_way(const struct made_view *made, int way)
{
    const struct shmview_view *view = &made->view;
    int sends = ranks_me() == 0;
    if (way == 0) {
        MPI_Datatype type;
        OK(shmview_mpi_type(link_, view, &type));
        if (sends)
            MPI_Send(view->data, 1, type, 1, 8, MPI_COMM_WORLD);
        else
            MPI_Recv(view->data, 1, type, 0, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        return;
    }
    OK(shmview_mpi_link_carry(link_, (enum shmview_mpi_carry)(way - 1)));
    if (sends)
        OK(shmview_mpi_send(link_, view, 1, soon()));
    else
        OK(shmview_mpi_receive(link_, view, 0, soon()));
}

static void try_pair(const struct format *format, const struct shape *shape, int from, int to,
                     int way)
{
    struct made_view made;
    made_view_init(&made, format->text, shape->ndim, shape->shape,
                   (enum strides)(ranks_me() == 0 ? from : to));
    if (ranks_me() == 0) {
        made_view_number(&made, (unsigned)(from * 7 + to + way), format->gap_begin,
                         format->gap_end);
        try_way(&made, way);
        unsigned char *elements = made_view_elements(&made);
        MPI_Send(elements, (int)made.view.nbytes, MPI_BYTE, 1, 9, MPI_COMM_WORLD);
        free(elements);
    } else {
        try_way(&made, way);
        compare(&made, format, from, to, way);
    }
    made_view_deinit(&made);
}

static void try_types_are_shared(void)
{
    const int64_t shape[] = {3, 4};
    struct made_view a, b, c;
    made_view_init(&a, "f", 2, shape, STRIDES_STEPPED);
    made_view_init(&b, "float32", 2, shape, STRIDES_STEPPED);
    made_view_init(&c, "i", 2, shape, STRIDES_STEPPED);
    MPI_Datatype of_a, of_b, of_c;
    OK(shmview_mpi_type(link_, &a.view, &of_a));
    OK(shmview_mpi_type(link_, &b.view, &of_b));
    OK(shmview_mpi_type(link_, &c.view, &of_c));
    CHECK(of_a == of_b);
    CHECK(of_a != of_c);
    int size = 0;
    MPI_Type_size(of_a, &size);
    CHECK(size == 48);
    made_view_deinit(&a);
    made_view_deinit(&b);
    made_view_deinit(&c);
}

int main(int argc, char **argv)
{
    ranks_begin(&argc, &argv);
    OK(shmview_mpi_link_open(MPI_COMM_WORLD, &link_));
    try_types_are_shared();
    for (size_t f = 0; f < N_FORMATS; f++)
        for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
            for (int from = 0; from < N_STRIDES; from++)
                for (int to = 0; to < N_STRIDES; to++)
                    for (int way = 0; way < 4; way++)
                        try_pair(&formats[f], &shapes[s], from, to, way);
    for (size_t s = 0; s < sizeof long_shapes / sizeof *long_shapes; s++)
        for (int from = 0; from < N_STRIDES; from++)
            for (int to = 0; to < N_STRIDES; to++)
                for (int way = 0; way < 4; way++)
                    try_pair(&formats[((size_t)(from * N_STRIDES + to) * 4 + (size_t)way + s) %
                                      N_FORMATS],
                             &long_shapes[s], from, to, way);
    OK(shmview_mpi_link_close(link_));
    return ranks_end();
}

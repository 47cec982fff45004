/* SPDX-License-Identifier: Apache-2.0 */
#include "operation.h"

#include <limits.h>
#include <shmview/mpi.h>
#include <stdio.h>
#include <string.h>

#include "text.h"

/* Kinds of elements, and the kinds that an operation of MPI is defined for. */
enum {
    INTEGER = 1,
    REAL = 2,
    LOGICAL = 4,
    COMPLEX = 8,
    PAIR = 16,
};

struct number {
    MPI_Datatype type;
    const char *format; /* native; NULL: that of the view */
    unsigned kind;
};

/* Datatypes are no constants in every MPI, so that a table cannot hold them. */
static struct number number_of(uint32_t dtype)
{
    switch (dtype & ~(uint32_t)SHMVIEW_SWAPPED) {
    case SHMVIEW_INT8:
        return (struct number){MPI_INT8_T, "b", INTEGER};
    case SHMVIEW_UINT8:
        return (struct number){MPI_UINT8_T, "B", INTEGER};
    case SHMVIEW_INT16:
        return (struct number){MPI_INT16_T, "h", INTEGER};
    case SHMVIEW_UINT16:
        return (struct number){MPI_UINT16_T, "H", INTEGER};
    case SHMVIEW_INT32:
        return (struct number){MPI_INT32_T, "i", INTEGER};
    case SHMVIEW_UINT32:
        return (struct number){MPI_UINT32_T, "I", INTEGER};
    case SHMVIEW_INT64:
        return (struct number){MPI_INT64_T, "q", INTEGER};
    case SHMVIEW_UINT64:
        return (struct number){MPI_UINT64_T, "Q", INTEGER};
    case SHMVIEW_FLOAT32:
        return (struct number){MPI_FLOAT, "f", REAL};
    case SHMVIEW_FLOAT64:
        return (struct number){MPI_DOUBLE, "d", REAL};
    case SHMVIEW_LONGDOUBLE:
        return (struct number){MPI_LONG_DOUBLE, "g", REAL};
    case SHMVIEW_COMPLEX64:
        return (struct number){MPI_C_FLOAT_COMPLEX, "Zf", COMPLEX};
    case SHMVIEW_COMPLEX128:
        return (struct number){MPI_C_DOUBLE_COMPLEX, "Zd", COMPLEX};
    case SHMVIEW_BOOL:
        return (struct number){MPI_C_BOOL, "?", LOGICAL};
    default:
        return (struct number){MPI_DATATYPE_NULL, NULL, 0};
    }
}

/* MPI's pairs of a number and an int, which lie as a struct of C. */
static MPI_Datatype pair_of(const struct shmview_view *view)
{
    struct shmview_format format;
    struct shmview_component all[3], *parts = all;
    memset(all, 0, sizeof all);
    if (shmview_format_parse(view->format, &format, all, 3) < 0 || format.n_components > 3)
        return MPI_DATATYPE_NULL;
    /* The struct itself may be a part; then the number, and the index. */
    uint32_t n = format.n_components;
    if (n > 0 && parts[0].dtype == SHMVIEW_STRUCT)
        parts++, n--;
    if (n != 2 || parts[0].repeat != 1 || parts[1].repeat != 1 || parts[0].offset != 0 ||
        parts[1].dtype != SHMVIEW_INT32)
        return MPI_DATATYPE_NULL;
    static const struct {
        uint32_t dtype, at, bytes;
        int which;
    } pairs[] = {{SHMVIEW_FLOAT32, 4, 8, 0}, {SHMVIEW_FLOAT64, 8, 16, 1},
                 {SHMVIEW_INT32, 4, 8, 2},   {SHMVIEW_INT16, 4, 8, 3},
                 {SHMVIEW_INT64, 8, 16, 4},  {SHMVIEW_LONGDOUBLE, 16, 32, 5}};
    const MPI_Datatype types[] = {MPI_FLOAT_INT, MPI_DOUBLE_INT, MPI_2INT,
                                  MPI_SHORT_INT, MPI_LONG_INT,   MPI_LONG_DOUBLE_INT};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        if (parts[0].dtype == pairs[i].dtype && parts[1].offset == pairs[i].at &&
            view->itemsize == pairs[i].bytes)
            return types[pairs[i].which];
    return MPI_DATATYPE_NULL;
}

/* Returns the number of an operation of MPI, from 1 on, and sets the kinds of elements that it is
 * defined for; or returns 0 for one of the program. */
static uint32_t find_known(MPI_Op op, unsigned *ret_kinds)
{
    const struct {
        MPI_Op op;
        unsigned kinds;
    } known[] = {{MPI_MAX, INTEGER | REAL},
                 {MPI_MIN, INTEGER | REAL},
                 {MPI_SUM, INTEGER | REAL | COMPLEX},
                 {MPI_PROD, INTEGER | REAL | COMPLEX},
                 {MPI_LAND, INTEGER | LOGICAL},
                 {MPI_LOR, INTEGER | LOGICAL},
                 {MPI_LXOR, INTEGER | LOGICAL},
                 {MPI_BAND, INTEGER},
                 {MPI_BOR, INTEGER},
                 {MPI_BXOR, INTEGER},
                 {MPI_MINLOC, PAIR},
                 {MPI_MAXLOC, PAIR}};
    for (uint32_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (op == known[i].op) {
            *ret_kinds = known[i].kinds;
            return i + 1;
        }
    return 0;
}

int operation_init(struct operation *ret, MPI_Op op, const struct shmview_view *view)
{
    struct operation o = {.op = op, .type = MPI_DATATYPE_NULL, .itemsize = view->itemsize};
    if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP)
        return text_fail(-SHMVIEW_ERR_INVALID, "the operation does not combine elements");
    struct number number = number_of(view->dtype);
    unsigned kinds = 0;
    const uint32_t known = find_known(op, &kinds);
    if (kinds & PAIR && view->dtype == SHMVIEW_STRUCT) {
        number.type = pair_of(view);
        number.kind = number.type == MPI_DATATYPE_NULL ? 0 : PAIR;
    }
    if (kinds && !(kinds & number.kind))
        return text_fail(-SHMVIEW_ERR_CONVERSION, "MPI does not define this operation for '%s'",
                         view->format);
    int commutes = 0;
    int result = text_check(MPI_Op_commutative(op, &commutes), "the operation");
    if (result < 0)
        return result;
    o.commutes = commutes != 0;
    o.identity = 2 * known + o.commutes;
    o.type = number.type;
    snprintf(o.format, sizeof o.format, "%s", number.format ? number.format : view->format);
    if (o.type == MPI_DATATYPE_NULL) {
        result = text_check(MPI_Type_contiguous((int)view->itemsize, MPI_BYTE, &o.type),
                            "the type of the elements");
        if (result == 0)
            result = text_check(MPI_Type_commit(&o.type), "the type of the elements");
        if (result < 0)
            return result;
        o.owns_type = true;
    }
    *ret = o;
    return 0;
}

void operation_deinit(struct operation *operation)
{
    if (operation->owns_type)
        MPI_Type_free(&operation->type);
    operation->owns_type = false;
}

int operation_apply(const struct operation *operation, const void *in, void *inout, uint64_t n)
{
    int result = 0;
    for (uint64_t done = 0; done < n && result == 0;) {
        const uint64_t most = 1 << 30, now = n - done < most ? n - done : most;
        const uint64_t at = done * operation->itemsize;
        result = text_check(MPI_Reduce_local((const char *)in + at, (char *)inout + at, (int)now,
                                             operation->type, operation->op),
                            "the operation");
        done += now;
    }
    return result;
}

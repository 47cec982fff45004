/* SPDX-License-Identifier: Apache-2.0 */
/* DLPack's structs, version 1.1 (github.com/dmlc/dlpack).
 *
 * The library declares them by itself, because it should not need another package to build. DLPack
 * promises their layout for all versions 1.x; the assertions below compare ours with it. */
#ifndef CLIENT_DLPACK_H
#define CLIENT_DLPACK_H

#include <stddef.h>
#include <stdint.h>

/* The version that exported tensors state. An importer judges by the major number alone. */
#define DLPACK_MAJOR 1
#define DLPACK_MINOR 1

#define DLPACK_CPU       1    /* device type of memory that a plain pointer can reach */
#define DLPACK_READ_ONLY 0x1u /* flag of the versioned form */

/* Classes of element types. With the bits of an element a class names one type. */
enum dlpack_code {
    DLPACK_INT = 0,
    DLPACK_UINT = 1,
    DLPACK_FLOAT = 2,
    DLPACK_BFLOAT = 4,
    DLPACK_COMPLEX = 5,
    DLPACK_BOOL = 6,
    DLPACK_FLOAT8_E3M4 = 7,
    DLPACK_FLOAT8_E4M3 = 8,
    DLPACK_FLOAT8_E4M3B11FNUZ = 9,
    DLPACK_FLOAT8_E4M3FN = 10,
    DLPACK_FLOAT8_E4M3FNUZ = 11,
    DLPACK_FLOAT8_E5M2 = 12,
    DLPACK_FLOAT8_E5M2FNUZ = 13,
    DLPACK_FLOAT8_E8M0FNU = 14,
};

/* An element type. More than one lane is a vector, which no view has. */
struct dlpack_type {
    uint8_t code; /* enum dlpack_code */
    uint8_t bits;
    uint16_t lanes;
};

/* A tensor. The pointers belong to the exporter and are valid until it is deleted. */
struct dlpack_tensor {
    void *data;
    int32_t device_type;
    int32_t device_id;
    int32_t ndim;
    struct dlpack_type type;
    int64_t *shape;
    int64_t *strides;     /* in elements; NULL: C order without gaps */
    uint64_t byte_offset; /* from data to element [0, ..., 0] */
};

/* The form before DLPack 1.0, and below it that of 1.x, which adds a version and flags. These names
 * are DLPack's, because shmview/view.h declares them. The consumer must call deleter once. */
struct DLManagedTensor {
    struct dlpack_tensor tensor;
    void *owner;                                   /* the exporter's */
    void (*deleter)(struct DLManagedTensor *self); /* NULL: nothing to do */
};

struct DLManagedTensorVersioned {
    uint32_t major;
    uint32_t minor;
    void *owner;
    void (*deleter)(struct DLManagedTensorVersioned *self);
    uint64_t flags;
    struct dlpack_tensor tensor;
};

#define DLPACK_AT(type, member, offset)                                                            \
    _Static_assert(offsetof(struct type, member) == (offset), #type "." #member)

_Static_assert(sizeof(struct dlpack_type) == 4, "type");
#if UINTPTR_MAX == UINT64_MAX
_Static_assert(sizeof(struct dlpack_tensor) == 48, "tensor");
DLPACK_AT(dlpack_tensor, device_type, 8);
DLPACK_AT(dlpack_tensor, device_id, 12);
DLPACK_AT(dlpack_tensor, ndim, 16);
DLPACK_AT(dlpack_tensor, type, 20);
DLPACK_AT(dlpack_tensor, shape, 24);
DLPACK_AT(dlpack_tensor, strides, 32);
DLPACK_AT(dlpack_tensor, byte_offset, 40);
_Static_assert(sizeof(struct DLManagedTensor) == 64, "old form");
DLPACK_AT(DLManagedTensor, owner, 48);
DLPACK_AT(DLManagedTensor, deleter, 56);
_Static_assert(sizeof(struct DLManagedTensorVersioned) == 80, "versioned form");
DLPACK_AT(DLManagedTensorVersioned, owner, 8);
DLPACK_AT(DLManagedTensorVersioned, deleter, 16);
DLPACK_AT(DLManagedTensorVersioned, flags, 24);
DLPACK_AT(DLManagedTensorVersioned, tensor, 32);
#endif

#endif

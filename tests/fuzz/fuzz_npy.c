/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the bytes as the beginning of an .npy file. From an accepted header a view can be made, and
 * writing and reading it again must give the same header. A refusal must have a text. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <shmview/view.h>

#include "cli/data/npy.h"
#include "fuzz.h"

#define REQUIRE(condition)                                                                         \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The text must have a few printable lines and no control sequence for a terminal. */
static void check_said(const struct problem *problem)
{
    REQUIRE(problem->text[0]);
    for (const char *p = problem->text; *p; p++)
        REQUIRE((unsigned char)*p >= ' ' || *p == '\n');
}

static void check(const struct npy *npy)
{
    struct shmview_format format;
    struct problem problem = {""};
    struct npy again;
    unsigned char *header;
    size_t bytes, told;
    uint64_t nbytes = npy->itemsize;
    REQUIRE(shmview_format_parse(npy->format, &format, NULL, 0) == 0);
    REQUIRE(strcmp(format.text, npy->format) == 0 && format.itemsize == npy->itemsize);
    REQUIRE(npy->ndim <= SHMVIEW_MAX_NDIM);
    for (uint32_t d = 0; d < npy->ndim; d++)
        REQUIRE(npy->shape[d] >= 0);
    for (uint32_t d = 0; d < npy->ndim; d++)
        nbytes *= (uint64_t)npy->shape[d];
    REQUIRE(nbytes == npy->nbytes && nbytes <= INT64_MAX);
    if (npy_write(npy, &header, &bytes, &problem)) {
        check_said(&problem); /* the description is too long */
        return;
    }
    REQUIRE(bytes % 64 == 0);
    REQUIRE(npy_header_bytes(header, NPY_PREFIX_BYTES, &told, &problem) == 0 && told == bytes);
    REQUIRE(npy_read(header, bytes, &again, &problem) == 0);
    REQUIRE(again.fortran_order == npy->fortran_order && again.ndim == npy->ndim);
    REQUIRE(memcmp(again.shape, npy->shape, npy->ndim * sizeof npy->shape[0]) == 0);
    REQUIRE(again.nbytes == npy->nbytes && again.itemsize == npy->itemsize);
    free(header);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct problem problem = {""};
    struct npy npy;
    size_t bytes;
    if (npy_header_bytes(data, size < NPY_PREFIX_BYTES ? size : NPY_PREFIX_BYTES, &bytes,
                         &problem)) {
        check_said(&problem);
        return 0;
    }
    REQUIRE(bytes >= NPY_PREFIX_BYTES && bytes <= NPY_PREFIX_BYTES + NPY_HEADER_LIMIT);
    if (bytes > size)
        return 0;
    if (npy_read(data, bytes, &npy, &problem))
        check_said(&problem);
    else
        check(&npy);
    return 0;
}

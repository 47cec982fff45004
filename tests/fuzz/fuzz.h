/* SPDX-License-Identifier: Apache-2.0 */
/* The entry point of every fuzz target, as libFuzzer calls it. */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Aborts if the library mishandles these bytes. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of element.h as real symbols, for languages that cannot inline C. */
#define SHMVIEW_INLINE extern inline
#include <shmview/element.h>

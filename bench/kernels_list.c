/* SPDX-License-Identifier: Apache-2.0 */
#include "kernels.h"

#define TEXT(level)    #level
#define TEXT_OF(level) TEXT(level)

const struct kernels KERNEL(kernels) = {.level = TEXT_OF(LEVEL),
#define X(type, name, parameters) .name = KERNEL(name),
                                        KERNEL_LIST(X)
#undef X
};

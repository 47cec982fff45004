/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses between the kernels for any processor and those for AVX2, at each call on a whole view.
 */
#include "client/whole/kernels.h"

#if defined __x86_64__

static bool has_avx2(void)
{
    return __builtin_cpu_supports("avx2");
}

struct kernel_conversion kernel_to_convert(uint32_t to, uint32_t from)
{
    struct kernel_conversion k = {0};
    if (has_avx2())
        k = kernel_to_convert_avx2(to, from);
    return k.run ? k : kernel_to_convert_plain(to, from);
}

kernel_differ *kernel_to_compare(uint32_t a, uint32_t b)
{
    return has_avx2() ? kernel_to_compare_avx2(a, b) : kernel_to_compare_plain(a, b);
}

kernel_sum *kernel_to_sum(uint32_t dtype)
{
    return has_avx2() ? kernel_to_sum_avx2(dtype) : kernel_to_sum_plain(dtype);
}

#else

struct kernel_conversion kernel_to_convert(uint32_t to, uint32_t from)
{
    return kernel_to_convert_plain(to, from);
}

kernel_differ *kernel_to_compare(uint32_t a, uint32_t b)
{
    return kernel_to_compare_plain(a, b);
}

kernel_sum *kernel_to_sum(uint32_t dtype)
{
    return kernel_to_sum_plain(dtype);
}

#endif

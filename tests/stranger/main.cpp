/* SPDX-License-Identifier: Apache-2.0 */
/* Like main.c, but in C++. */
#include <cstdio>

#include <shmview/shmview.hpp>

int main()
{
    shmview::connection none;
    std::printf("%s %s\n", shmview_version(), shmview_strerror(SHMVIEW_ERR_NOT_FOUND));
    return none.close();
}

/* SPDX-License-Identifier: Apache-2.0 */
/* A program that is built with the installed headers and library only. Prints the version and
 * the text of an error. */
#include <stdio.h>

#include <shmview/shmview.h>

int main(void)
{
    printf("%s %s\n", shmview_version(), shmview_strerror(SHMVIEW_ERR_NOT_FOUND));
    return shmview_disconnect(NULL);
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "text.h"

#include <mpi.h>
#include <shmview/mpi.h>
#include <stdarg.h>
#include <stdio.h>

static _Thread_local char text[SHMVIEW_MPI_TEXT_BYTES];

int text_fail(int error, const char *format, ...)
{
    /* An argument may be the text that is replaced. */
    char made[sizeof text];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(made, sizeof made, format, arguments);
    va_end(arguments);
    snprintf(text, sizeof text, "%s", made);
    return error;
}

int text_core(int error, const char *doing)
{
    return text_fail(error, "%s: %s", doing, shmview_error_text());
}

int text_check(int result, const char *doing)
{
    if (result == MPI_SUCCESS)
        return 0;
    char reason[MPI_MAX_ERROR_STRING] = "";
    int length = 0, class = MPI_ERR_OTHER;
    if (MPI_Error_string(result, reason, &length) != MPI_SUCCESS)
        snprintf(reason, sizeof reason, "error %d", result);
    if (MPI_Error_class(result, &class) == MPI_SUCCESS && class == MPI_ERR_NO_MEM)
        return text_fail(-SHMVIEW_ERR_NO_MEMORY, "%s: %s", doing, reason);
    return text_fail(-SHMVIEW_ERR_PEER, "%s: %s", doing, reason);
}

const char *text_last(void)
{
    return text;
}

const char *shmview_mpi_error_text(void)
{
    return text;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "client/private.h"

static __thread char error_text[512];

int fail(int error, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(error_text, sizeof error_text, format, ap);
    va_end(ap);
    return -error;
}

int fail_errno(const char *what, int error_number)
{
    char buffer[128];
    return fail(error_number == ENOMEM ? SHMVIEW_ERR_NO_MEMORY : SHMVIEW_ERR_SYSTEM, "%s: %s", what,
                strerror_r(error_number, buffer, sizeof buffer));
}

const char *shmview_error_text(void)
{
    return error_text;
}

const char *shmview_strerror(int error)
{
    switch (error < 0 ? -error : error) {
#define X(name, value, wire, text)                                                                 \
    case SHMVIEW_ERR_##name:                                                                       \
        return text;
        SHMVIEW_ERROR_LIST(X)
#undef X
    case 0:
        return "success";
    default:
        return "unknown error";
    }
}

const char *shmview_version(void)
{
    return SHMVIEW_VERSION;
}

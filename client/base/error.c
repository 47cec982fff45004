/* SPDX-License-Identifier: Apache-2.0 */
#include "client/base/error.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/base/limits.h"
#include "common/base/name.h"
#include "common/views/view.h"
#include "common/wire/wire.h"

/* A thread-specific key and no thread-local storage, because a library that is loaded late gets
 * little of the latter. */
static pthread_key_t text_key;
static bool text_key_made;

/* The text of a thread for whose text there was no memory. It is not written and not freed. */
static const char no_memory[] = "out of memory, also for the text of the error";

static void free_text(void *text)
{
    if (text != no_memory)
        free(text);
}

static void make_text_key(void)
{
    text_key_made = pthread_key_create(&text_key, free_text) == 0;
}

/* Returns the text of this thread, or NULL. With make it allocates one if there is none. */
static char *find_text(bool make)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_text_key);
    char *text = text_key_made ? pthread_getspecific(text_key) : NULL;
    if ((text && text != no_memory) || !make || !text_key_made)
        return text;
    text = malloc(ERROR_TEXT_BYTES);
    if (pthread_setspecific(text_key, text ? text : no_memory)) {
        free(text);
        text = NULL;
    }
    return text;
}

void set_error_text(const char *format, ...)
{
    char *text = find_text(true);
    va_list ap;
    va_start(ap, format);
    if (text)
        vsnprintf(text, ERROR_TEXT_BYTES, format, ap);
    va_end(ap);
}

int fail_errno(const char *what, int error_number)
{
    char reason[128];
    errno = error_number;
    snprintf(reason, sizeof reason, "%m"); /* strerror_r() differs between C libraries */
    return fail(error_number == ENOMEM ? SHMVIEW_ERR_NO_MEMORY : SHMVIEW_ERR_SYSTEM, "%s: %s", what,
                reason);
}

int fail_reply(const struct wire_fault *fault)
{
    if (fault->no_memory)
        return fail(SHMVIEW_ERR_NO_MEMORY, "out of memory");
    return fail(SHMVIEW_ERR_PROTOCOL, "the daemon's reply: %s %s", fault->parameter, fault->reason);
}

int fail_view(const char *name, const struct view_fault *fault)
{
    if (name)
        return fail((int)fault->error, "view '%s': %s", name, fault->text);
    return fail((int)fault->error, "%s", fault->text);
}

int check_segment_name(const char *name)
{
    if (name && name_is_valid(name, LIMIT_NAME_BYTES))
        return 0;
    return fail(
        SHMVIEW_ERR_INVALID,
        "'%.130s' is not a valid name for a segment: 1 to %d of A-Z a-z 0-9 . _ -, no dot in front",
        name ? name : "(null)", LIMIT_NAME_BYTES);
}

const char *shmview_error_text(void)
{
    const char *text = find_text(false);
    return text ? text : "";
}

const char *shmview_strerror(int error)
{
    switch (error < 0 ? -(unsigned)error : (unsigned)error) {
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

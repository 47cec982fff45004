/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: each thread has the text of its last one, which shmview_error_text() returns.
 *
 * A function that fails sets the text and returns the negative code in one call of fail(), so that
 * the two always belong together. */
#ifndef CLIENT_ERROR_H
#define CLIENT_ERROR_H

#include <shmview/shmview.h>

#pragma GCC visibility push(hidden)

struct view_fault;
struct wire_fault;

#define ERROR_TEXT_BYTES 512
/* Sets the text of the calling thread; longer texts are cut. */
__attribute__((format(printf, 1, 2))) void set_error_text(const char *format, ...);
/* Sets the text and returns -error. A macro, so that compilers and analyzers see that the result is
 * an error, and that the caller's out parameters are not set. */
#define fail(error, ...) (set_error_text(__VA_ARGS__), -(int)(error))
/* Like fail(), for a failed system call. Returns -SHMVIEW_ERR_SYSTEM, or _NO_MEMORY for ENOMEM. */
int fail_errno(const char *what, int error_number);
/* Like fail(), for a reply that cannot be read. Returns -SHMVIEW_ERR_PROTOCOL, or _NO_MEMORY. */
int fail_reply(const struct wire_fault *fault);
/* Like fail(), for a view that was refused. The text has its name, unless name is NULL. */
int fail_view(const char *name, const struct view_fault *fault);
/* Checks the name of a segment before it is sent, because a request cannot have text that is not
 * UTF-8. Returns 0 or an error. */
int check_segment_name(const char *name);

#pragma GCC visibility pop

#endif

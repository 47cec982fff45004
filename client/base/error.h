/* SPDX-License-Identifier: Apache-2.0 */
/* Errors: the text that shmview_error_text() returns, one for each thread. */
#ifndef CLIENT_ERROR_H
#define CLIENT_ERROR_H

#include <shmview/shmview.h>

#pragma GCC visibility push(hidden)

struct view_fault;
struct wire_fault;

#define ERROR_TEXT_BYTES 512
/* Keeps the text for shmview_error_text(). Returns -error. */
__attribute__((format(printf, 2, 3))) int fail(int error, const char *format, ...);
/* Like fail(), for a system call: SHMVIEW_ERR_SYSTEM, or _NO_MEMORY for ENOMEM. */
int fail_errno(const char *what, int error_number);
/* Like fail() for a reply that cannot be read: SHMVIEW_ERR_PROTOCOL, or _NO_MEMORY. */
int fail_reply(const struct wire_fault *fault);
/* Like fail() for a view, called name if that is not NULL. */
int fail_view(const char *name, const struct view_fault *fault);
/* Returns 0, or the error if name cannot be a segment's: text that is not UTF-8 cannot be sent. */
int check_segment_name(const char *name);

#pragma GCC visibility pop

#endif

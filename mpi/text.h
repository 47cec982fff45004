/* SPDX-License-Identifier: Apache-2.0 */
/* The text of the last failure of a thread, and errors of MPI as errors of shmview. */
#ifndef MPI_TEXT_H
#define MPI_TEXT_H

/* Stores the text of a failure for shmview_mpi_error_text(), and returns error, a negated
 * SHMVIEW_ERR_*. */
int text_fail(int error, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Like text_fail(), for a call of libshmview that has returned error: the text is "doing: " and
 * shmview_error_text(). */
int text_core(int error, const char *doing);

/* Returns 0 if result is MPI_SUCCESS. Otherwise stores "doing: " with the text of MPI, and returns
 * -SHMVIEW_ERR_NO_MEMORY, or -SHMVIEW_ERR_PEER for every other error of MPI. */
int text_check(int result, const char *doing);

/* The text that was stored last, never NULL. */
const char *text_last(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Lines on standard error; with priorities when the journal reads them. */
#ifndef DAEMON_LOG_H
#define DAEMON_LOG_H

/* Looks once whether the journal reads standard error ($JOURNAL_STREAM). */
void log_init(void);

__attribute__((format(printf, 1, 2))) void log_info(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_warning(const char *format, ...);
__attribute__((format(printf, 1, 2))) void log_error(const char *format, ...);

#endif

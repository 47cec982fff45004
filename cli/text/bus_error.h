/* SPDX-License-Identifier: Apache-2.0 */
/* A message in place of a SIGBUS. A client with write access can truncate a segment, each client
 * that has a segment with a lock its control object, and touching a page that is gone raises the
 * signal. */
#ifndef CLI_BUS_ERROR_H
#define CLI_BUS_ERROR_H

#include <stdbool.h>

/* From now on the signal prints a message, and ends the program with EXIT_FAILED. */
void bus_error_catch(void);

/* Calls f before that message, in the handler of the signal; NULL: nothing. f may call all but
 * libshmview: the signal comes at an access to a segment, so no other function is interrupted. */
typedef void bus_error_end(void);
void bus_error_at_end(bus_error_end *f);

/* Calls f(arg), which reads memory of other programs. Returns false if that memory is gone: then f
 * has stopped in the middle, and what it owned is lost. Needs bus_error_catch(). For verbs that
 * show many segments, which one of them must not end. */
bool bus_error_guard(void (*f)(void *arg), void *arg);

/* Calls f(arg), which has a mutex of the library while it accesses such memory, and must not be
 * left there. Repeats the access until the daemon has restored the memory, and ends the program if
 * that takes more than a few seconds. It may be called within bus_error_guard(). Needs
 * bus_error_catch(). */
void bus_error_await(void (*f)(void *arg), void *arg);

#endif

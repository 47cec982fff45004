/* SPDX-License-Identifier: Apache-2.0 */
/* A message in place of a SIGBUS. A client with write access can truncate a segment, and touching a
 * page that is gone raises the signal. */
#ifndef CLI_BUS_ERROR_H
#define CLI_BUS_ERROR_H

/* From now on the signal prints a message, and ends the program with EXIT_FAILED. */
void bus_error_catch(void);

#endif

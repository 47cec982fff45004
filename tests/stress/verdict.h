/* SPDX-License-Identifier: Apache-2.0 */
/* What comes of it all. */
#ifndef STRESS_VERDICT_H
#define STRESS_VERDICT_H

#include <stdbool.h>

#include "stress/supervisor.h"

/* Prints the line, and tables if verbose. Returns the exit status. */
int verdict_print(const struct supervisor_result *result, bool verbose);

/* Lists the places where one may die. */
void verdict_list_places(void);

#endif

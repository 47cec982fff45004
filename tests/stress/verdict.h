/* SPDX-License-Identifier: Apache-2.0 */
/* The results: one line, and tables. */
#ifndef STRESS_VERDICT_H
#define STRESS_VERDICT_H

#include <stdbool.h>

#include "stress/supervisor.h"

/* Prints the line, and with verbose the tables. Returns the exit status. */
int verdict_print(const struct supervisor_result *result, bool verbose);

/* Prints the places where a party may die. */
void verdict_list_places(void);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* What is wrong with an input, in words: pure functions write it here, their caller says it. */
#ifndef CLI_PROBLEM_H
#define CLI_PROBLEM_H

#define PROBLEM_BYTES 1024

struct problem {
    char text[PROBLEM_BYTES];
};

/* Writes the text, cut where it is too long, any control character as '?'. Returns -1. */
int problem_set(struct problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same, and shows where: the input on a line of its own, a caret under its character at
 * (from 0, in bytes). */
int problem_at(struct problem *problem, const char *input, unsigned at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif

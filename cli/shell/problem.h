/* SPDX-License-Identifier: Apache-2.0 */
/* The description of an error in an input. Pure functions such as parsers write it here and print
 * nothing, so that tests and fuzzers can call them. Their caller prints it. */
#ifndef CLI_PROBLEM_H
#define CLI_PROBLEM_H

#define PROBLEM_BYTES 1024

struct problem {
    char text[PROBLEM_BYTES];
};

/* Writes the text; cuts it to PROBLEM_BYTES, and replaces control characters by '?'. Returns -1, so
 * that a parser can return the result. */
int problem_set(struct problem *problem, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Like problem_set(), but adds the input on a line of its own, with a caret under the byte `at`,
 * counted from 0. */
int problem_at(struct problem *problem, const char *input, unsigned at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

#endif

/* SPDX-License-Identifier: Apache-2.0 */
/* Lets the n-th call of the system fail. A test that includes this is linked so
 * that malloc() and the system calls below, as the code under test makes them,
 * come through faults.c; so do jansson's allocations.
 *
 *     for (unsigned n = 1; faults_begin(FAULTS_MEMORY, n), f(), faults_end(); n++)
 *         ... the n-th allocation of f() failed ...
 *     ... and here none did ...
 */
#ifndef UNIT_FAULTS_H
#define UNIT_FAULTS_H

#include <stdbool.h>

#define FAULTS_MEMORY 1u /* malloc, calloc, realloc, aligned_alloc, strdup: NULL */
#define FAULTS_SYSTEM 2u /* what opens, asks or maps: -1 with errno */
#define FAULTS_STORE  4u /* LMDB's, for a test that includes faults_store.h: the errno */

/* The n-th call (from 1) of those classes fails from now on. */
void faults_begin(unsigned classes, unsigned n);

/* The n-th call of the function of that name fails with error_number; with
 * forever, every later one too. */
void faults_begin_call(const char *name, unsigned n, int error_number, bool forever);

/* The errno of FAULTS_SYSTEM; EIO unless it is set. */
void faults_errno(int error_number);

/* hook runs once, right before the next call of the function of that name: what
 * another process does at that moment. */
void faults_hook(const char *name, void (*hook)(void));

/* The calling thread is no code under test: none of its calls fails. */
void faults_spare_thread(void);

/* No call fails any more. Returns whether one did. */
bool faults_end(void);

/* Whether the call of that function and class that is made now fails; errno is set then. For
 * those that stand in for a function. */
bool faults_fail(unsigned classes, const char *name);

/* The function that failed last. */
const char *faults_name(void);

#endif

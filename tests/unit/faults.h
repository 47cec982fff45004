/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the n-th allocation or system call fail. A test that includes this is linked so that
 * malloc() and the system calls of the code under test go through faults.c, and so do the
 * allocations of jansson.
 *
 *     for (unsigned n = 1; faults_begin(FAULTS_MEMORY, n), f(), faults_end(); n++)
 *         ... the n-th allocation of f() failed ...
 *     ... and here none did ...
 */
#ifndef UNIT_FAULTS_H
#define UNIT_FAULTS_H

#include <stdbool.h>

#define FAULTS_MEMORY 1u /* malloc, calloc, realloc, aligned_alloc, strdup: NULL */
#define FAULTS_SYSTEM 2u /* calls that open, query or map: -1 with errno */
#define FAULTS_STORE  4u /* calls of LMDB, in a test with faults_store.h: the errno */
#define FAULTS_THREAD 8u /* pthread_create: the errno of FAULTS_SYSTEM */

/* Lets the n-th call (from 1) of these classes fail. */
void faults_begin(unsigned classes, unsigned n);

/* Lets the n-th call of the named function fail with error_number; with forever, every later one
 * too. */
void faults_begin_call(const char *name, unsigned n, int error_number, bool forever);

/* Sets the errno of FAULTS_SYSTEM, which is EIO by default. */
void faults_errno(int error_number);

/* Runs hook once, right before the next call of the named function, in place of another process
 * that acts at that moment. */
void faults_hook(const char *name, void (*hook)(void));

/* Lets fopen() for reading find this text at path from now on, in place of a file of the kernel;
 * NULL: there is no such file. Both strings are borrowed. For up to 8 paths. */
void faults_file(const char *path, const char *text);

/* Exempts the calling thread, because it is not code under test: none of its calls fails. */
void faults_spare_thread(void);

/* Lets no further call fail. Returns whether one did. */
bool faults_end(void);

/* Returns whether this call of the function and class must fail, and sets errno if so. For code
 * that stands in for a function. */
bool faults_fail(unsigned classes, const char *name);

/* Returns the name of the function that failed last. */
const char *faults_name(void);

#endif

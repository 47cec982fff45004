/* SPDX-License-Identifier: Apache-2.0 */
/* What test programs of several ranks share. A failed check ends the whole job. */
#ifndef SUPPORT_RANKS_H
#define SUPPORT_RANKS_H

#include <mpi.h>

void ranks_begin(int *argc, char ***argv);
int ranks_end(void); /* for return of main() */
int ranks_me(void);
int ranks_n(void);

/* A call of MPI that does not block stores its request in *ranks_request(), and ranks_wait() waits
 * for it. It yields the processor, unlike the calls of MPI that block: there may be more ranks than
 * processors. */
MPI_Request *ranks_request(void);
void ranks_wait(void);
void ranks_barrier(void);

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            ranks_failed(__FILE__, __LINE__, #condition);                                          \
    } while (0)
/* The call must return 0. */
#define OK(call) ranks_expect(__FILE__, __LINE__, #call, (call), 0)
/* The call must fail with SHMVIEW_ERR_code. */
#define REFUSED(call, code) ranks_expect(__FILE__, __LINE__, #call, (call), -SHMVIEW_ERR_##code)

_Noreturn void ranks_failed(const char *file, int line, const char *what);
void ranks_expect(const char *file, int line, const char *call, int result, int wanted);

#endif

/* SPDX-License-Identifier: Apache-2.0 */
#include "support/parties.h"

#include <stdio.h>

#include "support/await.h"
#include "support/client.h"

#define PARTIES_MAX 64

unsigned parties_in_role(struct shmview_segment *segment, uint32_t role,
                         struct shmview_lock_party *ret_party)
{
    struct shmview_lock_party parties[PARTIES_MAX];
    struct shmview_lock_status status;
    unsigned n = 0;
    OK(shmview_lock_query(segment, &status, parties, PARTIES_MAX));
    for (size_t i = 0; i < status.n_parties && i < PARTIES_MAX; i++) {
        if (parties[i].role != role)
            continue;
        if (ret_party)
            *ret_party = parties[i];
        n++;
    }
    return n;
}

void parties_await(struct shmview_segment *segment, uint32_t role, unsigned n)
{
    AWAIT(parties_in_role(segment, role, NULL) == n);
}

static bool sleeps(pid_t pid)
{
    char path[32], state = '?';
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "re");
    ck_assert_ptr_nonnull(f);
    int n = fscanf(f, "%*d (%*[^)]) %c", &state);
    fclose(f);
    return n == 1 && state == 'S';
}

void parties_await_sleep(pid_t pid)
{
    AWAIT(sleeps(pid));
}

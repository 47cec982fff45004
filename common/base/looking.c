/* SPDX-License-Identifier: Apache-2.0 */
#include "common/base/looking.h"

#define NS_FIRST 50000
#define NS_MOST  100000
#define NS_LEAST 2000
#define ANEW     256 /* waits, of which one is tried again */

uint32_t looking_ns(const struct looking *looking)
{
    uint32_t ns = looking->in_vain % ANEW == 0 ? NS_FIRST : looking->ns;
    return ns < NS_LEAST ? 0 : ns;
}

void looking_saw(struct looking *looking, uint32_t ns, int64_t took_ns)
{
    int64_t twice = took_ns < NS_MOST / 2 ? 2 * took_ns : NS_MOST;
    *looking = (struct looking){.ns = twice > ns ? (uint32_t)twice : ns, .in_vain = 1};
}

void looking_in_vain(struct looking *looking, uint32_t ns)
{
    /* once is enough for who was of no use before */
    looking->ns = looking->in_vain < ANEW ? ns / 2 : 0;
    looking->in_vain++;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "daemon/policy.h"

bool policy_may_use(uid_t uid, uid_t owner)
{
    return uid == owner || uid == 0;
}

/* SPDX-License-Identifier: Apache-2.0 */
#include "unit.h"

#include "daemon/policy.h"

START_TEST(the_owner_and_root)
{
    const uid_t uids[] = {0, 1, 999, 1000, 65534, UINT32_MAX - 1, UINT32_MAX};
    const size_t n = sizeof uids / sizeof uids[0];
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            ck_assert_int_eq(policy_may_use(uids[i], uids[k]), i == k || uids[i] == 0);
}
END_TEST

UNIT_MAIN("policy", UNIT_TEST(the_owner_and_root))

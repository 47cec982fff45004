#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs tests that need what few machines have on one that qemu emulates: control groups of version 2, to
# whose memory.max and memory.current segments are charged, and a pool of huge pages. Takes half a minute.
set -euo pipefail
# shellcheck source=tests/scripts/parts/machine.sh
. "$(dirname "$0")/parts/machine.sh"

tests=$build/tests/integration
machine_check "$tests/check_memory_group" "$tests/check_freeze_huge" "$tests/check_placement"
# shellcheck disable=SC2016 # the shell of the machine expands it
machine_run '
$busybox mount -t cgroup2 cgroup2 /sys/fs/cgroup
echo +memory > /sys/fs/cgroup/cgroup.subtree_control
echo 16 > /proc/sys/vm/nr_hugepages
/bin/check_memory_group
echo "groups $?"
/bin/check_freeze_huge
echo "freezing $?"
CK_RUN_CASE=of_the_pool /bin/check_placement
echo "pool $?"' -m 1024
for result in groups freezing pool; do
    grep -q "^$result 0\$" "$scratch/output"
done
! grep 'skipped:\|no control group' "$scratch/output"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of placement on a machine with two nodes of memory (NUMA), which qemu emulates. Takes
# half a minute.
set -euo pipefail
# shellcheck source=tests/scripts/parts/machine.sh
. "$(dirname "$0")/parts/machine.sh"

machine_check "$build/tests/integration/check_placement"
ldd "$daemon" | grep libnuma > /dev/null || skip "shmviewd is built without libnuma"
machine_run '
CK_RUN_CASE=nodes /bin/check_placement
echo "status $?"' \
    -m 512 -object memory-backend-ram,id=m0,size=256M -object memory-backend-ram,id=m1,size=256M \
    -numa node,nodeid=0,memdev=m0,cpus=0 -numa node,nodeid=1,memdev=m1,cpus=1
grep -q '^nodes 0x3$' "$scratch/output" && grep -q '^status 0$' "$scratch/output"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A short run of the stress test of the lock; prints its verdict. By hand, longer:
#     SHMVIEWD=build/dev/daemon/shmviewd build/dev/tests/stress/stress --seconds 120 -v
set -euo pipefail
stress=${SHMVIEW_BUILD_DIR:?}/tests/stress/stress
if [ ! -x "$stress" ] || [ ! -x "${SHMVIEWD:=}" ]; then
    echo "no stress test, or no daemon"
    exit 77
fi
case "${SHMVIEW_SANITIZE_FLAGS:-}" in
*thread*)
    echo "the thread sanitizer sees threads, not processes"
    exit 77
    ;;
*address*)
    # the sanitizer's allocator does not survive a fork in a process with threads
    exec "$stress" --seconds 10 --processes 3 --threads 1
    ;;
*)
    # the test preset of `make check` sets SHMVIEW_QUICK
    exec "$stress" --seconds $((${SHMVIEW_QUICK:-0} ? 3 : 6))
    ;;
esac

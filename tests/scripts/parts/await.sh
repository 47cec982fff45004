# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0

# Waits until a command succeeds, at most 30 s.
await() {
    local i
    for ((i = 0; i < 600; i++)); do
        "$@" && return
        sleep 0.05
    done
    return 1
}

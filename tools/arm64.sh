#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# arm64.sh: builds library, daemon and their C tests for arm64 on another machine, in build/arm64, and runs them
# under qemu. The system needs Debian's libraries for arm64, so `make matrix MATRIX=trixie-arm64` makes one.
# The tests start programs, so the kernel must know qemu: it registers qemu in a user namespace (Linux 6.7), which
# leaves the machine's registrations alone, and in which the tests of several users cannot run.
set -euo pipefail
cd "$(dirname "$0")/.."
for program in aarch64-linux-gnu-gcc aarch64-linux-gnu-pkg-config qemu-aarch64; do
    command -v "$program" > /dev/null ||
        { echo "arm64.sh: no $program; make matrix MATRIX=trixie-arm64 installs what is needed" >&2; exit 1; }
done

cmake --preset arm64 > /dev/null
cmake --build --preset arm64 -j "$(nproc)" -- -s

# Left out: tests of what an emulator of user space does not have.
left_out=()
without() { # REASON TEST...
    left_out+=("${@:2}")
}
without "the birth of a process in its own /proc/self/stat is not that which others see" \
    check_mutex check_word family
without "vfork() is fork()" check_exiting check_exiting_holder check_fork_exec
without "MADV_DONTFORK has no effect, so a child keeps the presence of its parent" \
    check_client_process check_lifetime_matrix check_many check_survivors
without "MADV_POPULATE_WRITE has no effect" check_lifecycle check_object_space check_object_write \
    check_placement check_placement_commit check_populate check_sealed
without "the emulator joins neighbours in /proc/self/maps" check_buffer_count check_mappings
without "recvmsg() does not report that it dropped descriptors" check_own_memory_hostile
without "its limit of time is too short for an emulator" check_throttle rounds_many
without "no seccomp" check_lock check_optimistic check_stray check_stream_calls
without "limits of the address space apply to the emulator too" check_address_space check_session_found
without "one user only" check_access check_client_connection check_config_read check_keeper check_keeping_recover \
    check_monitor_listeners check_object_instance check_quotas check_registry_file check_restart check_sealed_objects \
    check_two_users check_visibility check_way

# Type and machine in the head of an ELF file, and which bytes of it count.
magic='\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00\x02\x00\xb7\x00'
mask='\xff\xff\xff\xff\xff\xff\xff\x00\xff\xff\xff\xff\xff\xff\xff\xff\xfe\xff\xff\xff'
emulator=$(command -v qemu-aarch64)
pattern=$(IFS='|'; echo "^(${left_out[*]})(_sealed)?\$")
export PATTERN=$pattern RULE=":qemu-aarch64:M::$magic:$mask:$emulator:F"
# shellcheck disable=SC2016
exec unshare --user --map-root-user --mount sh -c '
    mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc
    printf "%s" "$RULE" > /proc/sys/fs/binfmt_misc/register
    exec ctest --preset arm64 -E "$PATTERN" -j "$(nproc)"'

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# matrix.sh [SUITE]...: runs `make check` in a new root of each Debian suite: by default bookworm (12),
# trixie (13) and sid. Needs root and mmdebstrap; the roots are in build/matrix, and a log of each.
# MATRIX_MAKE has other targets, for example "check-clang".
set -euo pipefail
cd "$(dirname "$0")/.."
suites=("$@")
[ ${#suites[@]} -gt 0 ] || suites=(trixie bookworm sid)
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}

if [ "$(id -u)" -ne 0 ] || ! command -v mmdebstrap > /dev/null; then
    echo "matrix.sh: needs root and mmdebstrap" >&2
    exit 1
fi

# Runs in the mount namespace of one suite: root, the targets.
# shellcheck disable=SC2016
inside='set -e
root=$1; shift
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mount -t sysfs -o ro sysfs "$root/sys" 2> /dev/null || true
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
exec chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 make -C /shmview "$@"'

# make_root SUITE ROOT: with the tree as a clone in it, as on a new machine. The mirror may be a snapshot.
make_root() {
    mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
        --include=ca-certificates,make,git,procps "$1" "$2" "$mirror" &&
        mkdir "$2/shmview" &&
        git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'ls -d "$@" 2> /dev/null' sh |
        tar -T - -c | tar -x -C "$2/shmview" &&
        git -C "$2/shmview" init -q && git -C "$2/shmview" add -A
}

failed=0
for suite in "${suites[@]}"; do
    root=$PWD/build/matrix/$suite
    log=$root.log
    rm -rf "$root"
    mkdir -p "$root"
    start=$SECONDS
    result=passed
    # shellcheck disable=SC2086
    { make_root "$suite" "$root" &&
        unshare --mount --pid --fork --kill-child bash -c "$inside" sh "$root" ${MATRIX_MAKE:-check}; } > "$log" 2>&1 ||
        result=FAILED
    [ $result = passed ] || failed=1
    versions=$(for program in "gcc -dumpfullversion" "python3 --version" "ruby --version"; do
        # shellcheck disable=SC2086
        chroot "$root" $program 2> /dev/null | grep -o '[0-9]\+\.[0-9.]*[0-9]' | head -1
    done | paste -sd ' ')
    printf '%-10s %-7s %5d s  gcc, Python, Ruby: %s  %s\n' "$suite" $result $((SECONDS - start)) "${versions:--}" \
        "$(grep -h 'tests passed' "$log" | paste -sd '|')"
done
exit $failed

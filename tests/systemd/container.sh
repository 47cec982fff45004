# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that need a systemd of their own: boots a container from an overlay of /. Everything
# that is mounted, written or started is gone afterwards. A script that includes this defines
#
#     fill_container    copies the files that the container needs into $root; $out may take logs
#
# and calls `run_container PAYLOAD`, which runs tests/systemd/PAYLOAD there, as root.
set -euo pipefail

skip() {
    echo "skipped: $1"
    exit 77
}

build=${SHMVIEW_BUILD_DIR:?}
source=${SHMVIEW_SOURCE_DIR:?}
container_seconds=160 # for the whole run, which takes some ten

[ "$(id -u)" -eq 0 ] || skip "needs root"
for tool in systemd-nspawn systemd-analyze unshare setpriv timeout; do
    command -v "$tool" > /dev/null || skip "no $tool"
done
[ -x /usr/lib/systemd/systemd ] || [ -x /lib/systemd/systemd ] || skip "no systemd"
[ -x "$build/tests/systemd/systemd_party" ] || skip "the daemon was not built"
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "sanitizers do not run under the unit's restrictions"
[ "${SHMVIEW_HAS_SYSTEMD:-}" = 1 ] || skip "the daemon was built without libsystemd"

# Only this script sees the mounts, and they end with it.
if [ "${1:-}" != inside ]; then
    unshare --mount --propagation private true 2> /dev/null || skip "may not mount"
    scratch=$(mktemp -d /tmp/shmview-systemd.XXXXXX)
    trap 'rmdir "$scratch"' EXIT
    unshare --mount --propagation private bash "$0" inside "$scratch" && exit
    exit $?
fi
scratch=$2

# Kills all processes that are left, also those that have escaped their parents.
# shellcheck disable=SC2317 # the trap calls it
container_clean() {
    local i
    echo 1 > "$cgroup/cgroup.kill" || true
    for ((i = 0; i < 100; i++)); do
        grep -q 'populated 0' "$cgroup/cgroup.events" && break
        sleep 0.1
    done
    find "$cgroup" -depth -type d -exec rmdir {} +
}

container_mount() {
    mount -t tmpfs -o mode=755 tmpfs "$scratch"
    mkdir "$scratch"/{upper,work,root,out}
    root=$scratch/root
    out=$scratch/out
    mount -t overlay -o "lowerdir=/,upperdir=$scratch/upper,workdir=$scratch/work" overlay "$root" ||
        skip "no overlay of /"
    # systemd-nspawn keeps its own files there
    mount -t tmpfs -o mode=755 tmpfs /run
    # the container has a unified hierarchy, even if the machine has not
    mount -t cgroup2 cgroup2 /sys/fs/cgroup || skip "no cgroup2"
    cgroup=/sys/fs/cgroup/shmview-test-$$
    mkdir "$cgroup" || skip "may not make a cgroup"
    trap container_clean EXIT
}

# container_units PAYLOAD: removes this machine's own services, and adds the payload as a service
# whose end shuts the container down.
container_units() {
    local unit
    rm -rf "$root/etc/systemd/system"
    mkdir -p "$root/etc/systemd/system" "$root/test"
    : > "$root/etc/fstab"
    for unit in systemd-sysctl.service systemd-update-utmp.service dev-hugepages.mount \
        systemd-journal-flush.service systemd-tmpfiles-setup.service systemd-sysusers.service; do
        ln -s /dev/null "$root/etc/systemd/system/$unit"
    done
    cat > "$root/etc/systemd/system/shmview-test.service" << UNIT
[Unit]
DefaultDependencies=no
Requires=systemd-journald.service
After=systemd-journald.service
SuccessAction=exit-force
FailureAction=exit-force

[Service]
Type=oneshot
ExecStart=/bin/bash /test/$1
StandardOutput=append:/out/log
StandardError=append:/out/log
TimeoutStartSec=150
UNIT
}

# Boots the container in a cgroup of its own, so that no process of it outlives this script.
container_boot() {
    echo "$BASHPID" > "$cgroup/cgroup.procs"
    SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 exec timeout -k 5 "$container_seconds" \
        systemd-nspawn --quiet --directory="$root" --bind="$out:/out" --register=no --keep-unit \
        --private-network --console=read-only --link-journal=no --resolv-conf=off --timezone=off \
        --boot -- systemd.unit=shmview-test.service systemd.show_status=no
}

run_container() {
    local status=0
    container_mount
    container_units "$1"
    fill_container
    cp "$source"/tests/systemd/*.sh "$build/tests/systemd/systemd_party" "$root/test"
    (container_boot) < /dev/null > "$out/console" 2>&1 || status=$?
    if [ ! -e "$out/log" ]; then
        cat "$out/console"
        skip "no container boots here (status $status)"
    fi
    cat "$out/log"
    [ -e "$out/passed" ] && exit 0
    echo "--- console"
    cat "$out/console"
    exit 1
}

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs the tests of placement on a machine with two nodes of memory (NUMA), which qemu emulates: daemon
# and test are the only programs in its initial file system. Takes half a minute.
#
# The kernel is $SHMVIEW_KERNEL, or else the newest one in /boot that can be read. It needs nothing
# but a serial console, initramfs, tmpfs and NUMA, so that any kernel of a distribution will do.
set -euo pipefail
build=${SHMVIEW_BUILD_DIR:-$(cd "$(dirname "$0")/../.." && pwd)/build/dev}
test=$build/tests/integration/check_placement
daemon=${SHMVIEWD:-$build/daemon/shmviewd}

skip() {
    echo "$1"
    exit 77
}
kernel=${SHMVIEW_KERNEL:-$(find /boot -maxdepth 1 -name 'vmlinuz-*' -readable 2> /dev/null | sort -V | tail -n 1)}
[ -n "$kernel" ] || skip "no kernel: neither \$SHMVIEW_KERNEL nor one in /boot"
[ "$(uname -m)" = x86_64 ] || skip "only on x86-64"
for program in qemu-system-x86_64 busybox; do
    command -v "$program" > /dev/null || skip "$program is not installed"
done
ldd "$(command -v busybox)" > /dev/null 2>&1 && skip "busybox is not static"
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "not with a sanitizer, which an emulator makes too slow"
ldd "$daemon" | grep libnuma > /dev/null || skip "shmviewd is built without libnuma"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
root=$scratch/root
mkdir -p "$root"/{bin,proc,sys,dev,tmp}
cp "$(command -v busybox)" "$daemon" "$test" "$root/bin/"
for library in $(ldd "$daemon" "$test" | grep -o '/[^ :]*' | sort -u); do
    mkdir -p "$root/$(dirname "$library")"
    cp -L "$library" "$root/$library"
done
cat > "$root/init" << 'EOF'
#!/bin/busybox sh
busybox=/bin/busybox
$busybox mount -t proc proc /proc
$busybox mount -t sysfs sys /sys
$busybox mount -t devtmpfs dev /dev
$busybox mkdir -p /dev/shm
$busybox mount -t tmpfs tmpfs /dev/shm
$busybox mount -t tmpfs tmpfs /tmp
export SHMVIEW_CONFIG=/dev/null SHMVIEWD=/bin/shmviewd CK_DEFAULT_TIMEOUT=120
CK_RUN_CASE=nodes /bin/check_placement
echo "status $?"
$busybox poweroff -f
EOF
chmod +x "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc 2> /dev/null | gzip -1) > "$scratch/initrd"

timeout 200 qemu-system-x86_64 -accel tcg -m 512 -smp 2 -nographic -no-reboot \
    -object memory-backend-ram,id=m0,size=256M -object memory-backend-ram,id=m1,size=256M \
    -numa node,nodeid=0,memdev=m0,cpus=0 -numa node,nodeid=1,memdev=m1,cpus=1 \
    -kernel "$kernel" -initrd "$scratch/initrd" -append "console=ttyS0 quiet panic=-1" \
    < /dev/null > "$scratch/log" 2>&1 || true
tr -d '\r' < "$scratch/log" > "$scratch/said"
sed -n '/Running suite/,$p' "$scratch/said"
grep -q '^nodes 0x3$' "$scratch/said" && grep -q '^status 0$' "$scratch/said"

# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# For scripts that need a machine of their own, which qemu emulates. Programs of the build are the only
# ones in its initial file system.
#
#     machine_check PROGRAM...    skips the test unless there is a kernel, qemu and busybox
#     machine_run STEPS QEMU...   boots the machine with further arguments of qemu. There it runs the steps,
#                                 in the shell of busybox; their output is in $scratch/output and is
#                                 printed. The programs are in /bin
#
# The kernel is $SHMVIEW_KERNEL, or else the newest one in /boot that can be read. It needs nothing
# but a serial console, initramfs, tmpfs and what the steps use, so that any kernel of a distribution will
# do.
build=${SHMVIEW_BUILD_DIR:-$(cd "$(dirname "$0")/../.." && pwd)/build/dev}
daemon=${SHMVIEWD:-$build/daemon/shmviewd}

skip() {
    echo "$1"
    exit 77
}

machine_check() {
    local program
    kernel=${SHMVIEW_KERNEL:-$(find /boot -maxdepth 1 -name 'vmlinuz-*' -readable 2> /dev/null | sort -V | tail -n 1)}
    [ -n "$kernel" ] || skip "no kernel: neither \$SHMVIEW_KERNEL nor one in /boot"
    [ "$(uname -m)" = x86_64 ] || skip "only on x86-64"
    for program in qemu-system-x86_64 busybox; do
        command -v "$program" > /dev/null || skip "$program is not installed"
    done
    ldd "$(command -v busybox)" > /dev/null 2>&1 && skip "busybox is not static"
    [ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "not with a sanitizer, which an emulator makes too slow"
    programs=("$daemon" "$@")
}

machine_run() {
    local root library steps=$1
    shift
    scratch=$(mktemp -d)
    trap 'rm -rf "$scratch"' EXIT
    root=$scratch/root
    mkdir -p "$root"/{bin,proc,sys,dev,tmp}
    cp "$(command -v busybox)" "${programs[@]}" "$root/bin/"
    for library in $(ldd "${programs[@]}" | grep -o '/[^ :]*' | sort -u); do
        mkdir -p "$root/$(dirname "$library")"
        cp -L "$library" "$root/$library"
    done
    cat > "$root/init" << EOF
#!/bin/busybox sh
busybox=/bin/busybox
\$busybox mount -t proc proc /proc
\$busybox mount -t sysfs sys /sys
\$busybox mount -t devtmpfs dev /dev
\$busybox mkdir -p /dev/shm
\$busybox mount -t tmpfs tmpfs /dev/shm
\$busybox mount -t tmpfs tmpfs /tmp
export SHMVIEW_CONFIG=/dev/null SHMVIEWD=/bin/shmviewd CK_DEFAULT_TIMEOUT=120
$steps
\$busybox poweroff -f
EOF
    chmod +x "$root/init"
    (cd "$root" && find . | busybox cpio -o -H newc 2> /dev/null | gzip -1) > "$scratch/initrd"
    timeout 200 qemu-system-x86_64 -accel tcg -smp 2 -nographic -no-reboot \
        -kernel "$kernel" -initrd "$scratch/initrd" -append "console=ttyS0 quiet panic=-1" "$@" \
        < /dev/null > "$scratch/log" 2>&1 || true
    tr -d '\r' < "$scratch/log" > "$scratch/output"
    sed -n '/Running suite/,$p' "$scratch/output"
}

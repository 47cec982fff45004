#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# matrix.sh [ROW]...: makes a new root of a Debian suite for each row, and runs a target of the Makefile in it.
# The rows are bookworm (12), trixie (13) and sid for `make check`, with torch where Debian has it; trixie-clang and
# sid-clang for the same tests with clang, trixie-gcc-13 and sid-gcc-15 with those compilers, which are the default of no
# suite; bookworm-musl for `make musl`, and trixie-arm64 for `make arm64`. trixie-install and so on make the packages, in
# a root that has only build-essential and the packages that the source package names; the wheel; and in another root,
# where nothing else is, the tour with the wheel in an empty virtual environment and with the packages. Then
# package_tests.sh tests these packages. Needs root and mmdebstrap, for the packages also autopkgtest, piuparts and
# uidmap; the roots are in build/matrix, and a log of each. build/matrix/results has the line of each row: date,
# commit, row, result, seconds, versions, tests.
set -euo pipefail
cd "$(dirname "$0")/.."
all=(trixie bookworm sid trixie-clang sid-clang trixie-gcc-13 sid-gcc-15 bookworm-musl
    trixie-arm64 trixie-install bookworm-install sid-install)
rows=("$@")
[ ${#rows[@]} -gt 0 ] || rows=("${all[@]}")
for row in "${rows[@]}"; do
    [[ " ${all[*]} " = *" $row "* ]] || { echo "matrix.sh: no row '$row'; the rows are ${all[*]}" >&2; exit 2; }
done
commit=$(git describe --always --dirty --exclude '*' --abbrev=10 2> /dev/null || echo -)
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
# No row has npm. Without uPlot all but the packages can be made.
uplot=$(tools/uplot.sh) || uplot=""

if [ "$(id -u)" -ne 0 ] || ! command -v mmdebstrap > /dev/null; then
    echo "matrix.sh: needs root and mmdebstrap" >&2
    exit 1
fi

# Runs in the mount namespace of one row: root, target. The root becomes that of the namespace, because in a
# chroot no user namespace can be made.
# shellcheck disable=SC2016
inside='set -e
root=$1; shift
mount --bind "$root" "$root"
mount --rbind /dev "$root/dev"
mount -t tmpfs tmpfs "$root/dev/shm"
mount -t proc proc "$root/proc"
mount -t tmpfs tmpfs "$root/run"
mount -t sysfs -o ro sysfs "$root/sys" 2> /dev/null || true
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
cd "$root"
pivot_root . mnt
umount -l /mnt
exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 "$@"'
within() { # ROOT COMMAND...
    unshare --mount --pid --fork --kill-child bash -c "$inside" sh "$@"
}

# Runs in the root without anything else: the wheel without network, then the packages.
# shellcheck disable=SC2016
install='set -ex
cd /packages
python3 -m venv /tmp/venv
unshare -n /tmp/venv/bin/pip install --no-index ./*.whl
unshare -n env -i XDG_RUNTIME_DIR=/tmp SHMVIEW_IDLE_EXIT=1 PATH=/nowhere /tmp/venv/bin/python -I wheel_tour.py
rm -r /tmp/venv
apt-get update
apt-get install -y --no-install-recommends ./*.deb gcc libc6-dev pkg-config procps python3-numpy
mkdir /tour
cd /tour
python3 /packages/tour.py /usr/share/doc/shmview/tour.md
ruby -e "require \"shmview\"; puts Shmview.create(\"demo\", 4000).size"
man -w shmview_lock 2> /dev/null || ls /usr/share/man/man3/shmview_lock.3*
echo "100% tests passed: the tour with $(ls /packages/*.whl), and with the packages"'

# Builds the packages from the source package with its Build-Depends alone. The first build, which makes the source
# package, looks at no dependency and stops before it compiles.
# shellcheck disable=SC2016
package='set -ex
cd /shmview
tools/deb.sh --source /packages
apt-get update
apt-get build-dep -y --no-install-recommends /packages/shmview_*.dsc
mkdir /build
cd /build
dpkg-source -x /packages/shmview_*.dsc tree
cd tree
dpkg-buildpackage -b -us -uc "-j$(nproc)"
mv /build/*.deb /packages'

# make_install SUITE ROOT: builds the packages in ROOT-build and the wheel in ROOT-wheel. ROOT has them and no tree.
make_install() {
    rm -rf "$2-build" "$2-wheel"
    make_root "$1" "$2-build" && within "$2-build" sh -c "$package" &&
        make_root "${1%%-*}" "$2-wheel" && within "$2-wheel" make -C /shmview wheel &&
        mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' \
            --include=ca-certificates,python3,python3-venv "${1%%-*}" "$2" "$mirror" &&
        mkdir "$2/packages" &&
        cp "$2-build"/packages/*.deb "$2-wheel"/shmview/build/wheel/*.whl tests/scripts/tour.py \
            tests/scripts/parts/wheel_tour.py "$2/packages"
}

# make_root ROW ROOT: with the tree as a clone in it, as on a new machine. The mirror may be a snapshot.
make_root() {
    local packages=ca-certificates,make,git,procps architectures=()
    case $1 in
    *-clang) packages+=,clang ;;
    *-gcc-*) packages+=",${1#*-},g++-${1##*-}" ;;
    # dpkg-source, which packs the source package, comes with build-essential.
    *-install) packages=ca-certificates,build-essential,git ;;
    *-arm64)
        architectures=(--architectures="$(dpkg --print-architecture),arm64")
        packages+=,cmake,gcc-aarch64-linux-gnu,libc6-dev-arm64-cross,pkgconf:arm64,qemu-user
        packages+=,libuv1-dev:arm64,libjansson-dev:arm64,liblmdb-dev:arm64,check:arm64,libsubunit-dev:arm64
        ;;
    esac
    mmdebstrap --variant=minbase --aptopt='Acquire::Check-Valid-Until "false"' "${architectures[@]}" \
        --include="$packages" "${1%%-*}" "$2" "$mirror" &&
        mkdir "$2/shmview" &&
        git ls-files -z --cached --others --exclude-standard | xargs -0 sh -c 'ls -d "$@" 2> /dev/null || :' sh |
        tar -T - -c | tar -x -C "$2/shmview" &&
        { [ -z "$uplot" ] || cp -r "$uplot" "$2/shmview/uplot"; } &&
        git -C "$2/shmview" init -q && git -C "$2/shmview" add -A
}

# Installs what tests use if it is there. It is no dependency of the tree, and not each suite has it.
optional=(sh -c 'apt-get update && apt-get install -y --no-install-recommends python3-torch || echo "no torch here"')

# versions ROOT ROW: of the compiler, Python, numpy, torch and Ruby in it.
versions() {
    local compiler="gcc -dumpfullversion" program
    case $2 in
    *-clang) compiler="clang --version" ;;
    *-gcc-*) compiler="gcc-${2##*-} -dumpfullversion" ;;
    esac
    for program in "$compiler" "python3 --version" "dpkg-query -W -f \${Version} python3-numpy" \
        "dpkg-query -W -f \${Version} python3-torch" "ruby --version"; do
        # shellcheck disable=SC2086
        { chroot "$1" $program 2> /dev/null || echo -; } | grep -m 1 -o '[0-9]\+\.[0-9.]*[0-9]\|^-'
    done | paste -sd ' '
}

# `make check` compiles with -O1, with which a compiler has fewer warnings.
optimised=-DCMAKE_C_FLAGS_RELWITHDEBINFO=-O2
failed=0
for row in "${rows[@]}"; do
    case $row in
    *-clang) target=(make -C /shmview deps-check check-clang "TEST_ARGS=-LE slow") ;;
    *-gcc-*) target=(make -C /shmview check "CMAKE_ARGS=$optimised -DCMAKE_C_COMPILER=${row#*-} -DCMAKE_CXX_COMPILER=g++-${row##*-}") ;;
    *-arm64) target=(make -C /shmview arm64) ;;
    *-musl) target=(make -C /shmview musl) ;;
    *-install) target=(sh -c "$install") ;;
    *) target=(make -C /shmview check "CMAKE_ARGS=$optimised") ;;
    esac
    root=$PWD/build/matrix/$row
    log=$root.log
    rm -rf "$root"
    mkdir -p "$root"
    start=$SECONDS
    result=passed
    { if [[ $row = *-install ]]; then make_install "$row" "$root"; else make_root "$row" "$root"; fi &&
        { [[ $row = *-* ]] || within "$root" "${optional[@]}"; } && within "$root" "${target[@]}" &&
        { [[ $row != *-install ]] || tools/package_tests.sh "${row%-install}" "$root-build/packages"; }; } > "$log" 2>&1 ||
        result=FAILED
    [ $result = passed ] || failed=1
    printf '%s %s %-16s %-7s %5d s  compiler, Python, numpy, torch, Ruby: %s  %s\n' "$(date -u +%F)" "$commit" "$row" $result \
        $((SECONDS - start)) "$(versions "$root" "$row")" "$(grep -h '^[0-9]*% tests passed' "$log" | paste -sd '|')" |
        tee -a build/matrix/results
done
exit $failed

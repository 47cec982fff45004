#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh rpm|pkg: builds packages of the last commit with rpmbuild or makepkg, into build/rpm or build/pkg. On a
# system that has the tool but other names of packages, such as Debian, DEPENDENCIES=ignore leaves the check out.
set -euo pipefail
cd "$(dirname "$0")/.."
case ${1:-} in
rpm | pkg) ;;
*)
    echo "usage: build.sh rpm|pkg" >&2
    exit 2
    ;;
esac
version=$(sed -n 's/^#define SHMVIEW_VERSION_[A-Z]* *//p' include/shmview/shmview.h | paste -sd .)
out=$PWD/build/$1
archive=shmview-$version.src.tar.gz
rm -rf "$out"
mkdir -p "$out"
git archive --format=tar.gz --prefix="shmview-$version/" -o "$out/$archive" HEAD
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct) tools/uplot.sh "$out/uplot-$(tools/uplot.sh --version).tar.gz"
ignore=${DEPENDENCIES:-}

case $1 in
rpm)
    rpmbuild -bb ${ignore:+--nodeps} --define "_topdir $out/work" --define "_sourcedir $out" --define "_rpmdir $out" \
        packaging/rpm/shmview.spec > "$out/build.log" 2>&1 || { tail -40 "$out/build.log" >&2; exit 1; }
    rm -rf "$out/work"
    ;;
pkg)
    cp packaging/arch/PKGBUILD "$out"
    # makepkg refuses root.
    as_user=()
    if [ "$(id -u)" -eq 0 ]; then
        as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups env "HOME=$out" CCACHE_DISABLE=1)
        chown -R 65534:65534 "$out"
    fi
    (cd "$out" && "${as_user[@]}" makepkg -f ${ignore:+-d}) > "$out/build.log" 2>&1 || { tail -40 "$out/build.log" >&2; exit 1; }
    ;;
esac
find "$out" -name '*.rpm' -o -name '*.pkg.tar*'

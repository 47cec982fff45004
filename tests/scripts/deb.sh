#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the packages with `cpack`. Each installed file must be in exactly one package, packages
# contain nothing else except what Debian requires, they depend on what they use, and lintian finds
# no fault. The packages stay in tests/debs of the build, for packages.sh.
set -euo pipefail
build=${SHMVIEW_BUILD_DIR:?}
debs=$build/tests/debs

skip() {
    echo "skipped: $1"
    exit 77
}
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "nobody packages what has sanitizers in it"
[ -e "$build/CPackConfig.cmake" ] || skip "no Debian system, or a prefix that is not /usr"
for tool in cpack dpkg-deb dpkg-shlibdeps file gzip; do
    command -v "$tool" > /dev/null || skip "no $tool"
done

die() {
    printf 'FAILED: %s\n' "$@" >&2
    exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$build"
cpack -B "$scratch/built" > "$scratch/log" 2>&1 ||
    { cat "$scratch/log"; die "cpack"; }
rm -rf "$debs"
mkdir "$debs"
mv "$scratch"/built/*.deb "$debs"
cd "$debs"

# Lists everything except folders, without the leading slash; pages of the manual without .gz.
DESTDIR=$scratch/tree "${CMAKE:-cmake}" --install "$build" > "$scratch/log"
(cd "$scratch/tree" && find . ! -type d) | sed 's|^\./||' | sort > "$scratch/installed"
for deb in *.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -n '/\/$/!s|^\./||p'
done | sed '\|share/man|s|\.gz$||' | sort > "$scratch/packed"
for package in *.deb; do
    package=${package%%_*}
    printf 'usr/share/%s\n' "doc/$package/"{changelog.gz,changelog.Debian.gz,copyright} \
        "lintian/overrides/$package"
done > "$scratch/debian"
echo etc/shmviewd.json >> "$scratch/debian"
sort "$scratch/installed" "$scratch/debian" > "$scratch/expected"
diff "$scratch/expected" "$scratch/packed" ||
    die "a file above is installed and not packed (<), or packed twice or not installed (>)" \
        "give its install() the COMPONENT of one package"

field() {
    dpkg-deb -f "$1"_*.deb "$2"
}
expect() {
    [[ ", $(field "$1" "$2")," == *", $3"* ]] || die "$2 of $1 has no $3: $(field "$1" "$2")"
}
library=$(basename libshmview[0-9]*.deb)
library=${library%%_*}
[ -e "$scratch/tree/usr/lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)/libshmview.so.${library#libshmview}" ] ||
    die "$library is not named after the library's soname"
expect shmviewd Depends libuv1
expect shmviewd Depends liblmdb0
expect "$library" Depends libjansson4
expect "$library" Depends libc6
expect "$library" Multi-Arch same
expect libshmview-dev Depends "$library (= $(field "$library" Version))"
for deb in python3-shmview_*.deb ruby-shmview_*.deb shmview-tools_*.deb; do
    [ -e "$deb" ] || continue
    expect "${deb%%_*}" Depends "$library (>= $(field "$library" Version | sed 's/-.*//'))"
    [[ $deb != python3-* ]] || expect python3-shmview Depends 'python3 (<<'
    [[ $deb != ruby-* ]] || expect ruby-shmview Depends libruby
done
[ "$(dpkg-deb -I shmviewd_*.deb conffiles)" = /etc/shmviewd.json ] || die "conffiles of shmviewd"
dpkg-deb -I "${library}"_*.deb triggers | grep -qx 'activate-noawait ldconfig'

command -v lintian > /dev/null || { echo "no lintian; the rest is in order"; exit 0; }
# lintian does not remove its temporary files
TMPDIR=$scratch lintian --allow-root --fail-on error,warning ./*.deb

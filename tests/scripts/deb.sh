#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Builds the Debian source package and its binary packages. debhelper fails if an installed file is in
# no package, and dpkg-gensymbols if the library lost a symbol. This test looks at the rest: that no
# file is in two packages, that packages depend on what they use, that the version is the library's,
# and that lintian finds no fault. The packages stay in tests/debs of the build, for packages.sh.
set -euo pipefail
build=${SHMVIEW_BUILD_DIR:?}
source=${SHMVIEW_SOURCE_DIR:?}
debs=$build/tests/debs

skip() {
    echo "skipped: $1"
    exit 77
}
[ -z "${SHMVIEW_SANITIZE_FLAGS:-}" ] || skip "nobody packages what has sanitizers in it"
for tool in dpkg-buildpackage dh dh_python3 dpkg-deb; do
    command -v "$tool" > /dev/null || skip "no $tool"
done
(cd "$source" && dpkg-checkbuilddeps) || skip "a build dependency is missing"
"$source/tools/uplot.sh" > /dev/null || skip "no uPlot"

die() {
    printf 'FAILED: %s\n' "$@" >&2
    exit 1
}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset CC CMAKE
"$source/tools/deb.sh" "$scratch/built"
rm -rf "$debs"
mkdir -p "$debs"
cp "$scratch"/built/*.deb "$debs"
rm "$debs"/*-dbgsym_*
cd "$debs"

for deb in *.deb; do
    dpkg-deb --fsys-tarfile "$deb" | tar -t | sed -n '/\/$/!p'
done | sort | uniq -d > "$scratch/twice"
[ ! -s "$scratch/twice" ] || die "in two packages: $(cat "$scratch/twice")"

field() {
    dpkg-deb -f "$1"_*.deb "$2"
}
expect() {
    [[ ", $(field "$1" "$2")," == *", $3"* ]] || die "$2 of $1 has no $3: $(field "$1" "$2")"
}
version=$(sed -n 's/^#define SHMVIEW_VERSION_[A-Z]* *//p' "$source/include/shmview/shmview.h" | paste -sd .)
library=$(basename libshmview[0-9]*.deb)
library=${library%%_*}
[[ $(field "$library" Version) == "$version"-* ]] || die "debian/changelog has $(field "$library" Version), not $version"
dpkg-deb -c "$library"_*.deb | grep -c "libshmview\.so\.${library#libshmview} ->" > /dev/null ||
    die "$library is not named after the library's soname"
expect shmviewd Depends libuv1
expect shmviewd Depends liblmdb0
expect shmviewd Depends libnuma1
expect "$library" Depends libjansson4
expect "$library" Depends libc6
expect "$library" Multi-Arch same
for mpi in openmpi mpich; do
    expect "libshmview-mpi-${mpi}0" Depends "lib$mpi"
    expect "libshmview-mpi-${mpi}0" Depends "$library (>= $version)"
    expect "libshmview-mpi-$mpi-dev" Depends "lib$mpi-dev"
done
expect libshmview-dev Depends libjansson-dev # for pkg-config --static
expect libshmview-dev Depends "$library (= $(field "$library" Version))"
for package in python3-shmview ruby-shmview shmview-tools shmview-web; do
    expect "$package" Depends "$library (>= $version)"
done
expect python3-shmview Depends 'python3 (<<'
expect ruby-shmview Depends libruby
expect shmview-web Depends libmicrohttpd
# uPlot is in the program of the page, its licence in the package, and all of it in a source archive of its own.
rm -rf "$scratch/files"
dpkg-deb -x shmview-web_*.deb "$scratch/files"
grep -qF 'var uPlot=' "$scratch/files/usr/libexec/shmview/shmview-web" || die "shmview-web has no uPlot"
grep -qF 'Leon Sorokin' "$scratch/files/usr/share/doc/shmview-web/copyright" || die "no licence of uPlot"
tar -tf "$scratch"/built/shmview_*.orig-uplot.tar.gz | grep -x uplot/dist/uPlot.iife.js > /dev/null || die "no source of uPlot"
! tar -tf "$scratch/built/shmview_$version.orig.tar.gz" | grep -E '^[^/]*/uplot/|node_modules' ||
    die "uPlot is in the source archive of shmview"
[ "$(dpkg-deb -I shmviewd_*.deb conffiles)" = /etc/shmviewd.json ] || die "conffiles of shmviewd"
dpkg-deb -I "$library"_*.deb triggers | grep -c 'activate-noawait ldconfig' > /dev/null
for deb in *.deb; do
    rm -rf "$scratch/files"
    dpkg-deb -x "$deb" "$scratch/files"
    while IFS= read -r -d '' file; do
        ! readelf -d "$file" 2> /dev/null | grep -E '\((RPATH|RUNPATH)\)' || die "$file has a search path"
    done < <(find "$scratch/files" -type f \( -name '*.so*' -o -path '*/bin/*' \) -print0)
done

# A release builds them from an archive, where git cannot list the files: the source package has the same files,
# without those that builds have left.
dpkg-source --no-check -x "$scratch"/built/*.dsc "$scratch/archive" > "$scratch/log"
mkdir -p "$scratch"/archive/{build,bindings/python/dist}
touch "$scratch"/archive/{build,bindings/python/dist}/left
GIT_CEILING_DIRECTORIES=$scratch "$scratch/archive/tools/deb.sh" --source "$scratch/again"
revision=$(dpkg-parsechangelog -l "$source/debian/changelog" -S Version)
for part in "$revision.debian.tar.xz" "$version.orig.tar.gz"; do
    diff <(tar -tf "$scratch/built/shmview_$part" | sort) <(tar -tf "$scratch/again/shmview_$part" | sort) ||
        die "the source package of an archive has other files"
done
cmp "$scratch"/{built,again}/"shmview_$version.orig-uplot.tar.gz"

command -v lintian > /dev/null || { echo "no lintian; the rest is in order"; exit 0; }
# There is no report of a wish for this package, because it is not in Debian. lintian does not remove
# its temporary files.
TMPDIR=$scratch lintian --allow-root --fail-on error,warning --suppress-tags initial-upload-closes-no-bugs \
    "$scratch"/built/*.changes

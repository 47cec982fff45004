#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# release.sh [--unsigned] [FOLDER]: builds the files of a release of HEAD into FOLDER (build/dist): source
# archives, a wheel for each interpreter of $PYTHONS (/usr/bin/python3), gem, Debian packages, the PKGBUILD with the
# checksums of its archives, a list of their contents (SPDX), checksums and their signature. $MINISIGN_KEY is the secret key file, and SIGNING.pub in the tree its public key. The same commit gives the same files on every Debian machine that
# has the same packages; tools/reproducible.sh tests that.
set -euo pipefail
signed=yes
if [ "${1:-}" = --unsigned ]; then
    signed=
    shift
fi
cd "$(dirname "$0")/.."
mkdir -p "${1:-build/dist}"
out=$(cd "${1:-build/dist}" && pwd)

die() {
    printf 'release.sh: %s\n' "$@" >&2
    exit 1
}
[ -z "$(ls -A "$out")" ] || [ -e "$out/SHA256SUMS" ] || die "$out has other files than a release"
[ -z "$(git status --porcelain)" ] || die "the tree has changes that are not committed; a release is a commit"
version=$(sed -n 's/^#define SHMVIEW_VERSION_[A-Z]* *//p' include/shmview/shmview.h | paste -sd .)
entry=$(sed -n "s/^## \(${version//./\\.}, .*\)/\1/p" CHANGELOG.md)
[ -n "$entry" ] || die "CHANGELOG.md has no section '## $version, DATE'"
debian=$(dpkg-parsechangelog -S Version)
[ "${debian%-*}" = "$version" ] || die "debian/changelog is about $debian, and shmview.h about $version"
tags=$(git tag --points-at HEAD 'v*')
if [ -n "$tags" ]; then
    [ "$tags" = "v$version" ] || die "this commit has the tag ${tags//$'\n'/ }, and shmview.h the version $version"
    [ "$entry" != "$version, unreleased" ] || die "CHANGELOG.md has no date for $version, although it has a tag"
fi
# Placeholders of the time before the repository had a host. A signed release must not lead people to an address that
# belongs to nobody.
stand=$(git grep -l -e 'example\.org' -e 'shmview@packages\.debian\.org' -- packaging tests/fuzz/oss-fuzz debian || true)
if [ -n "$signed" ] && [ -n "$stand" ]; then
    die "example.org, or the mailbox shmview@packages.debian.org, is still in ${stand//$'\n'/ }:" \
        "replace them by the addresses of the host and of the maintainers (HACKING.md, Making a release)"
fi
if [ -n "$signed" ]; then
    [ -r "${MINISIGN_KEY:-}" ] ||
        die "no key to sign with: set MINISIGN_KEY to the file of a secret key (minisign -G makes one)," \
            "or give --unsigned for a build that nobody can verify"
    MINISIGN_KEY=$(realpath -- "$MINISIGN_KEY")
    [ -e SIGNING.pub ] || die "the tree has no SIGNING.pub, the public key that belongs to \$MINISIGN_KEY"
    [ -n "$tags" ] ||
        die "this commit has no tag v$version: only a release is signed (HACKING.md, Making a release)"
fi

# The machine's settings must not reach the files.
umask 022
export LC_ALL=C.UTF-8 TZ=UTC SOURCE_DATE_EPOCH PYTHONDONTWRITEBYTECODE=1
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
unset CFLAGS CPPFLAGS CXXFLAGS LDFLAGS CC CXX DEB_BUILD_OPTIONS DEB_BUILD_PROFILES SHMVIEW_BUILD_DIR
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The tree below is no repository, also if $TMPDIR is in one.
export GIT_CEILING_DIRECTORIES=$work

mkdir "$work/out"
top=shmview-$version
git -c tar.umask=0022 archive --format=tar --prefix="$top/" HEAD > "$work/$top.tar"
tar -x -f "$work/$top.tar" -C "$work"
uplot=$(tools/uplot.sh)
cp -r "$uplot" "$work/$top/uplot"
gzip -9n < "$work/$top.tar" > "$work/out/$top.src.tar.gz"

# All others are built from that archive, which shows that it is complete.
cd "$work/$top"
for python in ${PYTHONS:-/usr/bin/python3}; do
    echo "== $top: wheel for $python"
    (cd bindings/python && "$python" -c 'import sys, backend
backend.build_wheel(sys.argv[1], {"bundle": "yes"})' "$work/out")
done
echo "== $top: source archive of Python"
(cd bindings/python && /usr/bin/python3 -c 'import sys, backend
backend.build_sdist(sys.argv[1])' "$work/out")
echo "== $top: gem"
(cd bindings/ruby && gem build --silent --output "$work/out/$top.gem" shmview.gemspec)
echo "== $top: Debian packages"
tools/deb.sh "$work/debian"
# The other files there describe this build and its machine.
mv "$work"/debian/*.{deb,dsc,tar.*} "$work/out"
# The PKGBUILD and the file for rpm know the same archive by this name.
uplot_name=uplot-$(tools/uplot.sh --version)
cp "$work/out/shmview_$version.orig-uplot.tar.gz" "$work/out/$uplot_name.tar.gz"
sums=$(sha256sum "$work/out/"{"$top.src","$uplot_name"}.tar.gz | cut -d ' ' -f 1 | paste -sd ' ')
sed "s/^sha256sums=(SKIP SKIP)\$/sha256sums=($sums)/" packaging/arch/PKGBUILD > "$work/out/PKGBUILD"
grep -q "^sha256sums=($sums)\$" "$work/out/PKGBUILD" || die "packaging/arch/PKGBUILD has no line for the checksums"

cd "$work/out"
/usr/bin/python3 "$work/$top/tools/sbom.py" "$version" > "$work/$top.spdx.json"
mv "$work/$top.spdx.json" .
[ -n "$signed" ] || MINISIGN_KEY=
export MINISIGN_KEY
"$work/$top/tools/sign.sh" . "$top" "$work/$top/SIGNING.pub"
rm -rf "${out:?}"/*
mv -- * "$out"
echo "== $top: $out"

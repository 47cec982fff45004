#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deb.sh [--source] FOLDER: builds the Debian source package and all binary packages of this tree into FOLDER.
# With --source, only the source package, which needs no dependency but dpkg-dev and uPlot. Files that git ignores are left
# out. uPlot is a source archive of its own, which dpkg-source unpacks into uplot/.
set -euo pipefail
only_source=
if [ "${1:-}" = --source ]; then
    only_source=yes
    shift
fi
out=$(mkdir -p "${1:?usage: deb.sh [--source] FOLDER}" && cd "$1" && pwd)
cd "$(dirname "$0")/.."

version=$(dpkg-parsechangelog -S Version)
top=shmview-${version%-*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/$top"
files() {
    git ls-files -z --cached --others --exclude-standard 2> /dev/null ||
        find . \( -path ./bindings/python/dist -o -path ./build -o -path ./.pc -o -path ./uplot -o -path ./web/node_modules \) \
            -prune -o ! -type d -printf '%P\0'
}
files | while IFS= read -r -d '' file; do
    if [ -e "$file" ]; then printf '%s\0' "$file"; fi
done | tar --null -T - -c | tar -x -C "$work/$top"
# The time of the release, and not of the build, so that two builds are equal.
SOURCE_DATE_EPOCH=$(dpkg-parsechangelog -S Timestamp)
export SOURCE_DATE_EPOCH
tar --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" --exclude="$top/debian" \
    -C "$work" -c "$top" | gzip -9n > "$work/shmview_${version%-*}.orig.tar.gz"
tools/uplot.sh "$work/shmview_${version%-*}.orig-uplot.tar.gz"
tar -x -f "$work/shmview_${version%-*}.orig-uplot.tar.gz" -C "$work/$top"
if [ -n "$only_source" ]; then
    (cd "$work" && dpkg-source -b "$top") > "$out/build.log" 2>&1 || { tail -40 "$out/build.log" >&2; exit 1; }
    mv "$work"/shmview_* "$out"
    exit 0
fi
(cd "$work/$top" && dpkg-buildpackage -us -uc "-j$(nproc)") > "$out/build.log" 2>&1 ||
    { tail -40 "$out/build.log" >&2; exit 1; }
rm -f "$out"/*.deb
mv "$work"/shmview_*  "$work"/*.deb "$out"

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# reproducible.sh [-VARIATION]...: builds the files of a release of HEAD twice, unsigned, and compares them byte
# for byte. reprotest makes the second build under another path, user environment, home, host name, locale, time
# zone, clock, umask, kernel name, order of files in folders, and number of processors. An argument such as
# -fileordering leaves a variation out; reprotest(1) lists them. REPROTEST_ARGS has further options for it.
set -euo pipefail
cd "$(dirname "$0")/.."
if ! command -v reprotest > /dev/null; then
    echo "reproducible.sh: needs reprotest" >&2
    exit 1
fi
[ -z "$(git status --porcelain)" ] || { echo "reproducible.sh: only a commit can be compared" >&2; exit 1; }

# Another user would need sudo.
left_out=(-user_group "$@")
# disorderfs mounts a file system in user space.
[ -r /dev/fuse ] && command -v disorderfs > /dev/null || left_out+=(-fileordering)
command -v faketime > /dev/null || left_out+=(-time)
vary=$(IFS=,; echo "${left_out[*]}")
echo "reproducible.sh: varies all but ${vary//-/}"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q --no-hardlinks . "$work/tree"
uplot=$(tools/uplot.sh)
cp -r "$uplot" "$work/tree/uplot" # a build may have no network
rm -rf build/reproducible
mkdir -p build
# git refuses a repository of another owner, as the copy may be, and the second build has an empty home.
command="export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0='*'
tools/release.sh --unsigned dist"
# shellcheck disable=SC2086
reprotest --vary="$vary" ${REPROTEST_ARGS:-} --store-dir build/reproducible -s "$work/tree" "$command" 'dist/*' -- null

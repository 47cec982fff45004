#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# package_tests.sh SUITE FOLDER: tests the source package and the packages in FOLDER on a Debian suite: autopkgtest runs
# debian/tests, each in a new root that has nothing but the packages that the test names, then piuparts installs,
# removes and purges them all. Needs root, mmdebstrap, autopkgtest, piuparts and uidmap.
# tools/matrix.sh runs it for the rows SUITE-install.
set -euo pipefail
suite=$1 folder=$(realpath "$2")
mirror=${DEBIAN_MIRROR:-http://deb.debian.org/debian}
for tool in mmdebstrap autopkgtest piuparts newuidmap; do
    command -v "$tool" > /dev/null || { echo "package_tests.sh: needs $tool" >&2; exit 1; }
done
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
chmod 755 "$scratch"
mapfile -t packages < <(find "$folder" -name '*.deb' ! -name '*-dbgsym_*' | sort)
root=$scratch/root.tar
mmdebstrap --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' --include=ca-certificates "$suite" "$root" "$mirror"

# autopkgtest makes its roots in a user namespace, for which /etc/subuid must give ids to root.
echo root:100000:65536 > "$scratch/ids"
status=0
# shellcheck disable=SC2016
unshare --mount sh -c 'mount --bind "$0" /etc/subuid && mount --bind "$0" /etc/subgid && exec "$@"' "$scratch/ids" \
    autopkgtest --apt-upgrade --output-dir="$scratch/results" "${packages[@]}" "$folder"/shmview_*.dsc \
    -- unshare --tarball "$root" --release "$suite" < /dev/null || status=$?
# 2: a test was skipped
[ "$status" -eq 0 ] || [ "$status" -eq 2 ] || exit "$status"
cat "$scratch/results/summary"

# Purging systemd leaves these, also without shmview; those in /etc on Debian 13.
left='^/(root/\.ssh|var/(cache|lib|log)/private|var/lib/systemd/(coredump|pstore)|'
left+='etc/(\.pwd\.lock|default/locale|vconsole\.conf))/?$'
gzip -1 "$root"
piuparts --mirror="$mirror" --distribution="$suite" --basetgz="$root.gz" --no-upgrade-test \
    --ignore-regexp="$left" "${packages[@]}" > "$scratch/log" 2>&1 || { cat "$scratch/log"; exit 1; }
tail -2 "$scratch/log"

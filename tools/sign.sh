#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# sign.sh FOLDER NAME PUBLIC: writes FOLDER/SHA256SUMS, the checksums of the files in FOLDER, and its signature by the
# secret key file $MINISIGN_KEY. Fails if PUBLIC is not the public key of it. Without $MINISIGN_KEY it does not sign.
set -euo pipefail
cd "${1:?usage: sign.sh FOLDER NAME PUBLIC}"
name=${2:?} public=${3:?}

rm -f SHA256SUMS SHA256SUMS.minisig
sums=$(sha256sum -- *)
echo "$sums" > SHA256SUMS
[ -n "${MINISIGN_KEY:-}" ] || exit 0
minisign -S -s "$MINISIGN_KEY" -m SHA256SUMS -t "$name" -c "checksums of $name"
if ! minisign -V -q -p "$public" -m SHA256SUMS; then
    rm -f SHA256SUMS.minisig
    echo "sign.sh: $public is not the public key of \$MINISIGN_KEY" >&2
    exit 1
fi

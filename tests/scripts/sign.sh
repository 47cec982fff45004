#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/sign.sh signs a release with a key that this test makes and throws away. The command in SECURITY.md accepts
# these files, and refuses them after a change of one byte, of the checksums, or of the key.
set -euo pipefail
source=${SHMVIEW_SOURCE_DIR:?}
if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ] || ! command -v minisign > /dev/null; then
    echo "not with a sanitizer, and only where minisign is"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"
mkdir keys other release
minisign -G -W -p keys/SIGNING.pub -s keys/secret > /dev/null
minisign -G -W -p other/SIGNING.pub -s other/secret > /dev/null
head -c 5000 /dev/urandom > release/first.tar.gz
echo second > release/second.whl

grep -qF 'minisign -V -p SIGNING.pub -m SHA256SUMS && sha256sum -c SHA256SUMS' "$source/SECURITY.md"
verify() { # KEYS
    (cd release && minisign -V -p "../$1/SIGNING.pub" -m SHA256SUMS && sha256sum -c SHA256SUMS) > log 2>&1
}
sign() { # KEYS [PUBLIC]
    MINISIGN_KEY=$scratch/$1/secret "$source/tools/sign.sh" release shmview-test "$scratch/${2:-$1}/SIGNING.pub" > log 2>&1
}
die() {
    echo "FAILED: $1" >&2
    cat log >&2
    exit 1
}

sign keys || die "it does not sign"
verify keys || die "what it signed does not verify"
grep -q 'Trusted comment: shmview-test' log || die "the signature does not name the release"
[ "$(wc -l < release/SHA256SUMS)" -eq 2 ] || die "there are not two checksums"
if verify other; then die "another key verifies"; fi
cp release/second.whl kept
echo secoNd > release/second.whl
if verify keys; then die "a changed file verifies"; fi
cp kept release/second.whl
sed -i 'y/0123456789/1234567890/' release/SHA256SUMS
if verify keys; then die "changed checksums verify"; fi

# Signing again replaces both; the tree's key must be that of the secret key.
sign keys || die "it does not sign again"
verify keys || die "what it signed again does not verify"
if sign other keys; then die "it signed with a key that is not the tree's"; fi
[ ! -e release/SHA256SUMS.minisig ] || die "a signature by another key is left"
MINISIGN_KEY='' "$source/tools/sign.sh" release shmview-test keys/SIGNING.pub
[ ! -e release/SHA256SUMS.minisig ] || die "a release is signed without a key"
(cd release && sha256sum --quiet -c SHA256SUMS)

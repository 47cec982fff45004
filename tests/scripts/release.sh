#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# tools/release.sh signs no release of a tree that has placeholders of addresses, and names the files. It refuses
# before it builds anything.
set -euo pipefail
source=${SHMVIEW_SOURCE_DIR:?}
if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ] || ! command -v dpkg-parsechangelog > /dev/null ||
    ! git -C "$source" rev-parse HEAD > /dev/null 2>&1; then
    echo "not with a sanitizer, and only in a repository, with git and dpkg-dev"
    exit 77
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone -q --shared --no-tags "$source" "$scratch/tree"
cp "$source/tools/release.sh" "$scratch/tree/tools"
cd "$scratch/tree"

commit() {
    git -c user.name=test -c user.email=test@localhost -c commit.gpgsign=false commit -q -a --allow-empty -m test
}
key=
refuses() { # TEXT...
    local refused=yes text
    if MINISIGN_KEY=$key tools/release.sh "$scratch/dist" > "$scratch/log" 2>&1; then refused=; fi
    for text; do
        if [ -z "$refused" ] || ! grep -qF -- "$text" "$scratch/log"; then
            echo "FAILED: not refused with '$text':" >&2
            cat "$scratch/log" >&2
            exit 1
        fi
    done
}

# Each file with an address is one that the script looks at.
files=(packaging/arch/PKGBUILD packaging/rpm/shmview.spec tests/fuzz/oss-fuzz/Dockerfile tests/fuzz/oss-fuzz/project.yaml
    debian/control debian/changelog)
git rm -q --ignore-unmatch SIGNING.pub
sed -i 's/example\.org/shmview.test/g; s/shmview@packages\.debian\.org/maintainers@shmview.test/' "${files[@]}"
commit
refuses "no key to sign with"
key=../key
touch "$scratch/key"
refuses "the tree has no SIGNING.pub"
touch SIGNING.pub
git add SIGNING.pub
commit
refuses "this commit has no tag v"
key=
for file in "${files[@]}"; do echo "# example.org" >> "$file"; done
commit
refuses "${files[@]/#/ }"
git reset -q --hard HEAD^
sed -i 's/maintainers@shmview.test/shmview@packages.debian.org/' debian/control
commit
refuses "is still in debian/control:"

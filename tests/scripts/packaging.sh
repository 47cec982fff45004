#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The files for other systems' packages name this version, and files that exist.
set -euo pipefail
cd "${SHMVIEW_SOURCE_DIR:?}"
version=$(sed -n 's/^#define SHMVIEW_VERSION_[A-Z]* *//p' include/shmview/shmview.h | paste -sd .)
wrong=0
expect() { # FILE LINE
    grep -qxF -- "$2" "$1" || { echo "$1: no line '$2'" >&2; wrong=1; }
}
expect packaging/rpm/shmview.spec "Version: $version"
expect packaging/arch/PKGBUILD "pkgver=$version"
for page in man/*.[1-8]; do
    grep -q "^\.TH .*\"shmview $version\"" "$page" || { echo "$page: not of $version" >&2; wrong=1; }
done
# tools/release.sh replaces this line.
expect packaging/arch/PKGBUILD 'sha256sums=(SKIP SKIP)'
uplot=$(tools/uplot.sh --version)
expect packaging/rpm/shmview.spec "%global uplot $uplot"
expect packaging/arch/PKGBUILD "_uplot=$uplot"
mapfile -t programs < <(grep -o '/programs/[a-z.]*' packaging/container/compose.yaml | sed 's|/programs/||')
for name in "${programs[@]}"; do
    [ -e "packaging/container/$name" ] || { echo "compose.yaml: no $name" >&2; wrong=1; }
done
# podman reads this file as docker does, unless there is a .containerignore.
expect .dockerignore .git
expect .dockerignore build
[ ! -e .containerignore ] || { echo ".containerignore hides .dockerignore from podman" >&2; wrong=1; }
# The archive needs jansson's, which pkg-config --static names.
expect packaging/rpm/shmview.spec "Requires: pkgconfig(jansson)"
# Each component that CMake installs is in a package.
mapfile -t components < <(grep -oh 'COMPONENT [a-z-]*' cmake/ShmviewInstall.cmake {bindings/*,mpi,web}/CMakeLists.txt |
    cut -d ' ' -f 2 | sort -u)
for component in "${components[@]}"; do
    grep -Eq "^    put .*\b$component\b" packaging/arch/PKGBUILD || { echo "PKGBUILD: no component $component" >&2; wrong=1; }
done
# An upgrade with rpm restarts the daemon only if its configuration is right, and a removal does not.
scriptlet=$(sed -n '/^%postun -n shmviewd$/,/^%/ { /^%/d; p }' packaging/rpm/shmview.spec |
    sed 's|%{?systemd_postun_with_restart:.*}|echo restarts|; s|%{_bindir}/shmviewd|check|')
upgrade() { # STATUS_OF_CHECK PACKAGES_LEFT
    # shellcheck disable=SC2016 # the inner shell expands it
    bash -euc 'check() { [ "$*" = --check-config ] && return "$0"; }; eval "$2"' "$1" "$2" "$scriptlet" 2>&1
}
[ "$(upgrade 0 1)" = restarts ] || { echo "shmview.spec: no restart at an upgrade" >&2; wrong=1; }
[ -z "$(upgrade 0 0)" ] || { echo "shmview.spec: a restart at a removal" >&2; wrong=1; }
[[ $(upgrade 1 1) == *"is not restarted: its configuration is faulty" ]] ||
    { echo "shmview.spec: a restart with a faulty configuration" >&2; wrong=1; }
exit $wrong

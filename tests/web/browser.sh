#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Runs browser.mjs, or the script of its argument: the page of shmviewctl web in Chromium. Installs
# playwright-core and axe-core by the versions and checksums of package-lock.json into the build.
# Without Chromium, node or npm's registry the test is skipped.
set -euo pipefail
# Each process ends with its parent, so that none is left if ctest is killed.
with_parent=()
if setpriv --pdeathsig TERM true 2> /dev/null; then
    with_parent=(setpriv --pdeathsig TERM)
    [ -n "${SHMVIEW_WITH_PARENT:-}" ] || SHMVIEW_WITH_PARENT=1 exec "${with_parent[@]}" "$BASH" "$0" "$@"
fi
export SHMVIEW_WITH_PARENT
script=$(realpath "${1:-${SHMVIEW_SOURCE_DIR:?}/tests/web/browser.mjs}")
cd "${SHMVIEW_SOURCE_DIR:?}/tests/web"
modules=${SHMVIEW_BUILD_DIR:?}/tests/web/npm

skip() {
    echo "skipped: $1"
    exit 77
}
[ -n "${SHMVIEW_WEB:-}" ] || skip "built without libmicrohttpd"
for tool in node npm; do
    command -v $tool > /dev/null || skip "no $tool"
done
CHROMIUM=$(command -v chromium || command -v chromium-browser) || skip "no Chromium"
export CHROMIUM
mkdir -p "$modules"
if ! cmp -s package-lock.json "$modules/node_modules/.installed"; then
    cp package.json package-lock.json "$modules"
    (cd "$modules" && npm ci --ignore-scripts --no-audit --no-fund --silent) || skip "npm cannot install playwright-core"
    cp package-lock.json "$modules/node_modules/.installed"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
SCRATCH=$scratch MODULES=$modules SHMVIEW_SOCKET=$scratch/io.shmview HOME=$scratch \
    "${with_parent[@]}" timeout -k 10 550 "${with_parent[@]}" node "$script" "${@:2}"

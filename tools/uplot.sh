#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# uplot.sh [--installed | --version | ARCHIVE]: prints the folder of uPlot's npm package. If the tree has none, npm
# installs it into web/node_modules by the version and checksum of web/package-lock.json, or with --installed the script
# fails. With ARCHIVE, writes the package as a tar.gz of the folder uplot instead, whose bytes depend on those of the files and on
# $SOURCE_DATE_EPOCH only. --version prints the version that the tree requires, and installs nothing.
set -euo pipefail
installed=""
archive=""
version=""
case ${1:-} in
--installed) installed=yes ;;
--version) version=yes ;;
?*) archive=$(realpath "$1") ;;
esac
cd "$(dirname "$0")/.."
if [ -n "$version" ]; then
    sed -n 's/^ *"uplot": "\(.*\)"$/\1/p' web/package.json
    exit 0
fi

folder=$PWD/web/node_modules/uplot
if ! cmp -s web/package-lock.json web/node_modules/.installed; then
    if [ -e uplot/dist/uPlot.iife.min.js ]; then
        folder=$PWD/uplot # of an unpacked source package
    elif [ -n "$installed" ]; then
        exit 1
    elif ! command -v npm > /dev/null; then
        echo "uplot.sh: no npm that could install uPlot" >&2
        exit 1
    else
        # Without a network it should not be awaited for minutes.
        if ! fault=$(npm ci --prefix web --ignore-scripts --no-audit --no-fund --fetch-retries=1 \
            --fetch-retry-mintimeout=1000 --fetch-timeout=30000 --loglevel=error 2>&1); then
            printf 'uplot.sh: npm cannot install uPlot: %s\n' "${fault%%$'\n'*}" >&2
            exit 1
        fi
        cp web/package-lock.json web/node_modules/.installed
    fi
fi
if [ -z "$archive" ]; then
    echo "$folder"
    exit 0
fi
tar --sort=name --owner=0 --group=0 --numeric-owner --mode=u=rwX,go=rX --mtime="@${SOURCE_DATE_EPOCH:?}" \
    -C "$(dirname "$folder")" -c uplot | gzip -9n > "$archive"

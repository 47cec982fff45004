#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh OUT: builds the site into OUT/html. `make docs` calls it, after the packages that it needs are
# installed and the Python package is built. A warning of Sphinx, such as a dead link, is an error.
set -euo pipefail
cd "$(dirname "$0")/.."
out=$1

export PYTHONPATH=$PWD/build/python PYTHONDONTWRITEBYTECODE=1 SHMVIEW_SITE=$PWD/site
rm -rf "$out"
mkdir -p "$out"
/usr/bin/python3 site/assemble.py "$out/source"
/usr/bin/python3 -m sphinx -q -W --keep-going -b html -d "$out/trees" "$out/source" "$out/html"
echo "$out/html/index.html: $(find "$out/html" -name '*.html' | wc -l) pages"

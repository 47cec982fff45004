#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# build.sh FOLDER: builds this project in C and in C++, with pkg-config and with CMake, in FOLDER,
# and runs what comes out. Where the archive is installed, it builds the project in C with that, too. PKG_CONFIG_PATH and CMAKE_PREFIX_PATH must name the place of shmview if
# the system does not find it.
set -euo pipefail
cc=${CC:-cc}
case "$(basename "$cc")" in
clang*) cxx=${CXX:-clang++} ;;
*) cxx=${CXX:-c++} ;;
esac
here=$(dirname "$(realpath "$0")")
cd "$1"

version=$(pkg-config --modversion shmview)
flags=$(pkg-config --cflags --libs shmview)
check_run() {
    local printed
    printed=$("./$1")
    echo "$1: $printed"
    [ "$printed" = "$version no such segment" ]
}

# Lists of flags.
# shellcheck disable=SC2086
{
    "$cc" ${SHMVIEW_SANITIZE_FLAGS:-} -o pkg_config_c "$here/main.c" $flags
    "$cxx" -std=c++17 ${SHMVIEW_SANITIZE_FLAGS:-} -o pkg_config_cpp "$here/main.cpp" $flags
}
"${CMAKE:-cmake}" -S "$here" -B . -DWANTED_VERSION="$version" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_CXX_COMPILER="$cxx" -DCMAKE_C_FLAGS="${SHMVIEW_SANITIZE_FLAGS:-}" \
    -DCMAKE_CXX_FLAGS="${SHMVIEW_SANITIZE_FLAGS:-}" > log
"${CMAKE:-cmake}" --build . > log
for program in {pkg_config,cmake}_{c,cpp}; do
    check_run "$program"
done
if [ -e "$(pkg-config --variable=libdir shmview)/libshmview.a" ]; then
    flags=$(pkg-config --static --cflags --libs shmview)
    # shellcheck disable=SC2086
    "$cc" -o archive_c "$here/main.c" ${flags/-lshmview/-l:libshmview.a}
    if [[ $(readelf -d archive_c) == *libshmview* ]]; then
        echo "the archive was not used" >&2
        exit 1
    fi
    check_run archive_c
fi

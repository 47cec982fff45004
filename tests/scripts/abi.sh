#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Compares the ABIs of libshmview and libshmview-mpi, the layouts in shared memory, the constants of the
# public headers and the protocol with the baselines in tests/abi. An incompatible change must be
# announced: one of an ABI or of a constant by another soname, so that a program never runs with a library that it does
# not fit; one of the protocol by the minor version (the major one from 1.0 on); one of a layout by the version of that
# layout.
# `abi.sh update` writes new baselines.
set -euo pipefail
export LC_ALL=C
source=${SHMVIEW_SOURCE_DIR:-$(cd "$(dirname "$0")/../.." && pwd)}
build=${SHMVIEW_BUILD_DIR:-$source/build/dev}
library=${SHMVIEW_LIBRARY:-$build/client/libshmview.so}
baselines=$source/tests/abi
cc=${CC:-cc}

if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ] || [ "$(uname -m)" != x86_64 ] || [ ! -e "$library" ] ||
    ! command -v abidiff > /dev/null || ! "$cc" --version | grep -q 'Free Software'; then
    echo "not with a sanitizer, and only where libabigail and gcc are"
    exit 77
fi
# The baseline of libshmview-mpi is that of Open MPI: the types of MPI differ from one implementation to another.
mpi_library=$build/mpi/libshmview-mpi-openmpi.so
mpi=
if [ -e "$mpi_library" ] && command -v mpicc.openmpi > /dev/null; then
    mpi=mpi
elif [ "${1:-}" = update ]; then
    echo "abi.sh: the baseline of libshmview-mpi needs Open MPI" >&2
    exit 1
else
    echo "libshmview-mpi is not compared, because it is not built for Open MPI"
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

# What the baselines are about: the version that announces a change of it, and the macro of that version.
layouts=(layout mutex stream)
declare -A raise=([interface]="the minor version in shmview.h"
    [soname]="SHMVIEW_SOVERSION in CMakeLists.txt, and the names of the packages" [layout]=SHMVIEW_LAYOUT_VERSION
    [mutex]=SHMVIEW_MUTEX_LAYOUT_VERSION [stream]=SHMVIEW_STREAM_LAYOUT_VERSION)
define() {
    sed -n "s/^#define $1 *\([0-9]*\)u\?$/\1/p" "$source"/include/shmview/*.h
}
major=$(define SHMVIEW_VERSION_MAJOR)
{
    echo "interface $([ "$major" -gt 0 ] && echo "$major" || echo "0.$(define SHMVIEW_VERSION_MINOR)")"
    echo "soname $(readelf -d "$library" | sed -n 's/.*(SONAME).*\.so\.\([0-9]*\)\]$/\1/p')"
    for part in "${layouts[@]}"; do echo "$part $(define "${raise[$part]}")"; done
} > "$scratch/versions"
# Without this, a version that is gone would look like another one, and announce everything.
if grep -vE '^[a-z]+ [0-9.]+$' "$scratch/versions"; then
    echo "abi.sh: the public headers or the library do not have this version" >&2
    exit 1
fi

# Writes "struct PART NAME" for each struct that the public headers define, and "constant PART NAME" for each enumerator and
# each macro without parameters. The part is that of the header. The last names are in structs of a layout as well.
flags=(-std=c11 -D_GNU_SOURCE -I "$source/include")
for word in ${mpi:+$(mpicc.openmpi -show)}; do
    [[ $word != -I* ]] || flags+=(-isystem "${word#-I}")
done
(cd "$source/include" && printf '#include <%s>\n' shmview/*.h | if [ -n "$mpi" ]; then cat; else grep -v mpi; fi) > "$scratch/headers.c"
"$cc" "${flags[@]}" -E -dD "$scratch/headers.c" | awk -v folder="$source/include/shmview/" '
    /^# [0-9]+ "/ {
        name = substr($3, 2, length($3) - 2)
        part = index(name, folder) != 1 ? "" : "interface"
        name = substr(name, length(folder) + 1)
        if (part && name ~ /layout\.h$/)
            part = name == "layout.h" ? "layout" : substr(name, 1, index(name, "_") - 1)
        if (part && name ~ /^mpi/)
            part = "mpi"
    }
    !part { next }
    /^struct [a-z_]+ [{]/ { print "struct", part, $2 }
    /^#define SHMVIEW_[A-Z0-9_]+ ./ { print "constant", part, $2 }
    /^#/ { next }
    /enum[^;(]*[{]/ { inside = 1 }
    inside {
        for (rest = $0; match(rest, /SHMVIEW_[A-Z0-9_]+/); rest = substr(rest, RSTART + RLENGTH))
            print "constant", part, substr(rest, RSTART, RLENGTH)
    }
    /[}]/ { inside = 0 }
    END {
        print "constant stream SHMVIEW_LOSSLESS\nconstant stream SHMVIEW_LATEST\nconstant stream SHMVIEW_MANY_WRITERS"
        print "constant mutex SHMVIEW_MUTEX_OF_THREADS\nconstant mutex SHMVIEW_MUTEX_OF_PROCESSES"
    }' > "$scratch/list"

# Writes "PART NAME VALUE" for each constant. Two macros are no numbers, and the number of a release may change.
{
    cat "$scratch/headers.c"
    cat << 'END'
#include <stdio.h>
#define PUT(name) printf("%s%llu\n", (name) < 0 ? "-" : "", (name) < 0 ? 0 - (unsigned long long)(name) : (name) + 0ull)
int main(void) {
END
    grep -vE ' SHMVIEW_(INLINE|LAYOUT_ASSERT|VERSION_[A-Z]+)$' "$scratch/list" |
        sed -n 's/^constant \(.*\) \(.*\)/printf("\1 \2 "), PUT(\2);/p'
    echo '}'
} > "$scratch/constants.c"
"$cc" "${flags[@]}" -Werror -o "$scratch/constants" "$scratch/constants.c"
"$scratch/constants" | sort -u > "$scratch/constants.txt"

write=(abidw --no-show-locs --no-comp-dir-path --no-corpus-path --drop-undefined-syms)
"${write[@]}" --drop-private-types --headers-dir "$source/include" --out-file "$scratch/libshmview.abi" "$library"
[ -z "$mpi" ] ||
    "${write[@]}" --drop-private-types --headers-dir "$source/include" --out-file "$scratch/libshmview-mpi.abi" "$mpi_library"
# A variable of each struct, so that the debugging information describes it.
for part in "${layouts[@]}"; do
    {
        cat "$scratch/headers.c"
        sed -n "s/^struct $part \(.*\)/struct \1 a_\1;/p" "$scratch/list"
    } > "$scratch/$part.c"
    "$cc" "${flags[@]}" -ffile-prefix-map="$scratch/=" -g -shared -fPIC -o "$scratch/$part.so" "$scratch/$part.c"
    "${write[@]}" --out-file "$scratch/$part.abi" "$scratch/$part.so"
done

if [ "${1:-}" = update ]; then
    # the folder of the sources is another one on each machine
    sed -i "s|path='$source/|path='|" "$scratch"/*.abi
    cp "$scratch"/{versions,constants.txt,*.abi} "$baselines"
    cp "$source/common/wire/io.shmview.varlink" "$baselines"
    exit 0
fi

wrong=0
# refuse THING PART: the change of THING is wrong, unless the version of PART differs from the baseline's.
refuse() {
    if grep -qx "$(grep "^$2 " "$scratch/versions")" "$baselines/versions"; then
        wrong=1
        cat "$scratch/report" >&2
        echo "$1: incompatible with tests/abi; raise ${raise[$2]}, and run tests/scripts/abi.sh update" >&2
    fi
}
# Bit 3 of abidiff's exit status: incompatible; bit 2: some change; bits 0 and 1: it failed.
compare() {
    local status=0
    abidiff --no-added-syms --suppressions "$baselines/opaque.suppr" "$baselines/$1" "$scratch/$1" > "$scratch/report" 2>&1 || status=$?
    [ $((status & 3)) -eq 0 ] || { cat "$scratch/report" >&2; exit 1; }
    [ "$status" -eq 0 ]
}
compare libshmview.abi || refuse libshmview soname
[ -z "$mpi" ] || compare libshmview-mpi.abi || refuse libshmview-mpi soname
for part in "${layouts[@]}"; do
    compare "$part.abi" || refuse "shared memory, $part" "$part"
done
# A constant that is new is compatible.
for part in interface ${mpi:+"$mpi"} "${layouts[@]}"; do
    comm -23 <(grep "^$part " "$baselines/constants.txt") <(grep "^$part " "$scratch/constants.txt") > "$scratch/changed"
    while read -r _ name value; do
        echo "$name was $value, and is $(sed -n "s/^$part $name //p" "$scratch/constants.txt" | grep . || echo gone)"
    done < "$scratch/changed" > "$scratch/report"
    [ ! -s "$scratch/report" ] || refuse "constants, $part" "$(sed -E 's/^(interface|mpi)$/soname/' <<< "$part")"
done
/usr/bin/python3 "$baselines/protocol.py" "$baselines/io.shmview.varlink" "$source/common/wire/io.shmview.varlink" \
    > "$scratch/report" || refuse "the protocol" interface
[ $wrong -eq 0 ] || exit 1
functions() {
    nm -D --defined-only "$1" | grep -c ' T '
}
echo "compatible or announced: $(functions "$library") functions${mpi:+ and $(functions "$mpi_library") of libshmview-mpi}," \
    "the protocol, $(paste -sd , "$scratch/versions")"

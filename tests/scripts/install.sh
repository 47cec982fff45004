#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# A project outside the tree (tests/stranger) builds and runs with the files of `cmake --install`
# alone, by pkg-config and by find_package().
set -euo pipefail
build=${SHMVIEW_BUILD_DIR:?}
cc=${CC:-cc}
cmake=${CMAKE:-cmake}
if [ ! -e "${SHMVIEW_LIBRARY:=}" ] || ! command -v "$cc" > /dev/null; then
    echo "no library, or no compiler"
    exit 77
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch"

# The prefix is arbitrary: files must find each other by their relative places.
"$cmake" --install "$build" --prefix "$scratch/usr" > log
for file in bin/shmviewd bin/shmviewctl share/man/man1/shmviewctl.1 \
    share/bash-completion/completions/shmviewctl \
    share/shmview/io.shmview.varlink share/doc/shmview/shmviewd.json \
    share/man/man5/shmviewd.json.5 lib/{sysusers,tmpfiles}.d/shmviewd.conf; do
    [ -s "usr/$file" ] || { echo "not installed: $file" >&2; exit 1; }
done
# The page is optional.
if [ -e "$build/web/shmview-web" ]; then
    for file in libexec/shmview/shmview-web lib/systemd/user/shmview-web.{service,socket}; do
        [ -s "usr/$file" ] || { echo "not installed: $file" >&2; exit 1; }
    done
fi
compgen -G 'usr/share/zsh/*/_shmviewctl' > /dev/null || { echo "no completion for zsh" >&2; exit 1; }
if [[ $(readelf -d usr/bin/shmviewd) == *libsystemd.so* ]]; then
    for unit in usr/lib/systemd/{system,user}/shmviewd.service; do
        [ -s "${unit%service}socket" ]
        grep -qx "ExecStart=$scratch/usr/bin/shmviewd" "$unit"
    done
    # Both services run the same program, so they allow the same system calls.
    diff <(grep '^SystemCallFilter=' usr/lib/systemd/system/shmviewd.service) \
        <(grep '^SystemCallFilter=' usr/lib/systemd/user/shmviewd.service)
elif compgen -G 'usr/lib/systemd/*/shmviewd.*'; then
    echo "units of a daemon that does not know systemd" >&2
    exit 1
fi
# The headers of libshmview-mpi come with it.
[ -z "$(find usr -name 'libshmview-mpi*.so')" ] || [ -s usr/include/shmview/mpi.h ]
diff -r -x 'mpi*.h' "${SHMVIEW_SOURCE_DIR:?}/include/shmview" usr/include/shmview
metadata=$(find usr -path '*/shmview-*.dist-info/METADATA')
if [ -n "$metadata" ]; then
    PYTHONPATH=$(dirname "$(dirname "$metadata")") /usr/bin/python3 -c \
        'import importlib.metadata as m; print("Python module", m.version("shmview"))'
fi
pc=$(find usr -name shmview.pc)
libdir=$scratch/$(dirname "$(dirname "$pc")")
# finds its library without LD_LIBRARY_PATH
usr/bin/shmviewctl --version
export LD_LIBRARY_PATH=$libdir
# `readlink` must resolve each link of the library to a file.
for name in libshmview.so libshmview.so.0; do
    [ -s "$(readlink -f "$libdir/$name")" ] || { echo "dangling: $name" >&2; exit 1; }
done

mkdir stranger
PKG_CONFIG_PATH=$libdir/pkgconfig CMAKE_PREFIX_PATH=$scratch/usr \
    bash "$SHMVIEW_SOURCE_DIR/tests/stranger/build.sh" stranger

# The archive adds no names to a program but those of the headers.
names_of() { # ARCHIVE
    nm -g --defined-only "$1" | sed -n 's/^[0-9a-f]* [A-Z] //p' | sort
}
if [ -e "$libdir/libshmview.a" ]; then
    names_of "$libdir/libshmview.a" > names
    grep -v '^shmview_' names > extra || true
    [ ! -s extra ] || { echo "names of the archive: $(cat extra)" >&2; exit 1; }
    [ -x stranger/archive_c ]
fi
# It has the same names after -flto, with which systems build their packages.
if [ -s names ] && "$cc" -O0 -flto -o stranger/trial -x c - <<< "int main(void) { return 0; }"; then
    "$cmake" -S "$SHMVIEW_SOURCE_DIR" -B lto -DCMAKE_BUILD_TYPE=None -DCMAKE_C_COMPILER="$cc" \
        -DCMAKE_C_FLAGS="-O0 -flto" -DCMAKE_INSTALL_PREFIX="$scratch/here" -DCMAKE_INSTALL_LIBDIR="$scratch/away/lib" \
        -DSHMVIEW_{TESTS,TOOLS,EXAMPLES,BENCH,MPI}=OFF -DSHMVIEW_{PYTHON,RUBY}= > log
    "$cmake" --build lto --parallel 2 --target shmview_archive > log 2>&1 || { cat log >&2; exit 1; }
    names_of lto/client/libshmview.a | diff names - >&2 || { echo "names of the archive after -flto" >&2; exit 1; }
    # The paths for pkg-config may be absolute and elsewhere.
    mkdir -p away/lib/pkgconfig here
    cp lto/shmview.pc away/lib/pkgconfig
    found=$(PKG_CONFIG_PATH=away/lib/pkgconfig pkg-config --variable=libdir shmview)
    [ "$(realpath "$found")" = "$scratch/away/lib" ] || { echo "libdir of shmview.pc: $found" >&2; exit 1; }
fi

# DESTDIR comes before the prefix, and no file may contain it.
DESTDIR=$scratch/dest "$cmake" --install "$build" --prefix /opt/shmview > log
if grep -rqF "$scratch" dest/opt/shmview --include='*.pc' --include='*.cmake' --include='*.service'; then
    echo "DESTDIR found its way into an installed file" >&2
    exit 1
fi
[ -x dest/opt/shmview/bin/shmviewd ]

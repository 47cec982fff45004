#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` leaves behind is enough for a stranger: a project outside the tree
# (tests/stranger) builds with pkg-config and with find_package(), and runs.
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

# Any prefix: the files must find each other from where they lie.
"$cmake" --install "$build" --prefix "$scratch/usr" > log
for file in bin/shmviewd bin/shmviewctl share/man/man1/shmviewctl.1 \
    share/bash-completion/completions/shmviewctl \
    share/shmview/io.shmview.varlink share/doc/shmview/shmviewd.json \
    share/man/man5/shmviewd.json.5 lib/systemd/{system,user}/shmviewd.{service,socket} \
    lib/{sysusers,tmpfiles}.d/shmviewd.conf; do
    [ -s "usr/$file" ] || { echo "not installed: $file" >&2; exit 1; }
done
compgen -G 'usr/share/zsh/*/_shmviewctl' > /dev/null || { echo "no completion for zsh" >&2; exit 1; }
for unit in usr/lib/systemd/*/shmviewd.service; do
    grep -qx "ExecStart=$scratch/usr/bin/shmviewd" "$unit"
done
diff -r "${SHMVIEW_SOURCE_DIR:?}/include/shmview" usr/include/shmview
metadata=$(find usr -path '*/shmview-*.dist-info/METADATA')
if [ -n "$metadata" ]; then
    PYTHONPATH=$(dirname "$(dirname "$metadata")") /usr/bin/python3 -c \
        'import importlib.metadata as m; print("Python module", m.version("shmview"))'
fi
pc=$(find usr -name shmview.pc)
libdir=$scratch/$(dirname "$(dirname "$pc")")
# without being told where the library is
usr/bin/shmviewctl --version
export LD_LIBRARY_PATH=$libdir
# readlink of each link of the library's names must lead to a file.
for name in libshmview.so libshmview.so.0; do
    [ -s "$(readlink -f "$libdir/$name")" ] || { echo "dangling: $name" >&2; exit 1; }
done

mkdir stranger
PKG_CONFIG_PATH=$libdir/pkgconfig CMAKE_PREFIX_PATH=$scratch/usr \
    bash "$SHMVIEW_SOURCE_DIR/tests/stranger/build.sh" stranger

# DESTDIR goes in front of the prefix and leaves no trace in the files.
DESTDIR=$scratch/dest "$cmake" --install "$build" --prefix /opt/shmview > log
if grep -rqF "$scratch" dest/opt/shmview --include='*.pc' --include='*.cmake' --include='*.service'; then
    echo "DESTDIR found its way into an installed file" >&2
    exit 1
fi
[ -x dest/opt/shmview/bin/shmviewd ]

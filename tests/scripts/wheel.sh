#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The self-contained wheel and the source archive: two builds in different folders are equal byte for
# byte, the wheel needs nothing but glibc, and in an empty virtual environment without network it
# starts its own daemon.
set -euo pipefail
source=${SHMVIEW_SOURCE_DIR:?}
if [ -n "${SHMVIEW_SANITIZE_FLAGS:-}" ]; then
    echo "not with a sanitizer"
    exit 77
fi
python=/usr/bin/python3
for needed in "$python -m pip --version" "$python-config --help" "readelf --version" "cmake --version"; do
    if ! $needed > /dev/null 2>&1; then
        echo "no $needed"
        exit 77
    fi
done

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset SHMVIEW_BUILD_DIR
export PYTHONDONTWRITEBYTECODE=1

# In the clone, as `make wheel` does it.
mkdir "$scratch"/{clone,archive}
(cd "$source/bindings/python" && $python -c 'import sys, backend
backend.build_wheel(sys.argv[1], {"bundle": "yes"}); backend.build_sdist(sys.argv[1])' "$scratch/clone")
wheel=$(basename "$scratch"/clone/*.whl)
version=$(sed -n 's/^#define SHMVIEW_VERSION_[A-Z]* *//p' "$source/include/shmview/shmview.h" | paste -sd .)

# From the archive, by pip, in a folder with another name.
tar -xzf "$scratch/clone/shmview-$version.tar.gz" -C "$scratch/archive"
$python -m pip -q wheel --no-index --no-deps --no-cache-dir --config-settings=bundle=yes \
    -w "$scratch/archive" "$scratch/archive/shmview-$version" 2> "$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
cmp "$scratch/clone/$wheel" "$scratch/archive/$wheel"
(cd "$scratch/archive/shmview-$version/bindings/python" && $python -c 'import sys, backend
backend.build_sdist(sys.argv[1])' "$scratch/archive")
cmp "$scratch"/{clone,archive}/"shmview-$version.tar.gz"

# `python3 -m build` makes the archive of the clone, and the wheel from that archive.
if $python -m build --version > /dev/null 2>&1; then
    PIP_NO_INDEX=1 $python -m build --config-setting=bundle=yes --outdir "$scratch/both" "$source/bindings/python" \
        > "$scratch/log" 2>&1 || { cat "$scratch/log" >&2; exit 1; }
    cmp "$scratch"/{clone,both}/"$wheel"
    cmp "$scratch"/{clone,both}/"shmview-$version.tar.gz"
fi

# The files of the wheel.
$python -m zipfile -e "$scratch/clone/$wheel" "$scratch/wheel"
cd "$scratch/wheel"
limit=$(sed -n 's/.*manylinux_\([0-9]*\)_\([0-9]*\)_.*/\1.\2/p' <<< "$wheel")
# The tag follows from what is inside, so a release made on Debian 12 must not become stricter unnoticed.
if grep -qx VERSION_CODENAME=bookworm /etc/os-release && [ "$limit" != 2.34 ]; then
    echo "$wheel: on Debian 12 the tag must be manylinux_2_34" >&2
    exit 1
fi
for file in shmview/*.so shmview/native/*; do
    newest=$(readelf --version-info --wide "$file" | grep -o '\bGLIBC_[0-9.]*' | sed 's/GLIBC_//' | sort -V | tail -1)
    [ "$(printf '%s\n' "$newest" "$limit" | sort -V | tail -1)" = "$limit" ] ||
        { echo "$file needs glibc $newest" >&2; exit 1; }
    ! readelf --version-info "$file" | grep -c DT_RELR > /dev/null || { echo "$file needs glibc 2.36" >&2; exit 1; }
    while read -r name; do
        case $name in
        libc.so.6 | libm.so.6 | libpthread.so.0 | libdl.so.2 | librt.so.1 | ld-linux*) ;;
        *) [ -e "shmview/native/$name" ] || { echo "$file needs $name" >&2; exit 1; } ;;
        esac
    done < <(readelf -d "$file" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p')
    path=$(readelf -d "$file" | sed -n 's/.*(R.*PATH).*\[\(.*\)\]/\1/p')
    case $file:$path in
    shmview/native/libshmview.so.0:\$ORIGIN | shmview/native/shmviewd:\$ORIGIN) ;;
    shmview/native/lib*:) ;;
    shmview/_*.so:\$ORIGIN/native) ;;
    *) echo "$file has the search path '$path'" >&2; exit 1 ;;
    esac
    case $file in
    shmview/*.so | shmview/native/libshmview.so.0 | shmview/native/shmviewd)
        [[ $(readelf -d "$file") =~ BIND_NOW|Flags:.*\ NOW ]] || { echo "$file binds late" >&2; exit 1; }
        [[ $(readelf -W --dyn-syms "$file") == *__stack_chk_fail* ]] || { echo "$file has no stack protector" >&2; exit 1; }
        ;;
    esac
    ! grep -qF -e "$source" -e "$scratch" "$file" || { echo "$file has a path of its build" >&2; exit 1; }
done
info=shmview-$version.dist-info
names=$(cd shmview/native && printf '%s\n' * | sed 's/\.so.*//; s/^lib//' | sort | paste -sd ' ')
[ "$names" = 'jansson lmdb shmview shmviewd uv' ] || { echo "the wheel has $names" >&2; exit 1; }
# Each has its licence, and the text of any other licence that this refers to.
for name in jansson lmdb uv; do
    compgen -G "$info/licenses/*$name*" > /dev/null || { echo "no licence of $name" >&2; exit 1; }
done
while read -r name; do
    [ -s "$info/licenses/$name" ] || { echo "no text of $name" >&2; exit 1; }
done < <(grep -rhos 'common-licenses/[A-Za-z0-9.+-]*[A-Za-z0-9]' "$info/licenses" | sort -u)
cmp "$info/licenses/LICENSE" "$source/LICENSE"
grep -qx "Version: $version" "$info/METADATA"
# Fields of this version of the format, which the folder of licences needs, too.
grep -qx 'Metadata-Version: 2\.4' "$info/METADATA"
grep -qxE 'License-Expression: Apache-2\.0 AND BSD-2-Clause AND ISC AND MIT AND OLDAP-2\.8( AND dtoa)?' "$info/METADATA"
diff <(sed -n 's/^License-File: //p' "$info/METADATA") <(cd "$info/licenses" && find . -type f -printf '%P\n' | LC_ALL=C sort)

# In an empty virtual environment, without network where a namespace can be made.
offline=()
unshare -n true 2> /dev/null && offline=(unshare -n)
$python -m venv --without-pip "$scratch/venv"
"${offline[@]}" $python -m pip -q --python "$scratch/venv/bin/python" install --no-index --no-cache-dir "$scratch/clone/$wheel"
mkdir -m 700 "$scratch/run"
cd "$scratch/run"
"${offline[@]}" env -i XDG_RUNTIME_DIR="$scratch/run" SHMVIEW_CONFIG=/dev/null SHMVIEW_IDLE_EXIT=1 PATH=/nowhere \
    "$scratch/venv/bin/python" -I "$source/tests/scripts/parts/wheel_tour.py"
for _ in $(seq 200); do
    [ -e "$scratch/run/shmviewd/session/io.shmview" ] || break
    sleep 0.05
done
[ ! -e "$scratch/run/shmviewd/session/io.shmview" ]
echo "$wheel"

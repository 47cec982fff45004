#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# musl.sh: builds library, daemon and their C tests with musl, as static programs, in build/musl, and runs
# the tests. Debian has no libraries for musl. This builds those that are needed from Debian's source
# packages of this release, once, into build/musl-libraries.
set -euo pipefail
cd "$(dirname "$0")/.."
tools/deps.sh musl
libraries=$PWD/build/musl-libraries
headers=/usr/include/$(dpkg-architecture -qDEB_HOST_MULTIARCH)

# musl has neither the headers of Linux nor sys/queue.h. Those of the system come after its own.
mkdir -p "$libraries"
cat > "$libraries/musl-cc" << END
#!/bin/sh
exec musl-gcc "\$@" -idirafter /usr/include -idirafter $headers
END
chmod +x "$libraries/musl-cc"
export CC=$libraries/musl-cc

build_libraries() {
    local work suite here=$libraries
    work=$(mktemp -d)
    # shellcheck disable=SC2064
    trap "rm -rf '$work'" EXIT
    suite=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
    mkdir -p "$work/lists/partial" "$work/archives/partial"
    echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg]" \
        "${DEBIAN_MIRROR:-http://deb.debian.org/debian} $suite main" > "$work/main.list"
    cat > "$work/apt.conf" << END
Dir::State::lists "$work/lists";
Dir::Cache "$work";
Dir::Etc::sourcelist "$work/main.list";
Dir::Etc::sourceparts "-";
Acquire::Check-Valid-Until "false";
APT::Sandbox::User "root";
END
    export APT_CONFIG=$work/apt.conf
    apt-get -q update
    (cd "$work" && apt-get -q source libuv1 jansson lmdb check)
    unset APT_CONFIG

    local settings=(-Wno-dev -DCMAKE_BUILD_TYPE=Release -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_TESTING=OFF)
    cmake "${settings[@]}" -S "$work"/libuv1-*/ -B "$work/uv"
    cmake --build "$work/uv" -j "$(nproc)" --target uv_a
    cmake "${settings[@]}" -S "$work"/jansson-*/ -B "$work/jansson" -DJANSSON_BUILD_DOCS=OFF -DJANSSON_WITHOUT_TESTS=ON -DJANSSON_EXAMPLES=OFF
    cmake --build "$work/jansson" -j "$(nproc)" --target jansson
    cmake "${settings[@]}" -S "$work"/check-*/ -B "$work/check"
    cmake --build "$work/check" -j "$(nproc)" --target check compat
    make -C "$work"/lmdb-*/libraries/liblmdb CC="$CC" liblmdb.a

    mkdir -p "$here/include" "$here/lib/pkgconfig"
    cp -r "$work"/libuv1-*/include/. "$work"/jansson/include/. "$work"/lmdb-*/libraries/liblmdb/lmdb.h \
        "$work"/check/src/check.h "$here/include"
    [ -e "$here/include/jansson.h" ] || cp "$work"/jansson-*/src/jansson.h "$here/include"
    cp "$work/uv/libuv_a.a" "$here/lib/libuv.a"
    cp "$work/jansson/lib/libjansson.a" "$work"/lmdb-*/libraries/liblmdb/liblmdb.a "$here/lib"
    cp "$work/check/src/libcheck.a" "$work/check/lib/libcompat.a" "$here/lib"
    local module libs
    while read -r module libs; do
        printf '%s\n' "Name: $module" "Description: $module for musl" \
            "Version: $(pkg-config --modversion "$module")" "Cflags: -I$here/include" "Libs: -L$here/lib $libs" \
            > "$here/lib/pkgconfig/$module.pc"
    done << END
libuv -luv -pthread
jansson -ljansson
lmdb -llmdb -pthread
check -lcheck -lcompat -lm -pthread
END
    touch "$here/complete"
}
if [ ! -e "$libraries/complete" ]; then
    echo "musl.sh: building libuv, jansson, lmdb and check; the log is $libraries/build.log"
    build_libraries > "$libraries/build.log" 2>&1
fi

export PKG_CONFIG_LIBDIR=$libraries/lib/pkgconfig
cmake --preset musl > /dev/null
cmake --build --preset musl -j "$(nproc)" -- -s
# Left out, because they hold for glibc only. The first tests let functions of the C library fail one by
# one, or compare its texts. The others rely on properties that musl does not have: its sysconf() counts
# only the processors that the thread may use, its stdio writes by writev(), and its malloc() returns freed
# memory to the kernel.
glibc='check_(dlpack_import|segment_layout|fields_text|digest|listener|refusal|config_faults|config_read|config_reader|store_faults|store_room|descriptors)'
other='check_(spin|lock|optimistic|survivors)'
ctest --preset musl -E "^($glibc|$other)\$" -j "$(($(nproc) * 2))"

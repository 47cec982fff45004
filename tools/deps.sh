#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# deps.sh build|bench|mpi|demo|deb|wheel|release|analyze|docs|check|check-all|coverage|musl|ci: installs the Debian packages that are missing for that purpose.
# If none is missing, it does not use root, and the network only for uPlot: for a purpose that builds the page, npm installs
# it into web/node_modules if npm is there and uPlot is not. Only packages and releases need it.
set -euo pipefail
cd "$(dirname "$0")/.."

build=(gcc make cmake pkg-config libc6-dev libuv1-dev libjansson-dev liblmdb-dev libsystemd-dev
    libsndfile1-dev libsmartcols-dev libncurses-dev libcairo2-dev libmicrohttpd-dev libnuma-dev
    python3-dev ruby ruby-dev)
# What the bench compares streams with; it leaves these rows out where they are missing.
bench=("${build[@]}" libzmq3-dev libiceoryx-binding-c-dev iceoryx)
# For both implementations of MPI, and for nodes that are namespaces.
mpi_libraries=(libopenmpi-dev libmpich-dev)
mpi=("${build[@]}" "${mpi_libraries[@]}" openmpi-bin mpich iproute2)
demo=("${build[@]}" python3-numpy)
packages=("${build[@]}" "${mpi_libraries[@]}" architecture-properties build-essential debhelper dh-python dpkg-dev file libfontconfig-dev libpython3-dev)
deb=("${packages[@]}")
# npm depends on hundreds of packages, so it is installed only if it has something to do.
tools/uplot.sh --installed > /dev/null || command -v npm > /dev/null || deb+=(ca-certificates npm)
wheel=(gcc make cmake pkg-config libc6-dev binutils libuv1-dev libjansson-dev liblmdb-dev python3-dev)
check=("${packages[@]}" binutils check libsubunit-dev g++ ninja-build spin systemd systemd-container util-linux zsh
    cython3 mypy python3-mpi4py python3-numpy python3-pip python3-prometheus-client python3-pyte python3-pytest
    ruby-minitest openmpi-bin mpich iproute2)
# CPython's own tests; the name of their package contains the version.
case "$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)" in
bookworm) check+=(libpython3.11-testsuite) ;;
trixie) check+=(libpython3.13-testsuite) ;;
esac
# What the slow tests need besides: without it they are skipped.
check_all=("${check[@]}" abigail-tools chromium git lintian minisign nodejs npm python3-build python3-venv)
[ "$(dpkg --print-architecture 2> /dev/null)" != amd64 ] || check_all+=(gcc-aarch64-linux-gnu libc6-dev-arm64-cross)
coverage=("${check[@]}" gcovr python3-coverage)
docs=("${build[@]}" furo git mandoc python3-matplotlib python3-myst-parser python3-sphinx)
ci=("${check_all[@]}" "${docs[@]}" clang clang-format shellcheck reuse)
analyze=("${build[@]}" "${mpi_libraries[@]}" clang-tidy)
release=("${deb[@]}" "${wheel[@]}" git minisign reprotest disorderfs faketime)
musl=(gcc make cmake pkg-config libc6-dev dpkg-dev musl-tools libuv1-dev libjansson-dev liblmdb-dev check)

case "${1:-}" in
build) wanted=("${build[@]}") ;;
bench) wanted=("${bench[@]}") ;;
mpi) wanted=("${mpi[@]}") ;;
demo) wanted=("${demo[@]}") ;;
deb) wanted=("${deb[@]}") ;;
wheel) wanted=("${wheel[@]}") ;;
release) wanted=("${release[@]}") ;;
check) wanted=("${check[@]}") ;;
check-all) wanted=("${check_all[@]}") ;;
coverage) wanted=("${coverage[@]}") ;;
analyze) wanted=("${analyze[@]}") ;;
docs) wanted=("${docs[@]}") ;;
musl) wanted=("${musl[@]}") ;;
ci) wanted=("${ci[@]}") ;;
*)
    echo "usage: deps.sh build|bench|mpi|demo|deb|wheel|release|analyze|docs|check|check-all|coverage|musl|ci" >&2
    exit 2
    ;;
esac

# install_uplot PURPOSE: where it fails, the page has no lines and no histograms.
install_uplot() {
    local fault
    case $1 in
    wheel | analyze | musl) return 0 ;;
    deb | release) tools/uplot.sh > /dev/null ;;
    *)
        if [ ! -e web/package-lock.json ] || ! command -v npm > /dev/null; then return 0; fi
        fault=$(tools/uplot.sh 2>&1 > /dev/null) || echo "deps.sh: the page will have no lines and no histograms: $fault"
        ;;
    esac
}

# Other systems: what `build` needs, in their names.
elsewhere() {
    local family
    family=$(sed -n 's/^ID\(_LIKE\)\?=//p' /etc/os-release | tr -d '"' | tr '\n' ' ')
    case " $family " in
    *" fedora "* | *" rhel "*)
        echo "dnf install gcc make cmake pkgconf-pkg-config libuv-devel jansson-devel lmdb-devel systemd-devel" \
            "libsndfile-devel libsmartcols-devel ncurses-devel cairo-devel fontconfig-devel libmicrohttpd-devel numactl-devel python3-devel ruby-devel"
        ;;
    *" arch "*)
        echo "pacman -S --needed gcc make cmake pkgconf libuv jansson lmdb systemd-libs libsndfile util-linux-libs" \
            "ncurses cairo fontconfig libmicrohttpd numactl python ruby"
        ;;
    *" alpine "*)
        echo "apk add bash gcc make cmake pkgconf musl-dev linux-headers bsd-compat-headers libuv-dev jansson-dev lmdb-dev libsndfile-dev" \
            "util-linux-dev ncurses-dev cairo-dev fontconfig-dev libmicrohttpd-dev numactl-dev python3-dev ruby-dev"
        ;;
    *) echo "these packages of Debian, or their like, are needed: ${wanted[*]}" ;;
    esac
}
if ! command -v dpkg-query > /dev/null; then
    echo "deps.sh: no Debian system: $(elsewhere)" >&2
    install_uplot "$1"
    exit 0
fi

# Reads Provides too, because on newer releases pkgconf provides pkg-config. A package of another
# architecture is none.
native=$(dpkg --print-architecture)
installed=$(dpkg-query -W -f '${db:Status-Status} ${Architecture} ${Package} ${Provides}\n' |
    sed -n "s/^installed \($native\|all\) //p" | tr -s ' ,' '\n')
missing=()
for package in "${wanted[@]}"; do
    grep -qxF "$package" <<< "$installed" || missing+=("$package")
done
if [ ${#missing[@]} -eq 0 ]; then
    install_uplot "$1"
    exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo > /dev/null; then
        echo "deps.sh: neither root nor sudo; please install: ${missing[*]}" >&2
        exit 1
    fi
    as_root=(sudo)
fi

apt() {
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q -y "$@"
}
echo "deps.sh: installing ${missing[*]}"
if ! apt install --no-install-recommends "${missing[@]}"; then
    # The usual reason is that the package lists are missing or old.
    if ! apt update || ! apt install --no-install-recommends "${missing[@]}"; then
        echo "deps.sh: apt-get failed; please install: ${missing[*]}" >&2
        exit 1
    fi
fi
install_uplot "$1"

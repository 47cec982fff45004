#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Installs, uses, upgrades, removes and purges the Debian packages of deb.sh under a real systemd:
# tests/systemd/packages.sh in a container.
# shellcheck source=tests/systemd/container.sh
. "${SHMVIEW_SOURCE_DIR:?}/tests/systemd/container.sh"

debs=("$build"/tests/debs/*.deb)
[ -e "${debs[0]}" ] || skip "no packages were made"

fill_container() {
    local deb
    mkdir "$root"/test/{1,2}
    cp "${debs[@]}" "$root/test/1"
    cp -r "$source/tests/stranger" "$source/tests/scripts/tour.py" "$source/mpi/examples/phases.c" "$root/test"
    # packages with the same contents and a higher version
    for deb in "${debs[@]}"; do
        dpkg-deb -R "$deb" "$scratch/deb"
        sed -i 's/^\(Version: .*-\)1$/\12/; s/ (= \([^)]*-\)1)/ (= \12)/g' "$scratch/deb/DEBIAN/control"
        dpkg-deb --root-owner-group -Znone -b "$scratch/deb" "$root/test/2" > "$out/repack"
        rm -r "$scratch/deb"
    done
    # hooks that do not matter to this test, and take time
    rm -f "$root/usr/sbin/policy-rc.d" "$root/var/lib/man-db/auto-update"
}
run_container packages.sh

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The Debian packages under systemd, in the container of tests/scripts/packages.sh, as root. Those
# in /test/2 have a higher version than those in /test/1.
set -Eeuo pipefail
# shellcheck source=tests/systemd/steps.sh
. /test/steps.sh

export DEBIAN_FRONTEND=noninteractive
socket=shmviewd.socket
mapfile -t packages < <(for deb in /test/1/*.deb; do dpkg-deb -f "$deb" Package; done)

# has_package NAME
has_package() {
    [[ " ${packages[*]} " == *" $1 "* ]]
}

# Lists the files of the packages, without what dpkg keeps in its records. Names that are not ours
# may come and go, because below the container's overlay is the machine, which other programs use.
everything() {
    find /etc /usr /var/lib /var/cache /run /dev/shm -xdev \
        \( -path /var/lib/dpkg -o -path /run/systemd \) -prune -o -path '*shmview*' -print | sort
}

step "install"
make_people
dpkg -P "${packages[@]}" > /test/dpkg.log 2>&1 # the machine may have them
systemctl daemon-reload
everything > /test/before
dpkg -i /test/1/*.deb > /test/dpkg.log 2>&1 || die "dpkg -i: $(cat /test/dpkg.log)"
[ -z "$(dpkg --audit)" ]
dpkg -V "${packages[@]}"
is ActiveState inactive
[ "$(property ActiveState $socket)" = active ]
[ "$(systemctl is-enabled $socket)" = enabled ]
[ "$(stat -c %U:%a /run/shmviewd)" = shmviewd:755 ]
[ "$(stat -c %a /run/shmviewd/io.shmview)" = 666 ]
[ "$(getent passwd shmviewd | cut -d : -f 7)" = /usr/sbin/nologin ]

step "two users"
party alice alice
is ActiveState active
[ "$(stat -c %U "/proc/$(property MainPID)")" = shmviewd ]
expect alice 'create data 4096' ok
expect alice 'fill 7' ok
expect alice lock ok
party bob bob
expect bob 'attach data w' 'no such segment*'
expect alice 'share data team' ok
expect bob 'attach data w' ok
expect bob trylock 'the deadline passed*'
if has_package shmview-tools; then
    as alice shmviewctl list | grep -c '^data ' > /dev/null || die "shmviewctl list shows nothing to alice"
    ! as carol shmviewctl list | grep -c '^data ' > /dev/null || die "shmviewctl list shows data to carol"
fi
if has_package python3-shmview; then
    [ "$(as bob /usr/bin/python3 -c 'import shmview; print(bytes(shmview.attach("data").cast("B")[:3]))')" = "b'\\x07\\x07\\x07'" ]
fi
if has_package ruby-shmview; then
    [ "$(as bob ruby -e 'require "shmview"; Shmview.attach("data") { |seg| puts seg.size }')" = 4096 ]
fi

step "a project of another's"
mkdir /test/built
as root bash /test/stranger/build.sh /test/built

step "a job of each MPI"
if has_package libshmview-mpi-openmpi-dev && command -v mpiexec.openmpi mpiexec.mpich > /dev/null; then
    as root bash /test/stranger/mpi.sh /test/phases.c /test/built || die "a job of MPI"
fi

step "the tour"
if has_package python3-shmview && has_package shmview-tools && /usr/bin/python3 -c 'import numpy'; then
    as carol /usr/bin/python3 /test/tour.py /usr/share/doc/shmview/tour.md || die "the tour is another one"
fi

# check_kept: checks all segments after an upgrade.
check_kept() {
    expect alice 'all 7' ok
    expect alice ping ok
    expect bob trylock 'the deadline passed*'
    check_sealed
}

step "upgrade with a faulty configuration: the old daemon goes on"
make_sealed
first=$(property MainPID)
echo '{"no such key": 1}' > /etc/shmviewd.json
dpkg -i /test/2/*.deb > /test/dpkg.log 2>&1 || die "dpkg -i: $(cat /test/dpkg.log)"
[ "$(dpkg-query -W -f '${Version}' shmviewd)" = "$(dpkg-deb -f /test/2/shmviewd_*.deb Version)" ]
grep -q 'shmviewd.service is not restarted: its configuration is faulty' /test/dpkg.log
grep -q 'no such key' /test/dpkg.log || die "dpkg -i does not name the fault: $(cat /test/dpkg.log)"
is ActiveState active
is MainPID "$first"
check_kept

step "upgrade"
echo '{"log_level": "info"}' > /etc/shmviewd.json
dpkg -i /test/2/shmviewd_*.deb > /test/dpkg.log 2>&1 || die "dpkg -i: $(cat /test/dpkg.log)"
is_another "$first"
[ "$(cat /etc/shmviewd.json)" = '{"log_level": "info"}' ]
check_kept
expect alice unlock ok
expect bob lock ok
expect bob unlock ok
expect sam unlock ok
expect sam 'remove vault' ok
expect olga 'remove purse' ok
leave sam
leave olga
await stored 0

step "remove"
leave alice
leave bob
dpkg -r "${packages[@]}" > /test/dpkg.log 2>&1 || die "dpkg -r: $(cat /test/dpkg.log)"
[ "$(property LoadState)" = not-found ]
[ "$(property LoadState $socket)" = not-found ]
# a purge also removes what is enabled, and the configuration
left=$(everything | comm -13 /test/before - | grep '^/etc/\|^/usr/' | xargs)
[ "$left" = "/etc/shmviewd.json /etc/systemd/system/sockets.target.wants/$socket" ] || die "left: $left"
[ ! -e /run/shmviewd/io.shmview ]
[ "$(objects)" -gt 0 ]

step "install again: what there was is there"
dpkg -i /test/2/*.deb > /test/dpkg.log 2>&1 || die "dpkg -i: $(cat /test/dpkg.log)"
party alice alice
expect alice 'attach data w' ok
expect alice 'all 7' ok

step "purge"
leave alice
dpkg -P "${packages[@]}" > /test/dpkg.log 2>&1 || die "dpkg -P: $(cat /test/dpkg.log)"
[ "$(objects)" -eq 0 ]
everything | diff /test/before - || die "something was left behind"
getent passwd shmviewd > /dev/null || die "the user went"
[ -z "$(systemctl list-units --all --no-legend 'shmviewd*')" ]

step "done"
touch /out/passed

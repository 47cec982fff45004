#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# The service under systemd, in the container of tests/scripts/systemd.sh, as root.
set -Eeuo pipefail
# shellcheck source=tests/systemd/steps.sh
. /test/steps.sh

ids=(START=6b473c8ebe974ed68aa3bdcadd2849ef TAKE_OVER=38b090b2f40d45f5b6abbfb3103038e8
    OWNER_DIED=1df4aacb1a184402a32d164ad3441707 PROTOCOL=51b2ecf9a2b044ee9709f809f63049e4
    RELOAD=ff2c7e5feeb44e59a3288fd220c02ff1 LEAVE=286cc9ad6d164be0adad9472a418b6e1)
declare -A message_id
for id in "${ids[@]}"; do
    message_id[${id%%=*}]=${id#*=}
done

# logged_now N KIND FIELD=VALUE...: succeeds if the journal has n such lines of the service.
logged_now() {
    local n=$1 kind=$2
    shift 2
    journalctl --sync
    found=$(journalctl -q -o json _SYSTEMD_UNIT=$unit "MESSAGE_ID=${message_id[$kind]}" "$@" | wc -l)
    [ "$found" -eq "$n" ]
}

logged() {
    logged_now "$@" || die "$found lines of ${*:2}, not $1"
}

step "the units are in order"
man=yes
command -v man > /dev/null || man=no
told=$(systemd-analyze verify --man=$man shmviewd.service shmviewd.socket run-shmhuge.mount 2>&1)
[ -z "$told" ] || die "verify: $told"
mkdir -p /run/u
told=$(XDG_RUNTIME_DIR=/run/u systemd-analyze verify --user --man=$man \
    /usr/lib/systemd/user/shmviewd.{service,socket} 2>&1)
[ -z "$told" ] || die "verify --user: $told"
systemd-analyze security --no-pager --offline=yes --threshold=15 \
    /usr/lib/systemd/system/shmviewd.service | tail -n 1

step "users"
systemd-sysusers /usr/lib/sysusers.d/shmviewd.conf
make_people
systemd-tmpfiles --create /usr/lib/tmpfiles.d/shmviewd.conf
[ "$(stat -c %U:%a /run/shmviewd)" = shmviewd:755 ]

step "the socket starts the service"
systemctl start shmviewd.socket
[ "$(stat -c %a /run/shmviewd/io.shmview)" = 666 ]
is ActiveState inactive
party alice alice
is ActiveState active
first=$(property MainPID)
[ "$(stat -c %U "/proc/$first")" = shmviewd ]
grep -q '^CapBnd:[[:space:]]*0*$' "/proc/$first/status"
grep -q '^Seccomp:[[:space:]]*2$' "/proc/$first/status"
await is StatusText '0 segments, 1 client'

step "segments"
expect alice 'create data 1048576' ok
expect alice 'fill 7' ok
expect alice lock ok
await is StatusText '1 segment, 1 client'
party carol carol
party root root
expect carol 'attach data r' 'no such segment*'
expect root 'attach data r' ok
expect root trylock 'the deadline passed*'
await is StatusText '1 segment, 3 clients'

# check_kept: checks that alice still has what she had, unchanged.
check_kept() {
    expect alice 'all 7' ok
    expect alice ping ok
    expect root trylock 'the deadline passed*'
    expect root 'all 7' ok
    expect root ping ok
    expect carol 'attach data r' 'no such segment*'
    await is StatusText '1 segment, 3 clients'
}

step "a group's segment"
party ally alice
party bob bob
expect ally 'create ours 4096' ok
expect bob 'attach ours w' 'no such segment*'
expect ally 'share ours team' ok
expect bob 'attach ours w' ok
expect bob 'fill 3' ok
expect ally 'all 3' ok
expect carol 'attach ours r' 'no such segment*'
expect bob 'remove ours' 'permission denied*'
expect ally 'remove ours' ok
leave ally
leave bob
await is StatusText '1 segment, 3 clients'

step "restart"
systemctl restart $unit
is_another "$first"
check_kept
expect alice unlock ok
expect root lock ok
expect root unlock ok
expect alice lock ok
check_kept

step "stop; the socket starts it again"
systemctl stop $unit
[ "$(objects)" -eq 3 ]
check_kept
is ActiveState active

step "kill -9"
before=$(property MainPID)
kill -9 "$before"
await is_another "$before"
check_kept

step "the watchdog"
mkdir -p /run/systemd/system/$unit.d
printf '[Service]\nWatchdogSec=3\nLimitCORE=0\n' > /run/systemd/system/$unit.d/test.conf
systemctl daemon-reload
systemctl restart $unit
before=$(property MainPID)
is WatchdogUSec 3s
kill -STOP "$before"
await is_another "$before"
[[ $(journalctl -q -u $unit -o cat) == *'Watchdog timeout'* ]] || die "no watchdog timeout"
rm /run/systemd/system/$unit.d/test.conf
systemctl daemon-reload
check_kept

step "reload"
before=$(property MainPID)
echo '{"no such key": 1}' > /etc/shmviewd.json
systemctl reload $unit
await logged_now 1 RELOAD PRIORITY=3
await is ActiveState active
echo '{"segments": [{"name": "declared", "size": 4096, "mode": "0666"}]}' > /etc/shmviewd.json
systemctl reload $unit
await logged_now 1 RELOAD PRIORITY=6
await is ActiveState active
is MainPID "$before"
party other root
expect other 'attach declared r' ok
leave other
await is StatusText '2 segments, 3 clients'
expect root 'all 7' ok
rm /etc/shmviewd.json

step "the journal"
logged 6 START PRIORITY=6 SYSLOG_IDENTIFIER=shmviewd
logged 5 TAKE_OVER PRIORITY=6
logged 3 LEAVE SHMVIEW_REASON=SIGTERM
expect carol rubbish ok
logged 1 PROTOCOL PRIORITY=4 SHMVIEW_UID=1503 "SHMVIEW_PID=${pid[carol]}"

step "a holder dies"
kill -9 "${pid[alice]}"
expect root lock 'owner died'
expect root unlock ok
await logged_now 1 OWNER_DIED SHMVIEW_SEGMENT=data SHMVIEW_UID=1501 "SHMVIEW_PID=${pid[alice]}"

step "sealed segments"
make_sealed
before=$(property MainPID)
systemctl restart $unit
is_another "$before"
check_sealed
before=$(property MainPID)
kill -9 "$before"
await is_another "$before"
check_sealed

step "sealed segments and a stop"
if [ "$(systemctl --version | sed -n '1s/systemd \([0-9]*\).*/\1/p')" -ge 254 ]; then
    mkdir -p /run/systemd/system/$unit.d
    printf '[Service]\nFileDescriptorStorePreserve=yes\n' > /run/systemd/system/$unit.d/test.conf
    systemctl daemon-reload
    systemctl stop $unit
    stored 6
    check_sealed
    rm /run/systemd/system/$unit.d/test.conf
    systemctl daemon-reload
fi
systemctl stop $unit
stored 0
expect sam 'all 9' ok # a client keeps its memory
expect sam ping ok
expect olga 'all 4' ok
party other root
expect other 'attach vault r' 'no such segment*'
expect other 'attach purse r' 'no such segment*'
leave other
expect root 'all 7' ok
leave sam
leave olga

step "a user's instance"
runtime=/run/user/1502
install -d -o bob -g bob -m 700 /run/user $runtime
chmod 755 /run/user
systemd-run -q --unit=manager.service --uid=bob -p Type=notify -p Delegate=yes \
    -p "Environment=XDG_RUNTIME_DIR=$runtime HOME=/tmp" /lib/systemd/systemd --user
as_bob=(setpriv --reuid bob --regid bob --init-groups env "XDG_RUNTIME_DIR=$runtime")
"${as_bob[@]}" systemctl --user start shmviewd.socket
[ "$(stat -c %U:%a $runtime/shmviewd/io.shmview)" = bob:600 ]
party bob bob XDG_RUNTIME_DIR=$runtime
expect bob 'create mine 4096' ok
party ben bob XDG_RUNTIME_DIR=$runtime
expect ben 'seal vault 4096' ok
expect ben 'fill 5' ok
"${as_bob[@]}" systemctl --user restart $unit
expect bob ping ok
party bill bob XDG_RUNTIME_DIR=$runtime
expect bill 'attach vault r' ok
expect bill 'all 5' ok
leave bill
leave ben
[ -n "$(find /dev/shm -path '/dev/shm/shmview.1502-*/mine' -user bob)" ]
leave bob
"${as_bob[@]}" systemctl --user kill -s INT $unit
none_of_bob() {
    [ -z "$(find /dev/shm -user bob)" ]
}
await none_of_bob
systemctl stop manager.service

step "purge"
leave alice
leave root
leave carol
systemctl kill -s INT $unit
await is ActiveState inactive
is Result success
systemctl stop shmviewd.socket
[ "$(objects)" -eq 0 ]
[ -z "$(ls -A /run/shmviewd)" ]

# huge_pages PLACE GOT: checks that a segment that wants huge pages is in PLACE, got GOT, and keeps that
# over a restart.
huge_pages() {
    local i before got
    systemctl start shmviewd.socket
    as root shmviewctl create big 5M --huge wanted
    party root root
    expect root 'attach big w' ok
    expect root 'fill 8' ok
    for i in 1 2; do
        expect root 'all 8' ok
        got=$(as root shmviewctl show big | sed -n 's/^ *placement *//p')
        [ "$got" = "$2" ] || die "big got '$got', not '$2'"
        [ -n "$(find "$1" -path "$1/shmview.*/big")" ] || die "big is not in $1"
        before=$(property MainPID)
        systemctl restart $unit
        is_another "$before"
    done
    leave root
    systemctl kill -s INT $unit
    await is ActiveState inactive
    systemctl stop shmviewd.socket
    [ -z "$(find "$1" -path "$1/shmview.*" -type f)" ]
}

step "huge pages"
huge_pages /dev/shm 'the system allows no huge pages for this backing'
if systemctl start run-shmhuge.mount; then
    systemctl stop run-shmhuge.mount # the service starts it, with the drop-in of PLACEMENT.md
    mkdir -p /run/systemd/system/$unit.d
    sed -n '/^    \[Unit\]$/,/^    BindPaths=/s/^    //p' /usr/share/doc/shmview/PLACEMENT.md \
        > /run/systemd/system/$unit.d/huge.conf
    systemctl daemon-reload
    huge_pages /run/shmhuge '4M huge (thp)'
    [ "$(property ActiveState run-shmhuge.mount)" = active ]
else
    echo "this kernel mounts no tmpfs with huge pages"
fi

step "done"
touch /out/passed

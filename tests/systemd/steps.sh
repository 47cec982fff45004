# shellcheck shell=bash
# SPDX-License-Identifier: Apache-2.0
# Functions for the payloads, which run in the container of container.sh: named steps, clients
# (party.c) that carry out commands, and properties of systemd's units.
unit=shmviewd.service
declare -A in out pid

die() {
    echo "FAILED: $*"
    trap - ERR
    systemctl status --no-pager --full shmviewd.service shmviewd.socket || true
    journalctl --no-pager -o short-monotonic -n 60 -u shmviewd.service -u shmviewd.socket || true
    ls -la /dev/shm /run/shmviewd || true
    exit 1
}
trap 'die "line $LINENO"' ERR

step() {
    echo "$(cut -d ' ' -f 1 /proc/uptime) $*"
}

# await COMMAND: waits until it succeeds, at most 20 s.
await() {
    local i
    for ((i = 0; i < 400; i++)); do
        "$@" && return
        sleep 0.05
    done
    die "still not true: $*"
}

# as USER COMMAND...
as() {
    setpriv --reuid "$1" --regid "$1" --init-groups env -i "PATH=$PATH" "${@:2}"
}

# party NAME USER: starts a client (party.c) of that user; expect sends it commands.
party() {
    local fd
    mkfifo "/test/$1.in" "/test/$1.out"
    setpriv --reuid "$2" --regid "$2" --init-groups env -i ${3:+"$3"} /test/systemd_party \
        < "/test/$1.in" > "/test/$1.out" 2>&1 &
    pid[$1]=$!
    exec {fd}> "/test/$1.in"
    in[$1]=$fd
    exec {fd}< "/test/$1.out"
    out[$1]=$fd
    rm "/test/$1.in" "/test/$1.out"
    hear "$1" connected
}

# hear NAME PATTERN: checks that the next line of that client matches the pattern.
hear() {
    local line
    read -r -t 20 line <&"${out[$1]}" || die "$1 does not answer"
    # shellcheck disable=SC2053
    [[ $line == $2 ]] || die "$1 answers '$line', not '$2'"
}

# expect NAME COMMAND PATTERN: sends the command, and checks the result.
expect() {
    echo "$2" >&"${in[$1]}"
    hear "$1" "$3"
}

# leave NAME: closes its standard input, and ends it, and waits.
leave() {
    local fd=${in[$1]}
    exec {fd}>&-
    fd=${out[$1]}
    exec {fd}<&-
    kill "${pid[$1]}" || true
    wait "${pid[$1]}" || true
}

property() {
    systemctl show --value -p "$1" "${2:-$unit}"
}

is() {
    [ "$(property "$1")" = "$2" ]
}

is_another() {
    is ActiveState active && ! is MainPID "$1"
}

objects() {
    find /dev/shm -path '/dev/shm/shmview.*/*' -type f ! -path '*/+presence/*' | wc -l
}

# Makes users: alice and bob have a group in common, carol is a stranger.
make_people() {
    systemd-sysusers - << 'USERS'
g team 1510
u alice 1501
u bob 1502
u carol 1503
m alice team
m bob team
USERS
}

# Makes a sealed segment of sam, whose memory the daemon has made, and one of olga, who has made its
# memory.
make_sealed() {
    party sam alice
    expect sam 'seal vault 1048576' ok
    expect sam 'fill 9' ok
    expect sam lock ok
    party olga alice
    expect olga 'own purse 1048576' ok
    expect olga 'fill 4' ok
    await stored 6
}

# Checks these segments, for their makers, for another user, and for a later client of that user.
check_sealed() {
    expect sam 'all 9' ok
    expect sam ping ok
    expect olga 'all 4' ok
    expect olga ping ok
    party other root
    expect other 'attach vault r' ok
    expect other 'all 9' ok
    expect other trylock 'the deadline passed*'
    expect other detach ok
    expect other 'attach purse r' ok
    expect other 'all 4' ok
    leave other
    party later alice
    expect later 'attach purse w' ok
    expect later 'fill 6' ok
    expect olga 'all 6' ok
    expect later 'fill 4' ok
    leave later
    stored 6
}

# stored N: whether systemd stores so many descriptors for the service.
stored() {
    is NFileDescriptorStore "$1"
}

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Checks that includes point one way: include <- common <- {daemon, client}, and within each from a
# room to the rooms below it. Users of the library include <shmview/...> only. Prints every include
# that points elsewhere.
set -euo pipefail
cd "${SHMVIEW_SOURCE_DIR:?}"

# Prints the folders from which a file may include with quotes, its own room among them. "generated"
# is build output.
rules() {
    case "$1" in
    include/*) echo "" ;;

    common/base/*) echo "common/base" ;;
    common/memory/*) echo "common/memory" ;;
    common/json/*) echo "common/json common/base" ;;
    common/views/*) echo "common/views common/base" ;;
    common/stream/*) echo "common/stream common/views common/base" ;;
    common/wire/*) echo "common/wire common/views common/json common/base" ;;

    daemon/base/*) echo "daemon/base common/base" ;;
    daemon/memory/*) echo "daemon/memory daemon/base common/memory common/base" ;;
    daemon/rights/*) echo "daemon/rights daemon/base common/base" ;;
    daemon/config/*) echo "daemon/config daemon/rights daemon/base common" ;;
    daemon/store/*) echo "daemon/store daemon/rights daemon/base common/base" ;;
    daemon/segments/*)
        echo "daemon/segments daemon/store daemon/rights daemon/memory daemon/base common/stream common/base"
        ;;
    daemon/clients/*)
        echo "daemon/clients daemon/segments daemon/store daemon/rights daemon/memory daemon/base common"
        ;;
    daemon/requests/*)
        echo "daemon/requests daemon/clients daemon/segments daemon/store daemon/config daemon/rights" \
            "daemon/memory daemon/base common generated"
        ;;
    daemon/*) echo "daemon common" ;;

    client/base/*) echo "client/base common" ;;
    client/lock/*) echo "client/lock client/base common" ;;
    client/link/*) echo "client/link client/lock client/base common" ;;
    client/segment/*) echo "client/segment client/link client/lock client/base common" ;;
    client/views/*) echo "client/views client/segment client/lock client/link client/base common" ;;
    client/whole/*) echo "client/whole client/views client/base common" ;;
    client/family/*) echo "client/family client/base common" ;;
    client/exports/*) echo "client/exports client/views client/segment client/base common" ;;
    client/stream/*) echo "client/stream client/views client/segment client/lock client/link client/base common" ;;
    client/asking/*) echo "client/asking client/link client/base common" ;;
    client/inline.c) echo "common" ;;

    cli/shell/*) echo "cli/shell" ;;
    cli/data/*) echo "cli/data cli/shell" ;;
    cli/draw/*) echo "cli/draw cli/data cli/shell" ;;
    cli/text/*) echo "cli/text cli/draw cli/data cli/shell" ;;
    cli/doctor/*) echo "cli/doctor cli/shell" ;;
    cli/top/*) echo "cli/top cli/text cli/shell" ;;
    cli/verbs/*) echo "cli/verbs cli/top cli/doctor cli/text cli/draw cli/data cli/shell" ;;
    cli/*) echo "cli" ;;

    web/base/*) echo "web/base" ;;
    web/http/*) echo "web/http web/base generated" ;;
    web/memory/*) echo "web/memory web/base" ;;
    web/api/*) echo "web/api web/memory web/http web/base" ;;
    web/*) echo "web" ;;

    mpi/tests/*) echo "mpi/tests mpi" ;;
    mpi/bench/*) echo "" ;;
    mpi/*) echo "mpi" ;;

    tests/unit/*) echo "tests/unit tests/support cli web daemon client common generated" ;;
    tests/fuzz/*) echo "tests/fuzz tests/property tests/support cli web daemon client common generated" ;;
    tests/property/*) echo "tests/property common" ;;
    tests/stress/*) echo "tests/stress client common" ;;
    tests/streams/*) echo "tests/streams tests/integration tests/support client" ;;
    tests/exclusion/*) echo "tests/exclusion" ;;
    tests/integration/*) echo "tests/integration tests/support" ;;
    tests/crash/*) echo "tests/crash tests/support" ;;
    tests/family/*) echo "tests/family tests/support" ;;
    tests/rounds/*) echo "tests/rounds tests/support" ;;
    tests/cpp/*) echo "tests/cpp tests/support" ;;
    tests/coverage/* | tests/systemd/* | tests/stranger/*) echo "" ;;
    tests/conformance/*) dirname "$1" ;;
    tests/abi/*) echo "tests/abi" ;;
    tests/support/*) echo "tests/support" ;;
    bindings/python/sync/*) echo "bindings/python/sync bindings/python/src" ;;
    examples/* | bench/* | bindings/*) dirname "$1" ;;
    *) return 1 ;;
    esac
}

# Sets target to the file that source $1 includes as "$2", searched for where the compiler does.
resolve() {
    local place
    for place in "${1%/*}/" "" tests/ bindings/python/; do
        if [ -e "$place$2" ]; then
            target=$place$2
            return
        fi
    done
    target=generated/$2
    [[ $2 == varlink_text.h || $2 == page_files.h ]]
}

wrong=0
complain() {
    echo "wrong arrow: $1 includes $2: ${*:3}" >&2
    wrong=$((wrong + 1))
}

check_quoted() {
    local file=$1 name=$2 target folder
    if [[ $name == *..* ]] || ! resolve "$file" "$name"; then
        complain "$file" "\"$name\"" "no such file"
        return
    fi
    for folder in $permitted; do
        [[ $target == "$folder"/* ]] && return
    done
    complain "$file" "\"$name\"" "$target is out of bounds for this room"
}

# Every room may include <shmview/...>. Our other headers in <> would escape the rules.
check_angled() {
    local file=$1 name=$2
    if [[ $name == shmview/* ]]; then
        [ -e "include/$name" ] || complain "$file" "<$name>" "no such public header"
    elif [ -e "$name" ] || [ -e "tests/$name" ] || [[ $name == varlink_text.h || $name == page_files.h ]]; then
        complain "$file" "<$name>" "a header of ours is included with quotes"
    fi
}

# Checks that the README of a room names the rooms that the rules permit.
check_first_page() {
    local room=$1 name ruled stated
    ruled=$(for name in $(rules "$room/any.c"); do
        [[ $name == "$room" || $name == generated ]] || echo "$name"
    done | sort)
    stated=$(sed -n '/^Includes: /,$p' "$room/README.md" | tr -c 'a-z/' '\n' | sed -n '/^common$/p; /\//p' | sort)
    [ "$ruled" = "$stated" ] || complain "$room/README.md" "a list of rooms" "the rules have" "${ruled//$'\n'/ }"
}

# The includes of each file, read by one program, because there are many files.
declare -A included rules_of
sources=(\( -name .git -o -name node_modules -o -path ./build \) -prune -o
    \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' \) -type f -print0)
while IFS= read -r -d '' file && IFS= read -r line; do
    line=${line#*include}
    included[${file#./}]+=${line##*[[:space:]]}$'\n'
done < <(find . "${sources[@]}" | xargs -0 grep -HZoE '^[[:space:]]*#[[:space:]]*include[[:space:]]*["<][^">]*[">]')

n_files=0
while IFS= read -r -d '' file; do
    file=${file#./}
    folder=${file%/*}
    [ "$file" != client/inline.c ] || folder=$file
    if [ -z "${rules_of[$folder]+known}" ] && ! rules_of[$folder]=$(rules "$file"); then
        unset "rules_of[$folder]"
        echo "no rule for $file: add its folder to tests/scripts/includes.sh" >&2
        wrong=$((wrong + 1))
        continue
    fi
    permitted=${rules_of[$folder]}
    n_files=$((n_files + 1))
    while read -r name; do
        case "$name" in
        \"*) check_quoted "$file" "${name//\"/}" ;;
        \<*) check_angled "$file" "${name//[<>]/}" ;;
        esac
    done <<< "${included[$file]:-}"
done < <(find . "${sources[@]}")

for room in {common,daemon,client,cli,web}/*/; do
    [[ $room == cli/completion/ || $room == web/page/ || $room == web/node_modules/ ]] || check_first_page "${room%/}"
done

echo "$n_files files, $wrong wrong arrows"
[ "$n_files" -gt 0 ] && [ "$wrong" -eq 0 ]

#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Includes point one way: include <- common <- {daemon, client}; users of the
# library see <shmview/...> only. Lists every arrow that points elsewhere.
set -euo pipefail
cd "${SHMVIEW_SOURCE_DIR:?}"

# No process is started for a file or an include: there are thousands. What a
# function finds is in a variable.

# Sets folders to what a file of a room may include with quotes, itself among them.
# An include of the room's own headers is no arrow. "generated" is build output.
rules() {
    case "$1" in
    include/*) folders="" ;;
    common/*) folders="common" ;;
    daemon/*) folders="daemon common generated" ;;
    client/*) folders="client common" ;;
    tests/unit/*) folders="tests/unit tests/support cli daemon client common generated" ;;
    tests/fuzz/*) folders="tests/fuzz tests/property tests/support cli daemon client common generated" ;;
    tests/property/*) folders="tests/property common" ;;
    tests/stress/*) folders="tests/stress client common" ;;
    tests/exclusion/*) folders="tests/exclusion" ;;
    tests/integration/*) folders="tests/integration tests/support" ;;
    tests/crash/*) folders="tests/crash tests/support" ;;
    tests/rounds/*) folders="tests/rounds tests/support" ;;
    tests/cpp/*) folders="tests/cpp tests/support" ;;
    tests/systemd/* | tests/stranger/*) folders="" ;;
    tests/conformance/*) folders=${1%/*} ;;
    tests/abi/*) folders="tests/abi" ;;
    tests/support/*) folders="tests/support" ;;
    examples/* | bench/* | cli/* | bindings/*) folders=${1%/*} ;;
    *) return 1 ;;
    esac
}

# Sets target to the file that "$2" names in source $1, looked for where the compiler does.
resolve() {
    local place
    for place in "${1%/*}" . tests; do
        if [ -e "$place/$2" ]; then
            target=$place/$2
            target=${target#./}
            if [[ -n $links || /$target/ == */.* || $target == *//* ]]; then
                target=$(realpath --relative-to=. "$target")
            fi
            return
        fi
    done
    target=generated/$2
    [ "$2" = varlink_text.h ]
}

wrong=0
complain() {
    echo "wrong arrow: $1 includes $2: $3" >&2
    wrong=$((wrong + 1))
}

check_quoted() {
    local file=$1 name=$2 target folder
    if ! resolve "$file" "$name"; then
        complain "$file" "\"$name\"" "no such file"
        return
    fi
    for folder in ${room[$file]}; do
        [[ $target == "$folder"/* ]] && return
    done
    complain "$file" "\"$name\"" "$target is out of bounds for this room"
}

# <shmview/...> is open to every room; our other headers in <> would pass by the rules.
check_angled() {
    local file=$1 name=$2
    if [[ $name == shmview/* ]]; then
        [ -e "include/$name" ] || complain "$file" "<$name>" "no such public header"
    elif [ -e "$name" ] || [ -e "tests/$name" ] || [[ $name == varlink_text.h ]]; then
        complain "$file" "<$name>" "a header of ours is included with quotes"
    fi
}

skip=(\( -name .git -o -path ./build \) -prune -o)
links=$(find . "${skip[@]}" -type l -print -quit)
mapfile -d '' files < <(find . "${skip[@]}" \
    \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' \) -type f -print0)

declare -A room=() # of each file: its folders
for file in "${files[@]}"; do
    if rules "${file#./}"; then
        room[${file#./}]=$folders
    else
        echo "no rule for ${file#./}: add its folder to tests/scripts/includes.sh" >&2
        wrong=$((wrong + 1))
    fi
done

include='^[[:space:]]*#[[:space:]]*include[[:space:]]*["<][^">]*[">]'
while IFS=: read -r file name; do
    file=${file#./}
    [[ -v room[$file] ]] || continue
    name=${name#"${name%%[\"<]*}"}
    case "$name" in
    \"*) check_quoted "$file" "${name//\"/}" ;;
    \<*) check_angled "$file" "${name//[<>]/}" ;;
    esac
done < <([ ${#files[@]} -eq 0 ] || printf '%s\0' "${files[@]}" | xargs -0 grep -aHoE "$include")

echo "${#room[@]} files, $wrong wrong arrows"
[ ${#room[@]} -gt 0 ] && [ "$wrong" -eq 0 ]

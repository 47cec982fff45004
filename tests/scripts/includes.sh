#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# Includes point one way: include <- common <- {daemon, client}; users of the
# library see <shmview/...> only. Lists every arrow that points elsewhere.
set -euo pipefail
cd "${SHMVIEW_SOURCE_DIR:?}"

# What a file of a room may include with quotes: folders, itself among them.
# An include of the room's own headers is no arrow. "generated" is build output.
rules() {
    case "$1" in
    include/*) echo "" ;;
    common/*) echo "common" ;;
    daemon/*) echo "daemon common generated" ;;
    client/*) echo "client common" ;;
    tests/unit/*) echo "tests/unit tests/support cli daemon client common generated" ;;
    tests/fuzz/*) echo "tests/fuzz tests/property tests/support cli daemon client common generated" ;;
    tests/property/*) echo "tests/property common" ;;
    tests/stress/*) echo "tests/stress client common" ;;
    tests/exclusion/*) echo "tests/exclusion" ;;
    tests/integration/*) echo "tests/integration tests/support" ;;
    tests/crash/*) echo "tests/crash tests/support" ;;
    tests/rounds/*) echo "tests/rounds tests/support" ;;
    tests/cpp/*) echo "tests/cpp tests/support" ;;
    tests/systemd/* | tests/stranger/*) echo "" ;;
    tests/conformance/*) dirname "$1" ;;
    tests/abi/*) echo "tests/abi" ;;
    tests/support/*) echo "tests/support" ;;
    examples/* | bench/* | cli/* | bindings/*) dirname "$1" ;;
    *) return 1 ;;
    esac
}

# The file that "$2" names in source $1, looked for where the compiler does.
resolve() {
    local place
    for place in "$(dirname "$1")" . tests; do
        if [ -e "$place/$2" ]; then
            realpath --relative-to=. "$place/$2"
            return
        fi
    done
    [ "$2" = varlink_text.h ] && echo "generated/$2"
}

wrong=0
complain() {
    echo "wrong arrow: $1 includes $2: $3" >&2
    wrong=$((wrong + 1))
}

check_quoted() {
    local file=$1 name=$2 target folder
    if ! target=$(resolve "$file" "$name"); then
        complain "$file" "\"$name\"" "no such file"
        return
    fi
    for folder in $(rules "$file"); do
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

include_line='s/^[[:space:]]*#[[:space:]]*include[[:space:]]*(["<][^">]*[">]).*/\1/p'
n_files=0
while IFS= read -r -d '' file; do
    file=${file#./}
    if ! rules "$file" > /dev/null; then
        echo "no rule for $file: add its folder to tests/scripts/includes.sh" >&2
        wrong=$((wrong + 1))
        continue
    fi
    n_files=$((n_files + 1))
    includes=$(sed -nE "$include_line" "$file")
    while read -r name; do
        case "$name" in
        \"*) check_quoted "$file" "${name//\"/}" ;;
        \<*) check_angled "$file" "${name//[<>]/}" ;;
        esac
    done <<< "$includes"
done < <(find . \( -name .git -o -path ./build \) -prune -o \
    \( -name '*.[ch]' -o -name '*.cpp' -o -name '*.hpp' \) -type f -print0)

echo "$n_files files, $wrong wrong arrows"
[ "$n_files" -gt 0 ] && [ "$wrong" -eq 0 ]

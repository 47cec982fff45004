# SPDX-License-Identifier: Apache-2.0
# bash completion of shmviewctl(1), which knows by itself what may come next.
# shellcheck shell=bash

_shmviewctl() {
    local line=${COMP_LINE:0:COMP_POINT} word='' colon='' candidates
    local -a words
    COMPREPLY=()
    # readline breaks words at colons too
    read -ra words <<< "$line"
    [[ $line == *[[:space:]] ]] && words+=('')
    word=${words[-1]}
    candidates=$("${words[0]}" --complete -- "${words[@]:1}" 2> /dev/null)
    case $candidates in
    :files)
        compopt -o filenames 2> /dev/null
        mapfile -t COMPREPLY < <(compgen -f -- "$word")
        ;;
    :commands) mapfile -t COMPREPLY < <(compgen -c -- "$word") ;;
    :users) mapfile -t COMPREPLY < <(compgen -u -- "$word") ;;
    :groups) mapfile -t COMPREPLY < <(compgen -g -- "$word") ;;
    *)
        [[ $word == *:* && $COMP_WORDBREAKS == *:* ]] && colon=${word%:*}:
        mapfile -t COMPREPLY < <(compgen -W "$candidates" -- "$word")
        COMPREPLY=("${COMPREPLY[@]#"$colon"}")
        ;;
    esac
}

complete -F _shmviewctl shmviewctl

# SPDX-License-Identifier: Apache-2.0
# bash completion of shmviewctl(1). 'shmviewctl --complete' prints the candidates, one on each line, so that both shells
# offer the same and no list of options exists twice. A line that begins with ':' names a list of the shell.
# shellcheck shell=bash

_shmviewctl() {
    local line=${COMP_LINE:0:COMP_POINT} word='' colon='' candidates candidate
    local -a words
    COMPREPLY=()
    # COMP_WORDS would break words at colons too, and LAYOUT:VIEW is one word: split the line at blanks instead
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
        # readline replaces only the part after the last colon
        [[ $word == *:* && $COMP_WORDBREAKS == *:* ]] && colon=${word%:*}:
        # not by compgen -W, which runs commands that a candidate has in it, such as '$(reboot)'
        while read -r candidate; do
            [[ -z $candidate || $candidate != "$word"* ]] || COMPREPLY+=("${candidate#"$colon"}")
        done <<< "$candidates"
        ;;
    esac
}

complete -F _shmviewctl shmviewctl

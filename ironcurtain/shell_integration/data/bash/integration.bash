# Read by bash at its start, instead of the user's own files, which it reads in turn. Works with bash 4.4 and later.
#
# Shows where prompts and commands begin and end, and the directory, as marks with a nonce (see marks.py), and gives
# lines that begin with "#" to the agent: they stay comments for bash.
#
# All names here begin with __ironcurtain. Functions are defined before the user's files are read, so that no alias is
# in them; they set options for themselves only, and write marks to the terminal itself, whatever the standard streams
# are.

__ironcurtain_nonce=$IRONCURTAIN_SHELL_NONCE __ironcurtain_startup=${IRONCURTAIN_SHELL_STARTUP-rc}
# Names of variables to report with each instruction.
__ironcurtain_names=(${IRONCURTAIN_SHELL_VARIABLES-})
unset -v IRONCURTAIN_SHELL_NONCE IRONCURTAIN_SHELL_STARTUP IRONCURTAIN_SHELL_VARIABLES

# Arrays are not exported, whatever "set -a" says.
# Empty, or a status to be kept for __ironcurtain_prompt.
__ironcurtain_status=()
# Whether the line editor is at a primary prompt.
__ironcurtain_at_prompt=()
# How many functions call one another where a line is accepted: our own, and a file whose reading Ctrl-C has ended.
__ironcurtain_depth=1
# What was typed for the agent.
__ironcurtain_typed=
# Those variables when it was typed, with their names.
__ironcurtain_values=()
# Whether a command ran since the last prompt.
__ironcurtain_ran=()
# Whether keys may have been bound since the last prompt.
__ironcurtain_bound=1
# Whether comments are off but for this line.
__ironcurtain_uncommented=
# The directory whose encoded path is in the second variable.
__ironcurtain_directory= __ironcurtain_encoded=
# Whether "set -x" is to go on.
__ironcurtain_traced=()
# Whether to look for a trap, and then the command that sets it.
__ironcurtain_trap=(1)
# What a command of the agent begins with that is to stay out of the history, and HISTIGNORE while it is accepted.
__ironcurtain_unrecorded='           ' __ironcurtain_ignored=()
# Empty; its expansion in PS0 sets variables.
__ironcurtain_none=
# The user's PS1 while ours is used.
__ironcurtain_ps1=

# Marks in PS1 and PS0, where bash expands them.
__ironcurtain_b="\\[\\e]133;B;aid=$__ironcurtain_nonce\\a\\]"
__ironcurtain_c="\\e]133;C;aid=$__ironcurtain_nonce\\a"
__ironcurtain_set='${__ironcurtain_none:$((__ironcurtain_ran[0]=1,__ironcurtain_at_prompt[0]=0)):0}'

# Sets __ironcurtain_encoded to the base64 form of an argument.
__ironcurtain_encode() {
    local LC_ALL=C digits=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/ text=$1 all= part
    local -i at=0 length a b c
    length=${#text}
    while ((at < length)); do
        builtin printf -v a %d "'${text:at:1}"
        b=0 c=0
        ((at + 1 < length)) && builtin printf -v b %d "'${text:at+1:1}"
        ((at + 2 < length)) && builtin printf -v c %d "'${text:at+2:1}"
        ((a = (a & 255) << 16 | (b & 255) << 8 | (c & 255)))
        part=${digits:a >> 18:1}${digits:a >> 12 & 63:1}${digits:a >> 6 & 63:1}${digits:a & 63:1}
        case $((length - at)) in
            1) part=${part:0:2}== ;;
            2) part=${part:0:3}= ;;
        esac
        all+=$part
        at+=3
    done
    __ironcurtain_encoded=$all
}

# In front of a PROMPT_COMMAND that is one string.
__ironcurtain_keep() {
    __ironcurtain_status=$?
    [[ $- != *e* ]] || return 0
    return "$__ironcurtain_status"
}

# The last part of PROMPT_COMMAND.
__ironcurtain_prompt() {
    local code=${__ironcurtain_status:-$?} marks= -
    set +aeux
    __ironcurtain_status=
    __ironcurtain_record
    if [[ -n $__ironcurtain_ran ]]; then
        marks=$'\e'"]133;D;$code;aid=$__ironcurtain_nonce"$'\a'
    fi
    if [[ -n $__ironcurtain_typed ]]; then
        __ironcurtain_private instruction "$__ironcurtain_typed"
        __ironcurtain_report
        __ironcurtain_directory=
    fi
    if [[ $PWD != "$__ironcurtain_directory" ]]; then
        __ironcurtain_encode "$PWD"
        __ironcurtain_directory=$PWD
    fi
    marks+=$'\e'"]6973;$__ironcurtain_nonce;cwd;$__ironcurtain_encoded"$'\a'
    builtin printf %s "$marks"$'\e'"]133;A;aid=$__ironcurtain_nonce"$'\a' >/dev/tty
    __ironcurtain_arm
    __ironcurtain_ran= __ironcurtain_typed= __ironcurtain_at_prompt=1 __ironcurtain_depth=${#FUNCNAME[@]}
}

# Keeps the line that is accepted now out of the history.
__ironcurtain_omit() {
    __ironcurtain_ignored=("${HISTIGNORE+set}" "${HISTIGNORE-}")
    HISTIGNORE='*'
}

# Ends that.
__ironcurtain_record() {
    ((${#__ironcurtain_ignored[@]})) || return 0
    if [[ -n ${__ironcurtain_ignored[0]} ]]; then
        HISTIGNORE=${__ironcurtain_ignored[1]}
    else
        unset -v HISTIGNORE
    fi
    __ironcurtain_ignored=()
}

# The line editor is not traced: "set -x" goes on when the line is accepted.
__ironcurtain_untrace() {
    case $- in
        *x*) set +x && __ironcurtain_traced=1 ;;
    esac
}

# Hides our own commands from the user's DEBUG trap, such as one that times commands. Only a command outside of all
# functions can see and set that trap.
__ironcurtain_hide() {
    local - code=${__ironcurtain_trap#trap -- }
    set +aeux
    code=${code% DEBUG}
    if [[ -z $code || $code == *__ironcurtain* ]]; then
        __ironcurtain_trap=
        return 0
    fi
    eval "code=$code"
    builtin printf -v code %q "case \"\${FUNCNAME-} \$BASH_COMMAND\" in *__ironcurtain*) ;; *)
$code
;; esac"
    __ironcurtain_trap="trap -- $code DEBUG"
    # bash-preexec took our first command for the user's.
    ! declare -F __bp_interactive_mode >/dev/null || __ironcurtain_trap+="; __bp_interactive_mode"
}

# Adds a private mark, unless it gets too long to be read.
__ironcurtain_private() {
    __ironcurtain_encode "$2"
    ((${#__ironcurtain_encoded} > 16000)) || marks+=$'\e'"]6973;$__ironcurtain_nonce;$1;$__ironcurtain_encoded"$'\a'
}

# Adds a private mark for each variable.
__ironcurtain_report() {
    local value
    for value in "${__ironcurtain_values[@]}"; do
        __ironcurtain_private variable "$value"
    done
}

# Puts back what the user's files or commands have replaced.
__ironcurtain_arm() {
    if [[ $PS1 != *"$__ironcurtain_b"* ]]; then
        __ironcurtain_ps1=$PS1
        PS1+=$__ironcurtain_b
    fi
    if [[ ${PS0-} != *"$__ironcurtain_c"* ]]; then
        PS0=${PS0-}$__ironcurtain_c
        ! builtin shopt -q promptvars || PS0+=$__ironcurtain_set
    fi
    if [[ -n $__ironcurtain_bound ]]; then
        __ironcurtain_bound=
        __ironcurtain_bind
    fi
}

# Each key that accepts a line calls __ironcurtain_enter first. A key of the user's own that sends one of them does too.
# The cursor goes to the end before, as what bash draws after such a call is left out (see marks.py). Without UTF-8, bash
# lists "\e[" as "\M-[". All keys are only looked through where others than the usual two accept a line: that takes some
# 2 ms a map.
__ironcurtain_bind() {
    local map keys line IFS=$'\n'
    set -f
    for map in emacs-standard vi-insert vi-command; do
        keys=$(builtin bind -m $map -q accept-line)
        case ${keys#*\"} in
            '\C-j", "\C-m".') keys=$'"\\C-j": accept-line\n"\\C-m": accept-line' ;;
            *) keys=$(builtin bind -m $map -p) ;;
        esac
        builtin bind -m $map -x '"\e[6973h": __ironcurtain_enter "$_"'
        builtin bind -m $map '"\e[6973a": accept-line'
        builtin bind -m $map '"\e[6973e": end-of-line'
        for line in $keys; do
            if [[ $line == \"*'": accept-line' && $line != *'[6973a":'* ]]; then
                builtin bind -m $map "${line%accept-line}"'"\e[6973e\e[6973h\e[6973a"'
            fi
        done
    done
}

# Enter, with the line editor's buffer in READLINE_LINE. Its argument is what "$_" is to be afterwards.
__ironcurtain_enter() {
    case $__ironcurtain_uncommented in
        1) __ironcurtain_uncommented='' && builtin shopt -u interactive_comments ;;
    esac
    __ironcurtain_look "${#FUNCNAME[@]}" 2>/dev/null
    case $__ironcurtain_uncommented in
        1) builtin shopt -s interactive_comments ;;
    esac
    case ${__ironcurtain_traced-} in
        1) __ironcurtain_traced='' && set -x ;;
    esac
}

# Does that; its argument is the number of functions of which one has called another.
__ironcurtain_look() {
    local -
    set +aeux
    __ironcurtain_hook
    if [[ $__ironcurtain_at_prompt != 1 || $1 != "$__ironcurtain_depth" ]]; then
        return 0
    fi
    __ironcurtain_at_prompt=0
    builtin printf '\e]6973;%s;entered\a' "$__ironcurtain_nonce" >/dev/tty
    [[ $PS1 != "$__ironcurtain_ps1$__ironcurtain_b" ]] || PS1=$__ironcurtain_ps1
    if [[ $READLINE_LINE == "$__ironcurtain_unrecorded"[!\ ]* ]]; then
        READLINE_LINE=${READLINE_LINE:${#__ironcurtain_unrecorded}}
        __ironcurtain_omit
    fi
    case $READLINE_LINE in
        '\#'*)
            READLINE_LINE=${READLINE_LINE:1}
            __ironcurtain_comment
            ;;
        '#'*)
            if __ironcurtain_instruction "$READLINE_LINE"; then
                __ironcurtain_typed=$READLINE_LINE
                __ironcurtain_comment
                __ironcurtain_collect
            fi
            ;;
        *bind* | *inputrc* | *trap* | *source* | *'. '*) __ironcurtain_bound=1 __ironcurtain_trap=1 ;;
    esac
    if [[ $READLINE_LINE != '#'* ]] && ! builtin shopt -q promptvars; then
        __ironcurtain_ran=1
    fi
}

# Keeps what is to be reported. A local variable would hide one of the user's.
__ironcurtain_collect() {
    __ironcurtain_values=()
    for __ironcurtain_name in "${__ironcurtain_names[@]}"; do
        if [[ ${!__ironcurtain_name+set} && ${!__ironcurtain_name@a} == *x* ]]; then
            __ironcurtain_values+=("$__ironcurtain_name=${!__ironcurtain_name}")
        else
            __ironcurtain_values+=("$__ironcurtain_name")
        fi
    done
    unset -v __ironcurtain_name
}

# Whether each line of the argument is blank or a comment.
__ironcurtain_instruction() {
    local rest=$1$'\n' line
    while [[ -n $rest ]]; do
        line=${rest%%$'\n'*} rest=${rest#*$'\n'}
        [[ $line == *([[:blank:]])?(\#*) ]] || return 1
    done
}

# The line that is accepted now is a comment, even where these are switched off.
__ironcurtain_comment() {
    builtin shopt -q interactive_comments || __ironcurtain_uncommented=1
}

# Makes __ironcurtain_prompt the last part of PROMPT_COMMAND.
__ironcurtain_hook() {
    local - version=$((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1])) index
    set +aeux
    local ours='{ __ironcurtain_prompt; case $__ironcurtain_trap in 1) __ironcurtain_trap=$(trap -p DEBUG); '
    ours+='__ironcurtain_hide; eval "$__ironcurtain_trap" ;; esac; __ironcurtain_untrace; } 2>/dev/null'
    if ((version < 404)); then
        return 0
    elif ((version < 501)) || [[ ${PROMPT_COMMAND@a} == *x* ]]; then
        [[ ${PROMPT_COMMAND-} == *__ironcurtain_prompt* ]] || PROMPT_COMMAND="{ __ironcurtain_keep; } 2>/dev/null
${PROMPT_COMMAND-}
$ours"
        return 0
    fi
    # An element of its own keeps the status for the others, and stays when a string is assigned. The first one is not
    # ours.
    local indices=("${!PROMPT_COMMAND[@]}")
    if ((${#indices[@]})) && [[ ${PROMPT_COMMAND[${indices[-1]}]} == "$ours" ]]; then
        return 0
    fi
    for index in "${indices[@]}"; do
        [[ ${PROMPT_COMMAND[index]} != "$ours" ]] || unset -v "PROMPT_COMMAND[$index]"
    done
    indices=(0 "${indices[@]}")
    PROMPT_COMMAND[${indices[-1]} + 1]=$ours
}

# A login shell, or one without files of its own, was started in POSIX mode, where it reads nothing but this file.
if [[ $__ironcurtain_startup != rc ]]; then
    set +o posix
    shopt -u inherit_errexit
    if [[ $HISTFILE == ~/.sh_history && ${HISTFILE@a} != *x* ]]; then
        HISTFILE=~/.bash_history
    fi
    if [[ -n ${IRONCURTAIN_SHELL_SAVED_ENV+set} ]]; then
        ENV=$IRONCURTAIN_SHELL_SAVED_ENV
        unset -v IRONCURTAIN_SHELL_SAVED_ENV
    else
        unset -v ENV
    fi
fi

# Ctrl-C ends the reading of these files, and of this one; where that shows nothing to them, it is done before, too.
((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 501)) || __ironcurtain_hook

# Within "||", so that a status other than 0 at the end of a file with "set -e" does not end the shell.
case $__ironcurtain_startup in
    rc)
        if [[ -r ~/.bashrc ]]; then
            . ~/.bashrc || __ironcurtain_status=$?
        fi
        ;;
    *noprofile*) ;;
    *login*)
        if [[ -r /etc/profile ]]; then
            . /etc/profile || __ironcurtain_status=$?
        fi
        if [[ -r ~/.bash_profile ]]; then
            . ~/.bash_profile || __ironcurtain_status=$?
        elif [[ -r ~/.bash_login ]]; then
            . ~/.bash_login || __ironcurtain_status=$?
        elif [[ -r ~/.profile ]]; then
            . ~/.profile || __ironcurtain_status=$?
        fi
        ;;
esac

__ironcurtain_hook

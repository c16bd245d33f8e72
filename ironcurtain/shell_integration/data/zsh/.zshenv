# Read by zsh at its start as the first of the files in ZDOTDIR, which then is the user's again: zsh reads all others
# by itself. Works with zsh 5.3 and later.
#
# Shows where prompts and commands begin and end, and the directory, as marks with a nonce (see marks.py), and gives
# lines that begin with "#" to the agent: they are comments for zsh, whatever interactive_comments says. All names here
# begin with __ironcurtain. The rest happens at the first prompt, when the user's files have been read.

typeset -g __ironcurtain_nonce=$IRONCURTAIN_SHELL_NONCE
# Names of variables to report with each instruction, and these when it was typed.
typeset -ga __ironcurtain_names __ironcurtain_values
typeset -g __ironcurtain_name=
__ironcurtain_names=(${=IRONCURTAIN_SHELL_VARIABLES-})
unset IRONCURTAIN_SHELL_NONCE IRONCURTAIN_SHELL_VARIABLES
if [[ -n ${IRONCURTAIN_SHELL_SAVED_ZDOTDIR+set} ]]; then
    export ZDOTDIR=$IRONCURTAIN_SHELL_SAVED_ZDOTDIR
    unset IRONCURTAIN_SHELL_SAVED_ZDOTDIR
else
    unset ZDOTDIR
fi

# What was typed for the agent; the directory whose encoded path is in the third variable; the user's prompt.
typeset -g __ironcurtain_typed= __ironcurtain_directory= __ironcurtain_encoded= __ironcurtain_ps1=
# Whether a command ran since the last prompt; whether Enter came here; whether it once did not.
typeset -g __ironcurtain_ran= __ironcurtain_entered= __ironcurtain_missed=
# What a command of the agent begins with that is to stay out of the history, and whether one was accepted.
typeset -g __ironcurtain_unrecorded='           ' __ironcurtain_omitted=
# Whether comments are off but for the line that was accepted.
typeset -g __ironcurtain_uncommented=
# How often the accept-line widget is called within itself, and which widget is next to be called.
typeset -gi __ironcurtain_depth=0
typeset -g __ironcurtain_next=
typeset -g __ironcurtain_b=$'\e]133;B;aid='$__ironcurtain_nonce$'\a'

# Sets __ironcurtain_encoded to the base64 form of an argument.
__ironcurtain_encode() {
    setopt localoptions no_multibyte
    local digits=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/ all= part text=$1
    local -i at bits shift length=$#text
    for ((at = 0; at < length; at += 3)); do
        bits=0
        __ironcurtain_add "${text:$at:1}"
        __ironcurtain_add "${text:$((at+1)):1}"
        __ironcurtain_add "${text:$((at+2)):1}"
        part=
        for ((shift = 18; shift >= 0; shift -= 6)); do
            part+=${digits:$((bits>>shift&63)):1}
        done
        if ((length == at + 1)); then
            part=${part:0:2}==
        elif ((length == at + 2)); then
            part=${part:0:3}=
        fi
        all+=$part
    done
    __ironcurtain_encoded=$all
}

# Adds a byte, if there is one, to "bits".
__ironcurtain_add() {
    local byte=$1
    ((bits = bits << 8 | (${#byte} ? #byte & 255 : 0)))
    return 0
}

# The last of the functions before a prompt.
__ironcurtain_prompt() {
    # In braces, so that nothing of this is shown if the user has commands traced (set -x).
    { local code=$? percent=${options[promptpercent]}; emulate -L zsh -o no_xtrace; } 2>/dev/null
    trap - DEBUG ZERR
    local marks=
    if [[ -n $__ironcurtain_ran ]]; then
        marks=$'\e]133;D;'$code';aid='$__ironcurtain_nonce$'\a'
    fi
    if [[ -n $__ironcurtain_typed ]]; then
        __ironcurtain_encode $__ironcurtain_typed
        __ironcurtain_directory=
        if ((${#__ironcurtain_encoded} <= 16000)); then
            marks+=$'\e]6973;'$__ironcurtain_nonce';instruction;'$__ironcurtain_encoded$'\a'
        fi
        __ironcurtain_report
    fi
    if [[ $PWD != $__ironcurtain_directory ]]; then
        __ironcurtain_encode $PWD
        __ironcurtain_directory=$PWD
    fi
    marks+=$'\e]6973;'$__ironcurtain_nonce';cwd;'$__ironcurtain_encoded$'\a'
    marks+=$'\e]133;A;aid='$__ironcurtain_nonce$'\a'
    if [[ $percent != on ]]; then
        marks+=$__ironcurtain_b
    elif [[ $PS1 != *$__ironcurtain_b* ]]; then
        __ironcurtain_ps1=$PS1
        PS1+="%{$__ironcurtain_b%}"
    fi
    print -rn -- $marks >$TTY
    __ironcurtain_hook
    __ironcurtain_arm
    __ironcurtain_ran= __ironcurtain_typed= __ironcurtain_entered= __ironcurtain_omitted=
    __ironcurtain_depth=0
    return 0
}

# Adds a mark for each variable.
__ironcurtain_report() {
    local value
    for value in $__ironcurtain_values; do
        __ironcurtain_encode $value
        if ((${#__ironcurtain_encoded} <= 16000)); then
            marks+=$'\e]6973;'$__ironcurtain_nonce';variable;'$__ironcurtain_encoded$'\a'
        fi
    done
}

# Makes these functions the last ones.
__ironcurtain_hook() {
    if [[ $precmd_functions[-1] != __ironcurtain_prompt ]]; then
        precmd_functions=(${precmd_functions:#__ironcurtain_prompt} __ironcurtain_prompt)
    fi
    if [[ -z ${(M)zshaddhistory_functions:#__ironcurtain_history} ]]; then
        zshaddhistory_functions+=(__ironcurtain_history)
    fi
    if [[ -z ${(M)preexec_functions:#__ironcurtain_command} ]]; then
        preexec_functions+=(__ironcurtain_command)
    fi
}

# Whether the line that is accepted goes to the history.
__ironcurtain_history() {
    { [[ -z $__ironcurtain_omitted ]]; } 2>/dev/null
}

# Puts the widget back that the user's files or commands have replaced.
__ironcurtain_arm() {
    if [[ -z $__ironcurtain_next ]]; then
        __ironcurtain_next=__ironcurtain_accept
        zle -A accept-line __ironcurtain_accept
        zle -N accept-line __ironcurtain_enter
    elif [[ -n $__ironcurtain_missed && $widgets[accept-line] != user:__ironcurtain_enter ]]; then
        __ironcurtain_next=__ironcurtain_accept_again
        zle -A accept-line __ironcurtain_accept_again
        zle -N accept-line __ironcurtain_enter
    fi
    __ironcurtain_missed=
}

# The last of the functions before a command.
__ironcurtain_command() {
    { emulate -L zsh -o no_xtrace; } 2>/dev/null
    trap - DEBUG ZERR
    print -n -- "\e]133;C;aid=$__ironcurtain_nonce\a" >$TTY
    __ironcurtain_ran=1
    if [[ -z $__ironcurtain_entered ]]; then
        __ironcurtain_missed=1
    fi
    return 0
}

# The widget accept-line. A widget of the user's that has ours below it is called once.
__ironcurtain_enter() {
    if ((__ironcurtain_depth)); then
        zle __ironcurtain_accept
        return
    fi
    {
        if [[ -n $__ironcurtain_uncommented ]]; then
            unsetopt interactive_comments
        fi
        __ironcurtain_line
        if [[ -n $__ironcurtain_typed ]]; then
            __ironcurtain_collect
        fi
        if [[ -n $__ironcurtain_uncommented ]]; then
            setopt interactive_comments
        fi
    } 2>/dev/null
    zle $__ironcurtain_next
    { __ironcurtain_leave; } 2>/dev/null
}

__ironcurtain_leave() {
    emulate -L zsh -o no_xtrace
    __ironcurtain_depth=0
}

# Keeps what is to be reported. A local variable would hide one of the user's.
__ironcurtain_collect() {
    emulate -L zsh -o no_xtrace
    trap - DEBUG ZERR
    __ironcurtain_values=()
    for __ironcurtain_name in $__ironcurtain_names; do
        if [[ ${(tP)__ironcurtain_name} == *export* ]]; then
            __ironcurtain_values+=("$__ironcurtain_name=${(P)__ironcurtain_name}")
        else
            __ironcurtain_values+=($__ironcurtain_name)
        fi
    done
    return 0
}

# Looks at the line that is accepted.
__ironcurtain_line() {
    { local comments=${options[interactivecomments]}; emulate -L zsh -o extended_glob -o no_xtrace; } 2>/dev/null
    trap - DEBUG ZERR
    __ironcurtain_depth=1
    __ironcurtain_uncommented=
    if [[ $CONTEXT != start ]]; then
        return 0
    fi
    __ironcurtain_entered=1
    __ironcurtain_hook
    if [[ $PS1 == "$__ironcurtain_ps1%{$__ironcurtain_b%}" ]]; then
        PS1=$__ironcurtain_ps1
    fi
    if [[ $BUFFER == "$__ironcurtain_unrecorded"[^[:blank:]]* ]]; then
        BUFFER=${BUFFER:${#__ironcurtain_unrecorded}}
        __ironcurtain_omitted=1
    fi
    if [[ $BUFFER == '\#'* ]]; then
        BUFFER=${BUFFER#\\}
    elif [[ $BUFFER == '#'* ]] && __ironcurtain_comments $BUFFER; then
        __ironcurtain_typed=$BUFFER
    else
        return 0
    fi
    if [[ $comments != on ]]; then
        __ironcurtain_uncommented=1
    fi
    return 0
}

# Whether each line of the argument is blank or a comment.
__ironcurtain_comments() {
    local line
    for line in "${(@f)1}"; do
        if [[ $line != [[:blank:]]#(\#*|) ]]; then
            return 1
        fi
    done
    return 0
}

# A scheduled function runs before the first prompt, after the user's, whatever the user's files do to precmd_functions.
if zmodload zsh/sched 2>/dev/null; then
    sched +0 __ironcurtain_prompt
else
    typeset -ga precmd_functions
    precmd_functions+=(__ironcurtain_prompt)
fi

if [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then
    . ${ZDOTDIR-$HOME}/.zshenv
fi

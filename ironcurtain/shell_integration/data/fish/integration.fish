# Sourced by fish after the user's own files. Works with fish 3.4 and later.
#
# Shows where prompts and commands begin and end, and the directory, as marks with a nonce (see marks.py), and gives
# lines that begin with "#" to the agent: they stay comments for fish. All names here begin with __ironcurtain.

set -g __ironcurtain_nonce $IRONCURTAIN_SHELL_NONCE
set -e IRONCURTAIN_SHELL_NONCE
# Names of variables to report with each instruction.
set -g __ironcurtain_names (string split --no-empty ' ' -- "$IRONCURTAIN_SHELL_VARIABLES")
set -e IRONCURTAIN_SHELL_VARIABLES
# What was typed for the agent; the directory whose encoded path is in the third variable.
set -g __ironcurtain_typed
set -g __ironcurtain_directory
set -g __ironcurtain_encoded
# What the event of a command said of the line, and whether the line editor is at a prompt.
set -g __ironcurtain_ran 0
set -g __ironcurtain_at_prompt 0
# Whether the line is a comment that is not for the agent, and the kind of keys that are bound.
set -g __ironcurtain_literal 0
set -g __ironcurtain_bound none

function __ironcurtain_encode
    printf %s $argv | command base64 | string join ''
end

# A mark for each variable that is to be reported. A local variable would hide one of the user's.
function __ironcurtain_report
    for __ironcurtain_name in $__ironcurtain_names
        set -l __ironcurtain_value $__ironcurtain_name
        set -q --export $__ironcurtain_name
        and set __ironcurtain_value "$__ironcurtain_name=$$__ironcurtain_name"
        set __ironcurtain_value (__ironcurtain_encode $__ironcurtain_value)
        test (string length "$__ironcurtain_value") -le 16000
        and printf '\e]6973;%s;variable;%s\a' $__ironcurtain_nonce $__ironcurtain_value
    end
end

# The last thing in a prompt is the mark that it ended.
function __ironcurtain_wrap
    functions fish_prompt | string match --quiet '*__ironcurtain_prompt*'
    and return
    functions --erase __ironcurtain_prompt
    functions --copy fish_prompt __ironcurtain_prompt
    function fish_prompt
        __ironcurtain_prompt
        printf '\e]133;B;aid=%s\a' $__ironcurtain_nonce
    end
end

function __ironcurtain_on_prompt --on-event fish_prompt
    set -g __ironcurtain_at_prompt 1
    set -g __ironcurtain_literal 0
    if set -q __ironcurtain_typed[1]
        set -l encoded (__ironcurtain_encode $__ironcurtain_typed)
        set -g __ironcurtain_typed
        test (string length "$encoded") -le 16000
        and printf '\e]6973;%s;instruction;%s\a' $__ironcurtain_nonce $encoded
        __ironcurtain_report
    end
    if test "$PWD" != "$__ironcurtain_directory"
        set -g __ironcurtain_directory $PWD
        set -g __ironcurtain_encoded (__ironcurtain_encode $PWD)
    end
    printf '\e]6973;%s;cwd;%s\a\e]133;A;aid=%s\a' $__ironcurtain_nonce "$__ironcurtain_encoded" $__ironcurtain_nonce
    __ironcurtain_wrap
    __ironcurtain_bind
end

function __ironcurtain_on_read --on-event fish_read
    set -g __ironcurtain_at_prompt 0
end

# Only lines of the line editor at a primary prompt come here, as they were typed; a comment is no command.
function __ironcurtain_on_command --on-event fish_preexec
    set -g __ironcurtain_at_prompt 0
    if string split \n -- $argv[1] | string match --quiet --invert --regex -- '^\s*(#.*)?$'
        set -g __ironcurtain_ran 1
        printf '\e]133;C;aid=%s\a' $__ironcurtain_nonce
    else if string match --quiet -- '#*' $argv[1]; and test $__ironcurtain_literal = 0
        set -g __ironcurtain_typed $argv[1]
    end
end

function __ironcurtain_on_end --on-event fish_postexec
    set -l code $status
    test $__ironcurtain_ran = 1
    and printf '\e]133;D;%s;aid=%s\a' $code $__ironcurtain_nonce
    set -g __ironcurtain_ran 0
end

# Enter: a backslash before "#" makes a comment of the line that is not for the agent.
function __ironcurtain_enter
    if test $__ironcurtain_at_prompt = 1
        set -l line "$(commandline)"
        if string match --quiet -- '\\#*' $line
            set -g __ironcurtain_literal 1
            commandline --replace -- (string sub --start 2 -- $line | string collect)
        end
    end
    # fish would leave a suggestion on the screen when a function executes the line.
    commandline --function suppress-autosuggestion execute
end

# Keys that fish's own bindings give to "execute" get ours, unless the user has bound them.
function __ironcurtain_bind
    test "$fish_key_bindings" = "$__ironcurtain_bound"
    and return
    for binding in (bind --user | string match --regex -- '^bind .* __ironcurtain_enter$')
        eval (string replace --regex -- '^bind (.*) __ironcurtain_enter$' 'bind --erase --user $1' $binding)
    end
    set -l theirs (bind --user | string replace --regex -- '^(bind .*\S) .*$' '$1')
    for binding in (bind --preset | string match --regex -- '^bind .* execute$' | string replace -- ' --preset' '')
        set -g __ironcurtain_bound $fish_key_bindings
        set -l key (string replace --regex -- ' execute$' '' $binding)
        contains -- $key $theirs
        or eval $key __ironcurtain_enter
    end
end

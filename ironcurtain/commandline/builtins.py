"""
The commands that shells have themselves: most of them change what later commands mean, so that few may run unasked.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from ironcurtain.commandline.model import Words
from ironcurtain.commandline.names import names

OWN = names(
    # bash 5.2
    ". : [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown echo "
    "enable eval exec exit export false fc fg getopts hash help history jobs kill let local logout mapfile popd printf "
    "pushd pwd read readarray readonly return set shift shopt source suspend test times trap true type typeset ulimit "
    "umask unalias unset wait "
    # zsh 5.9, with its usual modules
    "- autoload bindkey bye chdir compadd comparguments compcall compctl compdescribe compfiles compgroups "
    "compquote compset comptags comptry compvalues disable echotc echoti emulate float functions getln integer "
    "limit log noglob print private pushln r rehash sched setopt ttyctl unfunction unhash unlimit unsetopt vared "
    "whence where which zcompile zformat zle zmodload zparseopts zregexparse zstyle nocorrect zargs "
    # fish 3.6, with functions that come with it
    "_ abbr and argparse begin block breakpoint case commandline contains count else emit end for function if math "
    "not or path random realpath set_color status string switch time while edit_command_buffer fish_add_path "
    "fish_config fish_indent fish_key_reader fish_update_completions funced funcsave nextd open prevd psub setenv cdh "
    "dirh fish_delta"
)
"""The builtins of bash, zsh and fish. Any of them counts in each."""

_CONVERSIONS = re.compile(r"(?:[^%\\]|%%|\\[^cuUxX0-7]|%-?[0-9]*(?:\.[0-9]+)?[sbq])*", re.DOTALL)
_TEST = re.compile(r"-[defhLnrswxz]")


def _no_value(words: Words) -> bool:
    return len(words) == 1


def _anything(words: Words) -> bool:
    return True


def _all(expression: str) -> Callable[[Words], bool]:
    whole = re.compile(expression, re.ASCII)
    return lambda words: all(word.plain is not None and whole.fullmatch(word.text) for word in words[1:])


def _printf(words: Words) -> bool:
    """Other conversions evaluate arithmetic in zsh; an option can set a variable."""
    form = words[1].plain if len(words) > 1 else None
    return form is not None and not form.startswith("-") and _CONVERSIONS.fullmatch(form) is not None


def _test(words: Words) -> bool:
    """Of files and texts; comparisons of numbers evaluate arithmetic in zsh, ``-v`` a subscript in bash."""
    rest = [*words[1:]]
    if words[0].text == "[" and (not rest or rest.pop().plain != "]"):
        return False
    if rest and rest[0].plain == "!":
        rest = rest[1:]
    if any(word.plain is None for word in rest):  # a variable can be several words, and operators
        return False
    if len(rest) == 2:
        return _TEST.fullmatch(rest[0].text) is not None
    return len(rest) == 3 and rest[1].text in ("=", "!=") and not rest[0].text.startswith("-")


def _cd(words: Words) -> bool:
    """To a directory; zsh also changes a part of the current path, and goes back in its list."""
    rest = [word for word in words[1:] if word.text not in ("--", "-L", "-P")]
    return len(rest) <= 1 and not any(re.fullmatch(r"[-+].+", word.text) for word in rest)


_PLAIN: dict[str, Callable[[Words], bool]] = {
    ":": _anything,
    "[": _test,
    "cd": _cd,
    "command": lambda words: len(words) > 1,
    "count": _anything,
    "dirs": _no_value,
    "echo": _anything,
    "false": _anything,
    "history": _all(r"[0-9]+"),
    "jobs": _no_value,
    "kill": _all(r"%?[\w+-]+"),
    "printf": _printf,
    "pwd": _all(r"-[LP]"),
    "realpath": _anything,
    "test": _test,
    "time": _anything,
    "times": _no_value,
    "true": _anything,
    "type": _all(r"(?:-[aptf]+|[\w.+][\w.+-]*)"),
    "which": _all(r"(?:-a|[\w.+][\w.+-]*)"),
}
"""The builtins that change nothing in the shell but its directory, if their arguments pass."""


def changes_shell(words: Words) -> bool:
    """
    :param words: of a command.
    :returns: whether it may be a builtin that changes the shell, or runs what its arguments say.
    """
    name = words[0].text  # a path names a program
    return name in OWN and not (name in _PLAIN and _PLAIN[name](words))

"""Names that have a meaning for shells: shells, interpreters, and reserved words."""

from __future__ import annotations


def names(text: str) -> frozenset[str]:
    """:returns: the names in a text, which blanks divide."""
    return frozenset(text.split())


SHELLS = frozenset(("sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "yash", "csh", "tcsh"))
"""Programs that read commands."""

INTERPRETERS = names(
    "python python2 python3 pypy3 perl ruby node nodejs deno bun php lua luajit tclsh expect awk osascript"
)
"""Programs that read programs in other languages."""

RESERVED = names(
    "if then else elif fi for while until do done case esac select function time coproc in { } ! [[ ]] begin end "
    "and or not switch repeat foreach nocorrect noglob always"
)
"""Words that are part of a shell's grammar, in bash, zsh or fish."""

"""
Read the paths that a policy names: ``within``, ``protected`` and the globs of ``[approval.filesystem]``.

What a path cannot have is an error, since a path that is taken literally instead protects nothing, silently.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from ironcurtain.policy.pathmap import AGENT_WORKSPACE
from ironcurtain.text.display import has_hidden_text

STARTS: Mapping[str, str] = {"~": "~", "$HOME": "~", "$WORKSPACE": AGENT_WORKSPACE}
"""What the path of a rule can begin with, besides ``/`` and ``/workspace``, and what it means."""

_ESCAPED = re.compile(r"\\([\\*?\[\]{}$])")
_LITERAL = re.compile(r"[\\*?\[\]{}$]")
_VARIABLE = re.compile(r"\$\{?[A-Za-z_]*\}?")


class WrongPath(ValueError):
    """A path of a policy is not one. The message says why, and what to write."""


@lru_cache(4096)  # each rule is compared with all before it
def directory_of(text: str) -> str:
    """
    :param text: ``within`` of a rule, or a protected path. ``DIR/**`` is the directory with everything in it, as
        ``DIR`` is. A backslash makes the wildcard, ``$`` or backslash after it a part of a name.
    :returns: the path without wildcards, ``.`` and repeated slashes; it begins with ``/``, ``~`` or ``/workspace``.
    :raises WrongPath: it has a variable, wildcard or ``..``, or is relative.
    """
    if problem := path_problem(text):
        raise WrongPath(problem)
    first, *rest = text.split("/")
    if first and first not in STARTS:
        raise WrongPath(_why_not_a_start(first))
    start, names = STARTS.get(first, ""), rest
    while names[-1:] in (["**"], [""], ["."]):
        names.pop()
    bare = [_ESCAPED.sub("_", name) for name in names]
    if any("\\" in name for name in bare):
        raise WrongPath("a backslash can only stand before one of \\ * ? [ ] { } $")
    if any(re.search(r"[*?\[]", name) for name in bare):
        raise WrongPath("a directory can end in /**, but has no other wildcards: name the directory that they are in")
    kept = [_ESCAPED.sub(r"\1", name) for name in names if name not in ("", ".")]
    return "/".join((start, *kept)) or "/"


def path_problem(text: str) -> str:
    """
    :param text: a path or a glob of a policy, whatever it begins with.
    :returns: why it cannot be one; empty if it can.
    """
    if not text:
        return "write a path"
    if has_hidden_text(text) or "\n" in text or "\t" in text or "\r" in text:
        return "it has invisible characters: write it again by hand"
    if text != text.strip():
        return "it begins or ends with a blank"
    bare = _ESCAPED.sub("_", text)
    if ".." in bare.split("/"):
        return "it contains .., which a link can lead elsewhere: write the path that is meant"
    if "$" in bare[1:]:
        return f"the variable {_shown_variable(bare[1:])} is not known within a path: write it out"
    if ("{" in bare or "}" in bare) and not bare.startswith("$"):
        return "braces are not expanded: write one path for each"
    return ""


def written(path: str) -> str:
    """:returns: an absolute path as :func:`directory_of` reads it."""
    return _LITERAL.sub(r"\\\g<0>", path)


def _why_not_a_start(first: str) -> str:
    known = "~, $HOME, $WORKSPACE or /workspace"
    if first == "$CWD":
        return "$CWD is known in [approval.filesystem] only: write /workspace"
    if first.startswith("$"):
        return f"the variable {_shown_variable(first)} is not known: begin with /, {known}"
    if first.startswith("~"):
        return f"{first} is not expanded: write the path out"
    return f"it is relative: begin it with /, {known}"


def _shown_variable(text: str) -> str:
    found = _VARIABLE.search(text)
    return found[0] if found else "$"

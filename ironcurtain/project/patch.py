"""Format changes as ``git diff`` does, for ``git apply`` and people."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.project.changes import Change
from ironcurtain.project.tree import TreeEntry
from ironcurtain.text.differences import unified

Content = Callable[[Change], bytes | None]

_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}

LINK = "120000"
"""git's mode of a link (git-diff(1), "Generating patch text")."""


def patch(change: Change, before: Content, after: Content) -> str:
    """
    :param before: returns the earlier content, or ``None`` if unknown.
    :param after: returns the current content.
    :returns: the change as text, with bytes that are not UTF-8 as surrogates (``surrogateescape``).
    """
    one, other = change.before, change.after
    if one is not None and other is not None and one.kind != other.kind:  # git shows this as two changes, too
        return patch(Change(change.path, "removed", one, None), before, after) + patch(
            Change(change.path, "added", None, other), before, after
        )
    text = "\n".join([f"diff --git {_name('a', change.path)} {_name('b', change.path)}", *_modes(one, other), ""])
    return text if change.what == "mode" else text + _content(change, before(change), after(change))


def _modes(one: TreeEntry | None, other: TreeEntry | None) -> list[str]:
    if one is None or other is None:
        entry = other if one is None else one
        assert entry is not None
        return [f"{'new' if one is None else 'deleted'} file mode {_mode(entry)}"]
    if _mode(one) == _mode(other):
        return []
    return [f"old mode {_mode(one)}", f"new mode {_mode(other)}"]


def _mode(entry: TreeEntry) -> str:
    if entry.kind == "link":
        return LINK
    return f"100{entry.mode:03o}" if entry.mode > 0o777 else "100755" if entry.mode & 0o100 else "100644"


def _content(change: Change, old: bytes | None, new: bytes | None) -> str:
    heads = [
        "/dev/null" if change.before is None else _name("a", change.path),
        "/dev/null" if change.after is None else _name("b", change.path),
    ]
    if special := next((e for e in (change.before, change.after) if e is not None and e.kind == "other"), None):
        return f"Special file (FIFO, socket or device), mode {special.mode:o}\n"
    if old is None or new is None or b"\0" in old or b"\0" in new:
        return f"Binary files {heads[0]} and {heads[1]} differ\n"
    text = unified(old.decode("utf-8", "surrogateescape"), new.decode("utf-8", "surrogateescape"), "")
    return f"--- {_ended(heads[0])}\n+++ {_ended(heads[1])}\n{text.split(chr(10), 2)[2]}" if text else ""


def _ended(name: str) -> str:
    return (
        f"{name}\t" if " " in name and not name.startswith('"') else name
    )  # as git does, for programs that expect a date


def _name(side: str, path: str) -> str:
    """:returns: a name, quoted as git does if necessary."""
    name = f"{side}/{path}"
    if not any(c in _ESCAPES or not c.isprintable() for c in name):
        return name
    return '"' + "".join(_quoted(c) for c in name) + '"'


def _quoted(character: str) -> str:
    if character in _ESCAPES:
        return f"\\{_ESCAPES[character]}"
    if character.isprintable():
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode("utf-8", "surrogateescape"))

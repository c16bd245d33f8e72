"""Format changes as ``git diff`` does, for ``git apply`` and people."""

from __future__ import annotations

import base64
import hashlib
import re
import string
import zlib
from collections.abc import Callable, Sequence

from ironcurtain.project.changes import Change
from ironcurtain.project.tree import TreeEntry
from ironcurtain.text.differences import unified

Content = Callable[[Change], bytes | None]

_ESCAPES = {"\a": "a", "\b": "b", "\t": "t", "\n": "n", "\v": "v", "\f": "f", "\r": "r", '"': '"', "\\": "\\"}

LINK = "120000"
"""git's mode of a link (git-diff(1), "Generating patch text")."""

_REFUSED = re.compile(r"(\.git|git~1)[ .]*(:.*)?", re.IGNORECASE | re.DOTALL)
_REFUSED_LINK = re.compile(r"(\.gitmodules|(gitmod|gi7eba)~\d+)[ .]*(:.*)?", re.IGNORECASE | re.DOTALL)
"""Names that git refuses (git's ``verify_path``): its own, also as some file systems spell them; and links for one."""

_LENGTHS = string.ascii_uppercase + string.ascii_lowercase

LINE = len(_LENGTHS)
"""Most bytes of a line of a binary patch, of which one letter says how many there are."""


def patch(change: Change, before: Content, after: Content, binary: bool = False) -> str:
    """
    :param before: returns the earlier content, or ``None`` if unknown.
    :param after: returns the current content.
    :param binary: whether the content of binary files is for ``git apply``; otherwise they are only said to differ.
    :returns: the change as text, with bytes that are not UTF-8 as surrogates (``surrogateescape``). What no patch can
        express is a line without a header, which ``git apply`` passes over.
    """
    one, other = change.before, change.after
    if one is not None and other is not None and one.kind != other.kind:  # git shows this as two changes, too
        removed, added = Change(change.path, "removed", one, None), Change(change.path, "added", None, other)
        return patch(removed, before, after, binary) + patch(added, before, after, binary)
    modes = _modes(one, other)
    head = "\n".join([f"diff --git {_name('a', change.path)} {_name('b', change.path)}", *modes, ""])
    remark = _remark(change)
    if change.what == "mode":
        return remark + (head if modes else "")
    if special := next((e for e in (one, other) if e is not None and e.kind == "other"), None):
        return f"Special file {_name('b', change.path)} (FIFO, socket or device), mode {special.mode:o}\n"
    heads = [
        "/dev/null" if one is None else _name("a", change.path),
        "/dev/null" if other is None else _name("b", change.path),
    ]
    old, new = before(change), after(change)
    if old is None or new is None:
        return f"{remark}Binary files {heads[0]} and {heads[1]} differ\n"
    if b"\0" not in old and b"\0" not in new:
        text = _text(heads, old, new)
        return remark + (head + text if modes or text else "")  # git takes the name of nothing but a head for the next
    if binary:
        return remark + head + _binary(None if one is None else old, None if other is None else new)
    return f"{remark}{head}Binary files {heads[0]} and {heads[1]} differ\n"


def is_refused(change: Change) -> bool:
    """:returns: whether ``git apply`` refuses the path, and the whole patch with it."""
    names = re.split(r"[/\\]", change.path)
    is_link = any(entry is not None and entry.kind == "link" for entry in (change.before, change.after))
    return any(map(_REFUSED.fullmatch, names)) or (is_link and any(map(_REFUSED_LINK.fullmatch, names)))


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
    return "100755" if entry.mode & 0o100 else "100644"


def _remark(change: Change) -> str:
    """:returns: a line about rights that git does not know, if a patch would be silent about them."""
    one, other = change.before, change.after
    if other is None or other.kind != "file":
        return ""
    unknown = one is not None and change.what == "mode" and not _modes(one, other)
    return f"Rights of {_name('b', change.path)}: {other.mode:04o}\n" if other.mode > 0o777 or unknown else ""


def _text(heads: Sequence[str], old: bytes, new: bytes) -> str:
    text = unified(old.decode("utf-8", "surrogateescape"), new.decode("utf-8", "surrogateescape"), "")
    return f"--- {_ended(heads[0])}\n+++ {_ended(heads[1])}\n{text.split(chr(10), 2)[2]}" if text else ""


def _binary(old: bytes | None, new: bytes | None) -> str:
    """:returns: both contents whole, as git writes them (``git diff --binary``); ``None``: there is no file."""
    return f"index {_object_id(old)}..{_object_id(new)}\nGIT binary patch\n{_literal(new)}\n{_literal(old)}\n"


def _literal(content: bytes | None) -> str:
    packed = zlib.compress(content or b"")
    lines = [f"literal {len(content or b'')}"]
    for start in range(0, len(packed), LINE):
        piece = packed[start : start + LINE]
        lines.append(f"{_LENGTHS[len(piece) - 1]}{base64.b85encode(piece, pad=True).decode()}")
    return "\n".join([*lines, ""])


def _object_id(content: bytes | None) -> str:
    if content is None:
        return "0" * 40
    return hashlib.sha1(b"blob %d\0%b" % (len(content), content), usedforsecurity=False).hexdigest()


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

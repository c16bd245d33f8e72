"""Carry out the tools: one method each, from checked arguments to the parts of a result."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from ironcurtain.servers.files import changes, content, edits, globs
from ironcurtain.servers.files.arguments import check
from ironcurtain.servers.files.failures import FileError, shown
from ironcurtain.servers.files.listing import Bounds, DirectoryEntry, descend, listed
from ironcurtain.servers.files.table import SCHEMAS
from ironcurtain.servers.files.walk import Place, Roots, directory, parent, status
from ironcurtain.servers.server import Part

MATCH_LIMIT = 5000
"""Maximum number of paths in the answer of a search."""

TREE_LIMIT = 10_000
"""Maximum number of entries of one tree (about 1 MB of JSON)."""

_MARKS = {"directory": "[DIR]", "file": "[FILE]", "link": "[LINK]", "other": "[OTHER]"}

_MEDIA = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".bmp": "image/bmp",
    ".svg": "image/svg+xml",
    ".mp3": "audio/mpeg",
    ".wav": "audio/wav",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
}


class FileTools:
    """
    The tools. Modules that only some of them need are imported lazily, since most servers are little used.

    :param roots: the allowed directories.
    """

    def __init__(self, roots: Roots) -> None:
        self._roots = roots
        self._tools: dict[str, Callable[[dict[str, Any]], list[Part]]] = {
            name: getattr(self, f"_{name}") for name in SCHEMAS
        }

    def call(self, name: str, arguments: dict[str, Any]) -> list[Part]:
        """
        Call one tool.

        :returns: the content parts of its result.
        :raises KeyError: there is no such tool.
        :raises FileError: the arguments are wrong, or the call failed.
        """
        tool = self._tools[name]
        self._roots.look()
        return tool(check(SCHEMAS[name], arguments))

    def _place(self, arguments: dict[str, Any], name: str = "path") -> Place:
        return self._roots.locate(arguments[name])

    def _read_text_file(self, arguments: dict[str, Any]) -> list[Part]:
        place = self._place(arguments)
        head, tail = _lines(arguments, "head"), _lines(arguments, "tail")
        if head is not None and tail is not None:
            raise FileError("give head or tail, not both")
        if head is not None:
            data = content.read_head(place, head)
        elif tail is not None:
            data = content.read_tail(place, tail)
        else:
            data, _ = content.read_all(place)
        return [_text(content.text(data, place))]

    _read_file = _read_text_file

    def _read_media_file(self, arguments: dict[str, Any]) -> list[Part]:
        from base64 import b64encode

        place = self._place(arguments)
        data, _ = content.read_all(place)
        encoded = b64encode(data).decode()
        media = _MEDIA.get(os.path.splitext(place.path)[1].lower(), "application/octet-stream")
        kind = media.partition("/")[0]
        if kind in ("image", "audio"):
            return [{"type": kind, "data": encoded, "mimeType": media}]
        return [{"type": "resource", "resource": {"uri": _uri(place.path), "mimeType": media, "blob": encoded}}]

    def _read_multiple_files(self, arguments: dict[str, Any]) -> list[Part]:
        left = content.READ_LIMIT
        answers: list[str] = []
        for path in arguments["paths"]:
            try:
                place = self._roots.locate(path)
                data, _ = content.read_all(place, left)
                answers.append(f"{shown(path)}:\n{content.text(data, place)}\n")
                left -= len(data)
            except FileError as e:
                answers.append(f"{shown(path)}: error: {e}\n")
        return [_text("\n---\n".join(answers))]

    def _write_file(self, arguments: dict[str, Any]) -> list[Part]:
        place = self._place(arguments)
        data = _encoded(arguments["content"])
        new = content.replace(place, data)
        return [_text(f"{'created' if new else 'replaced'} {shown(place.path)} ({len(data)} bytes)")]

    def _edit_file(self, arguments: dict[str, Any]) -> list[Part]:
        from ironcurtain.text import differences

        place = self._place(arguments)
        data, version = content.read_all(place)
        before = content.text(data, place)
        after = edits.apply(before, [edits.Edit(each["oldText"], each["newText"]) for each in arguments["edits"]])
        if after != before and not arguments["dryRun"]:
            content.replace(place, _encoded(after), version)
        return [_text(differences.unified(before, after, shown(place.path)) or "nothing changed")]

    def _create_directory(self, arguments: dict[str, Any]) -> list[Part]:
        place = self._place(arguments)
        made = changes.make_directories(place)
        return [_text(f"created {shown(place.path)}" if made else f"{shown(place.path)} exists already")]

    def _list_directory(self, arguments: dict[str, Any]) -> list[Part]:
        bounds = Bounds()
        found = listed(self._place(arguments), bounds)
        lines = [f"{_MARKS[entry.kind]} {shown(entry.name)}" for entry in found]
        return [_text("\n".join(lines) or "(empty)"), *_cut(bounds)]

    def _list_directory_with_sizes(self, arguments: dict[str, Any]) -> list[Part]:
        bounds = Bounds()
        found = listed(self._place(arguments), bounds)
        if arguments["sortBy"] == "size":
            found.sort(key=lambda entry: -entry.size)
        lines = [_with_size(entry) for entry in found]
        directories = sum(entry.kind == "directory" for entry in found)
        total = sum(entry.size for entry in found)
        totals = f"\nTotal: {len(found) - directories} files, {directories} directories\nCombined size: {_size(total)}"
        return [_text("\n".join([*lines, totals])), *_cut(bounds)]

    def _directory_tree(self, arguments: dict[str, Any]) -> list[Part]:
        import json

        bounds = Bounds(entries=TREE_LIMIT)
        excluded = _patterns(arguments["excludePatterns"])
        tree: list[Any] = []
        children: dict[tuple[str, ...], list[Any]] = {(): tree}

        def visit(names: tuple[str, ...], entry: DirectoryEntry) -> bool:
            if excluded(names):
                return False
            node: dict[str, Any] = {"name": shown(entry.name), "type": entry.kind}
            if entry.kind == "directory":
                children[names] = node["children"] = []
            children[names[:-1]].append(node)
            return True

        descend(self._place(arguments), bounds, visit)
        return [_text(json.dumps(tree, indent=2, ensure_ascii=False)), *_cut(bounds)]

    def _search_files(self, arguments: dict[str, Any]) -> list[Part]:
        place, bounds = self._place(arguments), Bounds()
        wanted, excluded = _patterns([arguments["pattern"]]), _patterns(arguments["excludePatterns"])
        found: list[str] = []

        def visit(names: tuple[str, ...], entry: DirectoryEntry) -> bool:
            if len(found) >= MATCH_LIMIT or excluded(names):
                return False
            if wanted(names):
                found.append(shown(place.below(*names).path))
                if len(found) >= MATCH_LIMIT:
                    bounds.cut(f"there are over {MATCH_LIMIT} matches")
            return True

        descend(place, bounds, visit)
        return [_text("\n".join(found) or "no matches"), *_cut(bounds)]

    def _get_file_info(self, arguments: dict[str, Any]) -> list[Part]:
        place = self._place(arguments)
        found = _information(place)
        kind = "directory" if stat.S_ISDIR(found.st_mode) else "file" if stat.S_ISREG(found.st_mode) else "other"
        facts = {
            "path": shown(place.path),
            "type": kind,
            "size": found.st_size,
            "permissions": f"{stat.S_IMODE(found.st_mode):03o}",
            "modified": _moment(found.st_mtime),
            "accessed": _moment(found.st_atime),
            "changed": _moment(found.st_ctime),
        }
        return [_text("\n".join(f"{name}: {value}" for name, value in facts.items()))]

    def _list_allowed_directories(self, arguments: dict[str, Any]) -> list[Part]:
        return [_text("\n".join(["Allowed directories:", *(shown(root.path) for root in self._roots.all)]))]

    def _move_file(self, arguments: dict[str, Any]) -> list[Part]:
        source, destination = self._place(arguments, "source"), self._place(arguments, "destination")
        changes.move(source, destination)
        return [_text(f"moved {shown(source.path)} to {shown(destination.path)}")]

    def _delete_file(self, arguments: dict[str, Any]) -> list[Part]:
        place = self._place(arguments)
        changes.delete_file(place)
        return [_text(f"deleted {shown(place.path)}")]

    def _delete_directory(self, arguments: dict[str, Any]) -> list[Part]:
        place = self._place(arguments)
        changes.delete_directory(place)
        return [_text(f"deleted {shown(place.path)}")]


def _information(place: Place) -> os.stat_result:
    if not place.parts:
        with directory(place) as descriptor:
            return os.fstat(descriptor)
    with parent(place) as (holder, _):
        found = status(holder, place)
    if found is None:
        raise FileError(f"no such file or directory: {shown(place.path)}")
    return found


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _cut(bounds: Bounds) -> list[Part]:
    return [_text(f"incomplete: {'; '.join(bounds.reasons)}")] if bounds.reasons else []


def _lines(arguments: dict[str, Any], name: str) -> int | None:
    value = arguments.get(name)
    if value is None:
        return None
    if value != value or value < 1 or value > 2**53 or value != int(value):
        raise FileError(f"{name} must be a whole number of lines, at least 1")
    return int(value)


def _patterns(patterns: Sequence[str]) -> globs.Matcher:
    try:
        return globs.any_of(patterns)
    except ValueError as e:
        raise FileError(str(e)) from None


def _encoded(text: str) -> bytes:
    data = text.encode(errors="surrogatepass")
    if len(data) > content.READ_LIMIT:
        raise FileError(f"the contents have {len(data)} bytes, over the limit of {content.READ_LIMIT}")
    return data


def _with_size(entry: DirectoryEntry) -> str:
    size = _size(entry.size) if entry.kind == "file" else ""
    return f"{_MARKS[entry.kind]} {shown(entry.name):<30} {size:>10}".rstrip()


def _size(size: int) -> str:
    if size < 1024:
        return f"{size} B"
    amount, units = size / 1024, ["KB", "MB", "GB", "TB"]
    while amount >= 1024 and len(units) > 1:
        amount, units = amount / 1024, units[1:]
    return f"{amount:.2f} {units[0]}"


def _moment(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")


def _uri(path: str) -> str:
    from urllib.parse import quote

    return f"file://{quote(os.fsencode(path))}"

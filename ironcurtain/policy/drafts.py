"""
Guess from a tool's definition what its arguments mean: from names, types, formats, descriptions and the server's hints.

A guess is no annotation. It helps a person who is asked about a call, and is the draft of an annotation that a person
accepts.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ironcurtain.policy.annotations import ToolAnnotation
from ironcurtain.policy.roles import Role

Kind = Literal["path", "address"]

DEPTH_LIMIT = 8
"""Maximum nesting of schemas that is searched."""

_WORDS = re.compile(r"[A-Z]+s?(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PATH_WORDS = frozenset(
    (
        "path", "paths", "file", "files", "filename", "filenames", "filepath", "filepaths", "dir", "dirs",
        "directory", "directories", "folder", "folders", "cwd", "workdir",
    )
)  # fmt: skip
_ADDRESS_WORDS = frozenset(("url", "urls", "uri", "uris", "href", "hrefs"))
_PATTERN_WORDS = frozenset(
    (
        "pattern", "patterns", "glob", "globs", "regex", "regexp", "type", "types", "mode", "count", "size",
        "content", "format",
    )
)  # fmt: skip
"""An argument whose name has one of these besides is about paths, but is none."""

_PATH_FORMATS = ("path", "file-path", "directory-path")
_ADDRESS_FORMATS = ("uri", "url", "iri", "uri-reference")
_SAYS_PATH = re.compile(
    r"\b(?:absolute|relative|local|file|directory|folder) paths?\b|\bpaths? (?:to|of|where)\b|\bfile ?names?\b", re.I
)
_SAYS_ADDRESS = re.compile(r"\bURLs?\b|\bURIs?\b|\bweb address", re.I)
_SAYS_PATTERN = re.compile(r"\b(?:regexp?|regular expression|glob|pattern)s?\b", re.I)
_SAYS_TARGET = re.compile(r"\b(?:save|saved|write|written|store|stored|output|export)\b", re.I)

_READS = frozenset(
    (
        "read", "get", "list", "search", "find", "show", "view", "open", "describe", "stat", "query", "fetch", "load",
        "check", "count", "diff", "compare", "lint", "parse", "tree", "info", "inspect", "validate", "upload",
    )
)  # fmt: skip
_CREATES = frozenset(
    (
        "write", "create", "save", "append", "mkdir", "touch", "export", "download", "screenshot", "dump", "generate",
    )
)  # fmt: skip
_CHANGES = frozenset(("edit", "update", "patch", "replace", "modify", "insert"))
_DELETES = frozenset(("delete", "remove", "rm", "unlink", "trash", "purge", "erase", "prune", "clean"))
_MOVES = frozenset(("move", "mv", "rename"))
_TARGETS = frozenset(("out", "output", "dest", "destination", "target", "to", "save", "new"))

_READ: tuple[Role, ...] = ("read-path",)
_ALL: tuple[Role, ...] = ("read-path", "write-path", "delete-path")


class Meaning(NamedTuple):
    """
    What an argument seems to be.

    :param why: in words for people.
    """

    kind: Kind
    why: str


class Draft(NamedTuple):
    """
    The draft of an annotation.

    :param why: for each argument that does not have the role "none": why it has its roles, in words for people.
    """

    tool: ToolAnnotation
    why: Mapping[str, str]


def unsuited(definition: Mapping[str, Any]) -> str:
    """:returns: why no annotation can cover each argument that the tool takes; empty if one can."""
    schema = definition.get("inputSchema")
    if not isinstance(schema, Mapping) or not isinstance(schema.get("properties", {}), Mapping):
        return "its definition does not declare its arguments"
    if schema.get("additionalProperties", False) is not False:
        return "it takes arguments that its definition does not declare"
    return ""


def meaning(name: str, schema: Any) -> Meaning | None:
    """
    :param name: of an argument.
    :param schema: its part of the tool's schema, which the server wrote; ``None`` if it is not declared.
    :returns: whether it is a path or an address, as far as that shows; ``None`` if it seems to be neither.
    """
    declared: Mapping[str, Any] = schema if isinstance(schema, Mapping) else {}
    text = _of_text(declared)
    if text is None:
        return None
    form, words = text.get("format"), set(_words(name))
    if form in _PATH_FORMATS:
        return Meaning("path", f"its format is {form}")
    if form in _ADDRESS_FORMATS:
        return Meaning("address", f"its format is {form}")
    if words & _ADDRESS_WORDS:
        return Meaning("address", "its name says so")
    if words & _PATH_WORDS and not words & _PATTERN_WORDS:
        return Meaning("path", "its name says so")
    said = declared.get("description")
    if not isinstance(said, str) or words & _PATTERN_WORDS or _SAYS_PATTERN.search(said):
        return None
    if _SAYS_PATH.search(said):
        return Meaning("path", "its description says so")
    return Meaning("address", "its description says so") if _SAYS_ADDRESS.search(said) else None


def inner_paths(schema: Any) -> list[str]:
    """
    :param schema: the part of a tool's schema that is about one argument.
    :returns: the names of members inside it that seem to be paths or addresses; no role covers these.
    """
    return list(dict.fromkeys(_inner(schema, DEPTH_LIMIT)))


def draft(definition: Mapping[str, Any]) -> Draft | str:
    """
    :param definition: a tool's, as its server sent it.
    :returns: a draft of its annotation, or why there is none.
    """
    if why := unsuited(definition):
        return why
    name, properties = str(definition.get("name", "")), definition["inputSchema"].get("properties", {})
    args: dict[str, tuple[Role, ...]] = {}
    reasons: dict[str, str] = {}
    for argument, schema in properties.items():
        if inner := inner_paths(schema):
            return f"{argument} has {inner[0]} inside, which may be a path or an address: no role covers that"
        found, args[argument] = meaning(argument, schema), ("none",)
        if found is None:
            continue
        reasons[argument] = found.why
        args[argument] = ("fetch-url",)
        if found.kind == "path":
            args[argument], use = _path_roles(name, argument, schema, _hints(definition))
            reasons[argument] += f"; {use}"
    return Draft(ToolAnnotation(name, dict(args)), reasons)


def _path_roles(tool: str, argument: str, schema: object, hints: Mapping[str, Any]) -> tuple[tuple[Role, ...], str]:
    """:returns: the roles of an argument that is a path, and why it has them."""
    verbs, only_reads = _words(tool), hints.get("readOnlyHint")
    said = schema.get("description") if isinstance(schema, Mapping) else None
    target = not _TARGETS.isdisjoint(_words(argument))
    if not target and isinstance(said, str) and _SAYS_TARGET.search(said):
        if _READS.isdisjoint(verbs) or only_reads is True:
            return ("write-path",), "its description speaks of writing"
        return ("read-path", "write-path"), f"{tool} reads, but the description speaks of writing"
    if only_reads is True and not target:
        return _READ, "the server says that the tool only reads"
    verb = next((word for word in verbs if word in _READS | _CREATES | _CHANGES | _DELETES | _MOVES | {"copy"}), "")
    if verb in _MOVES or verb == "copy":
        if target:
            return ("write-path",), f"it is where {tool} puts something"
        return (_READ if verb == "copy" else ("read-path", "delete-path")), f"{tool} takes something from there"
    if verb in _DELETES:
        return ("delete-path",), f"{tool} removes"
    if target or verb in _CREATES:
        return ("write-path",), f"it is what {tool} writes"
    if verb in _CHANGES:
        return ("read-path", "write-path"), f"{tool} changes"
    if verb in _READS and only_reads is not False:
        return _READ, f"{tool} reads"
    return _ALL, "nothing says whether it is read, changed or removed, so all three count"


def _hints(definition: Mapping[str, Any]) -> Mapping[str, Any]:
    found = definition.get("annotations")
    return found if isinstance(found, Mapping) else {}


def _of_text(schema: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """:returns: the schema of the texts that a value consists of; ``None`` if it has none, or only listed ones."""
    if "enum" in schema or "const" in schema:
        return None
    for keyword in ("anyOf", "oneOf"):
        if isinstance(forms := schema.get(keyword), list):
            texts = (_of_text(form) for form in forms if isinstance(form, Mapping))
            return next((text for text in texts if text is not None), None)
    kind = schema.get("type")
    kinds: Sequence[Any] = kind if isinstance(kind, list) else [kind]
    if "array" in kinds and "string" not in kinds:
        items = schema.get("items")
        return _of_text(items) if isinstance(items, Mapping) else {}
    return schema if "string" in kinds or kind is None else None


def _inner(schema: Any, depth: int) -> Iterator[str]:
    if not isinstance(schema, Mapping) or depth == 0:
        return
    if isinstance(members := schema.get("properties"), Mapping):
        for name, member in members.items():
            if meaning(name, member) is not None:
                yield name
            yield from _inner(member, depth - 1)
    for keyword in ("anyOf", "oneOf", "allOf"):
        for form in forms if isinstance(forms := schema.get(keyword), list) else ():
            yield from _inner(form, depth - 1)
    yield from _inner(schema.get("items"), depth - 1)


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]

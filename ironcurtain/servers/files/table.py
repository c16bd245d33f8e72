"""
Names, arguments and descriptions of the tools.

Names and argument schemas are those of the reference server ``@modelcontextprotocol/server-filesystem`` (2026.8), so
that policies and agents for it work; ``delete_file`` and ``delete_directory`` are additions.
"""

from __future__ import annotations

from typing import Any

_STRING = {"type": "string"}
_PATH = {**_STRING, "description": "Absolute path, or relative to the first allowed directory"}
_PATTERNS = {
    "type": "array",
    "items": _STRING,
    "default": [],
    "description": "Leave out what matches one of these patterns, and everything below it",
}
_HEAD = {"type": "number", "description": "Only the first N lines"}
_TAIL = {"type": "number", "description": "Only the last N lines"}
_EDIT = {
    "type": "object",
    "properties": {
        "oldText": {**_STRING, "description": "Passage to replace; must occur exactly once"},
        "newText": {**_STRING, "description": "What to put in its place"},
    },
    "required": ["oldText", "newText"],
}


def _tool(
    name: str,
    title: str,
    description: str,
    properties: dict[str, Any],
    required: list[str],
    *,
    writes: bool = False,
    destroys: bool = False,
    repeatable: bool = True,
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    hints: dict[str, bool] = {"readOnlyHint": not writes, "openWorldHint": False}
    if writes:
        hints |= {"destructiveHint": destroys, "idempotentHint": repeatable}
    return {"name": name, "title": title, "description": description, "inputSchema": schema, "annotations": hints}


DEFINITIONS: tuple[dict[str, Any], ...] = (
    _tool(
        "read_file",
        "Read file",
        "Read a text file. The same as read_text_file, under its older name.",
        {"path": _PATH, "tail": _TAIL, "head": _HEAD},
        ["path"],
    ),
    _tool(
        "read_text_file",
        "Read text file",
        "Read a UTF-8 text file: all of it, or with head or tail (not both) its first or last lines. At most 16 MiB.",
        {"path": _PATH, "tail": _TAIL, "head": _HEAD},
        ["path"],
    ),
    _tool(
        "read_media_file",
        "Read media file",
        "Read an image, a sound or any other binary file. At most 16 MiB; comes base64-encoded with its media type.",
        {"path": _PATH},
        ["path"],
    ),
    _tool(
        "read_multiple_files",
        "Read several files",
        "Read several text files at once. One that cannot be read is reported in its place. At most 16 MiB in all.",
        {"paths": {"type": "array", "items": _PATH, "minItems": 1, "description": "Paths of the files"}},
        ["paths"],
    ),
    _tool(
        "write_file",
        "Write file",
        "Create a text file, or replace all of an existing one. The directory must exist. Use edit_file for changes.",
        {"path": _PATH, "content": {**_STRING, "description": "All of the new contents"}},
        ["path", "content"],
        writes=True,
        destroys=True,
    ),
    _tool(
        "edit_file",
        "Edit file",
        "Replace passages of a text file, one after another; either all edits are made or none. Answers with the"
        " difference as a unified diff. With dryRun nothing is written.",
        {
            "path": _PATH,
            "edits": {"type": "array", "items": _EDIT, "description": "The replacements, in order"},
            "dryRun": {"type": "boolean", "default": False, "description": "Only show the difference"},
        },
        ["path", "edits"],
        writes=True,
        destroys=True,
        repeatable=False,
    ),
    _tool(
        "create_directory",
        "Create directory",
        "Create a directory, and the directories above it that are missing. Fine if it exists.",
        {"path": _PATH},
        ["path"],
        writes=True,
    ),
    _tool(
        "list_directory",
        "List directory",
        "List what a directory holds, one name a line, marked [DIR], [FILE], [LINK] or [OTHER].",
        {"path": _PATH},
        ["path"],
    ),
    _tool(
        "list_directory_with_sizes",
        "List directory with sizes",
        "List what a directory holds, with sizes, and totals at the end.",
        {
            "path": _PATH,
            "sortBy": {**_STRING, "enum": ["name", "size"], "default": "name", "description": "Order of the lines"},
        },
        ["path"],
    ),
    _tool(
        "directory_tree",
        "Directory tree",
        "Everything below a directory as JSON: objects with name, type (file, directory, link, other) and, for"
        " directories, children. Links are not followed. Says so if it had to be cut.",
        {"path": _PATH, "excludePatterns": _PATTERNS},
        ["path"],
    ),
    _tool(
        "move_file",
        "Move or rename",
        "Move or rename a file or directory. Fails if the destination exists; its directory must exist.",
        {"source": _PATH, "destination": _PATH},
        ["source", "destination"],
        writes=True,
        destroys=True,
        repeatable=False,
    ),
    _tool(
        "search_files",
        "Search files",
        "Find files and directories below a directory by a pattern: * and ? within a name, ** for any number of"
        " directories. A pattern without a slash is looked for in names at any depth (*.py), one with a slash is"
        " matched against the path from the directory down (src/**/*.py). Answers with absolute paths.",
        {"path": _PATH, "pattern": _STRING, "excludePatterns": _PATTERNS},
        ["path", "pattern"],
    ),
    _tool(
        "get_file_info",
        "File information",
        "Type, size, permissions and times of a file or directory.",
        {"path": _PATH},
        ["path"],
    ),
    _tool(
        "list_allowed_directories",
        "List allowed directories",
        "The directories that this server works in; everything below them can be reached.",
        {},
        [],
    ),
    _tool(
        "delete_file",
        "Delete file",
        "Delete one regular file.",
        {"path": _PATH},
        ["path"],
        writes=True,
        destroys=True,
        repeatable=False,
    ),
    _tool(
        "delete_directory",
        "Delete directory",
        "Delete one directory, which must be empty.",
        {"path": _PATH},
        ["path"],
        writes=True,
        destroys=True,
        repeatable=False,
    ),
)

SCHEMAS: dict[str, dict[str, Any]] = {each["name"]: each["inputSchema"] for each in DEFINITIONS}

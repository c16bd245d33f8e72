"""Names, arguments and descriptions of the tools."""

from __future__ import annotations

from typing import Any

_STRING = {"type": "string"}
_URL = {**_STRING, "description": "https://HOST/PATH, ssh://USER@HOST/PATH or USER@HOST:PATH; never a remote's name"}
_REPOSITORY = {**_STRING, "description": "Directory of the repository"}
_BRANCH = {**_STRING, "description": "Name of the branch, without refs/heads/"}
_REMOTE = {**_STRING, "default": "origin", "description": "Branches are kept as refs/remotes/REMOTE/BRANCH"}


def _tool(
    name: str, description: str, properties: dict[str, Any], required: list[str], **hints: bool
) -> dict[str, Any]:
    schema = {"type": "object", "properties": properties, "required": required, "additionalProperties": False}
    annotations = {"readOnlyHint": False, "openWorldHint": True, "destructiveHint": False, **hints}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": annotations}


DEFINITIONS: tuple[dict[str, Any], ...] = (
    _tool(
        "git_fetch",
        "Fetch the branches of a repository elsewhere, or one of them, into refs/remotes/REMOTE/. Nothing is merged.",
        {"url": _URL, "repository": _REPOSITORY, "branch": _BRANCH, "remote": _REMOTE},
        ["url", "repository"],
    ),
    _tool(
        "git_pull",
        "Fetch one branch, and move the current branch forward to it. Fails if the two have gone apart.",
        {"url": _URL, "repository": _REPOSITORY, "branch": _BRANCH, "remote": _REMOTE},
        ["url", "repository", "branch"],
    ),
    _tool(
        "git_push",
        "Send a branch, with its history, to a repository elsewhere.",
        {
            "url": _URL,
            "repository": _REPOSITORY,
            "branch": _BRANCH,
            "to": {**_BRANCH, "description": "Name of the branch there, if it is another"},
            "force": {"type": "boolean", "default": False, "description": "Replace what the branch there holds"},
        },
        ["url", "repository", "branch"],
        destructiveHint=True,
    ),
    _tool(
        "git_clone",
        "Copy a repository from elsewhere into a new directory.",
        {"url": _URL, "directory": {**_STRING, "description": "Where to; must not exist yet"}, "branch": _BRANCH},
        ["url", "directory"],
    ),
)

SCHEMAS: dict[str, dict[str, Any]] = {definition["name"]: definition["inputSchema"] for definition in DEFINITIONS}
"""Tool name to the schema of its arguments."""

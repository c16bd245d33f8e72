"""Metadata of npm packages as registries send them."""

from __future__ import annotations

import base64
import hashlib
import json
from datetime import datetime
from typing import Any

from tests.registries.upstream import iso

BASE = "https://npm.example"


def sri(content: bytes) -> str:
    """:returns: the integrity of a file."""
    return "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()


def tarball(name: str, version: str) -> bytes:
    """:returns: the content of a version's tarball."""
    return f"{name} {version} ".encode() * 40


def packument(name: str, times: dict[str, datetime | str | None], **more: Any) -> dict[str, Any]:
    """
    :param times: when each version was published; ``None``: the metadata do not say it.
    :param more: other members, with underscores for hyphens.
    """
    short = name.rpartition("/")[2]
    versions = {
        version: {
            "name": name,
            "version": version,
            "dist": {
                "tarball": f"{BASE}/{name}/-/{short}-{version}.tgz",
                "integrity": sri(tarball(name, version)),
            },
        }
        for version in times
    }
    texts = {v: iso(t) if isinstance(t, datetime) else t for v, t in times.items() if t is not None}
    tags = {"latest": [*times, ""][-1 if not times else len(times) - 1]}
    return {"name": name, "dist-tags": tags, "versions": versions, "time": texts} | {
        key.replace("_", "-"): value for key, value in more.items()
    }


def encoded(document: dict[str, Any]) -> bytes:
    """:returns: a document as JSON."""
    return json.dumps(document).encode()

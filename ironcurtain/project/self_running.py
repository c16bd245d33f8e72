"""Names of files that programs run, load or obey by themselves, from ``data/self-running.toml``."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

DATA = Path(__file__).parent / "data" / "self-running.toml"


class NameRules:
    """
    :param tables: each with ``names`` and a ``reason``. Letters of any case count as the same, as some file systems
        take them.
    """

    def __init__(self, tables: Iterable[dict[str, Any]]) -> None:
        self._names, self._directories = dict[str, str](), dict[str, str]()
        patterns = list[tuple[str, str]]()
        for table in tables:
            for name in table["names"]:
                directory = name.removesuffix("/**")
                if "/" not in name and "*" not in name:
                    self._names.setdefault(name, table["reason"])
                elif directory != name and "/" not in directory and "*" not in directory:
                    self._directories.setdefault(directory, table["reason"])
                else:
                    patterns.append((_expression(name), table["reason"]))
        self._patterns = [(_compiled(pattern), reason) for pattern, reason in patterns]
        self._any = _compiled("|".join(pattern for pattern, _ in patterns))

    def reason(self, path: str) -> str:
        """:returns: what happens with a file of this path; empty if its name has no rule."""
        *above, name = path.lower().split("/")
        for found in (self._names.get(name), *map(self._directories.get, above)):
            if found is not None:
                return found
        if self._any.fullmatch(path) is None:
            return ""
        return next(reason for pattern, reason in self._patterns if pattern.fullmatch(path))


def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(f"(?:.*/)?(?:{pattern})", re.DOTALL | re.IGNORECASE)


def _expression(name: str) -> str:
    words = {"**": ".*", "*": "[^/]*"}
    return "".join(words.get(part) or re.escape(part) for part in re.split(r"(\*\*|\*)", name))


@cache
def tables() -> dict[str, NameRules]:
    """:returns: the rules for ``git``, for other ``programs``, and for what only ``builds`` run."""
    read = tomllib.loads(DATA.read_text(encoding="utf-8"))
    return {name: NameRules(read[name]) for name in ("git", "programs", "builds")}

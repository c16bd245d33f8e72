"""Small trees of real files, directories and links, and engines over them."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.files import HOST_FILES, FileView
from ironcurtain.policy.loading import compiled_policy, tool_annotations
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.verdict import ToolCall, Trace, Verdict

CASES: dict[str, Any] = json.loads((Path(__file__).parent / "policy-cases.json").read_text())
"""The hand-worked verdicts; the file explains itself."""


def filled(value: Any, names: Mapping[str, str]) -> Any:
    """:returns: the value with placeholders replaced, in keys too."""
    if isinstance(value, str):
        for name in ("$WORKSPACE", "$HOME", "$ROOT"):
            value = value.replace(name, names[name])
        return value
    if isinstance(value, list):
        return [filled(item, names) for item in value]
    if isinstance(value, dict):
        return {filled(key, names): filled(item, names) for key, item in value.items()}
    return value


@dataclass
class World:
    """One temporary directory with a workspace and a home."""

    root: str
    workspace: str
    home: str

    @classmethod
    def make(cls, tree: Mapping[str, Any] | None = None) -> World:
        """:param tree: ``dirs``, ``files`` and ``links`` as in the cases."""
        tree = tree or {}
        root = os.path.realpath(tempfile.mkdtemp(prefix="ic-"))
        names = {"$ROOT": root, "$WORKSPACE": "", "$HOME": ""}
        workspace = filled(tree.get("workspace", "$ROOT/work"), names)
        world = cls(root, workspace, filled(tree.get("home", "$ROOT/home"), names))
        world.add(tree)
        if "workspace" not in tree:
            os.makedirs(world.workspace, exist_ok=True)
        os.makedirs(world.home, exist_ok=True)
        return world

    @property
    def names(self) -> dict[str, str]:
        """What the placeholders mean here."""
        return {"$ROOT": self.root, "$WORKSPACE": self.workspace, "$HOME": self.home}

    def add(self, tree: Mapping[str, Any]) -> None:
        """Make more directories, files and links."""
        for name in filled(tree.get("dirs", []), self.names):
            os.makedirs(name, exist_ok=True)
        for name, text in filled(tree.get("files", {}), self.names).items():
            os.makedirs(os.path.dirname(name), exist_ok=True)
            Path(name).write_text(text)
        for name, target in filled(tree.get("links", {}), self.names).items():
            os.makedirs(os.path.dirname(name), exist_ok=True)
            os.symlink(target, name)

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.root)

    def engine(
        self,
        rules: Sequence[Mapping[str, Any]] = (),
        *,
        annotations: Mapping[str, Any] | None = None,
        domains: Mapping[str, Sequence[str]] | None = None,
        protected: Sequence[str] = (),
        view: FileView = HOST_FILES,
        **policy: Any,
    ) -> PolicyEngine:
        """:returns: an engine whose tools are those of the cases unless told otherwise."""
        written = filled({"rules": [dict(rule) for rule in rules], **policy}, self.names)
        return PolicyEngine(
            compiled_policy(written),
            tool_annotations(CASES["annotations"] if annotations is None else annotations),
            paths=PathMap(self.workspace),
            home=self.home,
            protected=filled(list(protected), self.names),
            servers={name: ServerBounds(tuple(hosts)) for name, hosts in (domains or {}).items()},
            files=view,
        )

    def ask(
        self,
        engine: PolicyEngine,
        server: str,
        tool: str,
        arguments: Mapping[str, Any],
        *,
        git_directory: str | None = None,
        trace: Trace | None = None,
    ) -> Verdict:
        """:returns: the verdict on a call; the schema is that of the cases."""
        schema = CASES["tools"].get(server, {}).get(tool)
        call = ToolCall(server, tool, filled(dict(arguments), self.names))
        return engine.evaluate(call, schema, git_directory=filled(git_directory, self.names), trace=trace)


def rule(name: str, then: str, **conditions: Any) -> dict[str, Any]:
    """:returns: a rule as it is written."""
    return {"name": name, "if": conditions, "then": then, "reason": f"{name} says so"}

"""Carry out the tools: transfer objects between the network and the agent's repository."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ironcurtain.servers.files.arguments import check
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.git_remote.addresses import checked_address
from ironcurtain.servers.git_remote.runner import Runner
from ironcurtain.servers.git_remote.table import SCHEMAS
from ironcurtain.servers.server import Part

_NAME = re.compile(r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|\Z)))[A-Za-z0-9_][A-Za-z0-9._/+@#=-]*(?<![./])\Z")
"""Names of branches and remotes that git accepts (git-check-ref-format(1)) and no shell or option parser misreads."""


class GitRemoteTools:
    """:param runner: runs git."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner

    def call(self, name: str, arguments: dict[str, Any]) -> list[Part]:
        """
        Call one tool.

        :returns: the content parts of its result.
        :raises KeyError: there is no such tool.
        :raises IronCurtainError: the arguments are wrong, or the call failed.
        """
        values = check(SCHEMAS[name], arguments)
        checked_address(values["url"])
        for argument in ("branch", "to", "remote"):
            if argument in values and not _NAME.match(values[argument]):
                raise FileError(f"{argument}: {values[argument]!r} is not a name of a branch or remote")
        said = getattr(self, f"_{name}")(values)
        return [{"type": "text", "text": said or "done"}]

    def _git_fetch(self, values: dict[str, Any]) -> str:
        repository = self._inside(values["repository"])
        with self._received(values["url"], values.get("branch")) as received:
            where = f"+refs/heads/*:refs/remotes/{values['remote']}/*"
            words = ["fetch", "--no-tags", "--no-write-fetch-head", received, where]
            return self._runner.in_workspace(words, repository, writes=True, read=received)

    def _git_pull(self, values: dict[str, Any]) -> str:
        fetched = self._git_fetch(values)
        words = ["merge", "--ff-only", f"refs/remotes/{values['remote']}/{values['branch']}"]
        merged = self._runner.in_workspace(words, self._inside(values["repository"]), writes=True)
        return f"{fetched}\n{merged}"

    def _git_push(self, values: dict[str, Any]) -> str:
        branch = f"refs/heads/{values['branch']}"
        repository = self._inside(values["repository"])
        with _private() as top, _private() as sent:
            bundle = top / "bundle"
            self._runner.in_workspace(["bundle", "create", "-", branch], repository, writes=False, out=bundle)
            self._runner.in_private(["init", "--quiet", "--bare", "--template=", "."], str(sent))
            take = ["fetch", "--quiet", "--no-tags", str(bundle), f"{branch}:{branch}"]
            self._runner.in_private(take, str(sent), read=str(bundle))
            plus = "+" if values["force"] else ""
            words = ["push", "--", values["url"], f"{plus}{branch}:refs/heads/{values.get('to', values['branch'])}"]
            return self._runner.in_network(words, str(sent), values["url"])

    def _git_clone(self, values: dict[str, Any]) -> str:
        directory = self._inside(values["directory"])
        if os.path.lexists(directory):
            raise FileError(f"{directory} exists already")
        with self._received(values["url"], values.get("branch")) as received:
            words = ["clone", "--template=", "--no-local", "--no-hardlinks", "--", received, directory]
            self._runner.in_workspace(words, self._runner.workspace, writes=True, read=received)
        words = ["-C", directory, "remote", "set-url", "origin", values["url"]]
        self._runner.in_workspace(words, self._runner.workspace, writes=True)
        return f"cloned into {directory}"

    @contextmanager
    def _received(self, url: str, branch: str | None) -> Iterator[str]:
        """:returns: a new bare repository with the branches of a remote one, which nobody else has written."""
        with _private() as top:
            self._runner.in_private(["init", "--quiet", "--bare", "--template=", "."], str(top))
            which = f"refs/heads/{branch or '*'}"
            words = ["fetch", "--no-tags", "--no-write-fetch-head", "--", url, f"+{which}:{which}"]
            self._runner.in_network(words, str(top), url)
            head = branch or self._head(str(top), url)
            self._runner.in_private(["symbolic-ref", "HEAD", f"refs/heads/{head}"], str(top))
            yield str(top)

    def _head(self, directory: str, url: str) -> str:
        """:returns: the current branch of a remote repository."""
        said = self._runner.in_network(["ls-remote", "--symref", "--", url, "HEAD"], directory, url)
        found = re.search(r"^ref: refs/heads/(\S+)\tHEAD$", said, re.MULTILINE)
        return found[1] if found is not None and _NAME.match(found[1]) else "main"

    def _inside(self, path: str) -> str:
        """:returns: the path, which must be textually below the workspace; sandboxes contain links."""
        place = os.path.normpath(os.path.join(self._runner.workspace, path))
        if not f"{place}/".startswith(f"{self._runner.workspace}/"):
            raise FileError(f"{path} is not in the workspace {self._runner.workspace}")
        return place


@contextmanager
def _private() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="ironcurtain-git-") as name:
        yield Path(name).resolve()

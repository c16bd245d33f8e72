"""
A standing attacker: every tool of every server that we know, with every argument made to lead outside, and git's own
files replaced by links. The policy allows all of it, so that the isolation alone is tried. Nothing outside may be read,
written or executed, as is watched from outside.

A server gets this test by being listed in :data:`SERVERS`.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from pathlib import Path
from typing import Any

from twisted.internet.inotify import IN_ACCESS, IN_ATTRIB, IN_CREATE, IN_DELETE, IN_MODIFY, IN_OPEN, INotify
from twisted.python.filepath import FilePath
from twisted.trial.unittest import SkipTest

from ironcurtain.mcp_proxy.launch import OWN_SERVERS
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.policy.loading import default_annotations
from ironcurtain.policy.network import SERVER as NETWORK
from ironcurtain.sandbox import bubblewrap
from tests.mcp_proxy.support import Bench, RawAgent, sleep, the_reactor
from tests.mcp_proxy.test_protocol import Base

SECRET = "the-moon-is-far-7731"
TOUCHED = IN_OPEN | IN_ACCESS | IN_MODIFY | IN_CREATE | IN_DELETE | IN_ATTRIB


def installed(name: str) -> CommandServer:
    """:returns: somebody else's server, in its sandbox."""
    return CommandServer(name, str(Path(sys.executable).parent / f"mcp-server-{name}"))


def ours(name: str, index: int) -> Callable[[], CommandServer]:
    """:returns: makes a server of ours, for the workspace."""
    return lambda: CommandServer(name, sys.executable, (*OWN_SERVERS[index], "."))


SERVERS: Mapping[str, Callable[[], CommandServer]] = {
    "filesystem": ours("filesystem", 0),
    "git-remote": ours("git-remote", 1),
    "git": lambda: installed("git"),
    "time": lambda: installed("time"),
    "fetch": lambda: installed("fetch"),
}


OF_OTHERS = {
    *("context7", "everything", "github", "memory"),
    *("playwright", "postgres", "sequential-thinking", "slack"),
}
"""Those whose programs :mod:`tests.mcp_proxy.test_shipped_servers` starts; they have nothing of the workspace."""

DESKTOP = "desktop"
"""Has nothing of the workspace, either: :mod:`tests.servers.desktop` attacks it."""


PROGRAMS = """
[core]
\tfsmonitor = RUN
\teditor = RUN
\tpager = RUN
\tsshCommand = RUN
[filter "lfs"]
\tprocess = git-lfs filter-process
\tclean = git-lfs clean -- %f
\tsmudge = git-lfs smudge -- %f
\trequired = true
[lfs "extension.x"]
\tclean = sh -c 'RUN'
\tsmudge = sh -c 'RUN'
\tpriority = 0
[diff "x"]
\ttextconv = RUN
\tcommand = RUN
[merge "x"]
\tdriver = RUN
[gpg]
\tprogram = RUN
[commit]
\tgpgSign = false
[credential]
\thelper = !RUN
[alias]
\tstatus = !RUN
"""
"""Settings of a repository by which git, or git-lfs, runs programs."""


class AttackerTests(Base):
    async def attacker(self, name: str) -> tuple[Bench, RawAgent]:
        """Begin: a workspace full of links, a secret outside, and somebody who watches it."""
        if (problem := bubblewrap.available()) is not None:
            raise SkipTest(problem)
        annotate: dict[str, dict[str, tuple[str, ...]]] = {}
        for (_, tool), annotation in default_annotations().table().items():
            annotate.setdefault(tool, {}).update(dict.fromkeys(annotation.args, ("none",)))
        environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent"}
        bench = await self.bench(SERVERS[name](), annotate=annotate, environ=environ)
        self.person = bench.top / "person"
        self.outside = self.person / ".ssh"
        self.outside.mkdir(parents=True)
        self.canary = self.outside / "id_rsa"
        self.canary.write_text(f"{SECRET}\n")
        self.workspace, self.repository = bench.workspace, bench.workspace / "repo"
        for link, target in (
            ("link", self.canary), ("directory", self.outside), ("a/b/link", self.canary), ("a/person", self.person),
            ("repo/link", self.canary), ("repo/directory", self.outside), ("root", Path("/")),
        ):  # fmt: skip
            (self.workspace / link).parent.mkdir(parents=True, exist_ok=True)
            (self.workspace / link).symlink_to(target)
        self.git("init", "-q", "-b", "main")
        (self.repository / "file").write_text("x\n")
        self.git("add", "file")
        self.git("commit", "-qm", "one")
        await bench.proxy.gate.settled(60)
        self.touched: list[str] = []
        watch = INotify(the_reactor)
        watch.startReading()
        self.addCleanup(watch.loseConnection)
        for path in (self.outside, self.canary):
            watch.watch(
                FilePath(bytes(path)), TOUCHED, callbacks=[lambda _, at, mask: self.touched.append(f"{at} {mask}")]
            )
        return bench, await bench.agent()

    def git(self, *words: str) -> None:
        who = {f"GIT_{who}_{what}": "a@b.test" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        place = ["-C", str(self.repository)] if words[0] != "init" else []
        last = [str(self.repository)] if words[0] == "init" else []
        environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", **who}
        subprocess.run(["git", *place, *words, *last], env=environ, check=True, capture_output=True)

    def ways_out(self) -> Iterator[str]:
        """:returns: names for the secret, through links at each level and without."""
        yield from (str(self.canary), "link", "a/b/link", "repo/link", "directory/id_rsa", "a/person/.ssh/id_rsa")
        yield from (
            f"root{self.canary}",
            "../person/.ssh/id_rsa",
            f"/proc/self/root{self.canary}",
            "directory",
            "a/person",
        )
        yield from (
            f"{self.repository}/directory",
            f"file://{self.canary}",
            f"--output={self.canary}",
            f"ext::cat {self.canary}",
        )

    async def every_argument(self, name: str) -> None:
        bench, agent = await self.attacker(name)
        tools = bench.proxy.gate.tools()
        self.assertTrue(tools)
        for tool in tools:
            properties = tool.schema.get("properties", {})
            for argument in properties:
                for value in self.ways_out():
                    plain = {other: self.plain(other, properties[other]) for other in properties}
                    wanted = properties[argument].get("type")
                    hostile = [value] if wanted == "array" else value
                    await self.quietly(agent, name, tool.name, {**plain, argument: hostile})
        self.assertEqual(self.canary.read_text(), f"{SECRET}\n")
        self.assertEqual(os.listdir(self.outside), ["id_rsa"])

    async def quietly(self, agent: RawAgent, name: str, tool: str, arguments: dict[str, Any]) -> None:
        """Make a call and see that nobody else than this test touched the secret."""
        answer = json.dumps(await agent.call(f"{name}__{tool}", arguments))
        await sleep(0.001)  # the reactor reads what the kernel told
        self.assertEqual(self.touched, [], f"{tool} {arguments}: {answer[:300]}")
        self.assertNotIn(SECRET, answer, f"{tool} {arguments}")

    def plain(self, name: str, schema: dict[str, Any]) -> Any:
        """:returns: a value that an honest agent would use."""
        if name in ("repo_path", "repository", "path", "source"):
            return str(self.repository)
        if "default" in schema:
            return schema["default"]
        kind = schema.get("type")
        return {"integer": 1, "number": 1, "boolean": False, "array": ["file"], "object": {}}.get(str(kind), "main")

    async def test_every_program_that_git_would_run(self) -> None:
        bench, agent = await self.attacker("git")
        run = f"cat {self.canary} >{self.outside}/copy; cat {self.canary}"
        (self.repository / ".git" / "config").write_text(PROGRAMS.replace("RUN", run))
        (self.repository / ".gitattributes").write_text("* filter=lfs diff=x merge=x\n")
        for hook in (
            "pre-commit",
            "prepare-commit-msg",
            "commit-msg",
            "post-commit",
            "post-checkout",
            "post-index-change",
        ):
            place = self.repository / ".git" / "hooks" / hook
            place.parent.mkdir(exist_ok=True)
            place.write_text(f"#!/bin/sh\n{run}\n")
            place.chmod(0o755)
        for tool in bench.proxy.gate.tools():
            (self.repository / "file").write_text(tool.name)
            properties = tool.schema.get("properties", {})
            await self.quietly(
                agent, "git", tool.name, {name: self.plain(name, properties[name]) for name in properties}
            )
        self.assertEqual(os.listdir(self.outside), ["id_rsa"])

    async def test_every_file_of_git_as_a_link(self) -> None:
        bench, agent = await self.attacker("git")
        kept = self.person / "kept"
        shutil.copytree(self.repository, kept, symlinks=True)
        inside = [path.relative_to(kept) for path in sorted((kept / ".git").rglob("*")) if "hooks" not in path.parts]
        more = [Path(".git", name) for name in (
            "COMMIT_EDITMSG", "packed-refs", "MERGE_HEAD", "FETCH_HEAD", "ORIG_HEAD", "shallow", "config.worktree",
            "objects/info/alternates", "info/grafts", "commondir", "gitdir", "hooks/pre-commit", "MERGE_MSG", "modules",
        )]  # fmt: skip
        for name in [Path(".git"), *inside, *more]:
            place = self.repository / name
            if place.is_dir():
                shutil.rmtree(place)
                place.symlink_to(self.outside)
            else:
                place.unlink(missing_ok=True)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.symlink_to(self.canary)
            for tool in bench.proxy.gate.tools():
                properties = tool.schema.get("properties", {})
                plain = {other: self.plain(other, properties[other]) for other in properties}
                answer = await agent.call(f"git__{tool.name}", plain)
                self.assertNotIn(SECRET, json.dumps(answer), f"{name} {tool.name}")
            await sleep(0.001)
            self.assertEqual(self.touched, [], name)
            shutil.rmtree(self.repository)
            shutil.copytree(kept, self.repository, symlinks=True)
        self.assertEqual(self.canary.read_text(), f"{SECRET}\n")

    def test_every_server_with_annotations_is_listed(self) -> None:
        self.assertEqual(SERVERS.keys() | {NETWORK, DESKTOP} | OF_OTHERS, default_annotations().servers.keys())


def _of(name: str) -> Callable[[AttackerTests], Coroutine[Any, Any, None]]:
    return lambda test: test.every_argument(name)


for _name in SERVERS:
    setattr(AttackerTests, f"test_every_argument_of_{_name.replace('-', '_')}", _of(_name))

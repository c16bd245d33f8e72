"""The places that belong to an MCP server, and their tests."""

from __future__ import annotations

import dataclasses
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ironcurtain.errors import IronCurtainError, Unavailable
from ironcurtain.mcp_proxy.launch import OWN_SERVERS, Ground, is_for_desktop, is_own, prepare
from ironcurtain.mcp_proxy.obstacles import obstacle
from ironcurtain.mcp_proxy.servers_config import CommandServer
from ironcurtain.policy.loading import default_annotations
from ironcurtain.process.accounts import Account
from ironcurtain.prove.commands import prove_commands
from ironcurtain.prove.file_server import prove_file_server
from ironcurtain.prove.outside import Outside
from ironcurtain.prove.planted import has_git
from ironcurtain.prove.report import Report
from ironcurtain.prove.sandboxes import prove_sandbox
from ironcurtain.prove.verdict import Untested
from ironcurtain.sandbox import programs, promises
from ironcurtain.sandbox.spec import Kind
from ironcurtain.servers.git_remote.destinations import Destination
from ironcurtain.servers.git_remote.runner import Runner

VARIABLE = "IRONCURTAIN_PROVE_SECRET"
"""A variable in the environment of IronCurtain's process, which servers do not get."""


TRIED = Destination("git.example", 443)
"""Where the sandboxes lead in which ``git-remote`` transfers; nobody accepts the connections."""

ELSEWHERE = "it does not start there"
"""Why a server is not tested in a kind of sandbox, though it is in another."""


class Machine(msgspec.Struct, frozen=True):
    """
    What the tests of servers need to know.

    :param environ: the environment of this process.
    :param home: the user's home directory.
    :param account: the account of a session.
    :param kinds: the kinds of sandboxes to test.
    """

    environ: Mapping[str, str]
    home: str
    account: Account
    kinds: Sequence[Kind]

    @contextmanager
    def workspace(self) -> Iterator[Path]:
        """:returns: a new empty directory of the account, until the block ends."""
        with tempfile.TemporaryDirectory(prefix="ironcurtain-workspace-") as name:
            workspace = Path(name).resolve()
            with suppress(PermissionError):  # root in a container may not even change owners, nor run as somebody else
                os.chown(workspace, self.account.uid, self.account.gid)
            yield workspace

    def outside(self, directory: str = "") -> Outside:
        """:returns: a target in a directory; in the user's home if none is given."""
        return Outside(Path(directory or self.home), self.account.switched)


def prove_server(server: CommandServer, machine: Machine) -> Iterator[Report | Untested]:
    """:returns: the result of each test of a server, and each that was left out."""
    subject = f"MCP server {server.name}"
    if is_for_desktop(server):
        yield Report(f"{subject}: runs outside any sandbox, since none could have a desktop", (), complete=False)
        return
    if not is_own(server) and server.sandbox is None:
        yield Report(f"{subject}: runs outside any sandbox, as mcp-servers.json says", (), complete=False)
        return
    tests: tuple[Callable[[str, CommandServer, Machine], Iterator[Report | Untested]], ...] = (_sandboxed,)
    if is_own(server):
        tests = (_files, _commands) if server.args[:3] == OWN_SERVERS[0] else (_git_remote,)
    for test in tests:
        try:
            yield from test(subject, server, machine)
        except (IronCurtainError, OSError) as e:
            yield Untested(subject, str(e), could_not=True)


def _sandboxed(subject: str, server: CommandServer, machine: Machine) -> Iterator[Report | Untested]:
    problems, tested = dict[Kind, str](), False
    with machine.workspace() as workspace, machine.outside() as outside:
        writers = default_annotations().writers() | {server.name}  # the program needs a directory for its links
        environ, account = {**machine.environ, VARIABLE: outside.secret}, machine.account.switched
        ground = Ground(environ, str(workspace), account=account, writers=writers, authority=b"")
        server = dataclasses.replace(server, environment={})  # which the program does not need
        for kind in machine.kinds:
            trial = replace(ground, kind=kind)
            try:
                if (problem := obstacle(server, trial)) is not None:
                    raise Unavailable(problem)
                launch = prepare(server, {}, trial)
            except Unavailable as e:
                problems[kind] = str(e)
                continue
            if launch.sandbox is not None:
                tested = True
                yield prove_sandbox(
                    subject, launch.sandbox, str(workspace), outside,
                    place="in its sandbox", environment=launch.environment,
                )  # fmt: skip
    if problems and not tested:
        raise Unavailable(next(iter(problems.values())))
    yield from (Untested(_under(subject, kind), ELSEWHERE) for kind in problems)


def _git_remote(subject: str, server: CommandServer, machine: Machine) -> Iterator[Report | Untested]:
    account = machine.account.switched
    home = {} if account is None else {"HOME": account.home}
    with machine.workspace() as workspace, machine.workspace() as private, machine.outside() as outside:
        runner = Runner(str(workspace), {**machine.environ, **home, VARIABLE: outside.secret})
        for kind in machine.kinds:
            in_network = runner.network_sandbox(str(private), TRIED)
            for place, sandbox, directory in (
                ("git in the workspace", runner.workspace_sandbox(str(workspace), writes=True), workspace),
                ("git in the network", in_network, private),
            ):
                trial = replace(sandbox, account=account, kind=kind)
                if all(problem is None for _, problem in programs.problems(trial)):
                    yield prove_sandbox(
                        subject, trial, str(directory), outside,
                        place=place, environment=runner.variables(trial),
                    )  # fmt: skip
                else:
                    yield Untested(_under(f"{subject}, {place}", kind), ELSEWHERE)


def _files(subject: str, server: CommandServer, machine: Machine) -> Iterator[Report | Untested]:
    with machine.workspace() as workspace, machine.outside(tempfile.gettempdir()) as outside:
        ground = Ground(machine.environ, str(workspace), account=machine.account.switched)
        yield prove_file_server(f"{subject}, by its own protocol", server, ground, outside)


def _commands(subject: str, server: CommandServer, machine: Machine) -> Iterator[Report | Untested]:
    with machine.workspace() as workspace, machine.outside() as outside:
        programs_used = "diff, export and git" if has_git() else "diff and export"
        yield prove_commands(f"{programs_used} on a workspace with planted files", workspace, outside)
    if not has_git():
        yield Untested("git in an exported workspace", "git is not installed here")


def _under(subject: str, kind: Kind) -> str:
    return f"{subject}, in {promises.NAMES[kind]}"

"""
Keep what Node.js compiles of an agent's program, for all its sessions.

To compile a large program takes up to half of its start. Node.js keeps the result where a variable says, but
each session has a home of its own, and what one agent could write is never given to another. So the program runs once
without a session, in a sandbox without network and workspace, and later sessions can read what that run kept.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec.structs import replace
from twisted.logger import Logger

from ironcurtain.agents.adapter import COMPILE_CACHE, Compiling
from ironcurtain.container_agent.bubblewrapped.programs import AgentProgram, Needed
from ironcurtain.errors import IronCurtainError
from ironcurtain.home.layout import private_directory
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.spec import Bound, Kind, Sandbox, SandboxLimits

PLACE = "/run/compiled"
"""Where a sandbox has it."""

SECONDS = 60.0
"""Time limit in seconds for the program to load (some two)."""


class CompiledProgram(msgspec.Struct, frozen=True):
    """
    An agent's program that Node.js compiles.

    :param top: directory of what is kept of this agent's programs, run by this account; it need not exist.
    :param how: how it loads most of itself.
    :param node: Node.js for it, if it was found.
    :param account: the account that it runs as; ``None``: that of this process.
    """

    log = Logger()

    top: Path
    how: Compiling
    program: AgentProgram
    node: AgentProgram | None
    account: Account | None

    @property
    def directory(self) -> Path:
        """What is kept of exactly this program, and of this version of Node.js. It need not exist."""
        known = [*self.how.arguments]
        for path in (self.program.path, *([] if self.node is None else [self.node.path])):
            real = os.path.realpath(path)
            status = os.stat(real)
            known += [real, str(status.st_mtime_ns), str(status.st_size)]
        return self.top / hashlib.sha256("\0".join(known).encode("utf-8", "surrogateescape")).hexdigest()[:32]

    @property
    def is_kept(self) -> bool:
        """Whether it was run for this. What it kept may be nothing."""
        return self.directory.is_dir()

    def read_by(self, needed: Needed) -> Needed:
        """
        :param needed: what the program needs.
        :returns: the same, with what is kept of it, if there is anything.
        """
        if not (self.is_kept and any(self.directory.iterdir())):
            return needed
        moved, variables = (*needed.moved, (str(self.directory), PLACE)), {**needed.variables, COMPILE_CACHE: PLACE}
        return replace(needed, moved=moved, variables=variables)

    def keep(self, needed: Needed) -> None:
        """
        Run it, and keep what was compiled; for other versions nothing is kept any longer. This blocks, and gives its
        thread the lowest priority, since a session starts meanwhile.

        :param needed: what the program needs.
        """
        os.setpriority(os.PRIO_PROCESS, 0, 19)  # of this thread, which programs that it starts inherit
        try:
            self._keep(needed)
        except (IronCurtainError, OSError) as e:  # sessions start without it, too
            self.log.info("what is compiled of {program} is not kept: {error}", program=self.program.path, error=e)

    def _keep(self, needed: Needed) -> None:
        draft = Path(tempfile.mkdtemp(dir=private_directory(self.top)))
        try:
            if self.account is not None:
                os.chown(draft, self.account.uid, self.account.gid)
            self._run(needed, draft)
            with suppress(OSError):  # another session was faster
                draft.rename(self.directory)
        finally:
            for each in self.top.iterdir():
                if each != self.directory:
                    shutil.rmtree(each, ignore_errors=True)

    def _run(self, needed: Needed, draft: Path) -> None:
        sandbox = Sandbox(
            read=needed.paths,
            account=self.account,
            bound=(*(Bound(*each) for each in needed.moved), Bound(str(draft), PLACE, True)),
            limits=SandboxLimits(data=False),
            kind=Kind.BUBBLEWRAP,
        )
        own = {"PATH": needed.search, "HOME": "/tmp", COMPILE_CACHE: PLACE}
        environment = {**needed.variables, **self.how.environment, **own}
        # Whatever its exit status is: what it did not keep, it does not keep the next time either.
        with suppress(Unfinished):
            programs.run(sandbox, (needed.program, *self.how.arguments), environment, Bounds(SECONDS))

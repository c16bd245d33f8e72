from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.agents.adapter import COMPILE_CACHE, Compiling
from ironcurtain.container_agent.bubblewrapped.compiled import PLACE, CompiledProgram
from ironcurtain.container_agent.bubblewrapped.programs import AgentProgram, Needed, needed
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Finished
from ironcurtain.sandbox import bubblewrap, programs
from ironcurtain.sandbox.spec import Bound, Kind, Sandbox, SandboxLimits
from tests.machine import UID

NODE = Path(os.environ.get("IRONCURTAIN_TEST_NODE", "."), "node_modules", "node", "bin", "node")


class CompiledTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.account = Account(UID, UID if os.geteuid() == 0 else os.getegid())
        if (reason := bubblewrap.available(self.account.switched)) is not None:
            raise SkipTest(reason)
        self.home = Path(tempfile.mkdtemp(prefix="ic-")).resolve()
        self.addCleanup(shutil.rmtree, self.home)
        self.home.chmod(0o755)

    def program(self, text: str, node: AgentProgram | None = None) -> CompiledProgram:
        """:returns: a script of this text, as an agent's program."""
        path = self.home / "bin" / "agent"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        path.chmod(0o755)
        program = AgentProgram("agent", str(path), "native", str(path.parent))
        how = Compiling(("--load",), {"A": "all of it"})
        return CompiledProgram(self.home / "compiled" / "agent", how, program, node, self.account.switched)

    def needed(self, compiled: CompiledProgram) -> Needed:
        """:returns: what it needs without anything kept."""
        return needed(compiled.program, compiled.node, os.defpath, (), (), "/nonexistent")

    def keep(self, compiled: CompiledProgram) -> None:
        """Keep it, in another process: one cannot raise its own priority again."""
        if not (pid := os.fork()):
            try:
                compiled.keep(self.needed(compiled))
                os._exit(0)
            finally:
                os._exit(1)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)

    def in_session(self, given: Needed, argv: tuple[str, ...], environment: dict[str, str]) -> Finished:
        """:returns: how a program ends that has what a session's sandbox has of the agent's program."""
        sandbox = Sandbox(
            read=given.paths,
            account=self.account.switched,
            bound=tuple(Bound(*each) for each in given.moved),
            limits=SandboxLimits(data=False),
            kind=Kind.BUBBLEWRAP,
        )
        own = {**given.variables, "PATH": given.search, "HOME": "/tmp"}
        return programs.run(sandbox, argv, {**own, **environment}, Bounds(60.0))

    def test_sessions_read_what_the_program_kept(self) -> None:
        compiled = self.program(f'#!/bin/sh\ntest "$1" = --load && echo "$A" >"${COMPILE_CACHE}/compiled"\n')
        before = self.needed(compiled)
        self.assertEqual((compiled.is_kept, compiled.read_by(before)), (False, before))
        self.keep(compiled)
        after = compiled.read_by(before)
        self.assertEqual(after.variables, {**before.variables, COMPILE_CACHE: PLACE})
        self.assertEqual(after.moved, ((str(compiled.directory), PLACE),))
        self.assertEqual((compiled.directory / "compiled").read_text(), "all of it\n")
        done = self.in_session(after, ("/bin/sh", "-c", f"cat {PLACE}/compiled; echo changed >{PLACE}/compiled"), {})
        self.assertEqual(done.output, b"all of it\n")
        self.assertIn(b"Read-only file system", done.errors)

    def test_program_that_keeps_nothing_is_not_run_for_it_again(self) -> None:
        for text in ("#!/bin/sh\n", "#!/bin/sh\nexit 3\n", "#!/nonexistent\n"):
            compiled = self.program(text)
            self.keep(compiled)
            before = self.needed(compiled)
            self.assertEqual((compiled.is_kept, compiled.read_by(before)), (True, before), text)

    def test_home_that_cannot_be_written_changes_nothing(self) -> None:
        compiled = self.program("#!/bin/sh\n")
        compiled.top.parent.write_text("in the way")
        self.keep(compiled)
        before = self.needed(compiled)
        self.assertEqual((compiled.is_kept, compiled.read_by(before)), (False, before))

    def test_only_the_present_version_is_kept(self) -> None:
        first = self.program(f'#!/bin/sh\necho 1 >"${COMPILE_CACHE}/compiled"\n')
        self.keep(first)
        (first.top / "abandoned").mkdir()
        old = first.directory
        second = self.program(f'#!/bin/sh\necho 22 >"${COMPILE_CACHE}/compiled"\n')
        self.assertFalse(second.is_kept)
        self.keep(second)
        self.assertNotEqual(second.directory, old)
        self.assertEqual(list(second.top.iterdir()), [second.directory])

    def test_another_node_is_another_version(self) -> None:
        node = self.home / "node"
        node.write_text("1")
        compiled = self.program("#!/bin/sh\n", AgentProgram("node", str(node), "native", str(self.home)))
        before = compiled.directory
        node.write_text("22")
        self.assertNotEqual(compiled.directory, before)

    def test_the_faster_of_two_sessions_wins(self) -> None:
        compiled = self.program(f'#!/bin/sh\necho 1 >"${COMPILE_CACHE}/compiled"\n')
        self.keep(compiled)
        kept = (compiled.directory / "compiled").stat()
        self.keep(compiled)
        self.assertEqual((compiled.directory / "compiled").stat(), kept)
        self.assertEqual(list(compiled.top.iterdir()), [compiled.directory])

    def test_program_reaches_nothing_else(self) -> None:
        secret = self.home / "secret"
        secret.write_text("secret")
        secret.chmod(0o644)
        compiled = self.program(
            f'#!/bin/sh\ncd "${COMPILE_CACHE}"\ncat {secret} >read 2>&1\necho >{self.home}/made 2>&1\n'
            "cat /proc/net/dev >network\nln -s / link\n"
        )
        self.keep(compiled)
        self.assertNotIn("secret\n", (compiled.directory / "read").read_text())
        self.assertIn("No such file", (compiled.directory / "read").read_text())
        self.assertFalse((self.home / "made").exists())
        self.assertNotIn("eth", (compiled.directory / "network").read_text())
        self.keep(self.program("#!/bin/sh\n#\n"))
        self.assertTrue(secret.exists())  # links in what is removed lead nowhere

    def test_node_accepts_what_it_may_only_read(self) -> None:
        if not NODE.exists():
            raise SkipTest("there is no Node.js (IRONCURTAIN_TEST_NODE names no such directory; .ci/run makes one)")
        node = AgentProgram("node", str(NODE.resolve()), "npm", str(NODE.resolve().parent))
        compiled = self.program("#!/usr/bin/env node\nconst one = () => 1;\n", node)
        self.keep(compiled)
        given = compiled.read_by(self.needed(compiled))
        done = self.in_session(given, (given.program,), {"NODE_DEBUG_NATIVE": "COMPILE_CACHE"})
        self.assertEqual(done.status, 0, done.errors)
        self.assertIn(b"was accepted", done.output + done.errors)

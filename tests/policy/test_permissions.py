"""What the account of a session may not use is denied before a person is asked."""

from __future__ import annotations

import os
import shutil
import struct
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.policy.engine import PolicyEngine, ServerBounds
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.verdict import Decision, ToolCall, Verdict
from ironcurtain.process.accounts import Account

OTHER = Account(4242, 4243)


class PermissionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.home, self.workspace = self.top / "home", self.top / "workspace"
        self.home.mkdir(mode=0o755)
        self.workspace.mkdir(mode=0o777)
        self.top.chmod(0o700)  # what lies above the server's directories does not matter
        self.file = self.home / "file"
        self.file.write_text("x")
        self.file.chmod(0o644)

    def ask(self, tool: str, path: Path, account: Account | None = OTHER) -> Verdict:
        bounds = ServerBounds(reach=(str(self.workspace), str(self.home)), account=account)
        engine = PolicyEngine(
            default_policy(),
            default_annotations(),
            paths=PathMap(str(self.workspace)),
            home=str(self.home),
            servers={"filesystem": bounds},
        )
        arguments = {"path": str(path), **({"content": ""} if tool == "write_file" else {})}
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in arguments}}
        return engine.evaluate(ToolCall("filesystem", tool, arguments), schema)

    def assert_refused(self, verdict: Verdict, path: Path) -> None:
        self.assertEqual((verdict.decision, verdict.rule), (Decision.DENY, "structural-out-of-reach"), verdict)
        self.assertIn(f"uid 4242, which the server filesystem runs as, has no permission for {path}", verdict.reason)

    def test_what_it_may_is_asked(self) -> None:
        self.assertEqual(self.ask("read_text_file", self.file).decision, Decision.ESCALATE)
        self.assertEqual(self.ask("read_text_file", self.home / "absent").decision, Decision.ESCALATE)

    def test_what_the_server_does_not_have_is_denied_at_once(self) -> None:
        verdict = self.ask("read_text_file", self.top / "elsewhere", None)
        self.assertEqual((verdict.decision, verdict.rule), (Decision.DENY, "structural-out-of-reach"))

    def test_a_server_outside_any_sandbox_is_always_asked(self) -> None:
        engine = PolicyEngine(
            default_policy(),
            default_annotations(),
            paths=PathMap(str(self.workspace)),
            home=str(self.home),
            servers={"filesystem": ServerBounds(sandboxed=False)},
        )
        (self.workspace / "file").touch()
        schema = {"type": "object", "properties": {"path": {"type": "string"}}}
        call = ToolCall("filesystem", "read_text_file", {"path": str(self.workspace / "file")})
        self.assertEqual(engine.evaluate(call, schema).decision, Decision.ESCALATE)

    def test_a_closed_file(self) -> None:
        self.file.chmod(0o600)
        self.assert_refused(self.ask("read_text_file", self.file), self.file)
        self.assertEqual(self.ask("read_text_file", self.file, None).decision, Decision.ESCALATE)

    def test_a_closed_directory_above_it(self) -> None:
        self.home.chmod(0o700)
        self.assert_refused(self.ask("read_text_file", self.file), self.home)

    def test_a_directory_where_it_makes_no_files(self) -> None:
        self.assert_refused(self.ask("write_file", self.home / "new"), self.home)
        self.home.chmod(0o777)
        self.assertEqual(self.ask("write_file", self.home / "new").decision, Decision.ESCALATE)

    def test_a_file_that_it_may_write(self) -> None:
        self.assert_refused(self.ask("write_file", self.file), self.home)
        self.file.chmod(0o666)
        self.assertEqual(self.ask("write_file", self.file).decision, Decision.ESCALATE)

    def test_where_an_access_list_counts_nobody_guesses(self) -> None:
        if sys.platform != "linux":
            raise SkipTest("access lists of other systems are not read")
        self.file.chmod(0o600)
        nobody = 2**32 - 1
        entries = ((1, 6, nobody), (2, 4, 4242), (4, 4, nobody), (0x10, 4, nobody), (0x20, 0, nobody))  # acl(5)
        packed = b"".join(struct.pack("<HHI", *entry) for entry in entries)
        os.setxattr(self.file, "system.posix_acl_access", struct.pack("<I", 2) + packed)
        self.assertEqual(self.ask("read_text_file", self.file).decision, Decision.ESCALATE)

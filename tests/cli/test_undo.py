"""``undo``, as a person uses it: while the session runs, after it has ended, and after processes were killed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import signal
from pathlib import Path
from typing import Any

from tests.cli.test_workspace_commands import DONE, WorkspaceCase
from tests.product import LIMIT, Command, until, wait_until

CHANGE = {
    "code": "filesystem.write_file('made.txt', 'agent\\n')\nfilesystem.create_directory('new')\n"
    "filesystem.write_file('new/more.txt', 'x\\n')"
}
AGAIN = {"code": "filesystem.write_file('made.txt', 'again\\n')"}
OUTSIDE = {"code": "filesystem.write_file('{}', 'x\\n')"}


class UndoCommandTests(WorkspaceCase):
    def setUp(self) -> None:
        super().setUp()
        self.product.project.chmod(0o777)
        self.made = self.product.project / "made.txt"
        self.made.write_text("mine\n")
        self.made.chmod(0o666)

    def work(self, *turns: dict[str, Any]) -> None:  # type: ignore[override]
        """Let an agent work, one message."""
        words = ("start", "--workspace", ".", "--backend", self.product.script(*turns, DONE), "do it")
        done = self.product.run(*words)
        self.assertEqual(done.returncode, 0, done.stderr)

    def begin(self, *turns: dict[str, Any]) -> Command:
        """Begin a conversation, and send one message."""
        process = self.product.start("start", "--workspace", ".", "--backend", self.product.script(*turns, DONE))
        self.send(process)
        return process

    def send(self, process: Command) -> None:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()

    def files(self) -> list[str]:
        return sorted(str(path.relative_to(self.product.project)) for path in self.product.project.rglob("*"))

    def test_an_ended_session_is_undone_and_that_is_taken_back(self) -> None:
        self.work(CHANGE)
        self.assertEqual(self.files(), ["made.txt", "new", "new/more.txt"])
        shown = self.product.run("undo", "--dry-run")
        self.assertIn("-mine\n+agent\n", shown.stdout)
        (mine := self.product.project / "mine.txt").write_text("after the turn\n")
        kept = self.product.run("undo", "--dry-run")
        self.assertIn("Changed after the agent's turn, and kept (--all restores it, too): mine.txt", kept.stderr)
        self.assertNotIn("mine.txt", kept.stdout)
        mine.unlink()
        self.assertEqual(self.made.read_text(), "agent\n")
        refused = self.product.run("undo")
        self.assertEqual((refused.returncode, self.made.read_text()), (64, "agent\n"))
        done = self.product.run("undo", "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.files(), self.made.read_text()), (["made.txt"], "mine\n"))
        self.assertIn("ironcurtain undo --back --session 1", done.stdout)
        back = self.product.run("undo", "--back", "--yes")
        self.assertEqual(back.returncode, 0, back.stderr)
        self.assertEqual(self.made.read_text(), "agent\n")
        kinds = [record["kind"] for record in self.product.audit()]
        self.assertEqual((kinds.count("snapshot"), kinds.count("undo"), kinds.count("undo-end")), (1, 2, 2))
        self.assertEqual(self.product.run("audit", "verify").returncode, 0)

    def test_a_running_session_is_undone_by_its_process_between_messages(self) -> None:
        process = self.begin(CHANGE, DONE, AGAIN)
        until(process.stdout, "All done.")
        self.send(process)
        until(process.stdout, "All done.")
        self.assertEqual(self.made.read_text(), "again\n")
        first = self.product.json("undo", "2", "--yes")
        self.assertEqual((first["done"]["changed"], self.made.read_text()), (1, "agent\n"))
        second = self.product.json("undo", "1", "--yes")
        self.assertEqual((second["done"]["removed"], self.made.read_text()), (2, "mine\n"))
        process.communicate(timeout=LIMIT)

    def test_it_is_undone_in_the_conversation_once_it_was_shown_and_confirmed(self) -> None:
        outside = self.product.person / "outside.txt"
        code = f"{CHANGE['code']}\n{OUTSIDE['code'].format(outside)}"
        process = self.begin({"code": code})
        until(process.stderr, "/approve 1")
        assert process.stdin is not None
        process.stdin.write("/approve 1\n")
        process.stdin.flush()
        until(process.stdout, "All done.")
        process.stdin.write("/undo\n")
        process.stdin.flush()
        for line in ("-mine", "+agent", "Undo restores 2 files and 1 directory", "Cannot be undone: ", "/undo yes"):
            until(process.stderr, line)
        self.assertEqual((self.made.read_text(), outside.exists()), ("agent\n", True))
        _, err = process.communicate("/undo yes\n/undo\n/quit\n", timeout=LIMIT)
        self.assertIn("Restored 1, removed 2.", err)
        self.assertIn("To take this back: ironcurtain undo --back --session 1", err)
        self.assertIn("The workspace of session 1 is as it was before turn 1.", err)
        self.assertEqual((self.files(), self.made.read_text(), outside.exists()), (["made.txt"], "mine\n", True))
        kinds = [record["kind"] for record in self.product.audit()]
        self.assertEqual((kinds.count("undo"), kinds.count("undo-end")), (1, 1))

    def test_what_leaves_the_workspace_is_named_beforehand_and_afterwards(self) -> None:
        outside = self.product.person / "outside.txt"
        process = self.begin({"code": OUTSIDE["code"].format(outside)})
        until(process.stderr, "cannot be undone: changes files outside the workspace")
        listed = self.product.run("escalations")
        self.assertIn("cannot be undone: changes files outside the workspace", listed.stdout)
        self.assertEqual(self.product.run("approve", "1").returncode, 0)
        until(process.stdout, "All done.")
        (call,) = self.product.json("undo", "--dry-run")["cannot_be_undone"]
        self.assertEqual((call["tool"], call["undo"], outside.exists()), ("write_file", "outside", True))
        process.communicate("/quit\n")
        (log,) = self.product.home.glob("sessions/*/audit.jsonl")
        lines = log.read_bytes().splitlines(keepends=True)
        log.write_bytes(b"".join(line for line in lines if b'"tool":"write_file"' not in line))
        self.assertIs(self.product.json("undo", "--dry-run")["audit_intact"], False)
        self.assertIn("is NOT intact (line ", self.product.run("undo", "--dry-run").stderr)
        self.assertEqual(self.product.run("report").returncode, 1)

    def test_no_snapshot_is_said_with_its_reason(self) -> None:
        self.product.environ["IRONCURTAIN_UNDO_MAX_FILES"] = "2"
        for name in "abc":
            (self.product.project / name).write_text("x")
        done = self.product.run("start", "--workspace", ".", "--backend", self.product.script(CHANGE, DONE), "do it")
        self.assertIn("no snapshot: the workspace has more than 2 files", done.stderr)
        undone = self.product.run("undo", "--yes")
        self.assertEqual(undone.returncode, 69)
        self.assertIn("more than 2 files", undone.stderr)

    def test_a_session_that_was_killed_in_a_turn_is_undone(self) -> None:
        code = CHANGE["code"] + "\n" + OUTSIDE["code"].format(self.product.person / "outside.txt")
        process = self.begin({"code": code})
        until(process.stderr, "/approve 1")
        working = self.product.run("undo", "--yes")
        self.assertEqual((working.returncode, self.made.read_text()), (1, "agent\n"), working.stderr)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        done = self.product.run("undo", "--yes")
        self.assertEqual((done.returncode, self.made.read_text()), (0, "mine\n"), done.stderr)

    def test_an_undo_that_was_interrupted_goes_on(self) -> None:
        self.work(CHANGE)
        (where,) = self.product.home.glob("sessions/*/snapshots")
        (where / "restoring.json").write_text(json.dumps({"number": 1, "kept": 0}))
        told = self.product.run("start", "-r", "last", "--backend", self.product.script(DONE), "go on")
        self.assertIn("an undo was interrupted", told.stderr)
        self.assertEqual(self.product.run("undo", "--yes").returncode, 0)
        self.assertEqual((self.made.read_text(), (where / "restoring.json").exists()), ("mine\n", False))

    def begin_undo(self) -> tuple[Command, Path]:
        """:returns: an undo of many files with one content, and a pipe in its place, for which it waits at each one."""
        files = [self.product.project / f"{number}.txt" for number in range(100)]
        for file in files:
            file.write_text("before\n")
            file.chmod(0o666)
        self.work({"code": "for i in range(100): filesystem.write_file(str(i) + '.txt', 'agent\\n')"})
        digest = hashlib.sha256(b"before\n").hexdigest()
        (content,) = self.product.home.glob(f"sessions/*/snapshots/contents/*/{digest}")
        content.unlink()
        os.mkfifo(content)
        process = self.product.start("undo", "--yes", "--json")
        wait_until(lambda: self.let_pass(content))
        return process, content

    def let_pass(self, content: Path) -> bool:
        """:returns: whether an undo waited for the content of a file; it does not get it."""
        with contextlib.suppress(OSError):
            os.close(os.open(content, os.O_WRONLY | os.O_NONBLOCK))
            return True
        return False

    def check_continued(self, content: Path) -> None:
        content.unlink()
        content.write_text("before\n")
        done = self.product.run("undo", "--yes")
        self.assertEqual((done.returncode, self.product.run("audit", "verify").returncode), (0, 0), done.stderr)
        self.assertIn("An undo was interrupted; this continues it.", done.stderr)
        self.assertEqual({file.read_text() for file in self.product.project.glob("[0-9]*.txt")}, {"before\n"})

    def check_stopped(self, number: signal.Signals) -> None:
        process, content = self.begin_undo()
        process.send_signal(number)
        while process.poll() is None:
            self.let_pass(content)
        out, err = process.communicate()
        report = json.loads(out)["done"]
        self.assertEqual((process.returncode, report["interrupted"]), (128 + number, True), err)
        self.assertLess(len(report["left"]), 100)
        kinds = [record["kind"] for record in self.product.audit()]
        self.assertEqual(kinds[-4:], ["undo", "undo-end", "end", "checkpoint"])
        self.assertEqual(self.product.run("audit", "verify").returncode, 0)
        self.check_continued(content)

    def test_an_interrupt_stops_an_undo_whose_end_is_recorded(self) -> None:
        self.check_stopped(signal.SIGINT)

    def test_a_termination_stops_an_undo_whose_end_is_recorded(self) -> None:
        self.check_stopped(signal.SIGTERM)

    def test_a_killed_undo_leaves_a_log_that_is_intact_and_has_no_end(self) -> None:
        process, content = self.begin_undo()
        process.kill()
        process.communicate()
        verified = self.product.run("audit", "verify")
        self.assertEqual((verified.returncode, "not ended" in verified.stdout), (0, True), verified.stdout)
        self.check_continued(content)
        self.assertNotIn("not ended", self.product.run("audit", "verify").stdout)

    def test_snapshots_are_their_owner_s_alone_and_in_no_sandbox(self) -> None:
        self.work(CHANGE)
        (where,) = self.product.home.glob("sessions/*/snapshots")
        modes = {path.stat().st_mode & 0o077 for path in (where, *Path(where).rglob("*"))}
        self.assertEqual(modes, {0})

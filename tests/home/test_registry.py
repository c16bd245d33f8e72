from __future__ import annotations

import json
import os
import shutil
import stat
import tempfile
from pathlib import Path

import msgspec
from msgspec.structs import astuple
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.registry import (
    LABEL_LIMIT,
    SessionEntry,
    SessionRegistry,
    label,
    label_by_message,
    read_small_file,
)
from ironcurtain.process.identity import identify


def entry(session_id: str, number: int = 1, **changes: object) -> SessionEntry:
    pid, start_time, boot = astuple(identify())
    made = SessionEntry(
        session_id=session_id,
        escalation_dir="/e",
        label="builtin: x",
        started_at="2026-11-21T09:15:00Z",
        pid=pid,
        pid_start_time=start_time,
        boot_id=boot,
        number=number,
    )
    return msgspec.structs.replace(made, **changes)


class RegistryTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        self.registry = SessionRegistry(self.directory)

    def test_what_others_read(self) -> None:
        self.registry.add(entry("s1"))
        [path] = self.directory.iterdir()
        self.assertEqual((path.name, stat.S_IMODE(path.stat().st_mode)), ("session-s1.json", 0o600))
        members = json.loads(path.read_bytes())
        self.assertLessEqual({"sessionId", "escalationDir", "label", "startedAt", "pid"}, set(members))
        self.assertEqual(members["pid"], os.getpid())

    def test_live_sessions_by_number(self) -> None:
        for number in (3, 1, 10, 2):
            self.assertTrue(self.registry.add(entry(f"s{number}", number)))
        self.assertEqual([e.number for e in self.registry.live()], [1, 2, 3, 10])
        self.registry.remove("s2")
        self.registry.remove("s2")
        self.assertEqual([e.number for e in self.registry.live()], [1, 3, 10])

    def test_sessions_of_other_hosts_are_apart(self) -> None:
        self.registry.add(entry("s1"))
        self.assertTrue(self.registry.add(entry("s1", host="build-3")))
        self.assertEqual([str(e.number) for e in self.registry.live()], ["1", "build-3/1"])
        self.registry.add(entry("s2", host="build-3", boot_id="of-the-boot-before"))
        self.assertEqual([e.host for e in self.registry.here()], [""])
        (dead,) = self.directory.glob("*s2*")  # which here() did not read, and live() removes
        self.assertEqual([e.host for e in self.registry.live()], ["", "build-3"])
        self.assertFalse(dead.exists())
        self.registry.remove("s1", "build-3")
        self.assertEqual(self.registry.live(), [entry("s1")])

    def test_a_session_is_registered_once(self) -> None:
        self.assertTrue(self.registry.add(entry("s1", label="first")))
        self.assertFalse(self.registry.add(entry("s1", label="second")))
        self.assertEqual([e.label for e in self.registry.live()], ["first"])

    def test_dead_owners_are_swept_and_may_come_back(self) -> None:
        self.registry.add(entry("s1", pid_start_time=1))
        self.registry.add(entry("s2", boot_id="another"))
        self.assertEqual(self.registry.live(), [])
        self.assertEqual(list(self.directory.iterdir()), [])
        self.assertTrue(self.registry.add(entry("s1")))

    def test_entries_of_other_programs(self) -> None:
        others = {
            "sessionId": "o",
            "escalationDir": "/e",
            "label": "l",
            "startedAt": "now",
            "pid": os.getpid(),
            "x": [1],
        }
        (self.directory / "session-o.json").write_text(json.dumps(others))
        self.assertEqual([e.session_id for e in self.registry.live()], ["o"])

    def test_an_entry_without_start_time_whose_pid_is_younger_is_stale(self) -> None:
        others = {"sessionId": "o", "escalationDir": "/e", "label": "l", "startedAt": "then", "pid": os.getpid()}
        path = self.directory / "session-o.json"
        path.write_text(json.dumps(others))
        os.utime(path, (1, 1))
        self.assertEqual(self.registry.live(), [])
        self.assertFalse(path.exists())

    def test_nothing_in_the_directory_stops_the_others(self) -> None:
        self.registry.add(entry("good"))
        good = json.loads(msgspec.json.encode(entry("bad")))
        (self.directory / "session-rubbish.json").write_bytes(b"\xff{")
        (self.directory / "session-list.json").write_bytes(b"[]")
        (self.directory / "session-huge.json").write_bytes(b" " * 2**17)
        (self.directory / "session-pid.json").write_text(json.dumps({**good, "pid": 2**40}))
        (self.directory / "session-zero.json").write_text(json.dumps({**good, "pid": 0, "pidStartTime": 0}))
        (self.directory / "session-directory.json").mkdir()
        (self.directory / "session-link.json").symlink_to(self.directory / "session-good.json")
        os.mkfifo(self.directory / "session-pipe.json")
        self.assertEqual([e.session_id for e in self.registry.live()], ["good"])


class LabelTests(SynchronousTestCase):
    def test_labels(self) -> None:
        self.assertEqual(label("builtin", "fix\n\x1b[31mthe \u202ebug"), "builtin: fix [31mthe bug")
        self.assertEqual(label("builtin", " \n"), "builtin: interactive")

    def test_message_names_a_session_without_a_task(self) -> None:
        self.assertEqual(label_by_message("codex: interactive", "mend it\n"), "codex: mend it")
        self.assertEqual(label_by_message("codex: interactive", ""), "codex: interactive")
        self.assertEqual(label_by_message("codex: a task", "mend it"), "codex: a task")
        self.assertEqual(len(label("builtin", "x" * 500)), LABEL_LIMIT)


class SmallFileTests(SynchronousTestCase):
    def test_links_pipes_and_large_files_are_refused(self) -> None:
        directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, directory)
        (directory / "a").write_bytes(b"12345")
        (directory / "link").symlink_to("a")
        os.mkfifo(directory / "pipe")
        self.assertEqual(read_small_file(directory / "a", 5), b"12345")
        for name, limit in (("a", 4), ("link", 5), ("pipe", 5), ("none", 5), (".", 5)):
            with self.assertRaises(OSError, msg=name):
                read_small_file(directory / name, limit)

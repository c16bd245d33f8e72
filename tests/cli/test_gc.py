"""``ironcurtain gc`` and what ``doctor`` says of a Docker Engine, as processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.spec import owner_labels
from ironcurtain.files.locks import FileLock
from ironcurtain.home.layout import find_home
from ironcurtain.process.identity import identify
from tests import engine


class CollectingTests(SynchronousTestCase):
    def setUp(self) -> None:
        directory = tempfile.TemporaryDirectory(prefix="ic-")
        self.addCleanup(directory.cleanup)
        self.home = Path(directory.name) / "home"
        self.environ = {**os.environ, "IRONCURTAIN_HOME": str(self.home)}

    def run_command(self, *words: str) -> subprocess.CompletedProcess[str]:
        ironcurtain = str(Path(sys.executable).parent / "ironcurtain")
        return subprocess.run([ironcurtain, *words], env=self.environ, capture_output=True, text=True, check=False)

    def leave(self) -> str:
        """:returns: the name of a container whose owner is dead."""
        with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
            owner = identify(process.pid)
        name = f"ironcurtain-test-gc-{os.getpid()}"
        request: dict[str, Any] = {"Image": engine.image(), "Cmd": ["true"], "HostConfig": {"NetworkMode": "none"}}
        request["Labels"] = owner_labels("the-session", str(self.home), owner)
        engine.call("POST", f"/containers/create?name={name}", json.dumps(request).encode())
        self.pid = owner.pid
        return name

    def names(self) -> list[str]:
        return [container["Names"][0] for container in engine.call("GET", "/containers/json?all=1")[0]]

    def test_a_dry_run_and_a_real_one(self) -> None:
        self.environ |= engine.environment()
        name = self.leave()
        said = f"{name} (session the-session): its owner, process {self.pid}, is gone.\n"
        done = self.run_command("gc", "--dry-run")
        self.assertEqual((done.returncode, done.stdout), (0, f"Would remove {said}"), done.stderr)
        self.assertIn(f"/{name}", self.names())
        [found] = json.loads(self.run_command("gc", "--dry-run", "--json").stdout)
        self.assertEqual((found["name"], found["session"], found["pid"]), (name, "the-session", self.pid))
        done = self.run_command("gc")
        self.assertEqual((done.returncode, done.stdout), (0, f"Removed {said}"), done.stderr)
        self.assertNotIn(f"/{name}", self.names())
        self.assertEqual(self.run_command("gc").stdout, "Nothing is left behind.\n")

    def test_without_an_engine(self) -> None:
        self.environ["DOCKER_HOST"] = f"unix://{self.home}/docker.sock"
        done = self.run_command("gc")
        self.assertEqual(done.returncode, 69)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)
        self.assertIn("ironcurtain doctor", done.stderr)
        self.assertFalse(self.home.exists())

    def test_sockets_of_dead_sessions_go_without_an_engine_too(self) -> None:
        self.environ["DOCKER_HOST"] = f"unix://{self.home}/docker.sock"
        where = find_home(self.environ, os.geteuid())
        where.prepare()
        dead, live = "0df1a55d-4668-4597-9cae-ee29975ebc57", "1df1a55d-4668-4597-9cae-ee29975ebc57"
        for session in (dead, live):
            where.session(session).directory.mkdir()
            where.session_run(session).host.mkdir(parents=True)
        lock = FileLock(where.session(live).lock)
        lock.acquire()
        self.addCleanup(lock.release)
        elsewhere = "2df1a55d-4668-4597-9cae-ee29975ebc57"  # its files are in another place
        (where.sessions / f"{elsewhere}.json").touch()
        where.session_run(elsewhere).directory.mkdir()
        self.assertEqual(self.run_command("gc", "--dry-run").returncode, 69)
        self.assertTrue(where.session_run(dead).directory.exists())
        done = self.run_command("gc")
        self.assertEqual(done.returncode, 69)
        self.assertEqual(done.stdout, f"Removed the sockets of session {dead}: it does not run.\n")
        self.assertIn("ironcurtain doctor", done.stderr)
        self.assertFalse(where.session_run(dead).directory.exists())
        for session in (live, elsewhere):
            self.assertTrue(where.session_run(session).directory.exists())
        self.assertEqual(self.run_command("gc").stdout, "")

    def test_the_doctor_finds_the_engine(self) -> None:
        self.environ |= engine.environment()
        found = json.loads(self.run_command("doctor", "--json").stdout)
        [docker] = [finding for finding in found if finding["what"] == "Docker" and finding["state"] == "ok"]
        self.assertIn("answers", docker["detail"])

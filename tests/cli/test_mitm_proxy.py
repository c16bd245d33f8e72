"""``ironcurtain mitm-proxy``, as a process of its own."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.product import LIMIT

KEY = "sk-ant-api03-CANARY-real-key-of-the-command"


class CommandTests(SynchronousTestCase):
    """From the start to a signal."""

    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.socket = self.top / "run" / "mitm.sock"

    def start(self, *more: str, **environ: str) -> subprocess.Popen[str]:
        """:returns: the command, running."""
        usual = {"PATH": os.environ["PATH"], "HOME": str(self.top), "IRONCURTAIN_HOME": str(self.top / "home")}
        process = subprocess.Popen(
            [sys.executable, "-m", "ironcurtain.cli", "mitm-proxy", "--socket", str(self.socket), *more],
            env={**usual, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(process.kill)
        return process

    def test_it_tells_what_the_agent_needs_and_leaves_no_socket(self) -> None:
        for number, status in ((signal.SIGTERM, 143), (signal.SIGINT, 130)):
            process = self.start("--json", ANTHROPIC_API_KEY=KEY)
            assert process.stdout is not None
            told = json.loads(process.stdout.readline())
            self.assertTrue(self.socket.is_socket())
            self.assertEqual(told["socket"], str(self.socket))
            self.assertTrue(told["keys"]["anthropic"].startswith("sk-ant-api03-"))
            self.assertIn("BEGIN CERTIFICATE", Path(told["certificate"]).read_text())
            process.send_signal(number)
            output, errors = process.communicate(timeout=LIMIT)
            self.assertEqual(process.returncode, status, errors)
            self.assertFalse(self.socket.exists())
            written = Path(told["audit"]).read_text() + json.dumps(told) + output + errors
            self.assertNotIn(KEY, written)

    def test_lines_for_a_shell(self) -> None:
        providers = self.top / "providers.toml"
        providers.write_text(
            '[providers.anthropic]\n\n[providers.corp]\nhost = "llm.corp.example"\nendpoints = ["POST /v1/chat"]\n'
            'key = { header = "authorization", prefix = "corp-", command = "echo corp-secret" }\n'
        )
        process = self.start("--providers", str(providers), ANTHROPIC_API_KEY=KEY)
        assert process.stdout is not None
        lines = dict(process.stdout.readline().strip().split("=", 1) for _ in range(4))
        process.terminate()
        process.communicate(timeout=LIMIT)
        self.assertEqual(list(lines), ["ANTHROPIC_API_KEY", "CORP_API_KEY", "NODE_EXTRA_CA_CERTS", "SSL_CERT_FILE"])
        self.assertTrue(lines["CORP_API_KEY"].startswith("corp-"))

    def test_a_fake_key_has_the_name_that_agents_know_and_not_that_of_the_real_one(self) -> None:
        providers = self.top / "providers.toml"
        providers.write_text(
            '[providers.anthropic]\nkey = { env = "REAL" }\n\n'
            '[providers.corp]\nhost = "llm.corp.example"\nendpoints = ["POST /v1/chat"]\n'
            'key = { header = "authorization", prefix = "corp-", env = "REAL" }\n'
        )
        process = self.start("--providers", str(providers), REAL=KEY)
        assert process.stdout is not None and process.stderr is not None
        names = [process.stdout.readline().partition("=")[0] for _ in range(4)]
        said = process.stderr.readline()
        process.terminate()
        process.communicate(timeout=LIMIT)
        self.assertEqual(names[:2], ["ANTHROPIC_API_KEY", "CORP_API_KEY"])
        self.assertIn("The keys are fake", said)

    def test_what_is_missing_is_said(self) -> None:
        empty = self.top / "empty.toml"
        empty.touch()
        for more, words in (((), "set ANTHROPIC_API_KEY"), (("--providers", str(empty)), "has no provider")):
            process = self.start(*more)
            output, errors = process.communicate(timeout=LIMIT)
            self.assertEqual((process.returncode, output), (78, ""))
            self.assertIn(words, errors)
            self.assertFalse(self.socket.exists())

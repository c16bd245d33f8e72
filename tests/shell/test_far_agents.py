"""Agents on other machines, below the shell's agent: by OpenSSH's client, from a real sshd on a port of this one."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

from tests.audit.doubles import scratch
from tests.ports import free_port
from tests.product import wait_until
from tests.programs import program
from tests.shell.test_inheritance import SEPARATED
from tests.shell.test_pipe import SpokenCase
from tests.ssh_daemon import new_key

TASK = "greet the world"
USED = {"usage": {"input_tokens": 1000, "output_tokens": 10}}


class FarCase(SpokenCase):
    """With an account that is reached by ``ssh far``, where the product is installed, too."""

    def setUp(self) -> None:
        super().setUp()
        sshd, self.ssh = program("sshd"), program("ssh")
        if os.geteuid() == 0 and not SEPARATED.exists():
            self.skipTest(f"root's sshd needs the directory {SEPARATED}")
        self.place = scratch(self)
        self.far = self.place / "far"
        self.far.mkdir(mode=0o700)
        self.port = free_port()
        for name in ("host", "user"):
            new_key(self.place / name)
        installed = Path(self.product.command("shell")[0]).parent
        self.sshd, self.installed = sshd, installed
        self.config = (
            f"ListenAddress 127.0.0.1\nPort {self.port}\nHostKey {self.place}/host\nPidFile none\nStrictModes no\n"
            f"AuthorizedKeysFile {self.place}/user.pub\nUsePAM no\nPermitRootLogin yes\n"
            f"SetEnv IRONCURTAIN_HOME={self.far}"
        )
        (self.place / "ssh_config").write_text(
            f"Host far\nHostName 127.0.0.1\nPort {self.port}\nHostKeyAlias far\nIdentityFile {self.place}/user\n"
            f"IdentitiesOnly yes\nUserKnownHostsFile {self.place}/known\nGlobalKnownHostsFile none\nLogLevel ERROR\n"
        )
        key = (self.place / "host.pub").read_text()
        (self.place / "known").write_text(f"far {key}")
        programs = self.place / "programs"
        programs.mkdir()
        # ssh reads the settings of the account, not those below $HOME.
        (programs / "ssh").write_text(f'#!/bin/sh\nexec {self.ssh} -F {self.place}/ssh_config "$@"\n')
        (programs / "ssh").chmod(0o755)
        self.product.environ["PATH"] = f"{programs}:{self.product.environ['PATH']}"
        self.log = (self.place / "log").open("w")
        self.addCleanup(self.log.close)

    def serve(self, path: str) -> None:
        """
        Start the daemon.

        :param path: of commands by ssh.
        """
        (self.place / "sshd_config").write_text(f"{self.config} PATH={path}\n")
        line = [self.sshd, "-D", "-e", "-f", str(self.place / "sshd_config")]
        self.daemon = subprocess.Popen(line, stderr=self.log)
        self.addCleanup(self.daemon.wait)
        self.addCleanup(self.daemon.terminate)
        self.reachable()

    def connections(self) -> list[int]:
        """:returns: the processes of the daemon that have a connection."""
        found, waiting = list[int](), [self.daemon.pid]
        while waiting:
            children = Path(f"/proc/{waiting[0]}/task/{waiting.pop(0)}/children").read_text().split()
            named = [int(pid) for pid in children if Path(f"/proc/{pid}/comm").read_text().startswith("sshd")]
            found, waiting = found + named, waiting + named
        return found

    def reachable(self) -> None:
        """Wait until it listens."""

        def connects() -> bool:
            with socket.socket() as tried:
                return not tried.connect_ex(("127.0.0.1", self.port))

        wait_until(connects)

    def other(self, *turns: dict[str, Any]) -> None:
        """Set up the agent there: it may do everything, by its own policy."""
        script = Path(self.product.script(*turns).partition(":")[2]).rename(self.far / "script.toml")
        (self.far / "config.toml").write_text(
            f"version = 1\n[shell]\ncommand = 'bash'\n[model]\nbackend = 'scripted'\nscript = '{script}'\n"
        )
        (self.far / "policy.toml").write_text("version = 1\n[approval]\ndefault = 'allow'\n")

    def sends(self, answer: dict[str, Any], **more: Any) -> None:
        """Have the agent here give its task to the one there, and approve that."""
        tool = {"name": "agent", "input": {"task": TASK, "host": "far", "purpose": "greet", **more}}
        self.begin({"text": "So.", "tools": [tool], **USED}, {**answer, **USED})
        self.say("# greet")
        self.say({"type": "approval", "plan_id": self.until("plan")["plan_id"], "decision": "allow"})

    def result(self) -> dict[str, Any]:
        """:returns: how the step ended."""
        self.until("done")
        return next(each for each in self.said if each["type"] == "step_complete")


class FarAgentTests(FarCase):
    """What goes there, and what comes back."""

    def test_it_does_no_more_answers_and_counts_here(self) -> None:
        self.serve(f"{self.installed}:/usr/bin:/bin")
        self.other(
            {"text": "", "commands": [{"command": "echo hello"}], **USED},
            {"text": "", "commands": [{"command": "touch made"}], **USED},
            {"text": "I may not make files.", **USED},
        )
        self.product.environ["IRONCURTAIN_SHELL_MAX_TOKENS_PER_SESSION"] = "6000"
        answer = {"expect": {"last_result_contains": "I may not make files."}, "text": "It greeted."}
        self.sends(answer, only={"commands": ["echo *"]})
        result = self.result()
        self.assertEqual((result["outcome"], result["reason"]), ("done", ""), result)
        self.assertIn("[done] echo hello", result["output"])
        self.assertIn("[denied: DENIED: the agent that started this one", result["output"])
        self.assertIn("tokens: 3,000 in, 30 out", result["output"])
        done = self.said[-1]
        self.assertEqual(
            (done["text"], done["tokens_in"], done["below_in"], done["usage_known"]), ("It greeted.", 5000, 3000, True)
        )
        self.assertEqual(self.ends()[0], 0)
        (paths,) = self.far.glob("sessions/*")
        policies = json.loads((paths / "agent-policies.json").read_bytes())["policies"]
        self.assertEqual((policies["tokens"], policies["depth"]), (4990 - 3030, 2))
        ids = [
            {json.loads(line)["trace_id"] for line in (home / "traces.jsonl").read_text().splitlines()}
            for home in (self.product.home, self.far)
        ]
        self.assertEqual((len(ids[0]), ids[0]), (1, ids[1]))

    def test_a_host_whose_key_is_not_known_is_not_used(self) -> None:
        self.serve("/usr/bin:/bin")
        (self.place / "known").write_text("")
        self.sends({"text": "So be it."})
        result = self.result()
        self.assertEqual(result["outcome"], "failed")
        self.assertIn("ssh did not reach far", result["reason"])
        self.assertIn("Host key verification failed", result["output"])
        self.ends()

    def test_where_it_is_not_installed_that_is_said(self) -> None:
        if shutil.which("ironcurtain", path="/usr/bin:/bin"):
            self.skipTest("it is installed for everybody")
        self.serve("/usr/bin:/bin")
        self.sends({"text": "So be it."})
        result = self.result()
        self.assertIn("there is no command ironcurtain for ssh on far", result["reason"], result)
        self.ends()

    def test_the_connection_ends(self) -> None:
        self.serve(f"{self.installed}:/usr/bin:/bin")
        self.other({"text": "", "commands": [{"command": "touch begun; sleep 600"}]}, {"text": "No."})
        allowed = '[approval.shell]\nallow_patterns = ["touch *", "sleep *"]\n[approval.filesystem]\nwrite = ["/**"]\n'
        (self.product.home / "policy.toml").write_text(f"version = 1\n{allowed}")
        self.sends({"text": "So be it."})
        entries = self.far / "pty-registry"
        wait_until(lambda: any(entries.glob("session-*.json")))
        while "sleep 600" not in json.dumps(self.until("output")):
            pass
        for pid in self.connections():
            os.kill(pid, signal.SIGKILL)
        result = self.result()
        self.assertEqual(result["outcome"], "failed")
        self.assertIn("ssh did not reach far, or lost it", result["reason"])
        self.assertIn("tokens: not known", result["output"])
        self.ends()
        wait_until(lambda: not any(entries.glob("session-*.json")))

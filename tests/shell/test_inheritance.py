"""What agents on other machines are told of the policy, and that real ssh takes it there."""

from __future__ import annotations

import json
import os
import zlib
from base64 import b64encode
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.shell.inheritance import (
    SIZE_LIMIT,
    VARIABLE,
    VARIABLE_LIMIT,
    AgentPolicies,
    as_variable,
    policies_in,
    unchecked_approval,
)
from tests.audit.doubles import scratch
from tests.programs import program
from tests.shell.test_pipe import THANKS, SpokenCase, plan
from tests.ssh_daemon import new_key

SEPARATED = Path("/run/sshd")

TABLES = st.dictionaries(st.text(max_size=9), st.text(max_size=99) | st.lists(st.text(max_size=9)), max_size=4)


class VariableTests(SynchronousTestCase):
    """:func:`as_variable` and :func:`policies_in`"""

    @given(st.lists(TABLES, max_size=4))
    def test_it_is_read_as_it_was_written(self, agents: list[dict[str, Any]]) -> None:
        policies = AgentPolicies()
        for tables in agents:
            policies = policies.joined(tables)
        self.assertEqual(policies_in({VARIABLE: as_variable(policies)}), policies)
        self.assertEqual(policies.depth, len(agents))

    def test_nothing_is_nobody(self) -> None:
        self.assertEqual((policies_in({}), policies_in({VARIABLE: ""})), (AgentPolicies(), AgentPolicies()))

    def test_merging_keeps_all_that_bind(self) -> None:
        one, other = AgentPolicies(({"a": "1"}, {"b": "2"}), 2), AgentPolicies(({"b": "2"}, {"c": "3"}), 3)
        self.assertEqual(one.merged(other), AgentPolicies(({"a": "1"}, {"b": "2"}, {"c": "3"}), 3))

    @given(st.text(min_size=1, max_size=60) | st.binary(max_size=60).map(lambda data: b64encode(data).decode() or "x"))
    def test_what_it_did_not_write_is_an_error(self, value: str) -> None:
        self.assertRaises(ConfigurationError, policies_in, {VARIABLE: value})

    def test_damage_is_an_error(self) -> None:
        whole = as_variable(AgentPolicies().joined({"default": "deny"}))
        bomb = b64encode(zlib.compress(b" " * (SIZE_LIMIT + 1))).decode()
        for value in (whole[:-4], whole[4:], b64encode(zlib.compress(b"[]")).decode(), bomb):
            self.assertRaises(ConfigurationError, policies_in, {VARIABLE: value})

    def test_what_is_too_long_lets_no_agent_start(self) -> None:
        value = as_variable(AgentPolicies().joined({"x": b64encode(os.urandom(VARIABLE_LIMIT)).decode()}))
        self.assertLess(len(value), VARIABLE_LIMIT)
        self.assertRaises(ConfigurationError, policies_in, {VARIABLE: value})


class UncheckedTests(SynchronousTestCase):
    """:func:`unchecked_approval`"""

    def test_the_table_as_it_is(self) -> None:
        path = scratch(self) / "policy.toml"
        self.assertEqual(unchecked_approval(path), {})
        for text, expected in (
            ("version = 1\n[approval]\ndefault = 'deny'\nx = 1", {"default": "deny", "x": 1}),
            ("version = 1", {}),
            ("approval = 1", {}),
            ("[", {}),
        ):
            path.write_text(text)
            self.assertEqual(unchecked_approval(path), expected)
        self.assertEqual(unchecked_approval(path.parent), {})


class SshTests(SpokenCase):
    """A shell's agent that somebody starts on another machine, which is this one behind OpenSSH's server."""

    def setUp(self) -> None:
        super().setUp()
        self.sshd = program("sshd")
        if os.geteuid() == 0 and not SEPARATED.exists():
            self.skipTest(f"root's sshd needs the directory {SEPARATED}")
        self.place = scratch(self)
        for name in ("host", "user"):
            new_key(self.place / name)
        (self.place / "sshd_config").write_text(
            f"HostKey {self.place}/host\nAuthorizedKeysFile {self.place}/user.pub\nAcceptEnv LANG LC_*\n"
            "StrictModes no\nUsePAM no\n"
        )
        (self.place / "ssh_config").write_text(
            f"Host far\nProxyCommand sh {self.place}/connect\nSendEnv LANG LC_*\nBatchMode yes\nIdentityFile "
            f"{self.place}/user\nStrictHostKeyChecking no\nUserKnownHostsFile /dev/null\nLogLevel ERROR\n"
        )
        (self.place / "far").write_text(
            f"version = 1\n[shell]\ncommand = 'bash'\n[model]\nbackend = 'scripted'\nscript = '{self.place}/script'\n"
        )
        (self.place / "script").write_text(
            'version = 1\n[[turns]]\ncommands = [{ command = "touch made", purpose = "x" }]\n[[turns]]\ntext = "So."\n'
        )
        (self.place / "wide.toml").write_text("version = 1\n[approval]\ndefault = 'allow'\n")

    def far_agent(self, *, shared: bool) -> str:
        """
        Start a shell whose agent starts another one by ssh, and approve that.

        :returns: what the second one wrote to its audit log about its command.
        """
        command, far = self.product.command("shell")[0], self.place / "home"
        (self.product.home / "config.toml").write_text(f"version = 1\n[shell]\nshare_policy = {str(shared).lower()}\n")
        (self.product.home / "policy.toml").write_text("version = 1\n[approval.shell]\nallow_patterns = ['true']\n")
        inner = (
            f"cd {self.place} && IRONCURTAIN_HOME={far} {command} shell --config {self.place}/far "
            f"--policy {self.place}/wide.toml --json -c go </dev/null"
        )
        (self.place / "connect").write_text(f"exec {self.sshd} -i -f {self.place}/sshd_config 2>/dev/null\n")
        self.begin(plan(f"ssh -F {self.place}/ssh_config far '{inner}'"), THANKS)
        self.say("# start it")
        self.until("plan")
        self.say({"type": "approval", "plan_id": "p1", "decision": "allow"})
        self.until("done")
        _, errors = self.ends()
        logs = [path.read_text().splitlines() for path in far.glob("sessions/*/audit.jsonl")]
        self.assertEqual(len(logs), 1, f"{self.said} {errors}")
        calls = [record for record in map(json.loads, logs[0]) if record["kind"] == "call"]
        (call,) = [call for call in calls if call["arguments"]["command"] == "touch made"]
        return f"{call['decision']} {call['rule']}"

    def test_it_may_do_no_more(self) -> None:
        self.assertEqual(self.far_agent(shared=True), "escalate approval.default")
        self.assertFalse((self.place / "made").exists())

    def test_where_it_is_not_told(self) -> None:
        self.assertTrue(self.far_agent(shared=False).startswith("allow "))

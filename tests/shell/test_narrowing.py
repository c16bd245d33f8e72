"""What agents may do that agents have started."""

from __future__ import annotations

import json
import subprocess
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.verdict import SEVERITY, Decision
from ironcurtain.shell.inheritance import VARIABLE
from ironcurtain.shell.narrowing import NarrowedGate
from ironcurtain.shell.nesting import DEEPEST_AGENT
from tests.cli.cases import ProductCase
from tests.shell.test_gate import HERE, gate

WIDE: dict[str, Any] = {"default": "allow"}
NARROW: dict[str, Any] = {
    "default": "ask",
    "shell": {"allow_patterns": ["echo *", "ironcurtain *"], "deny_patterns": ["sudo *"]},
    "filesystem": {"write": ["$CWD/**"]},
}
CLOSED: dict[str, Any] = {"default": "deny", "shell": {"allow_patterns": ["echo *"]}}
POLICY = """
version = 1
[approval.shell]
allow_patterns = ["echo *", "%s *"]
[approval.filesystem]
write = ["$CWD/**"]
"""
EVERY: tuple[dict[str, Any], ...] = (WIDE, NARROW, CLOSED, {})


class GateTests(SynchronousTestCase):
    """:class:`NarrowedGate`"""

    def test_what_the_agent_above_must_ask_is_asked(self) -> None:
        narrowed = NarrowedGate(gate(WIDE), [gate(NARROW)])
        verdict = narrowed.judged("touch a", HERE)
        self.assertIs(verdict.decision, Decision.ESCALATE)
        self.assertIn("the agent that started this one", verdict.reason)
        self.assertEqual(verdict.asking, ("approval.default",))
        self.assertIs(narrowed.judged("echo a", HERE).decision, Decision.ALLOW)

    def test_what_is_denied_above_is_denied_before_hooks_run(self) -> None:
        denied = NarrowedGate(gate(WIDE), [gate(NARROW)]).denied("sudo id", HERE)
        assert denied is not None
        self.assertEqual((denied.decision, denied.rule), (Decision.DENY, "approval.shell.deny_patterns"))
        self.assertIsNone(NarrowedGate(gate(WIDE), [gate(NARROW)]).denied("id", HERE))

    @given(
        st.sampled_from(EVERY),
        st.lists(st.sampled_from(EVERY), max_size=3),
        st.sampled_from(("echo a", "touch a", "sudo id", "curl https://example.org", "rm -r /", "", "$x", "cat a >b")),
    )
    def test_it_is_never_wider_than_any(self, own: dict[str, Any], above: list[dict[str, Any]], command: str) -> None:
        found = NarrowedGate(gate(own), list(map(gate, above))).judged(command, HERE)
        verdicts = [gate(tables).judged(command, HERE) for tables in (own, *above)]
        self.assertEqual(SEVERITY[found.decision], max(SEVERITY[each.decision] for each in verdicts))


class EscapeTests(SynchronousTestCase):
    """Commands after which an agent may not know of the one above."""

    def test_they_are_asked_each_time(self) -> None:
        for command in (
            "IRONCURTAIN_HOME=/tmp/x ironcurtain shell",
            "HOME=/tmp/x ironcurtain shell",
            "export HOME=/tmp/x",
            "export 'IRONCURTAIN_H'OME=/tmp/x",
            "unset IRONCURTAIN_HOME",
            f"env -u {VARIABLE} ironcurtain shell",
            f"{VARIABLE}= ssh host",
            "env -i ironcurtain shell",
            "setsid ironcurtain shell -c x",
            "ssh host ironcurtain shell -c x",
            "ironcurtain shell -c x & echo",
            "echo x; (ironcurtain shell -c x &)",
        ):
            verdict = gate({**WIDE, "shell": {"allow_patterns": ["ironcurtain *", "/*"]}}).judged(command, HERE)
            self.assertIs(verdict.decision, Decision.ESCALATE, command)
            self.assertIn("structural-agent", verdict.asking, command)

    def test_others_are_not(self) -> None:
        allowing = gate({"default": "allow", "shell": {"allow_patterns": ["ironcurtain *"]}})
        for command in ("ironcurtain shell -c x", "ironcurtain shell -c x && echo", "echo $HOME ${HOME}", "echo a & b"):
            self.assertNotIn("structural-agent", allowing.judged(command, HERE).asking, command)


class ProductTests(ProductCase):
    """An agent whose plan starts another."""

    def start(self, *options: str, inner: str, tokens: int = 10) -> subprocess.CompletedProcess[str]:
        """
        Start an agent that starts another one.

        :param options: of the second.
        :param inner: the command that this one wants to run.
        :param tokens: that it uses for each model request.
        """
        self.product.home.mkdir(mode=0o700)
        command = self.product.command("shell")[0]
        (self.product.home / "policy.toml").write_text(POLICY % command)
        (self.product.project / "wide.toml").write_text("version = 1\n[approval]\ndefault = 'allow'\n")
        (self.product.project / "child.toml").write_text(
            f'version = 1\n[[turns]]\ncommands = [{{ command = "{inner}", purpose = "x" }}]\n'
            f"usage = {{ input_tokens = {tokens} }}\n[[turns]]\ntext = 'So.'\nusage = {{ input_tokens = {tokens} }}\n"
        )
        self.product.environ["SHELL"] = "/bin/bash"
        words = f"{command} shell --backend scripted:child.toml {' '.join(options)} --json -c go </dev/null >out 2>err"
        model = self.product.script({"commands": [{"command": words, "purpose": "x"}]}, {"text": "Done."})
        return self.product.run("shell", "--backend", model, "-c", "start it")

    def child(self, *options: str, inner: str) -> tuple[str, list[dict[str, Any]]]:
        """
        Start an agent that starts another one, which does what it should: see :meth:`start`.

        :returns: what it printed, and what is in its audit log.
        """
        done = self.start(*options, inner=inner)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        logs = [path.read_text().splitlines() for path in self.product.home.glob("sessions/*/audit.jsonl")]
        calls = [record for log in logs for record in map(json.loads, log) if record["kind"] == "call"]
        return (self.product.project / "out").read_text(), [
            call for call in calls if call["arguments"]["command"] == inner
        ]

    def test_it_may_do_no_more(self) -> None:
        out, (call,) = self.child("--policy", "wide.toml", inner="touch made")
        self.assertEqual((call["decision"], call["rule"]), ("escalate", "approval.default"))
        self.assertIn("nobody to ask", out)
        self.assertFalse((self.product.project / "made").exists())

    def test_it_may_do_what_both_may(self) -> None:
        out, (call,) = self.child("--policy", "wide.toml", inner="echo inner")
        self.assertEqual(call["decision"], "allow", out)

    def test_it_may_use_no_more_than_is_left_above_and_that_counts_there(self) -> None:
        self.product.environ["IRONCURTAIN_SHELL_MAX_TOKENS_PER_SESSION"] = "50000"
        done = self.start(inner="echo inner", tokens=49_900)
        out = (self.product.project / "out").read_text()
        self.assertIn("the budget of the agent that started this one is used up", out)
        self.assertIn("after raising shell.max_tokens_per_session", done.stdout + done.stderr)
        self.assertNotIn("Done.", done.stdout)
        histories = [path.read_text().splitlines() for path in self.product.home.glob("sessions/*/history.jsonl")]
        turns = [turn for lines in histories for turn in map(json.loads, lines) if "usage" in turn]
        self.assertEqual([turn["usage"]["input_tokens"] for turn in turns], [49_900, 49_900])

    def test_not_endlessly_deep(self) -> None:
        self.product.environ |= {"UA_TRACE_ID": "ab", "UA_SPAN_ID": "cd", "UA_TRACE_DEPTH": str(DEEPEST_AGENT)}
        done = self.product.run("shell", "--backend", self.product.script({"text": "Done."}), "-c", "go")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn(f"over {DEEPEST_AGENT} agents", done.stderr)

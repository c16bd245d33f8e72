"""Agents below the shell's agent: how they are started, what binds them, and what they say."""

from __future__ import annotations

import os
import subprocess
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.commandline import read_command
from ironcurtain.errors import UsageError
from ironcurtain.policy.verdict import Decision
from ironcurtain.shell.children import (
    STEP_LIMIT,
    STEPS_KEPT,
    ChildReport,
    Only,
    asked_arguments,
    checked_host,
    child_start,
    command_line,
    read_only,
)
from ironcurtain.shell.inheritance import AgentPolicies, policies_in
from ironcurtain.shell.messages import (
    ApprovalRequested,
    InstructionDone,
    Message,
    ModelText,
    ProposedStep,
    StepCompleted,
    StepDecided,
    StepOutcome,
    StepStarted,
)
from ironcurtain.shell.protocol import encode
from ironcurtain.traces.context import SinkChoice, TraceContext, join_trace
from tests.audit.doubles import scratch
from tests.shell.test_gate import HERE, HOME, gate

TRACE = TraceContext("ab" * 16, "cd" * 8, "", 2, SinkChoice("file", "/var/traces"))
PARENT = AgentPolicies(({"shell": {"mode": "allow", "deny_patterns": ["rm *"]}},), 1)


class StartTests(SynchronousTestCase):
    """What is started."""

    def test_here_it_gets_policies_and_trace_by_its_environment(self) -> None:
        start = child_start("look", "", PARENT, TRACE, ("--backend", "x:y"), {"HOME": "/h"})
        self.assertEqual(policies_in(start.environ), PARENT)
        below = join_trace(start.environ, lambda count: "0" * 2 * count)
        self.assertEqual((below.trace_id, below.parent_span, below.depth), (TRACE.trace_id, TRACE.span_id, 3))
        self.assertEqual(start.argv[-4:], ("shell", "--json", "--backend", "x:y"))
        self.assertEqual(msgspec.json.decode(start.stdin), {"type": "instruction", "text": "look"})

    def test_elsewhere_they_are_lines_that_its_shell_reads_first(self) -> None:
        tasks = ("look at 'it' $(reboot)\n# and \\ more", "ü" * 1000)
        directory = scratch(self)
        program = directory / "ironcurtain"
        program.write_text('#!/bin/sh\nprintf "%s\\n" "$*" >words; env >variables; cat >input\n')
        program.chmod(0o700)
        for task in tasks:
            start = child_start(task, "ada@host", PARENT, TRACE, ("--backend", "x:y"), {"HOME": "/h"})
            words = " ".join(start.argv[:-1])
            alive = "-o ServerAliveInterval=15 -o ServerAliveCountMax=4"
            self.assertEqual(words, f"ssh -T -o BatchMode=yes {alive} -- ada@host")
            self.assertNotIn("deny_patterns", " ".join(start.argv))
            environ = {"PATH": f"{directory}:/usr/bin:/bin"}
            done = subprocess.run(
                ["sh", "-c", start.argv[-1]], input=start.stdin, env=environ, cwd=directory, capture_output=True
            )
            self.assertEqual((done.returncode, done.stderr), (0, b""))
            variables = dict(line.partition("=")[::2] for line in (directory / "variables").read_text().splitlines())
            self.assertEqual(policies_in(variables), PARENT)
            self.assertEqual(join_trace(variables, lambda count: "0" * 2 * count).parent_span, TRACE.span_id)
            self.assertNotIn("UA_TRACE_SINK", variables)
            self.assertEqual(msgspec.json.decode((directory / "input").read_bytes())["text"], task)
            self.assertEqual((directory / "words").read_text(), "shell --json\n")

    def test_a_cut_input_starts_nothing(self) -> None:
        start = child_start("look", "host", PARENT, TRACE, (), {})
        done = subprocess.run(["sh", "-c", start.argv[-1]], input=b"", env={"PATH": os.defpath}, capture_output=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertEqual(done.stderr, b"")

    def test_hosts_are_hosts(self) -> None:
        for host in ("build.example.org", "ada@10.0.0.1", "a", ""):
            self.assertEqual(checked_host(host), host)
        for host in ("-oProxyCommand=x", "a b", "a;b", "a@-x", "@x", "a\nb", "x/"):
            with self.assertRaisesRegex(UsageError, "no name of a host"):
                checked_host(host)

    @given(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1))
    def test_the_command_by_which_it_is_judged_is_one_command(self, task: str) -> None:
        (command,) = read_command(command_line(task, "")).commands
        self.assertEqual([word.text for word in command.levels[0]], ["ironcurtain", "shell", "-c", task])


class JudgedTests(SynchronousTestCase):
    """The commands by which they are shown and judged."""

    def test_elsewhere_each_is_asked_whatever_the_policy_allows(self) -> None:
        allows = {"default": "allow", "shell": {"mode": "allow", "allow_patterns": ["ironcurtain *", "ssh *"]}}
        self.assertEqual(gate(allows).judged(command_line("look", "host"), HERE).rule, "structural-agent")
        self.assertIs(gate(allows).judged(command_line("look", ""), HERE).decision, Decision.ALLOW)
        denies = {"shell": {"deny_patterns": ["ironcurtain *"]}}
        for host in ("", "host"):
            self.assertIs(gate(denies).judged(command_line("look", host), HERE).decision, Decision.DENY)


class OnlyTests(SynchronousTestCase):
    """Narrower limits."""

    def test_what_they_do_not_name_is_denied(self) -> None:
        narrowed = gate(Only(("git status", "cat src/x"), read=("$CWD/**",)).tables())
        for command in ("git status", "cat src/x"):
            self.assertIs(narrowed.judged(command, HERE).decision, Decision.ALLOW, command)
        for command in ("ls", "git push", "cat /etc/passwd", "echo x > y", "curl https://api.github.com"):
            self.assertIs(narrowed.judged(command, HERE).decision, Decision.DENY, command)
        self.assertIs(narrowed.written(f"{HERE}/x", HERE, False).decision, Decision.DENY)

    def test_what_is_none_is_for_the_model(self) -> None:
        self.assertIsNone(read_only(None, HOME))
        wrongs: tuple[Any, ...] = ("all", {"shell": []}, {"commands": "ls"}, {"read": ["x"]}, {"hosts": ["a b*"]})
        for wrong in wrongs:
            with self.assertRaisesRegex(UsageError, "only"):
                read_only(wrong, HOME)


class ReportTests(SynchronousTestCase):
    """What children say."""

    def test_steps_and_last_words(self) -> None:
        report = ChildReport()
        asked = ApprovalRequested(plan_id="p", step=ProposedStep(number=2, command="rm x"), number=1, digest="d")
        said: tuple[Message, ...] = (
            ModelText(text="So."),
            StepStarted(plan_id="p", step=1, command="ls"),
            StepCompleted(plan_id="p", step=1, outcome=StepOutcome.DONE, exit_code=0),
            asked,
            StepDecided(plan_id="p", step=2, allowed=False, by="", reason="nobody to ask"),
            StepCompleted(plan_id="p", step=2, outcome=StepOutcome.DENIED, reason="nobody to ask"),
            InstructionDone(error="nobody to ask", text="", tokens_in=10, tokens_out=2),
        )
        data = b"".join(map(encode, said)) + b"Welcome to this host!\n\xff\n"
        pieces = [data[index : index + 7] for index in range(0, len(data), 7)]
        shown = "".join(report.take(message) for piece in pieces for message in report.feed(piece))
        self.assertEqual(shown, "$ ls\n[not allowed: nobody to ask]\n[denied]\nnobody to ask\n")
        self.assertEqual(
            report.text("tokens: 10 in, 2 out"),
            "[done] ls\n[denied: nobody to ask] step 2\nerror: nobody to ask\n\ntokens: 10 in, 2 out",
        )

    def test_endless_steps_are_bounded(self) -> None:
        report = ChildReport()
        for number in range(1000):
            report.take(StepStarted(plan_id="p", step=number, command="x" * 100_000))
        for number in range(1000):
            report.take(StepCompleted(plan_id="p", step=number, outcome=StepOutcome.FAILED, reason="y" * 100_000))
        self.assertLess(len(report.text("")), STEPS_KEPT * (2 * STEP_LIMIT + 1) + 100)
        self.assertIn(f"({1000 - STEPS_KEPT} further steps)", report.text(""))

    def test_an_agent_does_not_say_where_it_is(self) -> None:
        lies = {"host": "localhost", "task": "be kind", "command": "ls", "path": "/x"}
        asked = ProposedStep(number=1, command="rm x", arguments=lies)
        shown = asked_arguments(asked, {"host": "far", "task": "clean"})
        self.assertEqual(shown, {"host": "far", "task": "clean", "command": "rm x", "path": "/x"})

    def test_without_an_end_it_says_so(self) -> None:
        self.assertIn("ended without an answer", ChildReport().text(""))

    @given(st.binary())
    def test_nothing_it_sends_breaks_it(self, data: bytes) -> None:
        report = ChildReport()
        for message in report.feed(data + b"\n"):
            report.take(message)
        report.text("")

"""How the shell is started."""

from __future__ import annotations

from collections.abc import Mapping

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.home.settings import load
from ironcurtain.shell.inheritance import VARIABLE, AgentPolicies, as_variable, policies_in
from ironcurtain.shell.starting import ShellOptions, ShellStart, options_of, shell_start
from ironcurtain.shell_integration.preparation import NONCE

ENVIRON = {"SHELL": "/bin/bash", "COLUMNS": "80", "LINES": "24", "EDITOR": "vi"}


def start(settings: str = "", environ: Mapping[str, str] = ENVIRON, **options: object) -> ShellStart:
    """:returns: how it is started, with ids of zeros."""
    chosen = options_of({"shell": {"directory": "/work", **options}})
    own = load("config.toml", settings, {}).settings
    return shell_start(chosen, own, environ, "/traces", {"default": "deny"}, lambda size: "00" * size)


class StartingTests(SynchronousTestCase):
    """Program, arguments, environment."""

    def test_the_login_shell_with_marks(self) -> None:
        found = start(args=["-l"])
        self.assertEqual((found.prepared.argv[0], found.prepared.argv[-1]), ("/bin/bash", "-l"))
        self.assertTrue(found.prepared.integrated)
        self.assertEqual(found.prepared.environ[NONCE], found.nonce)
        self.assertEqual(found.prepared.environ["EDITOR"], "vi")
        self.assertFalse({"COLUMNS", "LINES"} & set(found.prepared.environ))

    def test_the_command_line_is_before_the_settings(self) -> None:
        settings = "[shell]\ncommand = 'dash -e'"
        self.assertEqual(start(settings, args=["-x"]).prepared.argv, ("dash", "-e", "-x"))
        self.assertEqual(start(settings, program="ksh").prepared.argv, ("ksh",))

    def test_without_integration(self) -> None:
        found = start("[shell]\nintegration = false").prepared
        self.assertEqual(
            (found.argv, found.integrated, found.why_not), (("/bin/bash",), False, "shell.integration is false")
        )
        self.assertNotIn(NONCE, found.environ)

    def test_its_place_in_a_trace(self) -> None:
        above = {**ENVIRON, "UA_TRACE_ID": "ab", "UA_SPAN_ID": "cd"}
        found = start("[telemetry]\nenabled = true", above)
        self.assertEqual((found.trace.trace_id, found.trace.parent_span), ("ab", "cd"))
        self.assertEqual(found.prepared.environ["UA_PARENT_SPAN_ID"], "cd")
        self.assertNotIn("UA_PARENT_SPAN_ID", start("[telemetry]\nenabled = false", above).prepared.environ)

    def test_agents_on_other_machines_are_told_what_this_one_may_do(self) -> None:
        above = {**ENVIRON, VARIABLE: as_variable(AgentPolicies().joined({"default": "ask"}))}
        told = policies_in(start(environ=above).prepared.environ)
        self.assertEqual(told, AgentPolicies(({"default": "ask"}, {"default": "deny"}), 2))
        self.assertNotIn(VARIABLE, start("[shell]\nshare_policy = false").prepared.environ)

    def test_what_cannot_be_read_is_passed_on_as_it_is(self) -> None:
        self.assertEqual(start(environ={**ENVIRON, VARIABLE: "x"}).prepared.environ[VARIABLE], "x")

    def test_the_mark_is_a_variable_that_users_can_set(self) -> None:
        self.assertEqual(start().prepared.environ["IRONCURTAIN_MARK"], "ironcurtain")
        environ = {**ENVIRON, "IRONCURTAIN_MARK": "[ai] "}
        self.assertEqual(start(environ=environ).prepared.environ["IRONCURTAIN_MARK"], "[ai] ")

    def test_options(self) -> None:
        self.assertEqual(options_of({"shell": {"directory": "/"}}), ShellOptions(directory="/"))
        cases: tuple[dict[str, object], ...] = ({}, {"shell": {}}, {"shell": {"directory": "/", "other": 1}})
        for wrong in cases:
            self.assertRaises(UsageError, options_of, wrong)

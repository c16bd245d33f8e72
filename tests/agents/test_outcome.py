"""Why a turn has no answer, in words for the person."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.outcome import TAIL_LIMIT, TurnOutcome, failure
from ironcurtain.mitm_proxy.admission import response
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.providers.registry import KNOWN_PROVIDERS, OTHER

ENDED = TurnOutcome(1, b"", b"")


class FailureTests(SynchronousTestCase):
    """What the person is told."""

    def test_a_refusal_by_the_mitm_proxy_is_known_in_the_shape_of_every_provider(self) -> None:
        for provider in (*KNOWN_PROVIDERS.values(), OTHER):
            body = response(RequestRefusal(403, "endpoint", "no rule lets it pass"), provider).partition(b"\r\n\r\n")[2]
            self.assertEqual(failure("Agent", ENDED, body.decode(), status=403).kind, "refused")

    def test_a_provider_that_our_proxy_cannot_reach(self) -> None:
        self.assertEqual(failure("Agent", ENDED, "IronCurtain: no connection", status=502).kind, "overloaded")

    def test_the_end_of_the_output_is_shown_where_no_reason_is_known(self) -> None:
        errors = b"\n".join(b"line %d" % number for number in range(100))
        shown = str(failure("Agent", TurnOutcome(2, b"", errors)))
        self.assertIn("exit status 2", shown)
        self.assertIn("\n  line 99", shown)
        self.assertNotIn("line 50", shown)

    def test_the_exit_status_is_named_only_if_the_program_ended(self) -> None:
        self.assertNotIn("exit status", str(failure("Agent", TurnOutcome(None, b"", b""), "no")))

    def test_a_signal_is_named_unless_the_status_may_be_one_of_http(self) -> None:
        self.assertIn("(ended by SIGKILL)", str(failure("Agent", TurnOutcome(137, b"", b""))))
        for number in (144, 145, 147, 173):  # 400, 401, 403 and 429, modulo 256
            self.assertIn(f"(exit status {number})", str(failure("Agent", TurnOutcome(number, b"", b""))))

    def test_a_reason_of_several_lines_becomes_one(self) -> None:
        self.assertIn("It said: You are out. Try later.", str(failure("A", ENDED, "You are out.\n  Try later.\n")))

    def test_a_long_line_is_cut(self) -> None:
        shown = str(failure("Agent", TurnOutcome(2, b"", b"x" * 1_000_000)))
        self.assertEqual(shown.count("x" * 10), TAIL_LIMIT // 10)

    def test_without_an_error_output_what_was_printed_otherwise_is_shown(self) -> None:
        shown = str(failure("Agent", TurnOutcome(1, b'{"type": "x"}\nusage: agent\n', b"")))
        self.assertTrue(shown.endswith("\n  usage: agent"), shown)

    def test_known_reasons_stand_alone(self) -> None:
        shown = str(failure("Agent", TurnOutcome(1, b"", b"noise"), "Rate limit reached"))
        self.assertNotIn("noise", shown)
        self.assertIn("Rate limit reached", shown)

    def test_a_conversation_that_cannot_go_on_is_to_be_left(self) -> None:
        for reason in (
            "Please ensure that the number of function response parts is equal to the number of function call parts",
            "messages.2: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_1",
            "No tool output found for function call call_1.",
        ):
            failed = failure("Gemini CLI", TurnOutcome(None, b"", b""), reason, status=400)
            self.assertEqual(failed.kind, "unfinished")
            self.assertIn("/clear begins a new one", str(failed))

    def test_what_could_deceive_is_made_visible(self) -> None:
        shown = str(failure("Agent", TurnOutcome(1, b"", b"\x1b[2J\xe2\x80\xaegone"), "a\nb\x1b]0;title\x07"))
        self.assertTrue(shown.replace("\n", "").isprintable(), shown)

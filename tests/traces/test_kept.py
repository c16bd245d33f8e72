"""Feedback in kept traces, and copies of them that may be given away."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import NotFound
from ironcurtain.traces.kept import find_instruction, for_others, with_feedback
from ironcurtain.traces.span import Span, written
from tests.cli.cases import ProductCase
from tests.traces.test_trace import SPAN

AGENT = replace(SPAN, span_id="00", instruction="", actions=())
SECOND = replace(SPAN, span_id="b1", instruction="look at it", trace_id="beef")


def lines(*spans: Span, anonymize: bool = False) -> bytes:
    """:returns: a file of them."""
    return b"".join(written(span, str, anonymize=anonymize) for span in spans)


class FeedbackTests(SynchronousTestCase):
    def test_it_is_about_the_last_instruction_or_an_id(self) -> None:
        kept = lines(SPAN, SECOND, AGENT) + b"something else\n"
        for given_id, expected in (("", "b1"), ("a1b2c3", "a1b2c3"), (SPAN.trace_id, "a1b2c3"), ("b1", "b1")):
            self.assertEqual(find_instruction(kept, given_id).span_id, expected)
        for nothing, given_id in ((kept, "00"), (kept, "none"), (b"", ""), (lines(AGENT), "")):
            with self.assertRaises(NotFound):
                find_instruction(nothing, given_id)

    def test_it_is_kept_in_that_span_alone(self) -> None:
        kept = lines(SPAN, SECOND, AGENT) + b"something else\n"
        changed = with_feedback(kept, SECOND, "good: quick").splitlines()
        self.assertEqual(json.loads(changed[1])["feedback"], "good: quick")
        self.assertEqual([changed[0], *changed[2:]], [kept.splitlines()[0], *kept.splitlines()[2:]])


class CopyTests(SynchronousTestCase):
    def test_texts_and_names_are_left_out(self) -> None:
        rated = replace(SPAN, feedback="bad: it removed ~/Documents", host="anns-laptop", pid=4711)
        copy = for_others(lines(rated, SECOND) + b"secret line\n")
        for words in ("Documents", "anns-laptop", "4711", "git", "release", "look at", "secret line"):
            self.assertNotIn(words, copy.decode())
        self.assertEqual([json.loads(line)["feedback"] for line in copy.splitlines()], ["bad", ""])

    @given(st.text(), st.text(), st.booleans())
    def test_a_copy_of_a_copy_is_the_same(self, instruction: str, feedback: str, hashed: bool) -> None:
        span = replace(SPAN, instruction=instruction, feedback=feedback)
        copy = for_others(lines(span, anonymize=hashed))
        self.assertEqual(copy, for_others(lines(span, anonymize=hashed)))
        again: dict[str, Any] = json.loads(for_others(copy))
        self.assertEqual(again["instruction"], json.loads(copy)["instruction"])


class CommandTests(ProductCase):
    """The commands, over traces that a test wrote."""

    def setUp(self) -> None:
        super().setUp()
        self.product.home.mkdir(mode=0o700)
        self.kept = self.product.home / "traces.jsonl"
        self.kept.write_bytes(lines(SPAN, SECOND))
        self.kept.chmod(0o600)

    def test_nothing_is_written_without_a_yes_to_what_was_shown(self) -> None:
        target = self.product.person / "copy.jsonl"
        shown = self.product.run("traces", "export", str(target))
        self.assertEqual((shown.returncode, target.exists()), (77, False), shown.stderr)
        digest = shown.stderr.partition("digest ")[2].split()[0]
        self.assertEqual(self.product.run("traces", "export", "--yes", "0" * 16, str(target)).returncode, 1)
        self.assertEqual(self.product.run("feedback", "bad", "too slow").returncode, 0)
        stale = self.product.run("traces", "export", "--yes", digest, str(target))
        self.assertIn("look at them again", stale.stderr)
        self.assertFalse(target.exists())
        shown = self.product.run("traces", "export", str(target))
        digest = shown.stderr.partition("digest ")[2].split()[0]
        self.assertEqual(self.product.run("traces", "export", "--yes", digest, str(target)).returncode, 0)
        self.assertEqual(target.read_text(), shown.stdout)
        self.assertEqual(target.stat().st_mode & 0o777, 0o600)
        self.assertEqual(json.loads(target.read_text().splitlines()[1])["feedback"], "bad")

    def test_feedback_is_kept_on_this_machine_as_the_settings_say(self) -> None:
        done = self.product.run("feedback", "good", "mail me at ann@example.org", "--id", SPAN.span_id)
        self.assertIn("the note is not kept", done.stderr)
        self.assertNotIn("ann@", self.kept.read_text())
        self.product.environ["IRONCURTAIN_TELEMETRY_ANONYMIZE"] = "false"
        done = self.product.run("feedback", "bad", "it guessed", "--id", SPAN.trace_id)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(json.loads(self.kept.read_text().splitlines()[0])["feedback"], "bad: it guessed")
        self.assertEqual(self.product.run("feedback", "good", "--id", "nothing").returncode, 69)

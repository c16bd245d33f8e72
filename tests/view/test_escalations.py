from __future__ import annotations

import re
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.text.columns import unstyled
from ironcurtain.text.display import one_line
from ironcurtain.view.escalations import (
    LIST_LIMIT,
    LIST_ROWS,
    WHOLE_LIMIT,
    decided,
    denied_all,
    how_to_approve,
    listing,
    permission_lines,
    revoked,
    whole_lines,
    whole_question,
)
from tests.text.visible import invisible

VIEW = EscalationView(
    number=7,
    session=3,
    session_id="s",
    label="claude-code: mend it\x1b[2J",
    server="git",
    tool="push\n",
    arguments={"remote": "origin\n\x1b[2J", "force": True, "refs": ["main"]},
    digest="0123456789abcdef" * 4,
    rule="push",
    reason="it leaves this machine",
    policy_version="v1",
    raised_at=100.0,
    expires_at=400.0,
)


def shown(**changes: Any) -> list[str]:
    """:returns: an escalation in lines, 40 seconds after it was raised."""
    return listing([msgspec.structs.replace(VIEW, **changes)], 140.0).lines


class WordsTests(SynchronousTestCase):
    def test_all_that_it_would_do(self) -> None:
        self.assertEqual(
            shown(),
            [
                "7  git.push\\n  (4 min left)",
                "   remote = origin\\n\\x1b[2J (11 characters, below)",
                "   force = true",
                '   refs = ["main"]',
                "   remote: 11 characters",
                "     origin",
                "     \\x1b[2J",
                "   why: it leaves this machine (rule push)",
                "   cannot be undone: its effects are not known",
                "   session 3, claude-code: mend it\\x1b[2J; digest 0123456789abcdef",
            ],
        )

    def test_what_became_of_it(self) -> None:
        self.assertEqual(shown(outcome="denied", by="ada\x07")[0], "7  git.push\\n  (denied by ada\\x07)")
        self.assertEqual(shown(outcome="expired")[0], "7  git.push\\n  (expired, nobody decided in time)")
        self.assertEqual(
            decided(msgspec.structs.replace(VIEW, outcome="approved")), "Approved: git.push\\n in session 3."
        )

    def test_for_what_an_approval_can_be_kept(self) -> None:
        scope = "git.push in /a\x1b and below"
        self.assertIn("   an approval can be kept for: git.push in /a\\x1b and below", shown(scope=scope))
        kept = msgspec.structs.replace(VIEW, outcome="approved", scope=scope, kept=True)
        self.assertTrue(decided(kept).endswith("From now on nobody is asked about: git.push in /a\\x1b and below."))
        self.assertEqual([line for line in whole_lines(kept, 140.0) if "can be kept" in line], [])

    def test_what_is_permitted(self) -> None:
        view = PermissionView(
            number=7, session=3, session_id="s", label="claude-code: mend it\x1b[2J", server="git", tool="push",
            scope="git.push in /a\x1b and below", by="ada\x07", since=100.0, used=1,
        )  # fmt: skip
        self.assertEqual(
            list(permission_lines(view, 140.0)),
            [
                "7  git.push in /a\\x1b and below",
                "   kept by ada\\x07 40 s ago, used once",
                "   session 3, claude-code: mend it\\x1b[2J",
            ],
        )
        self.assertEqual(
            revoked(view), "Revoked: you are asked again about git.push in /a\\x1b and below in session 3."
        )

    def test_equal_calls_are_counted(self) -> None:
        self.assertEqual(shown(calls=3)[0], "7  git.push\\n  (4 min left, 3 equal calls)")
        approved = msgspec.structs.replace(VIEW, outcome="approved", calls=3)
        self.assertEqual(decided(approved), "Approved: git.push\\n in session 3, 3 equal calls.")

    def test_whose_approval_it_has_and_needs(self) -> None:
        self.assertFalse([line for line in shown() if "people" in line])
        self.assertIn("   needs the approvals of 2 people", shown(approvals=2))
        named = shown(approvals=2, approved_by=("local:ada\x1b[2J",))
        self.assertIn("   approved by local:ada\\x1b[2J; needs another person's approval, too", named)
        waiting = msgspec.structs.replace(VIEW, approvals=2, approved_by=("ada",))
        self.assertEqual(decided(waiting), "Escalation 7: approved by ada; needs another person's approval, too.")
        over = shown(approvals=2, approved_by=("ada", "bob"), outcome="approved", by="ada and bob")
        self.assertTrue(over[0].endswith("(approved by ada and bob)"), over[0])
        self.assertFalse([line for line in over if "needs" in line])

    def test_what_denying_all_did(self) -> None:
        self.assertEqual((denied_all([3, 4]), denied_all([])), ("Denied: 3, 4.", "No call waits for a decision."))


TEXTS = st.text(max_size=30) | st.text("a\n\x1b\u202e", max_size=3000)


class ListingTests(SynchronousTestCase):
    """What a list shows whole, and what it says of the rest."""

    def views(self, *texts: str, **changes: Any) -> list[EscalationView]:
        """:returns: escalations from 1 on, each with a text as its argument."""
        return [
            msgspec.structs.replace(VIEW, number=number, arguments={"text": text}, **changes)
            for number, text in enumerate(texts, 1)
        ]

    def test_a_long_one_is_cut_and_says_how_to_see_it(self) -> None:
        listed = listing(self.views("x" * 5000, "short"), 140.0)
        self.assertEqual([view.number for view in listed.whole], [2])
        self.assertIn("… (+4800 characters)", listed.lines[1])
        self.assertIn("   not shown completely, 5,038 characters: see 'ironcurtain escalations show 1'", listed.lines)

    def test_whatever_makes_it_long(self) -> None:
        for changes in (
            {"reason": "x" * 5000},
            {"scope": "x" * 5000},
            {"tool": "x" * 5000},
            {"arguments": {"x" * 5000: 1}},
            {"arguments": {f"a{n}": n for n in range(1000)}},
            {"arguments": {"text": "\u202e" * 1500}},
        ):
            view = msgspec.structs.replace(VIEW, **changes)
            listed = listing([view], 140.0)
            self.assertEqual(listed.whole, [], changes)
            self.assertLess(sum(map(len, listed.lines)), WHOLE_LIMIT + 500)
            self.assertIn("'ironcurtain escalations show 7'", listed.lines[-1])

    def test_a_text_of_many_lines_is_a_block_that_cannot_look_like_more(self) -> None:
        text = "first\n   force = true\n" + "x" * 200
        lines = whole_lines(msgspec.structs.replace(VIEW, arguments={"text": text}), 140.0)
        self.assertEqual(lines[2:5], ["   text: 222 characters", "     first", "        force = true"])
        self.assertEqual(lines[5], f"     {'x' * 200}")

    def test_change_of_a_file_has_the_styles_of_a_change(self) -> None:
        view = msgspec.structs.replace(VIEW, diff="--- /a\n+++ /a\n@@ -1 +1 @@\n-old\n+new")
        styles = {unstyled(line).strip(): line[-1].style for line in whole_question(view, 140.0)}
        self.assertEqual((styles["-old"], styles["+new"]), ("old", "new"))

    def test_what_was_decided_is_not_to_be_approved(self) -> None:
        self.assertEqual(listing(self.views("a", outcome="denied"), 140.0).whole, [])

    def test_who_read_to_the_end_knows_the_digest(self) -> None:
        self.assertEqual(how_to_approve(VIEW), f"to approve exactly this: ironcurtain approve 7 --digest {VIEW.digest}")

    def test_a_thousand_are_bounded(self) -> None:
        views = self.views(*["x" * 3000] * 1000)
        listed = listing(views, 140.0)
        self.assertLess(sum(map(len, listed.lines)), 2 * LIST_LIMIT)
        self.assertEqual(listed.lines[-1], f"and {1000 - LIST_ROWS} more: --json shows them all")
        self.assertLess(len(listed.whole), 30)

    @given(st.lists(TEXTS, max_size=5), TEXTS, TEXTS)
    def test_what_counts_as_whole_is_whole_and_safe(self, texts: list[str], reason: str, tool: str) -> None:
        views = self.views(*texts, reason=reason, tool=tool)
        listed = listing(views, 140.0)
        text = "\n".join(listed.lines)
        self.assertEqual(invisible(text), [])
        for view in listed.whole:
            self.assertIn("\n".join(whole_lines(view, 140.0)), text)
            value = view.arguments["text"]
            for row in value.split("\n"):  # as lines of its own, or escaped in one
                self.assertIn(one_line(row), text)
        missing = [str(view.number) for view in views if view not in listed.whole]
        self.assertEqual(re.findall("escalations show ([0-9]+)' shows", text), missing)

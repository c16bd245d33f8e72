from __future__ import annotations

from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.operations.model import EscalationView, PermissionView
from ironcurtain.operations.words import decided, escalation_lines, permission_lines, revoked

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
    return list(escalation_lines(msgspec.structs.replace(VIEW, **changes), 140.0))


class WordsTests(SynchronousTestCase):
    def test_all_that_it_would_do(self) -> None:
        self.assertEqual(
            shown(),
            [
                "7  git.push\\n  (4 min left)",
                "   remote = origin\\n\\x1b[2J",
                "   force = true",
                '   refs = ["main"]',
                "   why: it leaves this machine [push]",
                "   session 3, claude-code: mend it\\x1b[2J; digest 0123456789abcdef",
            ],
        )

    def test_what_became_of_it(self) -> None:
        self.assertEqual(shown(outcome="denied", by="ada\x07")[0], "7  git.push\\n  (denied by ada\\x07)")
        self.assertEqual(shown(outcome="expired")[0], "7  git.push\\n  (expired)")
        self.assertEqual(
            decided(msgspec.structs.replace(VIEW, outcome="approved")), "Approved: git.push\\n in session 3."
        )

    def test_for_what_an_approval_can_be_kept(self) -> None:
        scope = "git.push in /a\x1b and below"
        self.assertIn("   an approval can be kept for: git.push in /a\\x1b and below", shown(scope=scope))
        kept = msgspec.structs.replace(VIEW, outcome="approved", scope=scope, kept=True)
        self.assertTrue(decided(kept).endswith("From now on nobody is asked about: git.push in /a\\x1b and below."))
        self.assertEqual([line for line in escalation_lines(kept, 140.0) if "can be kept" in line], [])

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
            revoked(view), "Revoked: people are asked again about git.push in /a\\x1b and below in session 3."
        )

    def test_a_long_argument_is_cut_and_says_so(self) -> None:
        self.assertIn("… (+3000 characters)", shown(arguments={"text": "x" * 5000})[1])

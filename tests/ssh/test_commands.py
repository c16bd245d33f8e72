from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.ssh.commands import Command, parse


class ParseTests(SynchronousTestCase):
    def test_every_command(self) -> None:
        for text, wanted in (
            (b"console", Command("console")),
            (b"attach", Command("attach", session="last")),
            (b"observe", Command("observe", session="last")),
            (b"attach 3", Command("attach", session="3")),
            (b"observe '3'", Command("observe", session="3")),
            (b"sessions", Command("sessions")),
            (b"sessions --json", Command("sessions", json=True)),
            (b"escalations --all --json", Command("escalations", json=True, everything=True)),
            (b"approve 7", Command("approve", number=7)),
            (b"approve --digest ab 7", Command("approve", number=7, digest="ab")),
            (b"approve 7 --digest=ab --json", Command("approve", number=7, digest="ab", json=True)),
            (b"deny 7", Command("deny", number=7)),
            (b"deny all", Command("deny", everything=True)),
            (b"answer 7 name='Ada L' age=3", Command("answer", number=7, values=("name=Ada L", "age=3"))),
            (b"answer 7 --cancel --json", Command("answer", number=7, cancel=True, json=True)),
            (b"deny all --session 3 --json", Command("deny", session="3", json=True, everything=True)),
            (b"escalations show 7", Command("show", number=7)),
            (b"escalations show 7 --json", Command("show", number=7, json=True)),
            (b"stop 3", Command("stop", session="3")),
            (b"approve 7 --keep", Command("approve", number=7, keep=True)),
            (b"permissions --json", Command("permissions", json=True)),
            (b"revoke 7", Command("revoke", number=7)),
            (b"logs last", Command("logs", session="last")),
            (b"report last --json", Command("report", session="last", json=True)),
            (b"audit --json 2", Command("audit", session="2", json=True)),
        ):
            self.assertEqual(parse(text), wanted)

    def test_what_makes_no_sense(self) -> None:
        for text in (
            b"",
            b"  ",
            b"dance",
            b"sessions 1",
            b"attach 1 2",
            b"attach --json 1",
            b"approve",
            b"approve all",
            b"approve -1",
            b"approve " + b"9" * 19,
            b"approve 1 --digest",
            b"deny 1 --digest ab",
            b"deny 1 --keep",
            b"deny 1 --session 3",
            b"deny all --session",
            b"deny all 1",
            b"answer",
            b"answer name=Ada",
            b"answer 1 --keep",
            b"escalations show",
            b"escalations show x",
            b"escalations 7",
            b"stop",
            b"approve 1 --keep=yes",
            b"revoke",
            b"permissions 1",
            b"sessions --all",
            b"sessions --json=yes",
            b"logs 'x",
            b"logs \xff",
            b"logs " + b"x" * 5000,
        ):
            self.assertRaises(UsageError, parse, text)

    @given(st.binary(max_size=60))
    def test_anything_is_understood_or_refused(self, text: bytes) -> None:
        for whole in (text, b"approve " + text, b"logs " + text):
            try:
                parse(whole)
            except UsageError as e:
                self.assertLess(len(str(e)), 400)

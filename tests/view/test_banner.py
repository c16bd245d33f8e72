from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.session.events import EscalationRaised
from ironcurtain.text.columns import cells, unstyled
from ironcurtain.text.display import one_line, paragraphs
from ironcurtain.view.banner import PART_LINES, SCOPE_LINES, banner
from ironcurtain.view.look import ASCII, UNICODE
from tests.view.strategies import arguments, harmful, nasty


def pending(**changes: Any) -> EscalationRaised:
    """:returns: an escalation with some fields of its own."""
    fields: dict[str, Any] = {
        "number": 3,
        "call_id": "call",
        "raised_at": 1000.0,
        "server": "filesystem",
        "tool": "write_file",
        "arguments": {"path": "/etc/motd"},
        "digest": "d",
        "rule": "outside",
        "reason": "outside the workspace",
        "expires_at": 1300.0,
    }
    return EscalationRaised(**{**fields, **changes})


LOOK_FIRST = "+ Type /show 3, then /approve 3 or /deny 3 within 4:59"


def lines_of(width: int = 79, **changes: Any) -> list[str]:
    """:returns: the banner of an escalation."""
    return [unstyled(line) for line in banner(pending(**changes), 1001.0, width, ASCII).lines]


def is_in(row: str, text: str) -> bool:
    """Whether a line of a value is in a text without blanks, escaped in one way or the other."""
    return any("".join(way(row).split()) in text for way in (one_line, paragraphs))


class BannerTests(SynchronousTestCase):
    def test_a_change_of_a_file_that_is_there_is_a_diff(self) -> None:
        diff = "--- /etc/motd\n+++ /etc/motd\n@@ -1,1 +1,9 @@\n-old\x1b\n" + "+new\n" * 9
        shown = lines_of(diff=diff)
        at = next(number for number, line in enumerate(shown) if "changes what is there now:" in line)
        self.assertEqual(shown[at + 3], "|   -old\\x1b")
        self.assertEqual(shown[at + 7], "|   … (6 more lines)")

    def test_it_says_what_and_why_and_what_to_type(self) -> None:
        self.assertEqual(
            [unstyled(line) for line in banner(pending(), 1001.0, 79, ASCII).lines],
            [
                "+ Escalation 3 asks: filesystem.write_file",
                "| path = /etc/motd",
                "| ",
                "| why: outside the workspace (rule outside)",
                "| cannot be undone: its effects are not known",
                "+ Type /approve 3 or /deny 3 within 4:59",
            ],
        )

    def test_for_what_an_approval_could_be_kept(self) -> None:
        lines = [
            unstyled(line)
            for line in banner(pending(scope="filesystem.write_file in /etc\x1b"), 1001.0, 79, ASCII).lines
        ]
        self.assertEqual(lines[-2], "| /approve 3 keep: stop asking about filesystem.write_file in /etc\\x1b")
        lines = [
            unstyled(line)
            for line in banner(pending(scope="filesystem.write_file in /" + "x/" * 900), 0, 79, ASCII).lines
        ]
        self.assertEqual(lines[-2], "| /approve 3 keep: /show 3 says for what")

    def test_what_it_has_no_room_for_is_to_be_looked_at_first(self) -> None:
        for changes in (
            {"arguments": {"content": "".join(f"{n}\n" for n in range(100))}},
            {"arguments": {f"a{n}": n for n in range(20)}},
            {"arguments": {"a": "x" * 9000}},
            {"arguments": {}, "omitted": 20_000},
            {"reason": "because " * 60},
            {"rule": "r" * 300},
            {"tool": "t" * 80},
        ):
            asked = pending(**changes)
            self.assertFalse(banner(asked, 0, 79, ASCII).whole, changes)
            self.assertEqual(unstyled(banner(asked, 1001.0, 79, ASCII).lines[-1]), LOOK_FIRST)
        self.assertIn("| arguments of 20,000 bytes, too long to show here", lines_of(omitted=20_000))
        self.assertTrue(banner(pending(), 0, 79, ASCII).whole)
        long = pending(scope="filesystem.write_file in /" + "x/" * 900)
        self.assertEqual(banner(long, 0, 79, ASCII)[1:], (True, False))

    def test_arguments_are_cut_and_what_is_left_out_is_counted(self) -> None:
        lines = lines_of(arguments={"path": "/x", "content": "\n".join(map(str, range(1000)))})
        self.assertEqual(len(lines), PART_LINES + 5)
        self.assertEqual((lines[3], lines[PART_LINES]), ("| content: 3,889 characters", "| and 998 more lines"))

    def test_call_that_has_to_be_opened_fits_a_small_screen(self) -> None:
        content = "\n".join(map(str, range(1000)))
        asked = pending(
            arguments={"path": "/x", "content": content},
            diff=f"--- /x\n+++ /x\n{content}",
            reason="because " * 60,
            scope="filesystem.write_file in /" + "x/" * 90,
        )
        lines = banner(asked, 0, 79, ASCII).lines
        self.assertLessEqual(len(lines), 20)  # of 24, with a line above and below, status and input
        self.assertNotIn("keep", "".join(map(unstyled, lines)))

    def test_equal_calls_are_counted(self) -> None:
        self.assertIn("| 4 equal calls", lines_of(calls=4))

    @given(arguments, nasty, st.integers(30, 200))
    def test_what_counts_as_shown_is_there(self, values: dict[str, Any], reason: str, width: int) -> None:
        asked = pending(arguments=values, reason=reason)
        if banner(asked, 0, width, UNICODE).whole:
            text = "".join("".join(line[1:].split()) for line in lines_of(width, arguments=values, reason=reason))
            for value in [*values.values(), *values]:
                for row in value.split("\n") if isinstance(value, str) else ():
                    self.assertTrue(is_in(row, text), (row, text))

    def test_what_to_type_stands_out(self) -> None:
        keys = [span.text for line in banner(pending(), 0, 79, UNICODE).lines for span in line if span.style == "key"]
        self.assertEqual(keys, ["/approve 3", "/deny 3"])

    @given(arguments, nasty.map(lambda text: text * 50), nasty, st.integers(20, 200))
    def test_it_is_bounded_and_escaped(self, values: dict[str, Any], reason: str, server: str, width: int) -> None:
        asked = pending(arguments=values, reason=reason, server=server, tool=reason, rule=reason, scope=reason)
        lines = [unstyled(line) for line in banner(asked, 0, width, UNICODE).lines]
        self.assertLessEqual(len(lines), 21 + SCOPE_LINES)
        self.assertEqual(harmful("".join(lines)), [])

    @given(arguments)
    def test_no_line_of_the_call_begins_like_ours(self, values: dict[str, Any]) -> None:
        lines = [unstyled(line) for line in banner(pending(arguments=values), 0, 79, UNICODE).lines]
        self.assertTrue(all(line.startswith("│") for line in lines[1:-1]))

    @given(st.dictionaries(st.text("abc", max_size=50), st.text("ab\n漢 ", max_size=300), max_size=9))
    def test_it_fits_the_terminal(self, values: dict[str, Any]) -> None:
        lines = [unstyled(line) for line in banner(pending(arguments=values), 0, 79, UNICODE).lines]
        self.assertTrue(all(cells(line) <= 79 for line in lines), lines)

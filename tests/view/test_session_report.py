from __future__ import annotations

import re
from datetime import UTC, datetime
from html.parser import HTMLParser
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.report_page import as_html
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.session.model import Turn, Usage
from ironcurtain.session.summary import SessionSummary, summarize
from ironcurtain.view.session_report import ROWS_SHOWN, as_text
from tests.text.visible import invisible

HOSTILE = "<script>alert(1)</script>\"'&<img src=https://evil.example/x onerror=x>\x1b[2J\u202e\n"

USAGE = Usage(input_tokens=10, output_tokens=5, cost=0.25)

DESCRIPTION = {"number": 3, "id": "s", "kind": "builtin", "label": "sums", "started_at": "2026-01-01T00:00:00.000Z"}


def record(kind: str, **members: Any) -> dict[str, Any]:
    return {"sequence": 1, "kind": kind, "time": "2026-01-01T00:00:01.000Z", **members}


def turn(message: str, usage: Usage = USAGE) -> Turn:
    return Turn(number=1, message=message, answer="4", usage=usage, timestamp="2026-01-01T00:00:00.000Z")


RECORDS = [
    record("call", callId="c1", server="files", tool="read", decision="allow", rule="inside"),
    record("outcome", callId="c1", status="success"),
    record("call", callId="c2", server="files", tool="read", decision="escalate", rule="read-home"),
    record("decision", callId="c2", number=1, outcome="approved", by="local:ana"),
    record("outcome", callId="c2", status="success"),
    record("call", callId="c3", server="files", tool="read", decision="escalate", rule="read-home"),
    record("decision", callId="c3", number=0, outcome="approved", by="local:ana", permission=1),
    record("outcome", callId="c3", status="error"),
    record("call", callId="c4", server="git", tool="push", decision="deny", rule="no-push"),
    record("outcome", callId="c4", status="denied"),
    record("model-request", decision="deny", rule="unknown-host"),
    record("package", registry="npm", name="left-pad", release="1.3.0", digest="sha512-x"),
    record("package", registry="npm", name="left-pad", release="1.3.0", digest="sha512-x"),
    record("package-request", registry="npm", decision="deny", name="new", rule="package-too-young"),
    record("end", reason="done"),
]


def summary(label: str = "sums") -> SessionSummary:
    return summarize({**DESCRIPTION, "label": label}, RECORDS, [turn("2 + 2?")], True, ["All is as it was."])


class UsedTests(SynchronousTestCase):
    def test_session_was_used_last_when_its_newest_record_says(self) -> None:
        self.assertEqual(summary().used, datetime(2026, 1, 1, 0, 0, 1, tzinfo=UTC).timestamp())
        for time in ("", "soon", "0001-01-01T00:00:00+14:00", "\x1b[2J"):
            self.assertEqual(summarize({"started_at": time}, [], [], True, ()).used, 0.0)


class Reader(HTMLParser):
    """Collects the tags, attributes and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        """Note text."""
        self.text += data


def read(page: str) -> Reader:
    reader = Reader()
    reader.feed(page)
    reader.close()
    return reader


class SummaryTests(SynchronousTestCase):
    def test_what_was_asked_decided_called_and_refused(self) -> None:
        found = summary()
        self.assertEqual((found.number, found.ended, found.asked[0].message), (3, RECORDS[-1]["time"], "2 + 2?"))
        first, kept = found.decided
        self.assertEqual(
            (first.outcome, first.by, first.tool, first.rule), ("approved", "local:ana", "read", "read-home")
        )
        self.assertEqual((kept.outcome, kept.permission), ("approved", 1))
        files, git = found.calls
        self.assertEqual(files.verdicts, {"allow": 1, "escalate": 2})
        self.assertEqual(files.outcomes, {"success": 2, "error": 1})
        self.assertEqual((git.tool, git.outcomes), ("push", {"denied": 1}))
        refused = {each.rule: each.count for each in found.refused}
        self.assertEqual(refused, {"no-push": 1, "unknown-host": 1, "package-too-young": 1})
        self.assertEqual([(each.registry, each.releases) for each in found.packages], [("npm", ("left-pad 1.3.0",))])
        self.assertIn("    npm  left-pad 1.3.0", list(as_text([found])))
        self.assertEqual((found.tokens_in, found.tokens_out, found.cost, found.model_requests), (10, 5, 0.25, 1))

    def test_tokens_of_agents_in_containers_and_unknown_cost(self) -> None:
        usage = {"input": 7, "output": 2, "cacheRead": 1, "cacheWrite": 0}
        untracked = turn("x", Usage(token_tracking_available=False))
        found = summarize(DESCRIPTION, [record("model-response", usage=usage)], [untracked], True, [])
        self.assertEqual((found.tokens_in, found.tokens_out, found.cost), (8, 2, None))
        self.assertIn("  cost: unknown", list(as_text([found])))
        found = summarize(DESCRIPTION, [], [untracked], True, [])
        self.assertEqual((found.tokens_in, found.tokens_out), (None, None))
        self.assertIn("  tokens: unknown", list(as_text([found])))

    @settings(deadline=None)
    @given(
        st.lists(
            st.dictionaries(
                st.sampled_from(("kind", "callId", "server", "decision", "rule", "usage", "permission", "status")),
                st.sampled_from(("call", "decision", "outcome", "model-response", "deny"))
                | st.integers()
                | st.just(10**5000)
                | st.none()
                | st.dictionaries(st.sampled_from(("input", "output")), st.text() | st.integers()),
            )
        )
    )
    def test_records_of_any_kind_are_reported(self, records: list[dict[str, Any]]) -> None:
        found = summarize({}, records, [], False, [])
        list(as_text([found]))

    def test_numbers_that_cannot_be_written_are_none(self) -> None:
        huge = 10**5000
        usage = {"input": huge, "output": 2}
        records = [record("model-response", usage=usage), record("call", callId=huge, rule=[huge])]
        found = summarize({"number": huge, "label": huge}, records, [turn("x")], True, [])
        self.assertEqual((found.number, found.label, found.tokens_in, found.tokens_out), (0, "", 0, 2))
        far = HostNumber("build", 3)
        self.assertIs(summarize({"number": far}, [], [], True, []).number, far)
        found = summarize({}, [], [turn("x", Usage(input_tokens=huge, output_tokens=3))], True, [])
        self.assertEqual((found.tokens_in, found.tokens_out), (0, 3))
        list(as_html([found]))


class PageTests(SynchronousTestCase):
    def hostile(self, text: str) -> SessionSummary:
        records = [
            record("call", callId=text, server=text, tool=text, decision="escalate", rule=text),
            record("decision", callId=text, outcome=text, by=text),
            record("outcome", callId=text, status=text),
            record("call", callId="c2", server=text, tool=text, decision="deny", rule=text),
            {**record("end", reason=text), "time": text},
        ]
        said = {"number": 1, "id": text, "kind": text, "label": text, "started_at": text}
        return summarize(said, records, [turn(text)], False, [text])

    def assertHarmless(self, text: str) -> None:
        session = self.hostile(text)
        page = "".join(as_html([session]))
        plain = read("".join(as_html([self.hostile("plain")])))
        found = read(page)
        self.assertEqual((found.tags, found.attributes), (plain.tags, plain.attributes))
        self.assertEqual(invisible(page.replace("\n", "")), [])
        for line in as_text([session]):
            self.assertEqual(invisible(line), [])

    def test_hostile_names_are_text(self) -> None:
        self.assertHarmless(HOSTILE)
        page = "".join(as_html([self.hostile(HOSTILE)]))
        self.assertNotIn("<script", page)
        self.assertIn("&lt;script&gt;", page)

    @settings(deadline=None, max_examples=40)
    @given(st.text(max_size=40) | st.text("<>\"'&/!-abc \x1b\u202e", max_size=40))
    def test_any_text_is_harmless(self, text: str) -> None:
        self.assertHarmless(text)

    def test_the_page_refers_to_nothing_else(self) -> None:
        page = "".join(as_html([summary()]))
        self.assertEqual(re.findall(r"https?:|\ssrc=|\shref=|url\(|@import", page), [])
        self.assertFalse(read(page).tags & {"script", "link", "img", "iframe", "object", "form", "a"})
        self.assertIn("default-src 'none'", page)

    def test_long_lists_are_cut_and_said_so(self) -> None:
        many = [turn(f"message {number}") for number in range(ROWS_SHOWN + 5)]
        found = summarize(DESCRIPTION, [], many, True, [])
        self.assertIn("and 5 more", "".join(as_html([found])))
        self.assertIn("    and 5 more", list(as_text([found])))

    def test_the_text_names_logs_that_are_not_intact(self) -> None:
        lines = list(as_text([summary(), self.hostile("x")]))
        self.assertEqual(lines[-1], "2 sessions, 1 with a log that is not intact")
        self.assertIn("  audit log: intact. All is as it was.", lines)
        self.assertIn("    files.read  1 allow, 2 escalate  1 error, 2 success", lines)

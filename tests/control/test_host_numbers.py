"""Tests for what another host's processes say: numbers and times that mean the same here."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.control.host_numbers import AGREEMENT_SECONDS, DEPTH_LIMIT, LIST_LIMIT, of_host, seconds_ahead
from ironcurtain.errors import ProtocolViolation
from ironcurtain.home.host_numbers import HostNumber
from ironcurtain.operations.model import EscalationView
from ironcurtain.session.events import EscalationRaised, Stamped
from ironcurtain.session.model import AuditHead, SessionInfo
from ironcurtain.text.display import shown_only

HOUR = 3600.0
NOW = 784111777.0
DATE = b"Sun, 06 Nov 1994 08:49:37 GMT"
"""The same moment (RFC 9110 section 5.6.7)."""


def escalation(**more: Any) -> EscalationView:
    texts = ("session_id", "label", "server", "tool", "rule", "reason", "policy_version")
    known = {"number": 1, "session": 2, "arguments": {}, "raised_at": NOW, "expires_at": NOW + 300, "digest": "d" * 64}
    return msgspec.convert({name: "" for name in texts} | known | more, EscalationView)


def session(started_at: str) -> SessionInfo:
    return SessionInfo(id="", number=3, kind="", label="", state="", started_at=started_at, workspace="")


class OfHostTests(SynchronousTestCase):
    def test_numbers_are_those_of_the_host_and_times_those_of_the_clock_here(self) -> None:
        (found,) = of_host("build", [escalation(raised_at=NOW + HOUR, expires_at=NOW + HOUR + 300)], HOUR)
        self.assertEqual(found, escalation(number=HostNumber("build", 1), session=HostNumber("build", 2)))
        began = of_host("build", session("1994-11-06T09:49:37.500Z"), HOUR)
        self.assertEqual((began.number, began.started_at), (HostNumber("build", 3), "1994-11-06T08:49:37.500Z"))

    def test_event_and_what_it_tells_are_moved(self) -> None:
        event = EscalationRaised(1, "", "", "", {}, "", "", "", NOW, NOW)
        found = of_host("build", Stamped(9, NOW, event), -HOUR)
        self.assertEqual((found.sequence, found.time), (9, NOW + HOUR))
        assert isinstance(found.event, EscalationRaised)
        self.assertEqual((found.event.raised_at, found.event.number), (NOW + HOUR, HostNumber("build", 1)))

    def test_times_that_are_none_are_refused(self) -> None:
        for time in (-1.0, 1e11, 1e308):
            self.assertRaises(ProtocolViolation, of_host, "build", [escalation(expires_at=time)])
        for text in ("", "yesterday", "0001-01-01T00:00:00", "9999-12-31T23:59:59Z", "2026-13-01T00:00:00Z", "\x1b[2J"):
            self.assertRaises(ProtocolViolation, of_host, "build", session(text))

    def test_what_nobody_can_show_or_calculate_with_is_refused(self) -> None:
        deep: Any = []
        for _ in range(DEPTH_LIMIT):
            deep = [deep]
        for wrong in (
            {"digest": "\x1b]0;x\x07"},
            {"digest": "d" * 64 + "\n"},
            {"outcome": "\x1b[31mapproved"},
            {"arguments": {"deep": deep}},
            {"calls": 10**400},
            {"arguments": {"number": -(10**400)}},
        ):
            self.assertRaises(ProtocolViolation, of_host, "build", [escalation(**wrong)])

    def test_list_of_any_length_is_refused(self) -> None:
        self.assertRaises(ProtocolViolation, of_host, "build", [escalation()] * (LIST_LIMIT + 1))

    @given(st.text(max_size=40))
    def test_texts_about_a_session_can_be_shown_on_a_line(self, text: str) -> None:
        told = msgspec.structs.replace(
            session("1994-11-06T09:49:37Z"),
            state=text,
            label=text,
            unsandboxed=(text,),
            servers_down={text: text},
            head=AuditHead(sequence=1, digest=text),
        )
        found = of_host("build", told)
        assert found.head is not None
        shown = (
            found.state,
            found.label,
            found.head.digest,
            *found.unsandboxed,
            *found.servers_down,
            *found.servers_down.values(),
        )
        decided = of_host("build", escalation(by=text, approved_by=(text,)))
        for each in (*shown, decided.by, *decided.approved_by):
            self.assertEqual(shown_only(each).replace("\n", ""), each)

    def test_unset_time_stays_unset(self) -> None:
        self.assertEqual(of_host("build", escalation(), HOUR).closed_at, 0.0)


class DateTests(SynchronousTestCase):
    def test_clock_that_agrees_moves_nothing(self) -> None:
        for now, ahead in ((NOW, 0.0), (NOW + AGREEMENT_SECONDS, 0.0), (NOW - HOUR, HOUR), (NOW + HOUR, -HOUR)):
            self.assertEqual(seconds_ahead(DATE, now), ahead)

    @given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
    def test_date_that_is_none_moves_nothing(self, date: bytes) -> None:
        self.assertEqual(seconds_ahead(date, NOW), 0.0)

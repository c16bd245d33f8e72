"""The answers to name queries in sandboxes."""

from __future__ import annotations

import struct
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.names import dns
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.network.name_answers import NO_SUCH_NAME, NOT_IMPLEMENTED, answer

ADDRESSES = {"db.example.com": "127.0.0.10", "localhost": "127.0.0.1"}
LABELS = st.lists(st.from_regex(r"[a-z0-9-]{1,63}", fullmatch=True), min_size=1, max_size=3)


def query(name: str, kind: int = dns.A, group: int = dns.IN) -> bytes:
    """:returns: what a program sends."""
    message = dns.Message(id=4711, recDes=1)
    message.addQuery(name.encode(), kind, group)
    return message.toStr()


def read(reply: bytes | None) -> dns.Message:
    """:returns: an answer, as another implementation reads it."""
    assert reply is not None
    message = dns.Message()
    message.fromStr(reply)
    return message


class AnswerTests(SynchronousTestCase):
    """Read by Twisted's own implementation."""

    def test_a_listed_host_has_its_address_in_any_case(self) -> None:
        for name in ("db.example.com", "DB.Example.COM"):
            reply = read(answer(query(name), ADDRESSES))
            self.assertEqual((reply.id, reply.answer, reply.rCode, reply.recDes), (4711, 1, 0, 1))
            found: Any = reply.answers[0].payload
            self.assertEqual((len(reply.answers), found.dottedQuad()), (1, "127.0.0.10"))
            self.assertEqual(str(reply.queries[0].name), name)

    def test_a_listed_host_has_no_other_kinds_of_addresses_but_exists(self) -> None:
        for kind in (dns.AAAA, dns.TXT, dns.MX, 65):
            reply = read(answer(query("db.example.com", kind), ADDRESSES))
            self.assertEqual((reply.rCode, reply.answers), (0, []))

    def test_no_other_name_exists(self) -> None:
        for name in ("example.com", "x.db.example.com", "stolen-data.attacker.example", "10.0.0.127.in-addr.arpa", ""):
            for kind in (dns.A, dns.TXT, dns.NULL, dns.ALL_RECORDS):
                reply = read(answer(query(name, kind), ADDRESSES))
                self.assertEqual((reply.rCode, reply.answers), (NO_SUCH_NAME, []))

    def test_options_of_a_query_do_not_matter(self) -> None:
        asked = bytearray(query("db.example.com"))
        asked[11] = 1
        asked += b"\0" + struct.pack(">HHIH", 41, 1232, 0, 0)
        self.assertEqual(len(read(answer(bytes(asked), ADDRESSES)).answers), 1)

    def test_other_operations_are_refused(self) -> None:
        message = dns.Message(id=1, opCode=dns.OP_UPDATE)
        self.assertEqual(read(answer(message.toStr(), ADDRESSES)).rCode, NOT_IMPLEMENTED)

    def test_answers_are_not_answered(self) -> None:
        reply = answer(query("db.example.com"), ADDRESSES)
        assert reply is not None
        self.assertIsNone(answer(reply, ADDRESSES))

    @given(st.binary(max_size=600))
    def test_anything_gets_an_answer_with_its_number_or_none(self, data: bytes) -> None:
        reply = answer(data, ADDRESSES)
        if reply is not None:
            self.assertEqual(reply[:2], data[:2])
            self.assertLessEqual(len(reply), 12 + 255 + 4 + 16)
            read(reply)

    @given(LABELS, st.integers(0, 65535), st.sampled_from(list(ADDRESSES)))
    def test_only_whole_names_are_answered(self, labels: list[str], kind: int, host: str) -> None:
        name = ".".join((*labels, host))
        self.assertEqual(read(answer(query(name, kind), ADDRESSES)).rCode, NO_SUCH_NAME)

    @given(st.integers(0, 30))
    def test_a_query_that_is_cut_off_is_no_question(self, kept: int) -> None:
        reply = answer(query("db.example.com")[:kept], ADDRESSES)
        self.assertTrue(reply is None or (kept >= 12 and not read(reply).answers))

"""Hosts, as browsers read them."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.hosts import Host, parse_host

WIDE = "\uff45\uff58\uff41"
"""The letters "exa" in their full-width forms."""


class HostTests(SynchronousTestCase):
    """:func:`parse_host`"""

    def test_every_way_to_write_an_address(self) -> None:
        spellings = "127.0.0.1 2130706433 0x7f000001 0177.0.0.1 0x7f.1 127.1 127.0.0.1. 0X7F.0.1"
        for text in spellings.split():
            self.assertEqual(parse_host(text), Host("127.0.0.1", True), text)
        self.assertEqual(parse_host("\uff11\uff12\uff17\u30020\u30020\u30021"), Host("127.0.0.1", True))
        self.assertEqual(parse_host("%31%32%37.0.0.1"), Host("127.0.0.1", True))
        self.assertEqual(parse_host("[0:0:0:0:0:0:0:1]"), Host("::1", True))
        self.assertTrue((parse_host("[::ffff:127.0.0.1]") or Host("", False)).is_address)

    def test_what_is_no_host(self) -> None:
        wrong = "256.1.1.1 1.2.3.4.5 08.1 4294967296 0x1ffffffff [::1 [fe80::1%eth0] a..b a.b.. a_b^c a/b a@b a:b %ff"
        for text in (*wrong.split(), "", ".", "a b", "a\0b", "a\tb", "x" * 254, "xn--a-ecp.ru\u0000", "\ud800.test"):
            self.assertIsNone(parse_host(text), text)

    def test_names_have_one_form(self) -> None:
        for text in ("EXAMPLE.com", "example.com.", "ex%61mple.com", f"{WIDE}mple.com", "exa\u00admple.com"):
            self.assertEqual(parse_host(text), Host("example.com", False), text)
        for text in ("bücher.example", "BÜCHER.example", "xn--bcher-kva.example", "XN--BCHER-KVA.EXAMPLE"):
            self.assertEqual(parse_host(text), Host("xn--bcher-kva.example", False), text)

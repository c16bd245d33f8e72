"""Hosts, web addresses and patterns."""

from __future__ import annotations

import ipaddress

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.hosts import Host, parse_host
from ironcurtain.policy.lists import DomainPatterns
from ironcurtain.policy.targets import web_target

WIDE = "\uff45\uff58\uff41"
"""The letters "exa" in their full-width forms."""


def hosts(url: str) -> list[str]:
    """:returns: the hosts that an address may mean."""
    return [host.name for host in web_target(url).hosts]


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


class WebTargetTests(SynchronousTestCase):
    """:func:`web_target`"""

    def test_one_host(self) -> None:
        for url in (
            "https://example.com/a",
            "HTTPS://example.com",
            "https://EXAMPLE.com.:8443/?x#y",
            "https:example.com",
            "https:/example.com/",
            "https:///example.com/",
            "http:\\\\example.com\\page",
            " \thttps://example.com/\n",
            "https://exa\tmple.com/",
            "ht\ntps://example.com/",
            "https://user:pw@example.com/",
            "https://a@evil.test@example.com/",
            "https://example.com?@evil.test/",
            "https://example.com#@evil.test/",
        ):
            self.assertEqual(hosts(url), ["example.com"], url)

    def test_what_stands_before_the_last_at_sign_is_a_user(self) -> None:
        self.assertEqual(hosts("https://example.com@evil.test/"), ["evil.test"])
        self.assertEqual(hosts("https://example.com%40x@evil.test/"), ["evil.test"])

    def test_programs_disagree_about_backslashes(self) -> None:
        self.assertEqual(hosts("https://example.com\\@evil.test/"), ["example.com", "evil.test"])

    def test_no_host(self) -> None:
        urls = "ftp://example.com file:///etc/passwd file://example.com/ example.com //example.com javascript:a http:"
        for url in (*urls.split(), "", "https://", "https://a b/", "https://example.com:99999/", "https://[::1"):
            self.assertEqual(hosts(url), [], url)
        self.assertEqual(hosts("https://example.com:x/"), [])


class PatternTests(SynchronousTestCase):
    """:class:`DomainPatterns`"""

    def test_patterns(self) -> None:
        patterns = DomainPatterns(["Example.com", "*.docs.example", "bücher.example", "10.0.0.1", "[::1]"])
        for host in ("example.com", "docs.example", "a.b.docs.example", "xn--bcher-kva.example", "10.0.0.1", "0xa.1"):
            self.assertTrue(patterns.match_host(host), host)
        for host in ("www.example.com", "evildocs.example", "example.com.evil.test", "10.0.0.2", "", "docs.example:80"):
            self.assertFalse(patterns.match_host(host), host)
        self.assertTrue(patterns.match(web_target("http://[0::1]:80/")))

    def test_every_host_that_is_meant_must_be_covered(self) -> None:
        self.assertFalse(DomainPatterns(["example.com"]).match(web_target("https://example.com\\@evil.test/")))
        self.assertFalse(DomainPatterns(["*"]).match(web_target("file:///etc/passwd")))

    @settings(max_examples=300, deadline=None, database=None)
    @given(st.integers(0, 2**32 - 1), st.sampled_from(["{}", "{:#x}", "0{:o}"]), st.booleans())
    def test_no_wildcard_covers_an_ipv4_address(self, number: int, form: str, dotted: bool) -> None:
        address = ".".join(form.format(byte) for byte in number.to_bytes(4, "big")) if dotted else form.format(number)
        target = web_target(f"http://{address}/")
        self.assertEqual(target.hosts, (Host(str(ipaddress.IPv4Address(number)), True),))
        self.assertFalse(DomainPatterns(["*", "*.1", "*.0.0.1"]).match(target))

    @settings(max_examples=300, deadline=None, database=None)
    @given(st.text(alphabet="0123456789abcdefx.:[]%/\\@#?\uff11\uff12\u3002-", max_size=24))
    @example("0x7f.1")
    def test_what_a_wildcard_covers_is_no_address(self, text: str) -> None:
        target = web_target(f"http://{text}")
        if DomainPatterns(["*", "*.1", "*.f"]).match(target):
            for host in target.hosts:
                self.assertRaises(ValueError, ipaddress.ip_address, host.name)

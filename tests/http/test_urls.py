"""Addresses that every program reads in the same way, and all others."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from urllib.parse import urlsplit

import httpx2
import hyperlink
from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import URI

from ironcurtain.http.addresses import is_base_url, keeps_secrets
from ironcurtain.http.hosts import parse_host
from ironcurtain.http.urls import UnclearAddress, read_authority, read_host, read_web_address
from tests.examples import examples


def _standard(url: str) -> tuple[str, int]:
    """The expression of RFC 3986, appendix B, and what is before and after a host in section 3.2."""
    parts = re.match(r"(([^:/?#]+):)?(//([^/?#]*))?", url)
    assert parts is not None
    assert parts[3] is not None
    port = re.search(r":([0-9]+)$", address := parts[4].rpartition("@")[2])
    default = 443 if parts[2].lower() == "https" else 80
    return address[: port.start()] if port else address, int(port[1]) if port else default


def _browser(url: str) -> tuple[str, int]:
    """The states of the WHATWG URL standard, section 4.4, that lead to a host: a backslash is a slash."""
    text = re.sub(r"[\t\n\r]", "", url.strip("".join(map(chr, range(0x21)))))
    scheme, _, rest = text.partition(":")
    authority = re.split(r"[/\\?#]", rest.lstrip("/\\"), maxsplit=1)[0]
    return _standard(f"{scheme}://{authority}")


def _first_at(url: str) -> tuple[str, int]:
    """A careless program: what follows the first ``@`` is the host."""
    scheme, _, rest = url.partition("://")
    authority = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    return _standard(f"{scheme}://{authority.partition('@')[2] or authority}")


def _python(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _hyperlink(url: str) -> tuple[str, int]:
    parts = hyperlink.URL.from_text(url)
    return parts.host, parts.port or 0


def _httpx(url: str) -> tuple[str, int]:
    parts = httpx2.URL(url)
    return parts.host, parts.port or (443 if parts.scheme == "https" else 80)


def _twisted(url: str) -> tuple[str, int]:
    parts = URI.fromBytes(url.encode())
    return parts.host.decode(), parts.port


PARSERS: tuple[Callable[[str], tuple[str, int]], ...] = (
    *(_standard, _browser, _first_at),
    *(_python, _hyperlink, _httpx),
)

_PIECES = (
    *(
        "http",
        "https",
        "HTTPS",
        ":",
        "/",
        "//",
        "///",
        "\\",
        "@",
        "?",
        "#",
        ".",
        "..",
        "[",
        "]",
        "%",
        "%40",
        "%2f",
        "%5c",
    ),
    *("ok.test", "evil.test", "OK.Test", "user", "pw", "127.1", "0x7f.1", "2130706433", "127.0.0.1", "0177.0.0.1"),
    *(
        "::1",
        "::ffff:127.0.0.1",
        "fe80::1%25eth0",
        "443",
        "0443",
        "80",
        "99999",
        "0",
        "-",
        "_",
        "xn--",
        "xn--bcher-kva",
    ),
    *(
        " ",
        "\t",
        "\n",
        "\r",
        "\0",
        "\u200b",
        "\u3002",
        "\uff0e",
        "\uff0f",
        "\uff20",
        "\u2044",
        "b\u00fccher",
        "\u00df",
        "a",
    ),
)


@st.composite
def _nearly(draw: st.DrawFn) -> str:
    """Texts that are nearly an address."""
    url = draw(st.sampled_from(("https://ok.test/", "http://user@ok.test:8080/a", "https://[::1]/", "https://")))
    for piece in draw(st.lists(st.sampled_from(_PIECES), min_size=1, max_size=3)):
        at = draw(st.integers(0, len(url)))
        url = url[:at] + piece + url[at:]
    return url


class ReadingTests(SynchronousTestCase):
    """:func:`read_web_address`"""

    def test_an_address_has_scheme_host_port_and_path(self) -> None:
        for url, scheme, host, port, user in (
            ("https://example.com", "https", "example.com", 443, ""),
            ("HTTP://EXAMPLE.com:8080/a?b#c", "http", "example.com", 8080, ""),
            ("https://example.com@evil.test/", "https", "evil.test", 443, "example.com"),
            ("https://me:p%40ss@example.com/", "https", "example.com", 443, "me:p%40ss"),
            ("https://xn--bcher-kva.example/", "https", "xn--bcher-kva.example", 443, ""),
            ("https://127.0.0.1:1/", "https", "127.0.0.1", 1, ""),
            ("https://[2001:DB8::1]:65535/", "https", "2001:db8::1", 65535, ""),
            ("https://a_b.example-1.test/@me/\u65e5\u672c?q=a@b://c", "https", "a_b.example-1.test", 443, ""),
        ):
            address = read_web_address(url)
            found = (address.scheme, address.host.name, address.port, address.authority.user)
            self.assertEqual(found, (scheme, host, port, user), url)
        self.assertEqual(read_web_address("https://[::1]/x").origin, "https://[::1]:443")
        self.assertEqual(read_web_address("HTTPS://A.test:444").origin, "https://a.test:444")

    def test_what_two_programs_could_read_differently_is_refused_with_the_reason(self) -> None:
        for urls, why in (
            (r"https://ok.test\@evil.test/ https:\\ok.test\ https://ok.test/a\b", "backslash"),
            (
                "https:ok.test https:/ok.test/ //ok.test/ ok.test ftp://ok.test/ file:///x http: javascript:a",
                "write it as",
            ),
            ("https:///ok.test/ https:///", "it has no host"),
            ("https://a@b@ok.test/ https://a\u00fc@ok.test/ https://a%@ok.test/ https://a[@ok.test/", "user name"),
            ("https://@ok.test/", "no user"),
            ("https://ok.test?@evil.test/ https://ok.test#@evil.test/ https://ok.test?x", "slash after the host"),
            (
                "https://127.1/ https://0x7f.1/ https://2130706433/ https://0177.0.0.1/ https://127.0.0.01/",
                "four decimal",
            ),
            ("https://1.2.3.4.5/ https://256.0.0.1/ https://0x7f000001/ https://ok.test.1/", "four decimal"),
            ("https://[::ffff:7f00:1]/ https://[64:ff9b::7f00:1]/ https://[::7f00:1]/", "IPv4 address"),
            ("https://[::1%25eth0]/ https://[::1/ https://[v1.x]/ https://[::ffff:127.0.0.1]/ https://[]/", ""),
            ("https://ok.test./ https://127.0.0.1./", "full stop"),
            (
                "https://b\u00fccher.test/ https://ok\u3002test/ https://ok\uff0etest/ https://\uff4fk.test/",
                "ASCII letters",
            ),
            ("https://ok.test\uff0f@evil.test/ https://stra\u00dfe.test/", ""),
            (
                "https://%6fk.test/ https://ok%2etest/ https://ok..test/ https://-ok.test/ https://.test/",
                "no host name",
            ),
            (
                "https://xn--a.test/ https://xn--example-.test/ https://a;b.test/ https://a,b/ https://*.test/",
                "no host name",
            ),
            ("https://ok.test:/ https://ok.test:0/ https://ok.test:0443/ https://ok.test:65536/", "port"),
            ("https://ok.test:443:80/ https://ok.test:+80/ https://ok.test:\u0664/ https://ok.test:80x/", "port"),
        ):
            for url in urls.split():
                self.assertIn(why, str(self.assertRaises(UnclearAddress, read_web_address, url)), url)
        for url in (" https://ok.test/", "https://ok.test/ ", "https://ok.te\tst/", "ht\ntps://ok.test/", "https://ok.test/\0",
                    "https://ok.te\u200bst/", "https://ok.test/\u202e", "https://ok.te\u00adst/", "https://ok.test/\ud800",
                    "https://ok.test /", "https://ok.test/\u2028"):  # fmt: skip
            self.assertIn(
                "blanks or invisible", str(self.assertRaises(UnclearAddress, read_web_address, url)), repr(url)
            )

    @settings(max_examples=examples(600), deadline=None, database=None)
    @given(_nearly())
    @example("https://ok.test\\@evil.test/")
    @example("https://ok.test#@evil.test/")
    @example("https://a@ok.test@evil.test/")
    def test_what_is_read_has_the_same_host_and_port_for_every_program(self, url: str) -> None:
        try:
            address = read_web_address(url)
        except UnclearAddress:
            return
        for parser in PARSERS:
            host, port = parser(url)
            written = f"[{host}]" if ":" in host and not host.startswith("[") else host
            self.assertEqual((parse_host(written), port), (address.host, address.port), (parser, url))

    def test_without_user_names_twisted_finds_the_same_host(self) -> None:
        for url in ("https://A.test:8443/x?y#z", "http://[::1]:80/", "https://a_b.test"):
            address = read_web_address(url)
            host, port = _twisted(url)
            self.assertEqual((host.strip("[]").lower(), port), (address.host.name, address.port))

    @settings(max_examples=examples(500), deadline=None, database=None)
    @given(st.text(max_size=40) | _nearly())
    def test_any_text_is_an_address_or_refused(self, text: str) -> None:
        for read in (read_web_address, read_authority, read_host):
            with contextlib.suppress(UnclearAddress):
                read(text)


class SecretTests(SynchronousTestCase):
    """:func:`keeps_secrets`"""

    def urls(self) -> Iterator[str]:
        """:returns: addresses that end elsewhere for some program."""
        yield from (
            r"https://api.test\@evil.test",
            "https://api.test#@evil.test",
            "https://a@evil.test",
            "https://127.1",
        )
        yield from (
            "http://0x7f.1:1/",
            "http://2130706433",
            "http://localhost.",
            "https:evil.test",
            "https://e\u00fc.test/",
        )

    def test_no_secret_goes_where_programs_disagree(self) -> None:
        for url in self.urls():
            self.assertFalse(keeps_secrets(url), url)
            self.assertFalse(is_base_url(url), url)
        for url in ("https://api.test/v1", "HTTPS://api.test", "http://127.0.0.1:11434/v1", "http://[::1]:1"):
            self.assertTrue(is_base_url(url), url)

"""Which connections go through which proxy."""

from __future__ import annotations

import ipaddress
from collections.abc import Mapping

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.network_section import Network
from ironcurtain.home.sections import SecretSource
from ironcurtain.http.proxies import Proxies, read_proxies, read_proxy

PROXY = "http://proxy.example:3128"

LABELS = st.from_regex(r"\A[a-z]([a-z0-9-]{0,8}[a-z0-9])?\Z").filter(lambda label: not label.startswith("xn--"))
NAMES = st.lists(LABELS, min_size=1, max_size=4).map(".".join)


def proxies(no_proxy: str = "", **variables: str) -> Proxies:
    """:returns: those of an environment."""
    return read_proxies(Network(), {"HTTPS_PROXY": PROXY, "NO_PROXY": no_proxy, **variables})


def is_proxied(no_proxy: str, host: str, port: int = 443) -> bool:
    """:returns: whether a connection goes through the proxy."""
    return proxies(no_proxy).choose("https", host, port) is not None


class VariableTests(SynchronousTestCase):
    """The variables of the environment, and the settings."""

    def chosen(self, environ: Mapping[str, str], scheme: str = "https", network: Network | None = None) -> str:
        """:returns: the proxy for a host, in words."""
        return str(read_proxies(network or Network(), environ).choose(scheme, "api.example", 443))

    def test_each_scheme_has_its_variable_in_both_cases(self) -> None:
        for name in ("HTTPS_PROXY", "https_proxy"):
            self.assertEqual(self.chosen({name: PROXY}), f"{PROXY} (environment variable {name})")
            self.assertEqual(self.chosen({name: PROXY}, "http"), "None")
        for name in ("HTTP_PROXY", "http_proxy"):
            self.assertEqual(self.chosen({name: PROXY}), "None")
            self.assertEqual(self.chosen({name: PROXY}, "http"), f"{PROXY} (environment variable {name})")

    def test_lower_case_takes_precedence_unless_empty(self) -> None:
        self.assertIn("https_proxy", self.chosen({"HTTPS_PROXY": PROXY, "https_proxy": PROXY}))
        self.assertIn("HTTPS_PROXY", self.chosen({"HTTPS_PROXY": PROXY, "https_proxy": " "}))

    def test_setting_takes_precedence_for_both_schemes(self) -> None:
        network = Network(proxy="https://other.example:8443", no_proxy=("x.example",))
        environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": "api.example"}
        for scheme in ("https", "http"):
            said = "https://other.example:8443 (network.proxy in config.toml)"
            self.assertEqual(self.chosen(environ, scheme, network), said)

    def test_setting_none_switches_proxies_off(self) -> None:
        self.assertEqual(self.chosen({"HTTPS_PROXY": PROXY}, network=Network(proxy="none")), "None")

    def test_no_proxy_of_the_settings_replaces_that_of_the_environment(self) -> None:
        environ = {"HTTPS_PROXY": PROXY, "NO_PROXY": "other.example"}
        self.assertEqual(self.chosen(environ, network=Network(no_proxy=("api.example",))), "None")
        self.assertIn(PROXY, self.chosen({**environ, "NO_PROXY": "api.example"}, network=Network(no_proxy=("x",))))

    def test_unusable_variable_is_an_error_where_a_connection_needs_it(self) -> None:
        found = proxies("direct.example", HTTPS_PROXY="socks5://user:CANARY@proxy.example:1080")
        self.assertIsNone(found.choose("https", "direct.example", 443))
        self.assertIsNone(found.choose("https", "127.0.0.1", 443))
        self.assertIsNone(found.choose("http", "api.example", 80))
        error = self.assertRaises(ConfigurationError, found.choose, "https", "api.example", 443)
        self.assertIn("environment variable HTTPS_PROXY: SOCKS proxies are not supported", str(error))
        self.assertNotIn("CANARY", str(error))

    def test_this_machine_is_never_reached_through_a_proxy(self) -> None:
        for host in ("localhost", "127.0.0.1", "127.9.9.9", "::1", "[::1]"):
            self.assertFalse(is_proxied("", host), host)
        for host in ("localhost.example", "10.0.0.1", "0.0.0.0", "::2"):
            self.assertTrue(is_proxied("", host), host)


class ProxyTests(SynchronousTestCase):
    """The URL of a proxy."""

    def test_forms(self) -> None:
        for text, shown in (
            ("http://proxy.example:3128", "http://proxy.example:3128"),
            ("HTTP://Proxy.Example:3128/", "http://proxy.example:3128"),
            ("proxy.example:3128", "http://proxy.example:3128"),
            ("10.0.0.1", "http://10.0.0.1:80"),
            ("https://proxy.example", "https://proxy.example:443"),
            ("http://[fd00::1]:3128", "http://[fd00::1]:3128"),
        ):
            self.assertEqual(str(read_proxy(text, "x")), f"{shown} (x)")

    def test_user_and_password_are_decoded_and_never_shown(self) -> None:
        proxy = read_proxy("http://me%40corp:p%3A%2FCANARY@proxy.example:3128", "HTTPS_PROXY")
        assert proxy.password is not None
        self.assertEqual((proxy.user, proxy.password.reveal()), ("me@corp", "p:/CANARY"))
        self.assertNotIn("CANARY", f"{proxy} {proxy!r}")

    def test_wrong_urls_are_refused_without_repeating_them(self) -> None:
        for text in (
            "socks5h://u:CANARY@proxy.example:1080",
            "ftp://u:CANARY@proxy.example",
            "http://u:CANARY@",
            "http://u:CAN#ARY@proxy.example",
            "http://u:CANARY\\@proxy.example",
            "http://u:CANARY@proxy.example:99999",
            "http://u:CANARY@proxy.example/path",
            "http://u%3Av:CANARY@proxy.example",
        ):
            error = self.assertRaises(ValueError, read_proxy, text, "x")
            self.assertNotIn("ARY", str(error))

    def test_password_in_the_settings_is_refused(self) -> None:
        error = self.assertRaises(ValueError, Network, proxy="http://me:CANARY@proxy.example:3128")
        self.assertIn("proxy_password = {", str(error))
        self.assertNotIn("CANARY", str(error))

    def test_password_without_a_user_is_refused(self) -> None:
        password = SecretSource(env="PASSWORD")
        self.assertRaises(ValueError, Network, proxy=PROXY, proxy_password=password)
        self.assertRaises(ValueError, Network, proxy_password=password)
        found = read_proxies(Network(proxy="http://me@proxy.example", proxy_password=password), {})
        proxy = found.choose("https", "a.example", 443)
        assert proxy is not None
        self.assertEqual((proxy.user, proxy.source), ("me", password))

    def test_kerberos_is_only_for_a_proxy_of_the_settings_without_a_user(self) -> None:
        for proxy in ("", "none", "http://me@proxy.example"):
            self.assertRaises(ValueError, Network, proxy=proxy, proxy_auth="negotiate")
        for network, negotiates in ((Network(proxy=PROXY, proxy_auth="negotiate"), True), (Network(), False)):
            proxies = read_proxies(network, {"HTTPS_PROXY": "http://other.example"})
            found = proxies.choose("https", "a.example", 443)
            assert found is not None
            self.assertEqual(found.negotiates, negotiates)

    def test_unclear_entry_of_the_settings_is_refused(self) -> None:
        for entry in ("http://a.example", "a b", "", "*.*.example", "a*", "10.0.0.0/99", "a.example:x", ".10.0.0.1"):
            self.assertRaises(ValueError, Network, no_proxy=(entry,))


class NoProxyTests(SynchronousTestCase):
    """Hosts that are reached directly."""

    def test_name_covers_itself_and_what_is_below_it(self) -> None:
        for entry in ("corp.example", ".corp.example", "CORP.example", "corp.example."):
            for host in ("corp.example", "a.corp.example", "a.b.Corp.Example", "corp.example."):
                self.assertFalse(is_proxied(entry, host), (entry, host))
            for host in ("badcorp.example", "corp.example.net", "example", "xcorp.example"):
                self.assertTrue(is_proxied(entry, host), (entry, host))

    def test_asterisk_before_a_name_covers_only_what_is_below_it(self) -> None:
        self.assertFalse(is_proxied("*.corp.example", "a.corp.example"))
        self.assertTrue(is_proxied("*.corp.example", "corp.example"))
        self.assertTrue(is_proxied("*.corp.example", "acorp.example"))

    def test_asterisk_covers_everything(self) -> None:
        self.assertFalse(is_proxied("*", "api.example"))
        self.assertFalse(is_proxied("a.example, *", "10.0.0.1"))

    def test_entry_with_a_port_covers_that_port(self) -> None:
        for entry, host in (
            ("a.example:8443", "b.a.example"),
            ("10.0.0.1:8443", "10.0.0.1"),
            ("[fd00::1]:8443", "fd00::1"),
        ):
            self.assertFalse(is_proxied(entry, host, 8443))
            self.assertTrue(is_proxied(entry, host, 443))

    def test_address_covers_all_its_spellings(self) -> None:
        self.assertFalse(is_proxied("10.0.0.1", "0xa.1"))
        self.assertFalse(is_proxied("fd00:0::1", "fd00::1"))
        self.assertFalse(is_proxied("[fd00::1]", "[FD00::1]"))
        self.assertTrue(is_proxied("10.0.0.1", "10.0.0.10"))
        self.assertTrue(is_proxied("0.0.1", "10.0.0.1"))

    def test_network_covers_addresses_and_no_names(self) -> None:
        self.assertFalse(is_proxied("10.0.0.0/8", "10.255.0.1"))
        self.assertFalse(is_proxied("10.1.2.3/8", "10.255.0.1"))
        self.assertFalse(is_proxied("fd00::/8", "fd12::1"))
        self.assertTrue(is_proxied("10.0.0.0/8", "11.0.0.1"))
        self.assertTrue(is_proxied("10.0.0.0/8", "10.example"))

    def test_entries_are_separated_by_commas_and_blanks(self) -> None:
        for listed in (
            "a.example,b.example",
            "a.example, b.example",
            " a.example b.example ",
            ",a.example,,b.example,",
        ):
            self.assertFalse(is_proxied(listed, "b.example"), listed)
            self.assertTrue(is_proxied(listed, "c.example"), listed)

    @given(NAMES, NAMES)
    def test_only_whole_labels_are_a_suffix(self, below: str, name: str) -> None:
        for entry in (name, f".{name}"):
            self.assertFalse(is_proxied(entry, name))
            self.assertFalse(is_proxied(entry, f"{below}.{name}"))
            if name != "localhost" and not below.endswith(f".{name}"):
                self.assertEqual(is_proxied(entry, f"{below}x{name}"), f"{below}x{name}" != "localhost")

    @given(st.ip_addresses(), st.integers(0, 128), st.ip_addresses())
    def test_network_covers_what_is_in_it(self, base: object, length: int, address: object) -> None:
        text = f"{base}/{min(length, ipaddress.ip_address(str(base)).max_prefixlen)}"
        network, host = ipaddress.ip_network(text, strict=False), ipaddress.ip_address(str(address))
        if not host.is_loopback:
            self.assertEqual(is_proxied(text, str(address)), host not in network)

    @given(st.text(max_size=40), st.text(max_size=20))
    def test_any_text_is_read_without_failing(self, listed: str, host: str) -> None:
        proxies(listed).choose("https", host, 443)

    @given(st.text(max_size=40))
    def test_any_proxy_is_read_or_refused(self, text: str) -> None:
        try:
            read_proxy(text, "x")
        except ValueError as e:
            self.assertTrue(str(e))

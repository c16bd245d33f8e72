"""What other programs are told of the upstream proxies."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.network_section import Network
from ironcurtain.home.sections import SecretSource
from ironcurtain.http.proxies import Proxy, read_proxies
from ironcurtain.http.upstream_proxies import PROXY_AUTH, ProxyFailed, UpstreamProxies

ENVIRON = {"HTTPS_PROXY": "http://a.example:1", "no_proxy": "b.example", "PW": "p :@w", "OTHER": "x"}


class VariablesTests(SynchronousTestCase):
    def variables(self, **settings: Any) -> dict[str, str]:
        """:returns: the variables for other programs."""
        proxies = UpstreamProxies(None, Network(**settings), ENVIRON)
        return self.successResultOf(Deferred.fromCoroutine(proxies.variables()))

    def test_variables_of_the_environment_are_passed_on(self) -> None:
        self.assertEqual(self.variables(), {"HTTPS_PROXY": "http://a.example:1", "no_proxy": "b.example"})
        self.assertEqual(self.variables(proxy="none"), {})
        self.assertEqual(self.variables(no_proxy=("c", "10.0.0.0/8"))["no_proxy"], "c,10.0.0.0/8")

    def test_variables_lead_to_the_proxy_of_the_settings_with_its_password(self) -> None:
        found = self.variables(proxy="https://m%40e@proxy.example:8443", proxy_password=SecretSource(env="PW"))
        proxy = read_proxies(Network(), found).choose("http", "x.example", 80)
        assert isinstance(proxy, Proxy) and proxy.password is not None
        self.assertEqual((proxy.url, proxy.user), ("https://proxy.example:8443", "m@e"))
        self.assertEqual(proxy.password.reveal(), "p :@w")
        self.assertIsNone(read_proxies(Network(), found).choose("https", "a.b.example", 443))

    def test_variables_say_that_the_proxy_wants_tickets(self) -> None:
        self.assertEqual(self.variables(proxy="proxy.example", proxy_auth="negotiate")[PROXY_AUTH], "negotiate")
        self.assertNotIn(PROXY_AUTH, self.variables(proxy="proxy.example"))

    def test_password_that_is_missing_is_an_error(self) -> None:
        network = Network(proxy="http://me@proxy.example", proxy_password=SecretSource(env="MISSING"))
        proxies = UpstreamProxies(None, network, ENVIRON)
        self.failureResultOf(Deferred.fromCoroutine(proxies.variables()), ProxyFailed)

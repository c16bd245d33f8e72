"""Which headers of a request reach the provider."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.source import Token
from ironcurtain.errors import ProtocolViolation
from ironcurtain.home.sections import Provider
from ironcurtain.http.head import read_request
from ironcurtain.llm.dialect import key_value
from ironcurtain.mitm_proxy.judgement import Credentials, ForwardedRequest, judge
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.providers.registry import KNOWN_PROVIDERS, OTHER
from ironcurtain.providers.rules import provider_rules
from ironcurtain.secrets.redaction import Secret
from tests.mitm_proxy.agents import ALL, Sent
from tests.mitm_proxy.held import with_key

REAL = "sk-the-real-key-which-nobody-may-see"
TOKEN = Token(Secret(REAL))
TARGETS = {
    "anthropic": "/v1/messages",
    "openai": "/v1/responses",
    "google": "/v1beta/models/gemini:generateContent",
    "mine": "/v2/ask",
}
OWN = {"host": "llm.example.com", "endpoints": ["POST /v2/ask"], "key": {"header": "x-llm", "prefix": "llm-"}}
FRAME = {"host", "content-type", "accept-encoding"}
"""Headers that every request has."""

ORDERS = (
    "Helicone-Target-Url",
    "Helicone-Auth-Provider",
    "x-portkey-custom-host",
    "x-portkey-config",
    "x-target-url",
    "x-litellm-tags",
    "cf-aig-custom-cost",
    "cookie",
    "forwarded",
    "via",
    "x-forwarded-host",
    "x-forwarded-for",
    "x-real-ip",
    "referer",
    "baggage",
    "x-stainless-target",
    "anthropic-target",
    "x-codex-target",
    "x-goog-target",
)
"""Headers from which some gateways take orders, and names that only begin like known ones."""

NAMES = st.text("abcdefghijklmnopqrstuvwxyz0123456789-_.!#$%&'*+^`|~", min_size=1, max_size=20)
VALUES = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=20)


def held(name: str, **table: Any) -> Credentials:
    tables = msgspec.convert({name: OWN if name == "mine" else table}, dict[str, Provider])
    (rule,) = provider_rules(tables, [name])
    return with_key(rule, REAL)


HELD = {name: held(name) for name in TARGETS}


def asked(name: str, *more: str, target: str = "") -> ForwardedRequest | RequestRefusal:
    """:returns: the decision on a request, whose lines are read as they come over the wire."""
    credentials = HELD[name]
    rule = credentials.rule
    key = f"{rule.key_header}: {key_value(rule.key_header, credentials.fake.secret.reveal())}"
    usual = [f"POST {target or TARGETS[name]} HTTP/1.1", f"Host: {rule.host}", "Content-Type: application/json", key]
    head = "\r\n".join([*usual, "content-length: 2", *more])
    return judge(read_request(head.encode("latin-1")).head, credentials)


def sent(name: str, *more: str, target: str = "") -> ForwardedRequest:
    found = asked(name, *more, target=target)
    assert isinstance(found, ForwardedRequest), found
    return found


class KnownTests(SynchronousTestCase):
    def test_headers_of_agents_all_pass(self) -> None:
        for agent in ALL:
            self.whole(agent)

    def whole(self, agent: Sent) -> None:
        lines = [f"{name.title()}: {value}" for name, value in agent.headers if name not in ("content-type",)]
        found = sent(agent.provider, *(line for line in lines if "Content-Length" not in line), target=agent.target)
        made = {"connection", "content-type", "content-length", "accept-encoding"}
        own = [header for header in agent.headers if header[0] not in made]
        key_header = HELD[agent.provider].rule.key_header
        self.assertEqual([h for h in found.headers(TOKEN) if h[0] not in {*FRAME, key_header}], own)
        self.assertEqual(found.dropped, ())

    @given(st.sampled_from(sorted(TARGETS)), st.data())
    def test_known_headers_pass_in_any_case_any_number_and_their_order(self, name: str, data: st.DataObject) -> None:
        known = sorted(HELD[name].rule.provider.headers)
        headers = data.draw(st.lists(st.tuples(st.sampled_from(known), VALUES.map(str.strip)), max_size=8))
        cases = st.sampled_from([str.lower, str.upper, str.title])
        found = sent(name, *(f"{data.draw(cases)(header)}: {value}" for header, value in headers))
        passed = [h for h in found.headers(TOKEN) if h[0] not in {*FRAME, HELD[name].rule.key_header}]
        self.assertEqual(passed, [(header, value.strip(" ")) for header, value in headers])
        self.assertEqual(found.dropped, ())

    def test_a_known_header_that_belongs_to_the_connection_is_not_passed_on(self) -> None:
        found = sent("anthropic", "Anthropic-Beta: x", "X-Unknown: 1", "Connection: anthropic-beta, X-UNKNOWN")
        self.assertNotIn("anthropic-beta", dict(found.headers(TOKEN)))
        self.assertEqual(found.dropped, ())  # the agent itself said that it ends here

    def test_headers_are_known_by_provider(self) -> None:
        self.assertEqual(sent("openai", "anthropic-beta: x", "openai-beta: y").dropped, ("anthropic-beta",))
        self.assertEqual(sent("google", "x-stainless-os: x").dropped, ("x-stainless-os",))
        for known in KNOWN_PROVIDERS.values():
            self.assertLessEqual(known.headers, OTHER.headers)


class UnknownTests(SynchronousTestCase):
    def test_headers_from_which_gateways_take_orders_stay_here(self) -> None:
        for name in TARGETS:
            for order in ORDERS:
                for spelling in (order, order.lower(), order.upper()):
                    found = asked(name, f"{spelling}: https://evil.test", f"{spelling}: again")
                    if isinstance(found, ForwardedRequest):
                        self.assertNotIn(b"evil.test", found.lines(TOKEN), order)
                        self.assertEqual(found.dropped, (order.lower(),))

    @given(st.sampled_from(sorted(TARGETS)), st.lists(st.tuples(NAMES, VALUES), max_size=6))
    @example("anthropic", [("helicone-target-url", "x"), ("accept", "x"), ("connection", "accept")])
    @example("anthropic", [("x-api-key\t", "x")])
    def test_only_known_headers_reach_the_provider(self, name: str, headers: list[tuple[str, str]]) -> None:
        rule = HELD[name].rule
        try:
            found = asked(name, *(f"{header}: {value}" for header, value in headers))
        except ProtocolViolation:
            return
        if isinstance(found, ForwardedRequest):
            names = [header for header, _ in found.headers(TOKEN)]
            self.assertLessEqual(set(names), {*FRAME, "content-encoding", rule.key_header, *rule.provider.headers})
            for name in (*FRAME, rule.key_header):
                self.assertEqual(names.count(name), 1, name)
            self.assertFalse(set(found.dropped) & set(names))

    def test_names_that_are_not_ascii_or_not_tokens_end_the_request(self) -> None:
        for line in ("h\xe9licone-target-url: x", "x-\xe9: x", "helicone target-url: x", "accept : x", ": x", "accept"):
            self.assertRaises(ProtocolViolation, asked, "anthropic", line)

    def test_values_of_known_headers_may_have_any_bytes(self) -> None:
        found = sent("anthropic", "x-claude-code-prompt-id: \xe9\xff")
        self.assertIn(b"x-claude-code-prompt-id: \xe9\xff\r\n", found.lines(TOKEN))

    def test_the_same_behind_a_gateway(self) -> None:
        credentials = held("anthropic", base_url="https://gateway.example/v1")
        key = ("x-api-key", credentials.fake.secret.reveal())
        more = (("helicone-target-url", "https://evil.test"), ("anthropic-version", "2023-06-01"))
        usual = (("host", "api.anthropic.com"), ("content-type", "application/json"), key)
        head = read_request(b"POST /v1/messages HTTP/1.1\r\nhost: api.anthropic.com\r\ncontent-length: 2").head
        found = judge(head._replace(headers=(*usual, *more)), credentials)
        assert isinstance(found, ForwardedRequest)
        names = [name for name, _ in found.headers(TOKEN)]
        self.assertEqual(names, ["host", "content-type", "anthropic-version", "accept-encoding", "x-api-key"])
        self.assertEqual(found.dropped, ("helicone-target-url",))

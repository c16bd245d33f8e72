"""The fields of a request's body itself."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.providers.bodies import JudgedBody, judge_body
from ironcurtain.providers.provider import BodyRules, RequestRefusal, fold
from ironcurtain.providers.registry import KNOWN_PROVIDERS, OTHER, body_rules
from tests.mitm_proxy.agents import ALL

CALLS = [(known, ending, rules) for known in KNOWN_PROVIDERS.values() for ending, rules in known.calls.items()]
RULES = [rules for _, _, rules in CALLS]
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


def known_of(rules: BodyRules) -> frozenset[str]:
    assert rules.fields is not None
    return rules.fields


def judged(rules: BodyRules, body: bytes | dict[str, Any]) -> JudgedBody:
    found = judge_body(rules, body if isinstance(body, bytes) else json.dumps(body).encode())
    assert isinstance(found, JudgedBody), found
    return found


class AgentTests(SynchronousTestCase):
    def test_bodies_of_agents_are_sent_byte_for_byte(self) -> None:
        for sent in ALL:
            rules = body_rules(KNOWN_PROVIDERS[sent.provider], sent.target.partition("?")[0], "application/json")
            assert rules is not None
            body = json.dumps(sent.body).encode()
            self.assertEqual(judge_body(rules, body), JudgedBody(body, ()), sent.target)


class KnownTests(SynchronousTestCase):
    def test_every_known_field_is_sent(self) -> None:
        for _, ending, rules in CALLS:
            for name in known_of(rules):
                body = b'{ "%b":null }' % name.encode()
                self.assertEqual(judged(rules, body), JudgedBody(body, ()), (ending, name))

    def test_count_of_tokens_takes_what_the_request_itself_takes(self) -> None:
        for name in ("anthropic", "google"):
            first, *others = KNOWN_PROVIDERS[name].calls.values()
            for rules in others:
                self.assertGreaterEqual(known_of(rules), known_of(first))

    def test_request_inside_a_count_of_tokens_has_known_fields_only(self) -> None:
        rules = KNOWN_PROVIDERS["google"].calls[":countTokens"]
        inside: dict[str, Any]
        for inside in ({"model": "models/x", "contents": []}, {"systemInstruction": {}, "toolConfig": {}}):
            for name in ("generateContentRequest", "generate_content_request"):
                self.assertEqual(judged(rules, {name: inside}).dropped, ())
                found = judge_body(rules, json.dumps({name: {**inside, "preset": "x"}}).encode())
                assert isinstance(found, RequestRefusal)
                self.assertIn("preset", found.reason)

    def test_fields_that_an_api_refuses_anyway_do_not_pass_to_its_other_calls(self) -> None:
        openai = KNOWN_PROVIDERS["openai"]
        self.assertEqual(judged(openai.calls["/completions"], {"instructions": "x"}).dropped, ("instructions",))
        self.assertEqual(judged(openai.calls["/responses"], {"messages": []}).dropped, ("messages",))


class UnknownTests(SynchronousTestCase):
    @given(st.sampled_from(RULES), st.dictionaries(st.text(max_size=12), VALUES, max_size=4), st.data())
    @example(RULES[0], {"Messages": 1, " model": 2, "": 3, "\ud800": 4, "max-tokens": 5, "\u017fystem": 6}, None)
    def test_only_known_fields_are_sent_and_as_they_came(
        self, rules: BodyRules, others: dict[str, Any], data: st.DataObject | None
    ) -> None:
        known = known_of(rules)
        names = data.draw(st.lists(st.sampled_from(sorted(known)), unique=True)) if data else ["model"]
        body = {**others, **dict.fromkeys(names), **others}
        found = judge_body(rules, json.dumps(body).encode())
        if isinstance(found, RequestRefusal):
            self.assertTrue(any(fold(name) in rules.acting for name in others) or found.code == "malformed-body")
            return
        sent = json.loads(found.data)
        self.assertEqual(sent, {name: value for name, value in body.items() if name in known})
        self.assertEqual(set(found.dropped), body.keys() - known)

    def test_members_that_stay_are_not_written_anew(self) -> None:
        kept = (
            b'"temperature":1.000E-2,"seed":123456789012345678901234567890,"user":"\\u00e9\\ud83d\\ude00\xc3\xa9 \\/"'
        )
        rules = KNOWN_PROVIDERS["openai"].calls["/completions"]
        found = judged(rules, b'{ "x" : 1 ,\n' + kept + b', "y":{"model":"z"}}')
        self.assertEqual(found, JudgedBody(b"{" + kept + b"}", ("x", "y")))

    def test_an_escape_does_not_make_a_name_known_or_hide_it(self) -> None:
        rules = KNOWN_PROVIDERS["openai"].calls["/responses"]
        for name in (b"sea\\u0072ch", b"\\u006dodel ", b"model\\u0000", b"model\\u200b"):
            self.assertEqual(len(judged(rules, b'{"input":[],"%b":[1]}' % name).dropped), 1)
        found = judge_body(rules, b'{"input":[],"pre\\u0073et":"x"}')
        self.assertIsInstance(found, RequestRefusal)

    def test_a_name_that_is_no_text_refuses_the_request(self) -> None:
        found = judge_body(RULES[0], b'{"model":"x","\\ud800":1}')
        assert isinstance(found, RequestRefusal)
        self.assertEqual((found.status, found.code), (400, "malformed-body"))

    def test_unknown_fields_are_dropped_with_all_they_contain(self) -> None:
        for _, ending, rules in CALLS:
            body = {"extra_body": {"api_base": "https://evil.test"}, "guardrails": [1], "mock_response": "x"}
            self.assertEqual(judged(rules, body), JudgedBody(b"{}", tuple(body)), ending)

    def test_what_selects_another_account_is_dropped(self) -> None:
        rules = KNOWN_PROVIDERS["anthropic"].calls["/messages"]
        body = {"workspace_id": "wrkspc_1", "user_profile_id": "x", "billing_policy": {"bill_to": "user_profile"}}
        self.assertEqual(judged(rules, body), JudgedBody(b"{}", tuple(body)))


class ActingTests(SynchronousTestCase):
    def refused(self, rules: BodyRules, name: str, value: Any) -> None:
        found = judge_body(rules, json.dumps({"model": "x", name: value}).encode())
        assert isinstance(found, RequestRefusal), name
        self.assertEqual((found.status, found.code), (403, "provider-acts"))

    def test_fields_by_which_gateways_act_refuse_the_request(self) -> None:
        for _, _, rules in CALLS:
            for name in ("api_base", "apiBase", "API_BASE", "base_url", "models", "preset", "provider"):
                for value in ("x", ["x"], {}, {"order": ["x"]}):
                    self.refused(rules, name, value)

    def test_fields_that_search_refuse_the_request(self) -> None:
        for name in ("/responses", "/completions"):
            rules = KNOWN_PROVIDERS["openai"].calls[name]
            self.refused(rules, "data_sources", [{"type": "azure_search"}])
            self.refused(rules, "dataSources", [{"type": "azure_search"}])
            self.refused(rules, "search_parameters", {"mode": "on"})
            self.refused(rules, "enable_search", True)
            self.refused(rules, "web_search_options", {})
            self.refused(rules, "plugins", [{"id": "web"}])

    def test_stored_conversations_refuse_the_request(self) -> None:
        self.refused(KNOWN_PROVIDERS["openai"].calls["/responses"], "conversation", "conv_1")
        self.refused(KNOWN_PROVIDERS["anthropic"].calls["/messages"], "thread", {"type": "create"})

    def test_such_a_field_without_a_value_is_only_dropped(self) -> None:
        for _, _, rules in CALLS:
            for name in rules.acting:
                self.assertEqual(judged(rules, {name: None}), JudgedBody(b"{}", (name,)))

    def test_inside_the_body_such_names_mean_nothing(self) -> None:
        for _, _, rules in CALLS:
            body = {"tools": [], "metadata": {"preset": "x"}, "contents": [{"models": [1]}], "input": [{"provider": 1}]}
            self.assertIsInstance(judge_body(rules, json.dumps(body).encode()), JudgedBody)


class OtherTests(SynchronousTestCase):
    def test_bodies_of_unknown_format_keep_their_fields(self) -> None:
        for known in KNOWN_PROVIDERS.values():
            rules = body_rules(known, "/v1/embeddings", "application/json")
            assert rules is not None
            body = b'{"model":"x","dimensions":7,"preset":"y"}'
            self.assertEqual(judged(rules, body), JudgedBody(body, ()))

    def test_a_provider_with_several_formats_gets_known_fields_only(self) -> None:
        rules = body_rules(OTHER, "/v1/messages", "application/json")
        assert rules is not None
        self.assertEqual(judged(rules, {"model": "x", "y": 1}).dropped, ("y",))

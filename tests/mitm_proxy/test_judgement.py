from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.accounts.source import Token
from ironcurtain.home.sections import Provider
from ironcurtain.llm.dialect import key_value
from ironcurtain.mitm_proxy.judgement import Credentials, ForwardedRequest, judge
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.providers.rules import provider_rules
from ironcurtain.secrets.redaction import Secret
from tests.mitm_proxy.agents import ALL, Sent, request
from tests.mitm_proxy.held import with_key

REAL = "sk-ant-api03-the-real-key-which-nobody-may-see"
TOKEN = Token(Secret(REAL))
JSON = ("content-type", "application/json")
OTHERS_KEY = "sk-ant-api03-key-of-somebody-else"


def credentials(name: str, **table: Any) -> Credentials:
    tables = msgspec.convert({name: table}, dict[str, Provider])
    (rule,) = provider_rules(tables, [name])
    return with_key(rule, REAL)


def key_of(held: Credentials, key: str) -> tuple[str, str]:
    return held.rule.key_header, key_value(held.rule.key_header, key)


class Case(SynchronousTestCase):
    def setUp(self) -> None:
        self.anthropic = credentials("anthropic")
        self.openai = credentials("openai")
        self.google = credentials("google")

    def ask(
        self,
        *more: tuple[str, str],
        method: str = "POST",
        target: str = "/v1/messages",
        held: Credentials | None = None,
        without: str = "",
    ) -> ForwardedRequest | RequestRefusal:
        held = held or self.anthropic
        usual = [("host", held.rule.host), JSON, key_of(held, held.fake.secret.reveal())]
        return judge(request(method, target, *(header for header in usual if header[0] != without), *more), held)

    def forward(self, *more: tuple[str, str], **how: Any) -> ForwardedRequest:
        answer = self.ask(*more, **how)
        assert isinstance(answer, ForwardedRequest), answer
        return answer

    def refused(self, status: int, code: str, *more: tuple[str, str], **how: Any) -> RequestRefusal:
        answer = self.ask(*more, **how)
        assert isinstance(answer, RequestRefusal), answer
        self.assertEqual((answer.status, answer.code), (status, code))
        self.assertNotIn(REAL, repr(answer))
        return answer


class ForwardTests(Case):
    def test_what_agents_send_passes_with_the_real_key(self) -> None:
        held = {"anthropic": self.anthropic, "openai": self.openai, "google": self.google}
        for sent in ALL:
            with_keys = held[sent.provider]
            forward = self.sent(sent, with_keys)
            self.assertEqual(forward.target, sent.target)
            self.assertIsNotNone(forward.bodies)
            self.assertEqual(forward.dropped, ())
            headers = dict(forward.headers(TOKEN))
            self.assertEqual(headers[with_keys.rule.key_header], key_of(with_keys, REAL)[1])
            self.assertEqual(headers["host"], with_keys.rule.host)
            self.assertEqual(headers["accept-encoding"], "identity")
            self.assertEqual(headers["user-agent"], dict(sent.headers)["user-agent"])
            self.assertNotIn(with_keys.fake.secret.reveal(), str(forward.headers(TOKEN)))

    def sent(self, sent: Sent, held: Credentials) -> ForwardedRequest:
        headers = (("host", held.rule.host), key_of(held, held.fake.secret.reveal()), *sent.headers)
        answer = judge(request("POST", sent.target, *headers), held)
        assert isinstance(answer, ForwardedRequest), answer
        return answer

    def test_headers_keep_their_order_and_repetitions(self) -> None:
        forward = self.forward(("anthropic-beta", "b"), ("accept", "*/*"), ("anthropic-beta", "a"))
        self.assertEqual(
            forward.headers(TOKEN),
            (
                ("host", "api.anthropic.com"),
                JSON,
                ("anthropic-beta", "b"),
                ("accept", "*/*"),
                ("anthropic-beta", "a"),
                ("accept-encoding", "identity"),
                ("x-api-key", REAL),
            ),
        )

    def test_what_is_between_two_neighbours_is_not_passed_on(self) -> None:
        forward = self.forward(
            ("connection", "keep-alive, X-Mine, content-type"),
            ("keep-alive", "timeout=5"),
            ("proxy-connection", "keep-alive"),
            ("proxy-authorization", "Basic eDp5"),
            ("te", "trailers"),
            ("trailer", "x"),
            ("transfer-encoding", "chunked"),
            ("content-length", "7"),
            ("expect", "100-continue"),
            ("x-mine", "1"),
            ("accept-encoding", "gzip, br"),
            ("range", "bytes=0-10"),
            ("cookie", "session=1"),
            ("forwarded", "for=1.2.3.4"),
            ("x-forwarded-host", "evil.test"),
            ("via", "1.1 x"),
            ("http2-settings", "AAMAAABkAARAAAAA"),
        )
        self.assertEqual([name for name, _ in forward.headers(TOKEN)], ["host", "accept-encoding", "x-api-key"])

    def test_naming_our_headers_in_connection_removes_neither_host_nor_key(self) -> None:
        forward = self.forward(("connection", "host, x-api-key, accept-encoding"))
        self.assertEqual(
            [name for name, _ in forward.headers(TOKEN)], ["host", "content-type", "accept-encoding", "x-api-key"]
        )

    def test_a_gateway_gets_its_own_host_and_path(self) -> None:
        held = credentials("anthropic", base_url="https://gateway.example:8443/llm")
        forward = self.forward(held=held, target="/v1/messages?beta=true")
        self.assertEqual(forward.target, "/llm/v1/messages?beta=true")
        self.assertEqual(forward.headers(TOKEN)[0], ("host", "gateway.example:8443"))
        held = credentials("anthropic", base_url="https://[::1]:8443")
        self.assertEqual(self.forward(held=held).headers(TOKEN)[0], ("host", "[::1]:8443"))
        for url, host in (("http://127.0.0.1", "127.0.0.1"), ("http://127.0.0.1:443", "127.0.0.1:443")):
            forward = self.forward(held=credentials("anthropic", base_url=url))
            self.assertEqual(forward.headers(TOKEN)[0], ("host", host))

    def test_the_path_is_passed_on_in_its_one_spelling(self) -> None:
        self.assertEqual(self.forward(target="/v1/%6Dessages").target, "/v1/messages")

    def test_host_may_name_the_port_and_have_capitals(self) -> None:
        self.forward(("host", "API.Anthropic.com:443"), without="host")

    def test_the_scheme_may_be_written_in_any_case(self) -> None:
        key = ("authorization", f"bearer {self.openai.fake.secret.reveal()}")
        forward = self.forward(key, held=self.openai, target="/v1/responses", without="authorization")
        self.assertEqual(forward.headers(TOKEN)[-1], ("authorization", f"Bearer {REAL}"))

    def test_neither_key_is_shown_by_what_decides(self) -> None:
        shown = repr(self.forward()) + repr(self.anthropic) + str(self.anthropic)
        self.assertNotIn(REAL, shown)
        self.assertNotIn(self.anthropic.fake.secret.reveal(), shown)


class EndpointTests(Case):
    def test_other_requests_are_refused_with_403(self) -> None:
        for method, target in (
            ("POST", "/v1/files"),
            ("GET", "/v1/files"),
            ("POST", "/v1/messages/batches"),
            ("GET", "/v1/organizations/api_keys"),
            ("GET", "/v1/models"),
            ("GET", "/v1/messages"),
            ("POST", "/v1/messages/"),
            ("post", "/v1/messages"),
            ("CONNECT", "/v1/messages"),
            ("TRACE", "/v1/messages"),
            ("OPTIONS", "/v1/messages"),
            ("FROB", "/v1/messages"),
        ):
            refusal = self.refused(403, "endpoint-not-allowed", method=method, target=target)
            self.assertIn(f"{method} {target}", refusal.reason)

    def test_ambiguous_paths_and_other_forms_of_target_are_refused_with_400(self) -> None:
        for target in (
            "/v1/x/../messages",
            "/v1//messages",
            "/v1%2fmessages",
            "/v1/messages;x",
            "/v1/messages%00",
            "*",
            "https://api.anthropic.com/v1/messages",
            "api.anthropic.com:443",
            "",
        ):
            self.refused(400, "bad-path", target=target)

    def test_headers_that_make_it_another_request_are_refused(self) -> None:
        for name in ("x-http-method-override", "x-http-method", "x-method-override", "x-original-url", "x-rewrite-url"):
            self.refused(400, "method-override", (name, "DELETE"))

    def test_upgrades_are_answered_with_426_on_any_path(self) -> None:
        for more in ([("upgrade", "websocket")], [("upgrade", "h2c")], [("connection", "keep-alive, Upgrade")]):
            self.refused(426, "upgrade", *more, method="GET", target="/v1/responses", held=self.openai)

    def test_the_host_must_be_the_one_that_was_connected_to(self) -> None:
        for hosts, status, code in (
            (["evil.test"], 403, "other-host"),
            (["api.anthropic.com.evil.test"], 403, "other-host"),
            (["api.anthropic.com:80"], 403, "other-host"),
            (["user@api.anthropic.com"], 403, "other-host"),
            ([""], 403, "other-host"),
            (["api.anthropic.com", "evil.test"], 400, "bad-host"),
            ([], 400, "bad-host"),
        ):
            self.refused(status, code, *(("host", host) for host in hosts), without="host")


class KeyTests(Case):
    def test_a_key_that_is_not_this_sessions_is_refused(self) -> None:
        other_session = credentials("anthropic").fake.secret.reveal()
        fake = self.anthropic.fake.secret.reveal()
        for key in (
            OTHERS_KEY,
            other_session,
            REAL,
            "",
            fake[:-1],
            fake + "x",
            fake.upper(),
            f"{fake} ",
            "\xff" * 40,
            f"Bearer {fake}",
        ):
            refusal = self.refused(403, "wrong-key", ("x-api-key", key), without="x-api-key")
            self.assertNotIn(key or "?", refusal.reason)

    def test_the_fake_key_of_another_provider_is_refused(self) -> None:
        key = ("x-goog-api-key", self.anthropic.fake.secret.reveal())
        target = "/v1beta/models/gemini:generateContent"
        self.refused(403, "wrong-key", key, target=target, held=self.google, without="x-goog-api-key")

    def test_the_scheme_must_be_the_providers(self) -> None:
        fake = self.openai.fake.secret.reveal()
        for value in (fake, f"Basic {fake}", f"Bearer  {fake}", f"Bearer{fake}", f"Bearer {fake},Bearer {OTHERS_KEY}"):
            key = ("authorization", value)
            self.refused(403, "wrong-key", key, held=self.openai, target="/v1/responses", without="authorization")

    def test_real_key_is_sent_in_the_header_of_the_settings_and_the_fake_one_comes_in_it_or_the_providers(self) -> None:
        for name, target, own in (
            ("anthropic", "/v1/messages", "x-api-key"),
            ("openai", "/v1/responses", "authorization"),
            ("google", "/v1beta/models/m:generateContent", "x-goog-api-key"),
        ):
            for header in ("authorization", "Api-Key", "x-api-key", "x-goog-api-key"):
                held = credentials(name, key={"header": header})
                fake = held.fake.secret.reveal()
                for given_in in {own, header.lower()}:
                    key = (given_in, key_value(given_in, fake))
                    request = self.forward(key, held=held, target=target, without=held.rule.key_header)
                    sent = {name: value for name, value in request.headers(TOKEN) if REAL in value or fake in value}
                    self.assertEqual(sent, {header.lower(): key_value(header.lower(), REAL)})

    def test_keys_in_both_headers_are_refused(self) -> None:
        held = credentials("anthropic", key={"header": "authorization"})
        for key in (held.fake.secret.reveal(), OTHERS_KEY):
            self.refused(400, "duplicate-key", ("x-api-key", key), held=held)

    def test_another_key_in_the_providers_own_header_is_refused(self) -> None:
        held = credentials("anthropic", key={"header": "authorization"})
        self.refused(403, "wrong-key", ("x-api-key", OTHERS_KEY), held=held, without="authorization")
        self.refused(403, "wrong-key", ("authorization", held.fake.secret.reveal()), held=held, without="authorization")

    def test_path_below_a_gateway_has_the_version_once(self) -> None:
        for base in ("/gate", "/gate/", "/gate/v1", "/gate/v1/", "/gate/v1/messages"):
            held = credentials("anthropic", base_url=f"https://gate.example{base}")
            self.assertEqual(self.forward(held=held).target, "/gate/v1/messages", base)
            beta = self.forward(held=held, target="/v1/messages?beta=true")
            self.assertEqual((beta.target, str(beta.endpoint)), ("/gate/v1/messages?beta=true", "POST /v1/messages"))

    def test_no_key_is_refused(self) -> None:
        self.refused(403, "no-key", without="x-api-key")

    def test_the_key_twice_is_refused_with_400_even_if_it_is_the_same(self) -> None:
        for key in (OTHERS_KEY, self.anthropic.fake.secret.reveal()):
            self.refused(400, "duplicate-key", ("x-api-key", key))

    def test_any_other_credential_is_refused_beside_ours_and_without_it(self) -> None:
        for name in (
            "authorization",
            "api-key",
            "x-goog-api-key",
            "x-auth-token",
            "x-amz-security-token",
            "ocp-apim-subscription-key",
            "openai-organization",
            "openai-project",
            "chatgpt-account-id",
            "x-goog-user-project",
            "x-my-secret",
        ):
            for without in ("", "x-api-key"):
                self.refused(403, "other-credential", (name, f"Bearer {OTHERS_KEY}"), without=without)

    def test_the_other_header_of_the_same_provider_does_not_take_the_key(self) -> None:
        key = ("authorization", f"Bearer {self.anthropic.fake.secret.reveal()}")
        self.refused(403, "other-credential", key, without="x-api-key")

    def test_a_key_in_the_query_is_refused(self) -> None:
        target = "/v1beta/models/gemini:generateContent?"
        for query in (
            f"key={OTHERS_KEY}",
            f"alt=sse&key={OTHERS_KEY}",
            f"%6bey={OTHERS_KEY}",
            f"$key={OTHERS_KEY}",
            "access_token=x",
            "oauth_token=x",
            "alt=sse;key=x",
            "alt=sse%26key=x",
            "KEY=x",
            "fields=candidates",
            "$httpMethod=DELETE",
            "alt=proto",
            "alt=sse&alt=json",
            "alt",
            "&",
            "alt=sse&",
            "=",
        ):
            self.refused(403, "query-not-allowed", target=target + query, held=self.google)

    def test_queries_that_clients_send_pass(self) -> None:
        self.forward(target="/v1/messages?beta=true")
        self.forward(target="/v1beta/models/gemini:streamGenerateContent?alt=sse", held=self.google)
        self.forward(target="/v1/responses?api-version=2025-04-01-preview", held=self.openai)
        self.refused(403, "query-not-allowed", target="/v1/messages?beta=true&x=1")

    def test_a_provider_of_ones_own_takes_any_query_but_credentials_and_methods(self) -> None:
        table = {"host": "llm.example.com", "endpoints": ["GET /v2/*"], "key": {"header": "x-llm", "prefix": "llm-"}}
        held = credentials("mine", **table)
        self.assertIsNone(self.forward(method="GET", target="/v2/search?q=a%20b&page=2&q=c", held=held).bodies)
        for query in (
            "key=x",
            "q=1&ACCESS_TOKEN=x",
            "a=1;api_key=x",
            "%74oken=x",
            "_method=DELETE",
            "x-http-method-override=PUT",
        ):
            self.refused(403, "query-not-allowed", method="GET", target=f"/v2/search?{query}", held=held)


class ContentTests(Case):
    def test_a_body_that_will_be_read_must_say_it_is_json(self) -> None:
        for value in (
            "text/plain",
            "application/x-protobuf",
            "multipart/form-data; boundary=x",
            "application/json; charset=utf-16",
            "application/json; charset=utf-7",
            "application/json, text/plain",
            "",
        ):
            self.refused(415, "not-json", ("content-type", value), without="content-type")
        self.refused(415, "not-json", without="content-type")
        self.refused(415, "not-json", ("content-type", "application/json"))

    def test_it_may_say_that_it_is_utf_8(self) -> None:
        for value in ("application/json; charset=utf-8", "Application/JSON;charset=UTF-8"):
            self.forward(("content-type", value), without="content-type")

    def test_a_compressed_body_is_refused(self) -> None:
        for coding in ("gzip", "br", "zstd", "deflate", "gzip, gzip", "identity, gzip", "x", ""):
            self.refused(415, "content-encoding", ("content-encoding", coding))
        self.refused(415, "content-encoding", ("content-encoding", "identity"), ("content-encoding", "gzip"))
        self.forward(("content-encoding", "identity"))


class AnyHeadTests(Case):
    @given(
        st.sampled_from(["GET", "POST", "DELETE"]),
        st.sampled_from(["/v1/messages", "/v1/files", "/v1/%2e%2e/x", "/v1/messages?key=1", "*"]),
        st.lists(
            st.tuples(
                st.sampled_from(["host", "x-api-key", "authorization", "content-type", "connection", "upgrade", "x-a"]),
                st.sampled_from(["api.anthropic.com", "FAKE", OTHERS_KEY, "application/json", "x-api-key", "\xff"]),
            ),
            max_size=6,
        ),
    )
    def test_the_real_key_goes_out_only_for_the_fake_one_alone(
        self, method: str, target: str, headers: list[tuple[str, str]]
    ) -> None:
        held = credentials("anthropic")
        written = [(name, held.fake.secret.reveal() if value == "FAKE" else value) for name, value in headers]
        answer = judge(request(method, target, *written), held)
        if isinstance(answer, ForwardedRequest):
            self.assertEqual((method, target), ("POST", "/v1/messages"))
            self.assertEqual([value for name, value in headers if name == "x-api-key"], ["FAKE"])
            self.assertFalse({"authorization", "upgrade"} & {name for name, _ in headers})
            self.assertEqual([value for name, value in answer.headers(TOKEN) if name == "x-api-key"], [REAL])
            self.assertEqual([value for name, value in answer.headers(TOKEN) if name == "host"], ["api.anthropic.com"])
            self.assertNotIn(OTHERS_KEY, [value for name, value in answer.headers(TOKEN) if name != "x-a"])

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.api_paths import request_path

RESPONSES, CHAT = "/v1/responses", "/v1/chat/completions"
MESSAGES, TOKENS = "/v1/messages", "/v1/messages/count_tokens"
GENERATE = "/v1beta/models/gemini-3:streamGenerateContent?alt=sse"

NO_ENDPOINT = st.lists(st.from_regex(r"[a-z-]{1,9}", fullmatch=True).filter(lambda name: name != "models"), max_size=3)


class RequestPathTests(SynchronousTestCase):
    def test_base_with_and_without_version_gives_the_same_path(self) -> None:
        for path in (RESPONSES, CHAT, MESSAGES, TOKENS, "/v1/embeddings", "/v1/models", GENERATE):
            version = path.split("/")[1]
            for before in ("", "/openai", "/a/b", "/proxy.v2"):
                for base in ("", "/", f"/{version}", f"/{version}/", f"/{version}//"):
                    self.assertEqual(request_path(before + base, path), before + path, (before + base, path))

    def test_pasted_endpoint_is_asked_as_it_is(self) -> None:
        for path in (RESPONSES, CHAT, MESSAGES, TOKENS, "/v1/completions", GENERATE.partition("?")[0]):
            for base in (path, f"{path}/", f"/gateway{path}", f"/gateway{path.partition('/v1')[0]}{path}"):
                self.assertEqual(request_path(base, path), base.rstrip("/"), base)
        self.assertEqual(request_path("/chat/completions", CHAT), "/chat/completions")
        self.assertEqual(request_path("/inference/chat/completions", CHAT), "/inference/chat/completions")

    def test_pasted_endpoint_serves_the_other_endpoints_beside_it(self) -> None:
        for base, path, asked in (
            ("/openai/v1/chat/completions", RESPONSES, "/openai/v1/responses"),
            ("/openai/v1/responses", "/v1/responses/compact", "/openai/v1/responses/compact"),
            ("/claude/v1/messages", TOKENS, "/claude/v1/messages/count_tokens"),
            ("/v1beta/models/gemini-2:generateContent", GENERATE, GENERATE),
            ("/v1beta/models", GENERATE, GENERATE),
            ("/x/v1/models", MESSAGES, "/x/v1/messages"),
        ):
            self.assertEqual(request_path(base, path), asked)

    def test_another_version_at_the_end_of_the_base_is_kept(self) -> None:
        for base, path, asked in (
            ("/api/paas/v4", CHAT, "/api/paas/v4/chat/completions"),
            ("/v1", GENERATE, "/v1/models/gemini-3:streamGenerateContent?alt=sse"),
            ("/v1beta1/publishers/google/v1", GENERATE, f"/v1beta1/publishers/google/v1{GENERATE[7:]}"),
            ("/v2", MESSAGES, "/v2/messages"),
        ):
            self.assertEqual(request_path(base, path), asked)

    def test_version_inside_the_base_counts_for_openai_only(self) -> None:
        for base, path, asked in (
            ("/v1beta/openai", CHAT, "/v1beta/openai/chat/completions"),
            ("/v1beta/openai/", RESPONSES, "/v1beta/openai/responses"),
            ("/v1/account/gateway/anthropic", MESSAGES, "/v1/account/gateway/anthropic/v1/messages"),
            ("/v1/account/gateway/google", GENERATE, f"/v1/account/gateway/google{GENERATE}"),
        ):
            self.assertEqual(request_path(base, path), asked)

    def test_names_that_only_begin_like_a_version_are_none(self) -> None:
        for base in ("/v1-proxy", "/vllm", "/v", "/1", "/version1"):
            self.assertEqual(request_path(base, CHAT), base + CHAT)

    def test_paths_of_other_apis_are_put_below_the_base_unchanged(self) -> None:
        for base, path in (("/v1", "/v2/chat"), ("/gate", "/api/chat"), ("/v1", "/chat/completions"), ("", "/v2/x")):
            self.assertEqual(request_path(base, path), base + path)

    @given(NO_ENDPOINT, st.sampled_from((RESPONSES, CHAT, MESSAGES, TOKENS)), st.sampled_from(("", "/", "/v1", "/v1/")))
    def test_the_version_occurs_once(self, before: list[str], path: str, end: str) -> None:
        base = "".join(f"/{name}" for name in before)
        asked = request_path(base + end, path)
        self.assertEqual((asked.count("/v1"), asked), (1, base + path))

from __future__ import annotations

from urllib.parse import quote, unquote

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.providers.endpoints import BadPath, Endpoint, canonical, find, parse_endpoint

SEGMENT = st.text("abcXYZ019-._~!$&'()*+,=:@", min_size=1, max_size=8).filter(lambda text: text not in (".", ".."))
PATH = st.lists(SEGMENT, min_size=1, max_size=4).map(lambda segments: "/" + "/".join(segments))


class CanonicalTests(SynchronousTestCase):
    @given(PATH)
    def test_a_plain_path_stays_as_it_is(self, path: str) -> None:
        self.assertEqual(canonical(path), path)

    @given(PATH, st.data())
    def test_every_way_to_escape_a_harmless_character_gives_the_same_path(self, path: str, data: st.DataObject) -> None:
        written = "".join(
            f"%{ord(c):02{data.draw(st.sampled_from('xX'))}}" if c != "/" and data.draw(st.booleans()) else c
            for c in path
        )
        self.assertEqual(canonical(written), path)

    @given(st.text(st.sampled_from("/.%25efEF;\\?#a1 \n\x00é"), max_size=12).map(lambda text: "/" + text))
    def test_what_passes_has_one_meaning(self, path: str) -> None:
        """However another program decodes, splits and joins it, it comes to the same path."""
        try:
            found = canonical(path)
        except BadPath:
            return
        self.assertEqual(canonical(found), found)
        self.assertEqual(unquote(found), found)
        self.assertEqual(unquote(path), found)
        self.assertFalse(set(found) & set("%;\\?# \n\x00é"))
        self.assertFalse({"", ".", ".."} & set(found.removesuffix("/").split("/")[1:]))

    def test_traps_are_refused(self) -> None:
        for path in (
            "",
            "v1/messages",
            "/",
            "//",
            "//v1/messages",
            "/v1//messages",
            "/v1/messages//",
            "/v1/./messages",
            "/v1/x/../messages",
            "/v1/messages/..",
            "/v1/messages/.",
            "/..",
            "/v1/%2e%2e/messages",
            "/v1/.%2E/messages",
            "/v1%2fmessages",
            "/v1%2Fmessages",
            "/v1%5cmessages",
            "/v1\\messages",
            "/v1/messages;x=1",
            "/v1/messages%3bx=1",
            "/v1/messages%3Fbeta",
            "/v1/messages%23",
            "/v1/messages#x",
            "/v1/messages%00",
            "/v1/messages%0d%0aX:y",
            "/v1/messages%20",
            "/v1/messages ",
            "/v1/messages\t",
            "/v1/messages%",
            "/v1/messages%6",
            "/v1/messages%6g",
            "/v1/messages%u0073",
            "/v1/%256dessages",
            "/v1/messages%e2%80%ae",
            "/v1/messages\u00e9",
            "/v1/messages\n",
            "*",
            "https://api.anthropic.com/v1/messages",
        ):
            with self.assertRaises(BadPath, msg=path):
                canonical(path)

    def test_an_escaped_path_becomes_the_plain_one(self) -> None:
        self.assertEqual(canonical("/v1/%6D%65ssages"), "/v1/messages")
        self.assertEqual(canonical("/v1beta/models/x%3AgenerateContent"), "/v1beta/models/x:generateContent")


class EndpointTests(SynchronousTestCase):
    def test_method_and_path_must_be_exactly_these(self) -> None:
        endpoint = parse_endpoint("POST /v1/messages")
        self.assertTrue(endpoint.matches("POST", "/v1/messages"))
        for method, path in (
            ("GET", "/v1/messages"),
            ("post", "/v1/messages"),
            ("POST", "/v1/messages/"),
            ("POST", "/v1/Messages"),
            ("POST", "/v1/messages/batches"),
            ("POST", "/x/v1/messages"),
            ("POST", "/v1/message"),
        ):
            self.assertFalse(endpoint.matches(method, path), (method, path))

    def test_a_star_is_part_of_one_segment(self) -> None:
        endpoint = parse_endpoint("POST /v1beta/models/*:generateContent")
        self.assertTrue(endpoint.matches("POST", "/v1beta/models/gemini-3.1-pro:generateContent"))
        for path in (
            "/v1beta/models/:generateContent",
            "/v1beta/models/a/b:generateContent",
            "/v1beta/models/a:x:generateContent",
            "/v1beta/models/a:generateContentX",
            "/v1beta/models/a:generateContent\n",
            "/v1betaXmodels/a:generateContent",
        ):
            self.assertFalse(endpoint.matches("POST", path), path)

    def test_several_stars(self) -> None:
        endpoint = parse_endpoint("POST /openai/deployments/*/chat/*")
        self.assertTrue(endpoint.matches("POST", "/openai/deployments/my.gpt/chat/completions"))
        self.assertFalse(endpoint.matches("POST", "/openai/deployments/my.gpt/chat/completions/x"))

    def test_a_long_path_is_matched_in_linear_time(self) -> None:
        endpoint = parse_endpoint("POST /" + "a*" * 20)
        self.assertFalse(endpoint.matches("POST", "/" + "a" * 20000))

    @given(PATH)
    def test_it_is_written_as_it_is_read(self, path: str) -> None:
        if "**" not in path:
            self.assertEqual(str(parse_endpoint(f"POST {path}")), f"POST {path}")

    def test_what_is_no_endpoint_is_refused(self) -> None:
        for text in (
            "/v1/messages",
            "post /v1/messages",
            "POST",
            "POST v1/messages",
            "POST  /v1/messages",
            "POST /v1/messages?beta=true",
            "POST /v1/%6dessages",
            "POST /v1/../x",
            "POST /v1/**",
            "* /v1/messages",
            "POST https://x.test/v1/messages",
        ):
            with self.assertRaises(BadPath, msg=text):
                parse_endpoint(text)

    def test_the_first_that_matches_is_found(self) -> None:
        endpoints = (Endpoint("GET", "/a"), Endpoint("POST", "/*"), Endpoint("POST", "/a"))
        self.assertEqual(find(endpoints, "POST", "/a"), endpoints[1])
        self.assertIsNone(find(endpoints, "PUT", "/a"))
        self.assertIsNone(find((), "GET", quote("/a")))

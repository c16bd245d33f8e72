"""What is left out of requests is recorded each time and reported once."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.mitm_proxy.admission import NAMES_RECORDED
from ironcurtain.mitm_proxy.recording import OMISSIONS_TOLD, Omissions, ProviderNotice
from tests.mitm_proxy.messages import MESSAGES, reply
from tests.mitm_proxy.support import Base

EVIL = "https://evil.test"


class ReportTests(SynchronousTestCase):
    def test_a_name_is_reported_once(self) -> None:
        omissions = Omissions("api.test")
        self.assertEqual(
            omissions.after(["header a", "field b"]), "left out of requests to api.test, as unknown: header a, field b"
        )
        self.assertEqual(omissions.after(["field b", "header a"]), "")
        self.assertTrue(omissions.after(["field b", "field a"]).endswith(": field a"))

    @given(st.lists(st.lists(st.integers(0, 60).map(str), unique=True, max_size=30), max_size=20))
    def test_any_number_of_names_makes_few_reports(self, requests: list[list[str]]) -> None:
        omissions = Omissions("api.test")
        texts = [text for names in requests if (text := omissions.after(names))]
        told = [name for text in texts for name in text.partition("unknown: ")[2].split(", ")]
        sent = list(dict.fromkeys(name for names in requests for name in names))
        self.assertEqual(told, sent[:OMISSIONS_TOLD] + (["others"] if len(sent) > OMISSIONS_TOLD else []))


class TunnelTests(Base):
    async def test_unknown_headers_and_fields_stay_here(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        strange = "\u202emodel\x1b[2J\n" + "x" * 100
        body = json.dumps({"mock_response": EVIL, strange: EVIL, "model": "claude", "messages": []}).encode()
        for _ in range(2):
            client.send(bench.request(body, f"Helicone-Target-Url: {EVIL}", "anthropic-beta: b", f"cookie: {EVIL}"))
            self.assertEqual((await client.response())[0], 200)
        got = bench.origin.got
        self.assertNotIn(b"evil.test", got)
        self.assertEqual(got.count(b'{"model":"claude","messages":[]}'), 2)
        self.assertEqual(got.count(b"\r\ncontent-length: 32\r\n"), 2)
        self.assertEqual(got.count(b"\r\nanthropic-beta: b\r\n"), 2)
        for record in bench.records("model-request"):
            self.assertEqual(
                record["dropped"][:3], ["header helicone-target-url", "header cookie", "field mock_response"]
            )
            self.assertTrue(record["dropped"][3].isprintable())
        notices = [event for event in bench.events if isinstance(event, ProviderNotice)]
        self.assertEqual([notice.provider for notice in notices], ["anthropic"])
        text = notices[0].text
        self.assertIn("as unknown: header helicone-target-url, header cookie, field mock_response, field \\u202e", text)
        self.assertTrue(text.isprintable())
        self.assertLess(len(text), 300)

    async def test_a_request_of_known_parts_is_recorded_without_that(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request())
        await client.response()
        self.assertTrue(bench.origin.got.endswith(MESSAGES))
        self.assertNotIn("dropped", bench.records("model-request")[0])
        self.assertFalse([event for event in bench.events if isinstance(event, ProviderNotice)])

    async def test_a_record_names_a_few_of_many(self) -> None:
        bench = await self.bench()
        bench.origin.answer = lambda origin: origin.send(reply())
        client = await bench.tunnel()
        client.send(bench.request(json.dumps({f"x{number}": number for number in range(5000)}).encode()))
        await client.response()
        self.assertTrue(bench.origin.got.endswith(b"\r\n\r\n{}"))
        self.assertEqual(len(bench.records("model-request")[0]["dropped"]), NAMES_RECORDED)

    async def test_fields_that_make_a_gateway_act_reach_nobody(self) -> None:
        bench = await self.bench()
        client = await bench.tunnel()
        client.send(bench.request(b'{"model": "x", "messages": [], "api_base": "https://evil.test"}'))
        status, _, body = await client.response()
        self.assertEqual(status, 403)
        self.assertIn(b"connect to another server", body)
        self.assertEqual(bench.origin.got, b"")

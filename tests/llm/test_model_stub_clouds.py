"""The halves of the stub for Claude in clouds."""

from __future__ import annotations

import base64
import json
import struct
import zlib
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.llm.test_model_stub_dialects import EVERYTHING, body
from tests.model_stub import anthropic, bedrock, vertex
from tests.model_stub.dialect import Invalid

MODEL = "/model/eu.anthropic.m-v1%3A0/invoke"
REQUEST: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "max_tokens": 9}


class BedrockTests(SynchronousTestCase):
    def test_model_and_stream_stand_in_the_path(self) -> None:
        for path, stream in ((MODEL, False), (f"{MODEL}-with-response-stream", True)):
            found = bedrock.asked(path, {}, body(**REQUEST, anthropic_version="bedrock-2023-05-31"))
            self.assertEqual((found.model, found.stream, found.said), ("eu.anthropic.m-v1:0", stream, "Hi"))

    def test_requests_of_other_services_are_refused(self) -> None:
        for more in (
            {},
            {"anthropic_version": "2023-06-01"},
            {"anthropic_version": "bedrock-2023-05-31", "model": "m"},
        ):
            self.assertRaises(Invalid, bedrock.asked, MODEL, {}, body(**REQUEST, **more))

    def test_frames_hold_the_events_and_their_checksums(self) -> None:
        made = anthropic.events(EVERYTHING, "m", 1)
        for event, frame in zip(made, bedrock.events(EVERYTHING, "m", 1), strict=True):
            size, heads, check = struct.unpack(">III", frame[:12])
            self.assertEqual((size, check), (len(frame), zlib.crc32(frame[:8])))
            self.assertEqual(struct.unpack(">I", frame[-4:])[0], zlib.crc32(frame[:-4]))
            said = base64.b64decode(json.loads(frame[12 + heads : -4])["bytes"])
            self.assertEqual(said, event.partition(b"data: ")[2].strip())


class VertexTests(SynchronousTestCase):
    def test_model_stands_in_the_path_and_the_token_is_a_bearer(self) -> None:
        path = "/v1/projects/my-project/locations/europe-west1/publishers/anthropic/models/m@1:streamRawPredict"
        request = body(**REQUEST, anthropic_version="vertex-2023-10-16", stream=True)
        found = vertex.asked(path, {}, request)
        self.assertEqual((found.model, found.stream), ("m@1", True))
        self.assertRaises(Invalid, vertex.check_headers, {"x-api-key": "ya29.x"}, frozenset(("ya29.x",)))

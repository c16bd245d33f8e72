"""What tests in another process use: paths below ``/stub/``, which no model API has."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
from twisted.web.resource import Resource

from tests.model_stub.replies import parse_replies

if TYPE_CHECKING:
    from tests.model_stub.server import ModelStub

PREFIX = b"stub"
"""The first part of every such path."""


class Control(Resource):
    """
    ``GET /stub/requests`` and ``GET /stub/replies`` tell what came and how many replies are left;
    ``POST /stub/replies`` adds entries of a script, ``DELETE /stub/replies`` forgets those that are left, and
    ``POST /stub/release`` lets held answers go on by as many events as its body says.
    """

    isLeaf = True

    def __init__(self, stub: ModelStub) -> None:
        super().__init__()
        self._stub = stub

    def render_GET(self, request: Any) -> bytes:
        match request.postpath:
            case [b"requests"]:
                return _answer(request, 200, requests=[record.summary() for record in self._stub.requests])
            case [b"replies"]:
                return _answer(request, 200, left=len(self._stub.replies))
        return _answer(request, 404, error="not one of the stub's own paths")

    def render_POST(self, request: Any) -> bytes:
        body = request.content.read()
        match request.postpath:
            case [b"replies"]:
                try:
                    self._stub.replies += parse_replies(body)
                except msgspec.ValidationError as e:
                    return _answer(request, 400, error=str(e))
                return _answer(request, 200, left=len(self._stub.replies))
            case [b"release"]:
                self._stub.release(int(body or b"1"))
                return _answer(request, 200)
        return _answer(request, 404, error="not one of the stub's own paths")

    def render_DELETE(self, request: Any) -> bytes:
        if request.postpath != [b"replies"]:
            return _answer(request, 404, error="not one of the stub's own paths")
        self._stub.replies.clear()
        return _answer(request, 200, left=0)


def _answer(request: Any, status: int, **fields: Any) -> bytes:
    request.setResponseCode(status)
    request.setHeader("content-type", "application/json")
    return json.dumps(fields).encode()

"""The client's side of JSON-RPC over lines: numbers requests, and tells what a message answers."""

from __future__ import annotations

import json
from typing import Any

UNKNOWN_METHOD = -32601
"""The error for requests of an agent that nobody answers (JSON-RPC 2.0, section 5.1)."""


class Requests:
    """Requests whose responses have not come."""

    def __init__(self) -> None:
        self._number = 0
        self._open: dict[int, str] = {}

    def request(self, method: str, **params: Any) -> bytes:
        """:returns: a request, whose response :meth:`answered` names by its method."""
        self._number += 1
        self._open[self._number] = method
        return _line({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})

    def answered(self, message: dict[str, Any]) -> str:
        """:returns: the method of the request that a message answers; empty: it answers none."""
        number = message.get("id")
        if "method" in message or not isinstance(number, int) or isinstance(number, bool):
            return ""
        return self._open.pop(number, "")

    def is_open(self, method: str) -> bool:
        """:returns: whether a request of this method has no response yet."""
        return method in self._open.values()


def notification(method: str, **params: Any) -> bytes:
    """:returns: a notification."""
    return _line({"jsonrpc": "2.0", "method": method, "params": params})


def response(message: dict[str, Any], result: Any) -> bytes:
    """:returns: a response to a request of the agent's."""
    return _line({"jsonrpc": "2.0", "id": message.get("id"), "result": result})


def refusal(message: dict[str, Any]) -> bytes:
    """:returns: the error for a request of the agent's that nobody answers."""
    error = {"code": UNKNOWN_METHOD, "message": "not supported"}
    return _line({"jsonrpc": "2.0", "id": message.get("id"), "error": error})


def _line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"

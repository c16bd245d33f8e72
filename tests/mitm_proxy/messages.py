"""Requests and responses."""

from __future__ import annotations

HOST = "api.anthropic.com"
MESSAGES = b'{"model": "claude", "max_tokens": 5, "messages": []}'


def reply(body: bytes = b"{}", status: str = "200 OK", *more: str) -> bytes:
    """:returns: a whole response of known length."""
    head = [f"HTTP/1.1 {status}", "content-type: application/json", f"content-length: {len(body)}", *more, "", ""]
    return "\r\n".join(head).encode() + body


def request(
    key: str, body: bytes = MESSAGES, *more: str, path: str = "/v1/messages", method: str = "POST", host: str = HOST
) -> bytes:
    """:returns: a whole request with a key."""
    head = [
        f"{method} {path} HTTP/1.1",
        f"Host: {host}",
        f"x-api-key: {key}",
        "content-type: application/json",
        f"content-length: {len(body)}",
        *more,
    ]
    return "\r\n".join([*head, "", ""]).encode() + body

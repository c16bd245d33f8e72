"""
Build the response to a refused request so that the program that made it shows the reason to whoever reads its output.

Programs differ in what they print of a response: its phrase, its body, or only its Content-Type. None is answered with
a status that makes it ask for a password (401) or try again for a while (429, 5xx), unless that may help.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import Final

import msgspec

from ironcurtain.http.fields import Fields, pick
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.text.display import one_line

PHRASE_LIMIT: Final = 300
"""Maximum length in characters of a phrase: apt reads at most 359."""

TEXT_LIMIT: Final = 1000
"""Maximum length in characters of a body's text."""

SIGNATURE: Final = "IronCurtain: "
"""How each refusal begins, so that nobody takes it for an answer of the host. Phrases of hosts are not passed on."""

_HEADERS: Final = frozenset(("accept", "user-agent"))
_MISLEADING: Final = frozenset((401, 407, 429))
_NO_FIELDS: Final[Fields] = ()


def sentence(reason: str, limit: int = TEXT_LIMIT) -> str:
    """
    :param reason: can contain text of the agent's.
    :returns: the reason, signed, as one line of printable ASCII.
    """
    line = one_line(f"{SIGNATURE}{reason}", limit).replace("…", "...")
    return "".join(char if " " <= char <= "~" else "?" for char in line)


def refusal_response(refusal: RequestRefusal, headers: Fields = _NO_FIELDS, *, close: bool = False) -> bytes:
    """
    :param headers: those of the request; empty if it could not be parsed.
    :param close: whether the connection ends after the response.
    :returns: the complete response, head and body.
    """
    named = pick(headers, _HEADERS)
    agent, accept = " ".join(named.get("user-agent", ())).lower(), " ".join(named.get("accept", ())).lower()
    status, text = refusal.status, sentence(refusal.reason)
    kind, body = _body(text, accept)
    if status in _MISLEADING:
        status = 403
    phrase = sentence(refusal.reason, PHRASE_LIMIT)
    if status == HTTPStatus.FORBIDDEN:
        if agent.startswith("pip/") and "vnd.pypi.simple" in accept:
            # pip shows nothing of a refused page of an index but the type of one that it cannot use
            status, phrase, kind, body = 200, "OK", f"text/x-refused; {phrase}", text.encode()
        elif agent.startswith("uv/"):
            status = 451  # uv explains 403 with missing credentials
    head = [f"HTTP/1.1 {status} {phrase}", f"content-type: {kind}", f"content-length: {len(body)}"]
    if close:
        head.append("connection: close")
    return "\r\n".join([*head, "", ""]).encode("ascii") + body


def _body(text: str, accept: str) -> tuple[str, bytes]:
    if "json" in accept:
        return "application/json", msgspec.json.encode({"error": text, "message": text})
    return "text/plain; charset=utf-8", f"{text}\n".encode()

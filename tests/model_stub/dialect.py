"""What all the APIs have in common: one shape for what is asked, one set of functions that each has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tests.model_stub.replies import Answer


class Invalid(Exception):
    """
    The request is refused with this status and message.

    :ivar headers: of the response.
    """

    def __init__(self, message: str, status: int = 400, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})


@dataclass(frozen=True, slots=True)
class Asked:
    """
    A request for an answer of the model, whatever the API.

    :ivar body: as it came.
    :ivar stream: whether the answer is to be a stream of events.
    :ivar counting: only the size of the request in tokens is asked for.
    :ivar system: the text that is not the user's.
    :ivar tools: names of those declared; one in a namespace as ``namespace.name``.
    :ivar results: texts of the results of tools that came last, empty if the last word is the user's.
    :ivar said: the user's last text.
    :ivar schema: JSON Schema of the answer, if the answer has to be JSON.
    """

    body: dict[str, Any]
    model: str
    stream: bool
    counting: bool
    system: str
    tools: tuple[str, ...]
    results: tuple[str, ...]
    said: str
    schema: Mapping[str, Any] | None


class Dialect(Protocol):
    """One API, as the server sees it. Modules have this shape."""

    NAME: str
    """Of the provider."""

    def handles(self, method: str, path: str) -> bool:
        """:returns: whether this is a request for an answer, or for the size of a request."""
        ...

    def key(self, headers: Mapping[str, str]) -> str:
        """:returns: the key in the header that this API reads; empty if there is none."""
        ...

    def check_headers(self, headers: Mapping[str, str], keys: frozenset[str]) -> None:
        """
        :param headers: with names in lower case.
        :raises Invalid: the key is not one of those accepted, or another header is missing or wrong.
        """
        ...

    def asked(self, path: str, headers: Mapping[str, str], body: bytes) -> Asked:
        """:raises Invalid: the request breaks a rule of the API."""
        ...

    def spoken(self, answer: Answer, asked: Asked) -> Answer:
        """
        :returns: the answer with each call of an MCP tool in the words of the agent that asks.
        :raises Invalid: the agent has no such tool, or the API no such block.
        """
        ...

    def events(self, answer: Answer, model: str, number: int) -> list[bytes]:
        """:returns: the Server-Sent Events of a whole answer."""
        ...

    def error_event(self, answer: Answer) -> bytes:
        """:returns: the event that ends an answer with an error."""
        ...

    def whole(self, answer: Answer, model: str, number: int) -> bytes:
        """:returns: the answer as one JSON document."""
        ...

    def counted(self, tokens: int) -> bytes:
        """:returns: the answer to the question for a size."""
        ...

    def models(self) -> bytes:
        """:returns: the list of models."""
        ...

    def error_body(self, status: int, message: str, type: str = "", *, retry_after: str = "") -> bytes:
        """:returns: an error in the API's shape."""
        ...


USAGE = ("input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
"""What an answer may count."""


def input_tokens(usage: Mapping[str, int]) -> int:
    """:returns: all tokens of the request, those from a cache too, as OpenAI and Google count them."""
    return sum(usage.get(name, 0) for name in USAGE if name != "output_tokens")


def cut(text: str, pieces: int) -> Iterator[str]:
    """Cut a text into so many pieces of about equal length."""
    size = max(1, -(-len(text) // pieces))
    for start in range(0, len(text), size):
        yield text[start : start + size]


def last_text(content: Any) -> str:
    """:returns: the last text in a piece of content of any API: agents put what they add before what the user said."""
    return texts(content[-1:]) or last_text(content[:-1]) if isinstance(content, list) and content else texts(content)


def texts(content: Any) -> str:
    """:returns: all texts in a piece of content of any API, a line each."""
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list):
        return ""
    return "\n".join(block["text"] for block in content if isinstance(block, Mapping) and "text" in block)

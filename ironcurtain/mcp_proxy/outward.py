"""
Replace the host's name of the workspace in what goes to the agent.

Messages pass as they came unless the host's path occurs in them, in any of the forms that JSON and URIs give it.
"""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from ironcurtain.jsonrpc import codec
from ironcurtain.policy.pathmap import PathMap


class Outward:
    """:param paths: the session's workspace under its two names; nothing is replaced where they are the same."""

    def __init__(self, paths: PathMap) -> None:
        self._paths = paths
        self._forms = () if paths.host == paths.agent else _forms(paths.host)

    def raw(self, value: bytes) -> bytes:
        """
        :param value: raw JSON.
        :returns: the same bytes, or re-encoded with every text in it mapped.
        :raises InvalidMessage: the host's path occurs, but the JSON cannot be looked into.
        """
        for form in self._forms:
            if form in value:
                return codec.encode(self._mapped(codec.decode(value)))
        return value

    def text(self, text: str) -> str:
        """:returns: the text with the agent's name for the workspace."""
        return self._paths.to_agent_text(text) if self._forms else text

    def _mapped(self, value: Any, name: str = "") -> Any:
        if isinstance(value, str):
            return value if name in ("blob", "data") and _is_binary(value) else self.text(value)
        if isinstance(value, dict):
            return {self.text(key): self._mapped(member, key) for key, member in value.items()}
        return [self._mapped(member) for member in value] if isinstance(value, list) else value


def _is_binary(text: str) -> bool:
    # Images and binary resources are base64: letters, digits, + and / only, and never short of a multiple of four.
    return len(text) % 4 == 0 and " " not in text and "." not in text and not text.startswith("/")


def _forms(host: str) -> tuple[bytes, ...]:
    texts = {host, quote(host), json.dumps(host)[1:-1], json.dumps(host, ensure_ascii=False)[1:-1]}
    texts |= {text.replace("/", "\\/") for text in texts}
    return tuple(sorted(text.encode() for text in texts))

"""A witness on another machine, which gets heads by HTTPS."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from ironcurtain.audit.witness import HTTPS
from ironcurtain.errors import ConfigurationError, Unavailable
from ironcurtain.files.private import read_private
from ironcurtain.home.sections import Audit
from ironcurtain.home.user_paths import user_path
from ironcurtain.http.failures import in_words
from ironcurtain.http.outbound import Outbound
from ironcurtain.http.trust import VerifyingPolicy
from ironcurtain.http.upstream_proxies import UpstreamProxies
from ironcurtain.secrets.redaction import Secret
from ironcurtain.text.decoding import decode_text

REQUEST_SECONDS: Final = 10.0
"""Time limit for one request."""

KEY_LIMIT: Final = 4096
"""Maximum size in bytes of a file with a key."""


class HttpsWitness:
    """
    A server that gets each head as the JSON body of a POST request.

    :param url: its address.
    :param key_file: path of a file with a bearer token; empty: the requests have none.
    :param ca_file: PEM certificates to trust besides the system's; empty: none.
    :param proxies: upstream proxies.
    :raises ConfigurationError: the certificates cannot be used.
    """

    def __init__(self, reactor: Any, url: str, key_file: str, ca_file: str, proxies: UpstreamProxies) -> None:
        self._url, self._key_file = url, key_file
        self._host = str(urlsplit(url).hostname)
        self._outbound = Outbound(reactor, VerifyingPolicy(ca_file), proxies)

    async def write(self, line: bytes) -> None:
        """
        Send a head.

        :param line: the head as a line of JSON.
        :raises Unavailable: the server did not take it.
        """
        if not 200 <= (code := await self._ask("POST", line.rstrip(b"\n"))) < 300:
            raise Unavailable(self._refusal(code))

    async def check(self) -> None:
        """
        Ask for the address without sending a head.

        :raises Unavailable: the server cannot be reached, or refuses the key or the address.
        """
        code = await self._ask("HEAD", None)
        if 300 <= code < 400 or code in (401, 403, 404) or code >= 500:
            raise Unavailable(self._refusal(code))

    async def _ask(self, method: str, body: bytes | None) -> int:
        headers = {"content-type": "application/json"}
        try:
            if self._key_file:
                headers["authorization"] = f"Bearer {_read_key(self._key_file).reveal()}"
            status, _ = await self._outbound.exchange(method, self._url, headers, body, REQUEST_SECONDS)
            return status
        except Exception as e:
            why = in_words(e, self._host, setting="audit.witness", ca_file="audit.witness_ca_file")
            raise Unavailable(why) from None

    def _refusal(self, code: int) -> str:
        redirected = ", a redirect, which is not followed" if 300 <= code < 400 else ""
        return f"{self._host} answered {code}{redirected}"


def https_witnesses(reactor: Any, audit: Audit, proxies: UpstreamProxies) -> dict[str, HttpsWitness]:
    """
    :returns: the witnesses on other machines, by name.
    :raises ConfigurationError: ``audit.witness_ca_file`` cannot be used.
    """
    places = [place for place in audit.witness if place.startswith(HTTPS)]
    ca_file = audit.witness_ca_file and _path(audit.witness_ca_file)
    return {place: HttpsWitness(reactor, place, audit.witness_key_file, ca_file, proxies) for place in places}


def _read_key(path: str) -> Secret:
    """:raises ConfigurationError: others can read it, or it is no key."""
    text = decode_text(path, read_private(Path(_path(path)), KEY_LIMIT)).strip()
    if not text or not text.isascii() or not text.isprintable() or " " in text:
        raise ConfigurationError(path, "has no key")
    return Secret(text, f"file {path}")


def _path(path: str) -> str:
    return user_path(path)

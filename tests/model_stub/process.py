"""The stub as a process, for tests that wait for other processes themselves and so cannot serve meanwhile."""

from __future__ import annotations

import json
import os
import ssl
import tempfile
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.product import fork_server

TOP = Path(__file__).parents[2]

LIMIT = 60.0
"""Seconds for the stub to start, to answer, or to end."""


class StubProcess:
    """
    Started at once; :meth:`close` ends it.

    :param replies: entries of a script.
    :param names: further names for the server's certificate.
    :param keys: the key to accept, by provider, in place of the default ones.
    :param plain: whether to serve without TLS.
    :ivar url: what clients are to use as base URL.
    :ivar ca: path of the certificate to trust.
    :ivar keys: the keys accepted, by provider.
    """

    def __init__(
        self,
        *replies: Mapping[str, Any],
        names: Sequence[str] = (),
        keys: Mapping[str, str] | None = None,
        plain: bool = False,
    ) -> None:
        self._directory = tempfile.TemporaryDirectory(prefix="ic-stub-")
        self.ca = str(Path(self._directory.name, "ca.pem"))
        words = ["--ca-out", self.ca, *(f"--name={name}" for name in names)]
        words += [f"--key={provider}={key}" for provider, key in (keys or {}).items()]
        words += ["--plain"] if plain else []
        self._process = fork_server().start(["-m", "tests.model_stub", *words], os.environ, TOP, None)
        where = json.loads(self._process.stdout.readline())
        self.url: str = where["url"]
        self.port: int = where["port"]
        self.keys: dict[str, str] = where["keys"]
        self._trust = ssl.create_default_context(cafile=self.ca)
        self.add(*replies)

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Every request so far; its fields are those of :meth:`tests.model_stub.record.Record.summary`."""
        requests: list[dict[str, Any]] = self._ask("requests")["requests"]
        return requests

    @property
    def turns(self) -> list[dict[str, Any]]:
        """Those of the requests that the script answered, or was to answer."""
        return [request for request in self.requests if request["purpose"] == "turn"]

    @property
    def left(self) -> int:
        """How many entries of the script are not used up."""
        return int(self._ask("replies")["left"])

    def add(self, *replies: Mapping[str, Any]) -> None:
        """Add entries to the script."""
        self._ask("replies", json.dumps({"replies": replies}))

    def drop(self) -> None:
        """Forget the entries that are left."""
        self._ask("replies", method="DELETE")

    def release(self, count: int = 1) -> None:
        """Let an answer that is held send its next events."""
        self._ask("release", str(count))

    def close(self) -> None:
        """End the process, and remove its files."""
        self._process.kill()
        self._process.communicate(timeout=LIMIT)
        self._directory.cleanup()

    def _ask(self, name: str, body: str | None = None, *, method: str | None = None) -> Any:
        data = None if body is None else body.encode()
        request = urllib.request.Request(f"{self.url}/stub/{name}", data, method=method)
        with urllib.request.urlopen(request, timeout=LIMIT, context=self._trust) as response:
            return json.load(response)

"""A collector of OpenTelemetry on the loopback address, in a thread of its own."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Collector:
    """
    :ivar requests: the path and the headers of each request.
    :ivar spans: those that came.
    """

    def __init__(self, status: int = 200) -> None:
        self.requests: list[tuple[str, dict[str, str]]] = []
        self.spans: list[dict[str, Any]] = []
        self.bodies: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            """Takes a request."""

            def do_POST(self) -> None:
                """Keep the spans."""
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.bodies.append(body.decode())
                for resource in json.loads(body)["resourceSpans"]:
                    outer.spans += [span for scope in resource["scopeSpans"] for span in scope["spans"]]
                outer.requests.append((self.path, {name.lower(): value for name, value in self.headers.items()}))
                self.send_response(status)
                self.send_header("content-length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, format: str, *args: Any) -> None:
                """Write nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))
        self._thread.start()

    @property
    def url(self) -> str:
        """The endpoint."""
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def stop(self) -> None:
        """Serve no longer."""
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    """:returns: the attributes of a span."""
    return {entry["key"]: next(iter(entry["value"].values())) for entry in span["attributes"]}

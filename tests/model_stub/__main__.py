"""``python -m tests.model_stub``: the stub as a process of its own."""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from tests.model_stub import replies
from tests.model_stub.server import DEFAULT_KEYS, NAMES, ModelStub

DESCRIPTION = """\
A model provider for tests, on a loopback port with TLS: Anthropic's Messages API, OpenAI's Responses API, Google's
Gemini API, and what clouds, gateways and logins use, chosen by the path of each request. It answers turns from a
script, and what agents ask on the side (titles, routing, token counts, lists of models, telemetry) by itself. When it
serves, it prints one line of JSON: "port", "url", "ca" (the certificate that clients have to trust) and "keys" (those
accepted, by provider).
"""

EPILOGUE = """\
While it serves, at its own url:
  GET  /stub/requests   {"requests": [...]}: every request so far, with "provider", "agent", "purpose" ("turn", or what
                        it was on the side), "refused" (why), "model", "system", "tools", "results" (texts of tools),
                        "said", "headers", "json", "end", "at"
  GET  /stub/replies    {"left": NUMBER}
  POST /stub/replies    {"replies": [...]} adds to the script
  DELETE /stub/replies  forgets what is left of it
  POST /stub/release    lets an answer with "held" send its next event; a number as body for several

The script:
"""


async def serve(arguments: argparse.Namespace) -> None:
    """Start, print one JSON line that says where, and serve until stopped by a signal."""
    script = replies.parse_replies(arguments.script.read_text()) if arguments.script else []
    keys = {**DEFAULT_KEYS, **dict(arguments.key)}
    stub = ModelStub(reactor, script, keys=keys)
    port = await stub.start(arguments.port, names=(*NAMES, *arguments.name), plain=arguments.plain)
    arguments.ca_out.write_bytes(stub.authority.pem)
    print(json.dumps({"port": port, "url": stub.url, "ca": str(arguments.ca_out), "keys": keys}), flush=True)
    await Deferred()


def provider_key(text: str) -> tuple[str, str]:
    """:raises argparse.ArgumentTypeError: it does not name a provider that is known."""
    provider, _, key = text.partition("=")
    if provider not in DEFAULT_KEYS or not key:
        raise argparse.ArgumentTypeError(f"write {' or '.join(f'{name}=KEY' for name in DEFAULT_KEYS)}, not {text!r}")
    return provider, key


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m tests.model_stub",
        description=DESCRIPTION,
        epilog=EPILOGUE + str(replies.__doc__),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", type=int, default=0, help="to listen on; 0, the default, for any that is free")
    parser.add_argument("--script", type=Path, metavar="FILE", help="JSON file of replies, see below")
    parser.add_argument(
        "--ca-out", type=Path, metavar="FILE", required=True, help="where to write the certificate to trust"
    )
    parser.add_argument(
        "--key", type=provider_key, action="append", default=[], metavar="PROVIDER=KEY", help="the one key to accept"
    )
    parser.add_argument(
        "--name", action="append", default=[], help=f"a further name for the certificate, which has {', '.join(NAMES)}"
    )
    parser.add_argument("--plain", action="store_true", help="serve without TLS")
    arguments = parser.parse_args()
    react(lambda _: Deferred.fromCoroutine(serve(arguments)))


if __name__ == "__main__":
    main()

"""``python -m tests.model_stub --port 0 --script FILE --ca-out FILE``: the stub as a process of its own."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from tests.model_stub.replies import parse_replies
from tests.model_stub.server import DEFAULT_KEY, ModelStub


async def serve(arguments: argparse.Namespace) -> None:
    """Start, print one JSON line that says where, and serve until stopped by a signal."""
    replies = parse_replies(arguments.script.read_text()) if arguments.script else []
    stub = ModelStub(reactor, replies, keys=[arguments.key])
    port = await stub.start(arguments.port, names=("localhost", "127.0.0.1", *arguments.name))
    arguments.ca_out.write_bytes(stub.authority.pem)
    print(json.dumps({"port": port, "url": stub.url, "ca": str(arguments.ca_out), "key": arguments.key}), flush=True)
    await Deferred()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.model_stub")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--script", type=Path, help="JSON file of replies, see tests/model_stub/replies.py")
    parser.add_argument("--ca-out", type=Path, required=True, help="where to write the certificate to trust")
    parser.add_argument("--key", default=DEFAULT_KEY, help="the key to accept")
    parser.add_argument("--name", action="append", default=[], help="a further name for the server's certificate")
    react(lambda _: Deferred.fromCoroutine(serve(parser.parse_args(sys.argv[1:]))))


if __name__ == "__main__":
    main()

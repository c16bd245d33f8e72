"""
What a session in a container costs: its start, and a turn of a real agent whose model takes three seconds.

The start is measured in a daemon with its control API, from the request to the answer that the session is ready, with
the image there. Making and starting the same container by the Engine alone is the floor.

The turn is one message to Claude Code. With us it goes through the control API, and the model's answer through the MITM
proxy; the MCP proxy, its servers and the audit log are there. Without us the same program runs in the same image and
with the same limits, with this machine's network, no MCP server, the real key, and the model's address as its base URL.
It is started by the Engine's API, as Docker's command would take time of its own. In both cases the container and the
conversation are there already, and the model is the same server on this machine; all take turns::

    python -m benchmarks.session [--starts 20] [--rounds 25]

The bars: a start in 0.8 s at the median, and a turn 1.1 times as long as without us.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import socket
import statistics
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.daemon import daemon
from benchmarks.sizes import parse
from ironcurtain.agents import adapter as surroundings
from ironcurtain.agents.adapter import Facts
from ironcurtain.agents.claude_code import ClaudeCode
from ironcurtain.container.spec import ContainerSpec, group_text, mounts, passwd_text
from ironcurtain.home.sections import Resources
from ironcurtain.process.accounts import FREE_UIDS
from tests import agent_images, engine
from tests.model_stub.process import StubProcess
from tests.product import Product

KEY = "sk-ant-api03-real-key-of-the-benchmark-0123456789"
PATIENCE = 120.0
"""Seconds that anything may take."""

EVENTS, PAUSE = 30, 0.1
"""How many events the model's answer has, and the seconds before each: three seconds of model time."""

WORDS = [f"word{number} " for number in range(EVENTS - 5)]
"""One event each; five more begin and end the answer."""

DIRECT = ("claude", "--dangerously-skip-permissions", "--continue", "--output-format", "stream-json", "--verbose")
"""Claude Code without us, but for the message."""


class Unix(http.client.HTTPConnection):
    """A connection to a server on a UNIX socket, for one call."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        """Connect with the socket in place of a host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def call(path: str, method: str, target: str, body: Any = None) -> bytes:
    """:returns: the body of the answer, read to its end."""
    connection = Unix(path)
    with contextlib.closing(connection):
        content = None if body is None else json.dumps(body)
        connection.request(method, target, content, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        content_read = answer.read()
    assert answer.status < 300, (method, target, answer.status, content_read[:1000])
    return content_read


class Ours:
    """A daemon, as a person has it."""

    def __init__(self, product: Product, kind: str) -> None:
        self._socket, self._kind = str(product.home / "run" / "daemon.sock"), kind

    def start(self) -> int:
        """:returns: the number of a session that is ready."""
        return int(json.loads(call(self._socket, "POST", "/v1/sessions", {"kind": self._kind}))["number"])

    def stop(self, number: int) -> None:
        """End a session."""
        call(self._socket, "DELETE", f"/v1/sessions/{number}")

    def turn(self, number: int) -> str:
        """:returns: the agent's answer."""
        answer = call(self._socket, "POST", f"/v1/sessions/{number}/messages", {"text": "Go on."})
        return str(json.loads(answer)["text"])


class Direct:
    """
    The same image, without us.

    :param directory: for what the container can write to.
    """

    def __init__(self, directory: Path, stub: StubProcess, image: str) -> None:
        self._top, self._image, self._engine = directory, image, engine.engine()
        self._uid = os.geteuid() or FREE_UIDS[0]
        for name in ("workspace", "home", "sockets", "orientation"):
            (directory / name).mkdir(parents=True)
            os.chown(directory / name, self._uid, self._uid)
        (directory / "passwd").write_text(passwd_text(self._uid, self._uid))
        (directory / "group").write_text(group_text(self._uid))
        (directory / "orientation" / "ca.pem").write_bytes(Path(stub.ca).read_bytes())
        agent = ClaudeCode().environment(Facts({"anthropic": KEY}, "", "", 300.0, False))
        trust = {"NODE_EXTRA_CA_CERTS": surroundings.CA_FILE}
        self._environment = {**agent, **trust, "HOME": surroundings.HOME, "ANTHROPIC_BASE_URL": stub.url}

    def start(self, **changes: Any) -> str:
        """:returns: the id of a container like a session's that runs."""
        resources, names = Resources(), ("workspace", "home", "sockets", "orientation", "passwd", "group")
        places = (surroundings.WORKSPACE,)
        spec = ContainerSpec(
            name="", image=self._image, command=("sleep", "infinity"), uid=self._uid, gid=self._uid, environment={},
            mounts=mounts(places=places, **{name: str(self._top / name) for name in names}), tmpfs_mb=1024,
            memory_mb=resources.memory_mb, cpus=resources.cpus, pids=resources.pids, labels={},
        )  # fmt: skip
        body = spec.create_request()
        body["HostConfig"].update(changes)
        made = json.loads(call(self._engine, "POST", "/containers/create", {**body, "Entrypoint": []}))
        call(self._engine, "POST", f"/containers/{made['Id']}/start")
        return str(made["Id"])

    def start_for_turns(self) -> str:
        """:returns: the id of a container that has this machine's network."""
        return self.start(NetworkMode="host")

    def stop(self, container: str) -> None:
        """Remove a container."""
        call(self._engine, "DELETE", f"/containers/{container}?force=1")

    def turn(self, container: str) -> str:
        """:returns: what the agent's program printed."""
        environment = [f"{name}={value}" for name, value in self._environment.items()]
        streams = {"AttachStdout": True, "AttachStderr": True}
        command = {**streams, "Env": environment, "Cmd": [*DIRECT, "--print", "Go on."]}
        run = json.loads(call(self._engine, "POST", f"/containers/{container}/exec", command))["Id"]
        return call(self._engine, "POST", f"/exec/{run}/start", {"Detach": False}).decode("utf-8", "replace")


@contextlib.contextmanager
def prepared() -> Iterator[tuple[Product, StubProcess, str]]:
    """Give a person's home with settings, the model, and the image, which is built if there is none."""
    with contextlib.ExitStack() as stack:
        product, stub = Product(), StubProcess(keys={"anthropic": KEY})
        stack.callback(product.close)
        stack.callback(stub.close)
        product.environ |= {**agent_images.environment(), "ANTHROPIC_API_KEY": KEY}
        subprocess.run(product.command("images", "build", "claude-code"), env=product.environ, check=True)
        images = {image["agent"]: image["reference"] for image in product.json("images", "list")}
        product.home.mkdir(mode=0o700, exist_ok=True)
        (product.home / "config.toml").write_text(
            f'[providers.anthropic]\nbase_url = "{stub.url}"\nca_file = "{stub.ca}"\n'
        )
        yield product, stub, images["claude-code"]


def timed(work: Any, *arguments: Any) -> tuple[float, Any]:
    """:returns: the seconds that a call takes, and what it gives."""
    begun = time.perf_counter()
    got = work(*arguments)
    return time.perf_counter() - begun, got


def measure_starts(ours: Ours, direct: Direct, count: int) -> None:
    """Measure in turns, and print a table."""
    (first, number), times, floor = timed(ours.start), list[float](), list[float]()
    ours.stop(number)
    for _ in range(count):
        took, container = timed(direct.start)
        direct.stop(container)
        floor.append(took)
        took, number = timed(ours.start)
        ours.stop(number)
        times.append(took)
    middle = statistics.median(floor)
    print(f"{'start':<34}{'p50 ms':>8}{'max ms':>8}{'x floor':>9}")
    for name, seen in (("container alone (floor)", floor), ("session", times), ("first session of a daemon", [first])):
        p50 = statistics.median(seen)
        print(f"{name:<34}{p50 * 1e3:8.0f}{max(seen) * 1e3:8.0f}{p50 / middle:9.2f}")


def measure_turns(ours: Ours, direct: Direct, stub: StubProcess, rounds: int) -> None:
    """Measure in turns after a first turn of each, and print a table."""
    answer = {"content": [{"type": "text", "chunks": WORDS}], "pause": PAUSE}
    stub.add(*[answer] * 2 * (rounds + 1))
    number, container = ours.start(), direct.start_for_turns()
    ways = {"without us": (direct.turn, container), "with us": (ours.turn, number)}
    times: dict[str, list[float]] = {name: [] for name in ways}
    try:
        for _ in range(rounds + 1):
            for name, (turn, where) in ways.items():
                took, said = timed(turn, where)
                assert "".join(WORDS).strip() in said, said
                times[name].append(took)
    finally:
        ours.stop(number)
        direct.stop(container)
    middle = statistics.median(times["without us"][1:])
    print(f"\n{'turn':<34}{'p50 ms':>8}{'max ms':>8}{'x':>9}{'first ms':>10}")
    for name, (first, *seen) in times.items():
        p50 = statistics.median(seen)
        print(f"{name:<34}{p50 * 1e3:8.0f}{max(seen) * 1e3:8.0f}{p50 / middle:9.3f}{first * 1e3:10.0f}")
    requests = len(stub.requests) / 2 / (rounds + 1)
    print(f"the model took {EVENTS * PAUSE:g} s of each; {requests:.1f} requests a turn; load {os.getloadavg()[0]:.1f}")


def main() -> None:
    """Measure both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=20, help="sessions to start (default 20)")
    parser.add_argument("--rounds", type=int, default=25, help="turns with and without us (default 25)")
    options = parse(parser, starts=1, rounds=1)
    with prepared() as (product, stub, image), daemon(product.home, product.environ):
        ours, direct = Ours(product, "claude-code"), Direct(product.person / "direct", stub, image)
        measure_starts(ours, direct, options.starts)
        measure_turns(ours, direct, stub, options.rounds)


if __name__ == "__main__":
    main()

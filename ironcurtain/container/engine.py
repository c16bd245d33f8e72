"""The Docker Engine: its calls as coroutines. The one client for everything that is done with containers and images."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

import msgspec

from ironcurtain.container.errors import EngineError, EngineUnavailable
from ironcurtain.container.http import CALL_SECONDS, EngineHttp, Query
from ironcurtain.container.image_calls import ImageCalls
from ironcurtain.container.spec import ContainerSpec
from ironcurtain.container.streams import Receiver, Stream
from ironcurtain.container.wire import Demultiplexer
from ironcurtain.errors import IronCurtainError

USUAL_SOCKET = "/var/run/docker.sock"

DETACH_KEYS = b",".join((b"\xff", b"\xfe") * 8)
"""
The Engine looks for some keys in a terminal's input and closes the stream when they come; it cannot be told not to, and
its default would withhold every Ctrl-P. No terminal sends these 16 bytes: none of them is in any UTF-8. All that comes
of it is that a 0xFF at the end of the input waits for the next byte.
"""


class Engine:
    """
    One Engine, reached over a UNIX socket.

    Every method raises :class:`EngineUnavailable` if it does not answer, and
    :class:`~ironcurtain.container.errors.EngineError` for what it refuses.

    :param reactor: for connections and time limits.
    :param socket: path of its socket.
    :ivar clock: that reactor.
    :ivar images: the calls about images.
    """

    def __init__(self, reactor: Any, socket: str) -> None:
        self._http = EngineHttp(reactor, socket)
        self.clock = reactor
        self.images = ImageCalls(self._http)
        self._processors = 0.0

    @classmethod
    def find(cls, reactor: Any, environ: Mapping[str, str]) -> Engine:
        """
        The Engine that ``DOCKER_HOST`` names, else the system's, else the user's own. Nothing is asked of it yet.

        :raises EngineUnavailable: ``DOCKER_HOST`` names no UNIX socket.
        """
        named = environ.get("DOCKER_HOST", "")
        if named and not named.startswith("unix:///"):
            raise EngineUnavailable(named, "DOCKER_HOST has to be unix:///...: containers mount files of this machine")
        if named:
            return cls(reactor, named.removeprefix("unix://"))
        own = os.path.join(environ.get("XDG_RUNTIME_DIR", "/nonexistent"), "docker.sock")
        reachable = [path for path in (USUAL_SOCKET, own) if os.access(path, os.R_OK | os.W_OK)]
        return cls(reactor, reachable[0] if reachable else USUAL_SOCKET)

    @property
    def address(self) -> str:
        """Of its socket, for people."""
        return self._http.address

    async def ping(self) -> None:
        """Make sure that an Engine answers, and that it is new enough."""
        await self._http.negotiate()

    async def info(self) -> dict[str, Any]:
        """:returns: what the Engine says about itself and this machine, as it says it (``GET /info``)."""
        return _decoded(await self._http.call("GET", "/info"))

    async def processors(self) -> float:
        """:returns: how many a container may have at most, which is asked once; infinite where nobody says it."""
        if not self._processors:
            try:
                found = (await self.info()).get("NCPU")
            except IronCurtainError:
                return math.inf
            self._processors = float(found) if isinstance(found, int) and found > 0 else math.inf
        return self._processors

    async def create(self, spec: ContainerSpec) -> str:
        """
        Make a container; it does not run yet.

        :returns: its id.
        """
        query = {"name": spec.name}
        return str(_decoded(await self._http.call("POST", "/containers/create", query, spec.create_request()))["Id"])

    async def start(self, container: str) -> None:
        """Start the main program; harmless if it runs."""
        await self._act(container, "start")

    async def stop(self, container: str, grace: int) -> None:
        """Send SIGTERM, and SIGKILL after ``grace`` seconds; harmless if it does not run. Fires when it has ended."""
        await self._act(container, "stop", {"t": str(grace)}, patience=grace + CALL_SECONDS)

    async def kill(self, container: str) -> None:
        """Send SIGKILL to the first process, with which everything inside ends."""
        await self._act(container, "kill")

    async def remove(self, container: str) -> None:
        """Remove a container, ended or not, with the volumes that it brought along."""
        await self._http.call("DELETE", _container(container), {"force": "true", "v": "true"})

    async def inspect(self, container: str) -> dict[str, Any]:
        """:returns: everything about a container, as the Engine says it."""
        return _decoded(await self._http.call("GET", f"{_container(container)}/json"))

    async def tasks(self, container: str) -> int:
        """:returns: how many processes and threads it has, as the kernel counts them; 0 where nobody says it."""
        query = {"stream": "false", "one-shot": "true"}
        said = _decoded(await self._http.call("GET", f"{_container(container)}/stats", query)).get("pids_stats")
        return int(said.get("current") or 0) if isinstance(said, dict) else 0

    async def wait(self, container: str) -> int:
        """
        Wait until a container does not run, for as long as that takes.

        :returns: the exit status of its main program; 137 for SIGKILL.
        """
        answer = await self._http.call("POST", f"{_container(container)}/wait", patience=None)
        return int(_decoded(answer)["StatusCode"])

    async def list(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """:returns: a summary of each container that has all these labels, running or not."""
        filters = msgspec.json.encode({"label": [f"{name}={value}" for name, value in labels.items()]}).decode()
        found: list[dict[str, Any]] = msgspec.json.decode(
            await self._http.call("GET", "/containers/json", {"all": "true", "filters": filters})
        )
        return found

    async def resize(self, container: str, rows: int, columns: int) -> None:
        """Tell the terminal of a running container its size."""
        await self._act(container, "resize", {"h": str(rows), "w": str(columns)})

    async def output(self, container: str, lines: int) -> str:
        """:returns: the last lines that the main program of a container without a terminal wrote."""
        query = {"stdout": "true", "stderr": "true", "tail": str(lines)}
        frames = await self._http.call("GET", f"{_container(container)}/logs", query)
        return b"".join(piece for _, piece in Demultiplexer().feed(frames)).decode("utf-8", "replace")

    async def attach(self, container: str, receive: Receiver) -> Stream:
        """
        Connect with the terminal of a container that runs, or is made and not started: its bytes, as they are, both
        ways.

        :param receive: gets what is written from now on.
        """
        if (await self.inspect(container))["State"]["Status"] not in ("created", "running"):
            # The Engine would hand over a stream that hangs.
            raise EngineError(409, f"container {container} is not running")
        query: Query = {
            **dict.fromkeys(("stream", "stdin", "stdout", "stderr"), "true"),
            "detachKeys": DETACH_KEYS,
        }
        return await self._http.hijack(f"{_container(container)}/attach", query, {}, receive)

    async def create_exec(
        self, container: str, argv: Sequence[str], environment: Mapping[str, str], has_input: bool
    ) -> str:
        """
        Prepare a program to be run in a running container.

        :param has_input: whether it reads from us; else its input is empty.
        :returns: the id of the run.
        """
        body = {
            "Cmd": list(argv),
            "Env": [f"{name}={value}" for name, value in environment.items()],
            "AttachStdin": has_input,
            "AttachStdout": True,
            "AttachStderr": True,
        }
        return str(_decoded(await self._http.call("POST", f"{_container(container)}/exec", body=body))["Id"])

    async def start_exec(self, run: str, receive: Receiver) -> Stream:
        """
        Start what :meth:`create_exec` prepared.

        :param receive: gets frames (:class:`~ironcurtain.container.wire.Demultiplexer`).
        """
        return await self._http.hijack(
            f"/exec/{quote(run, safe='')}/start", {}, {"Detach": False, "Tty": False}, receive
        )

    async def inspect_exec(self, run: str) -> dict[str, Any]:
        """:returns: everything about a run, ``Running`` and ``ExitCode`` among it."""
        return _decoded(await self._http.call("GET", f"{_run(run)}/json"))

    async def _act(
        self, container: str, what: str, query: Mapping[str, str] | None = None, *, patience: float = CALL_SECONDS
    ) -> None:
        await self._http.call("POST", f"{_container(container)}/{what}", query, patience=patience)


def _container(name: str) -> str:
    return f"/containers/{quote(name, safe='')}"


def _run(run: str) -> str:
    return f"/exec/{quote(run, safe='')}"


def _decoded(body: bytes) -> dict[str, Any]:
    return msgspec.json.decode(body, type=dict[str, Any])

"""The Docker Engine: its calls as coroutines, and the states of containers."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol
from urllib.parse import quote

import msgspec

from ironcurtain.container.build_report import BuildReport
from ironcurtain.container.client import CALL_SECONDS, EngineClient
from ironcurtain.container.engine_socket import engine_socket, is_usable
from ironcurtain.container.errors import EngineError
from ironcurtain.container.streams import EngineStream, Receiver
from ironcurtain.errors import IronCurtainError

BUILD_SILENCE_SECONDS = 600.0
"""Time limit in seconds for silence during a build (one download of a few hundred MB is silent)."""

DETACH_KEYS = b",".join((b"\xff", b"\xfe") * 8)
"""
The detach keys. The Engine searches a terminal's input for these keys and closes the stream on a match; this cannot be
disabled, and the default would hold back every Ctrl-P. No terminal sends these 16 bytes, since none of them occurs in
UTF-8. The only effect is that a 0xFF at the end of the input waits for the next byte.
"""


KILLED = 137
"""Exit status after SIGKILL, also of all processes in a container that ends."""


class ContainerState(msgspec.Struct, frozen=True):
    """
    The state of a container.

    :param pid: process id of its first process on this machine, if the Engine runs here; 0 if none runs.
    :param exit_status: exit status of the main program; 0 while it runs.
    :param out_of_memory: whether a process was killed because memory was used up.
    :param error: why it did not start, in the Engine's words.
    """

    running: bool
    pid: int
    exit_status: int
    out_of_memory: bool
    error: str

    @classmethod
    def of(cls, inspected: Mapping[str, Any]) -> ContainerState:
        """:param inspected: the result of :meth:`Engine.inspect`."""
        state = inspected["State"]
        return cls(
            bool(state["Running"]),
            int(state.get("Pid") or 0),
            int(state.get("ExitCode") or 0),
            bool(state.get("OOMKilled")),
            str(state.get("Error") or ""),
        )

    @property
    def reason(self) -> str:
        """Why it does not run, for people."""
        if self.out_of_memory:
            return f"it used up its memory (resources.memory_mb), exit status {self.exit_status}"
        if self.error:
            return self.error
        return (
            f"it was killed, exit status {KILLED}" if self.exit_status == KILLED else f"exit status {self.exit_status}"
        )


class Creatable(Protocol):
    """What a container is created from."""

    @property
    def name(self) -> str:
        """Its name in the Engine; empty: the Engine chooses one."""

    def create_request(self) -> dict[str, Any]:
        """:returns: the body of ``POST /containers/create``."""


class Engine:
    """
    One Engine, reached over a UNIX socket.

    Every method raises :class:`EngineUnavailable` if the Engine does not answer, and :class:`EngineError` if it refuses
    (status 404: the object does not exist).

    :param reactor: for connections, time limits and results of threads.
    :param socket: path of its socket.
    :param seconds: how long it may be silent during a call.
    :ivar clock: the reactor.
    :ivar address: address of its socket, for people.
    """

    def __init__(self, reactor: Any, socket: str, seconds: float = CALL_SECONDS) -> None:
        self._client = EngineClient(reactor, socket, seconds)
        self.clock, self.address = reactor, self._client.address
        self._processors = 0.0

    @classmethod
    def find(cls, reactor: Any, environ: Mapping[str, str]) -> Engine:
        """
        The Engine of :func:`~ironcurtain.container.engine_socket.engine_socket`. It is not contacted yet.

        :raises EngineUnavailable: ``DOCKER_HOST`` is not a UNIX socket.
        """
        return cls(reactor, engine_socket(environ))

    @property
    def has_socket(self) -> bool:
        """Whether it has a socket that this process may use; if not, it is not running."""
        return is_usable(self.address.removeprefix("unix://"))

    @property
    def is_own(self) -> bool:
        """Whether its socket belongs to the account of this process: then the two can have the same rights."""
        try:
            return os.stat(self.address.removeprefix("unix://")).st_uid == os.geteuid()
        except OSError:
            return False

    def close(self) -> None:
        """Let its threads end, without waiting for them. It can be used again."""
        self._client.close()

    async def ping(self) -> None:
        """Check that an Engine answers and is new enough."""
        await self._client.negotiate()

    async def info(self) -> dict[str, Any]:
        """:returns: the Engine's description of itself and this machine (``GET /info``)."""
        return await self._client.call(lambda docker: docker.info())

    async def processors(self) -> float:
        """:returns: the maximum number of processors of a container, fetched once; infinite if unknown."""
        if not self._processors:
            try:
                found = (await self.info()).get("NCPU")
            except IronCurtainError:
                return math.inf
            self._processors = float(found) if isinstance(found, int) and found > 0 else math.inf
        return self._processors

    async def create(self, spec: Creatable) -> str:
        """
        Create a container without starting it.

        :returns: its id.
        """
        request = spec.create_request()
        made = await self._client.call(lambda docker: docker.create_container_from_config(request, spec.name or None))
        return str(made["Id"])

    async def start(self, container: str) -> None:
        """Start the main program; no effect if it runs."""
        await self._client.call(lambda docker: docker.start(container))

    async def stop(self, container: str, grace: int) -> None:
        """Send SIGTERM, and SIGKILL after ``grace`` seconds; no effect if it does not run. Fires when it has ended."""
        await self._client.call(lambda docker: docker.stop(container, grace))

    async def kill(self, container: str) -> None:
        """Send SIGKILL to the first process, which ends all processes inside."""
        await self._client.call(lambda docker: docker.kill(container))

    async def remove(self, container: str) -> None:
        """Remove a container, running or not, with its anonymous volumes."""
        await self._client.call(lambda docker: docker.remove_container(container, v=True, force=True))

    async def inspect(self, container: str) -> dict[str, Any]:
        """:returns: the Engine's complete description of a container."""
        return await self._client.call(lambda docker: docker.inspect_container(container))

    async def tasks(self, container: str) -> int:
        """:returns: the kernel's number of its processes and threads; 0 if unknown."""
        said = await self._client.call(lambda docker: docker.stats(container, stream=False, one_shot=True))
        found = said.get("pids_stats")
        return int(found.get("current") or 0) if isinstance(found, dict) else 0

    async def wait(self, container: str) -> int:
        """
        Wait until a container does not run, without a time limit.

        :returns: the exit status of its main program; 137 for SIGKILL.
        """
        answer = bytearray()
        await self._client.read(f"{_container(container)}/wait", {}, b"", answer.extend)
        return int(msgspec.json.decode(answer)["StatusCode"])

    async def list_containers(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """:returns: a summary of each container with all these labels, running or not."""
        return await self._client.call(lambda docker: docker.containers(all=True, filters=_with_labels(labels)))

    async def resize(self, container: str, rows: int, columns: int) -> None:
        """Set the size of the terminal of a running container."""
        await self._client.call(lambda docker: docker.resize(container, rows, columns))

    async def output(self, container: str, lines: int) -> str:
        """:returns: the last lines of output of a container's main program."""
        said = await self._client.call(lambda docker: docker.logs(container, tail=lines))
        return said.decode("utf-8", "replace")

    async def attach(self, container: str, receive: Receiver) -> EngineStream:
        """
        Attach to the input and output of a running or newly created container: a raw stream in both directions.

        :param receive: called with output from now on; without a terminal, with frames
            (:class:`~ironcurtain.container.streams.Demultiplexer`).
        """
        if (await self.inspect(container))["State"]["Status"] not in ("created", "running"):
            # The Engine would return a stream that hangs.
            raise EngineError(409, f"container {container} is not running")
        query = {**dict.fromkeys(("stream", "stdin", "stdout", "stderr"), b"true"), "detachKeys": DETACH_KEYS}
        return await self._client.stream(f"{_container(container)}/attach", query, b"{}", receive, upgrade=True)

    async def create_exec(
        self, container: str, argv: Sequence[str], environment: Mapping[str, str], has_input: bool
    ) -> str:
        """
        Prepare to run a program in a running container.

        :param has_input: whether it reads input from this process; else its input is empty.
        :returns: the id of the run.
        """
        line, given = [*argv], {**environment}
        made = await self._client.call(
            lambda docker: docker.exec_create(container, line, stdin=has_input, environment=given)
        )
        return str(made["Id"])

    async def start_exec(self, run: str, receive: Receiver) -> EngineStream:
        """
        Start a run prepared by :meth:`create_exec`.

        :param receive: called with frames (:class:`~ironcurtain.container.streams.Demultiplexer`).
        """
        path, body = f"/exec/{quote(run, safe='')}/start", b'{"Detach":false,"Tty":false}'
        return await self._client.stream(path, {}, body, receive, upgrade=True)

    async def inspect_exec(self, run: str) -> dict[str, Any]:
        """:returns: the description of a run, including ``Running`` and ``ExitCode``."""
        return await self._client.call(lambda docker: docker.exec_inspect(run))

    async def create_network(self, name: str, labels: Mapping[str, str], *, internal: bool) -> str:
        """
        Create a network.

        :param internal: whether it reaches no other machine.
        :returns: its id.
        """
        made = await self._client.call(
            lambda docker: docker.create_network(
                name, "bridge", internal=internal, labels={**labels}, check_duplicate=True
            )
        )
        return str(made["Id"])

    async def inspect_network(self, network: str) -> dict[str, Any]:
        """:returns: the Engine's complete description of a network, with its containers."""
        return await self._client.call(lambda docker: docker.inspect_network(network))

    async def remove_network(self, network: str) -> None:
        """Remove a network. Refused (403) while a container is in it."""
        await self._client.call(lambda docker: docker.remove_network(network))

    async def list_networks(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """:returns: a description of each network with all these labels."""
        return await self._client.call(lambda docker: docker.networks(filters=_with_labels(labels)))

    async def create_volume(self, name: str, labels: Mapping[str, str], options: Mapping[str, str]) -> str:
        """
        Create a volume of the Engine's own driver.

        :param options: of that driver: ``type``, ``device`` and ``o``, as mount(8) has them.
        :returns: its name.
        """
        made = await self._client.call(lambda docker: docker.create_volume(name, "local", {**options}, {**labels}))
        return str(made["Name"])

    async def remove_volume(self, volume: str) -> None:
        """Remove a volume with its content. Refused (409) while a container uses it."""
        await self._client.call(lambda docker: docker.remove_volume(volume))

    async def list_volumes(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """:returns: a description of each volume with all these labels."""
        found = await self._client.call(lambda docker: docker.volumes(filters=_with_labels(labels)))
        return found.get("Volumes") or []

    async def list_images(self, labels: Mapping[str, str]) -> list[dict[str, Any]]:
        """:returns: a summary of each image with all these labels; an empty value matches any."""
        return await self._client.call(lambda docker: docker.images(filters=_with_labels(labels)))

    async def find_image(self, name: str) -> dict[str, Any] | None:
        """:returns: the description of an image; ``None`` if there is none of this name."""
        try:
            return await self.inspect_image(name)
        except EngineError as e:
            if e.status == 404:
                return None
            raise

    async def inspect_image(self, name: str) -> dict[str, Any]:
        """:returns: the Engine's complete description of an image."""
        return await self._client.call(lambda docker: docker.inspect_image(name))

    async def remove_image(self, name: str) -> None:
        """Remove an image's name, and with its last name the image. Refused (409) while a container uses it."""
        await self._client.call(lambda docker: docker.remove_image(name))

    async def pull_image(self, name: str) -> None:
        """
        Pull an image from its registry, with the login that the person has for it with ``docker login``.

        :param name: with a tag or a digest; else its tag is ``latest``.
        :raises EngineError: it cannot be pulled.
        """
        header = await self._client.call(lambda docker: docker.registry_login(name))
        query = {"fromImage": name if has_version(name) else f"{name}:latest"}
        report, headers = BuildReport(lambda line: None), {"X-Registry-Auth": header} if header else {}
        await self._client.read(
            "/images/create", query, b"", report.feed, silence=BUILD_SILENCE_SECONDS, headers=headers
        )
        if report.error:
            raise EngineError(500, report.error)

    async def digest_of(self, name: str) -> str:
        """:returns: the digest of an image in its registry, which names its content."""
        found = await self._client.call(lambda docker: docker.inspect_distribution(name))
        return str(found["Descriptor"]["digest"])

    async def build_image(
        self,
        context: bytes,
        *,
        tag: str,
        labels: Mapping[str, str],
        arguments: Mapping[str, str],
        network: str,
        progress: Callable[[str], None],
        target: str = "",
    ) -> str:
        """
        Build an image.

        :param context: a tar archive with a ``Dockerfile``.
        :param arguments: values of the Dockerfile's ``ARG`` lines.
        :param network: network of the steps: ``default``, ``host`` or ``none``.
        :param progress: called with each line that the build prints.
        :param target: the stage that becomes the image; empty: the last one.
        :returns: the image's id.
        :raises EngineError: a step failed; the message is the build's error.
        """
        query: dict[str, str | bytes] = {
            "t": tag,
            "labels": msgspec.json.encode(labels),
            "buildargs": msgspec.json.encode(arguments),
            "networkmode": network,
            "target": target,
            "rm": "true",
            "forcerm": "true",
        }
        report, content_type = BuildReport(progress), "application/x-tar"
        await self._client.read(
            "/build", query, context, report.feed, content_type=content_type, silence=BUILD_SILENCE_SECONDS
        )
        if report.error or not report.image:
            raise EngineError(500, report.error or "the build ended without an image")
        return report.image


def has_version(name: str) -> bool:
    """:returns: whether a reference to an image has a tag or a digest."""
    return "@" in name or ":" in name.rpartition("/")[2]


def _with_labels(labels: Mapping[str, str]) -> dict[str, list[str]]:
    """:returns: the filter for what has all these labels; an empty value matches any."""
    return {"label": [f"{name}={value}" if value else name for name, value in labels.items()]}


def _container(name: str) -> str:
    return f"/containers/{quote(name, safe='')}"

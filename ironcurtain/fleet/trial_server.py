"""A server of NATS for trying a fleet on one machine: the extra's program, as long as this process runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from types import FrameType

from ironcurtain.errors import NotFound, Unavailable
from ironcurtain.files.private import file_stamp
from ironcurtain.fleet.joining import ServerFiles
from ironcurtain.platform.processes import end_with_parent
from ironcurtain.process.programs import find_program

PROGRAM = "nats-server"

START_SECONDS, LOOK_SECONDS = 10.0, 0.5
"""Time limit in seconds for the server's start; and seconds between two looks at its file."""

SHOWN = 600
"""Maximum number of characters of what a server says that does not start."""


def find_server() -> str:
    """
    :returns: the server's program: that of the extra, beside this Python, or of the ``PATH``.
    :raises NotFound: there is none.
    """
    path = os.pathsep.join((str(Path(sys.executable).parent), os.environ.get("PATH", os.defpath)))
    try:
        return find_program(PROGRAM, {"PATH": path}, "/")
    except NotFound:
        raise NotFound(f"there is no {PROGRAM}: pip install 'ironcurtain[fleet]' brings one") from None


class TrialServer:
    """
    :param program: see :func:`find_server`.
    :param files: its configuration; when a host is added, it is read again.
    """

    def __init__(self, program: str, files: ServerFiles) -> None:
        self._program, self._files = program, files
        self._log = files.directory / "nats-server.log"
        self._process: subprocess.Popen[bytes] | None = None
        self._stamp: tuple[int, ...] | None = None

    def start(self) -> None:
        """
        Start it, and wait until it answers. Where the system can do that, it is killed should this process be.

        :raises Unavailable: it does not start, for instance since its port is in use.
        """
        self._stamp = file_stamp(self._files.configuration)
        self._require_free()
        with self._log.open("wb") as log:
            self._log.chmod(0o600)
            self._process = subprocess.Popen(
                [self._program, "-c", str(self._files.configuration)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, umask=0o077, preexec_fn=end_with_parent,
                start_new_session=True,  # Ctrl-C is for this process
            )  # fmt: skip
        end = time.monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise Unavailable(f"the server did not start: {self._log.read_text(errors='replace')[-SHOWN:].strip()}")
            time.sleep(LOOK_SECONDS / 10)

    def run(self, ready: Callable[[], None]) -> int:
        """
        Start it, and let it run until this process gets SIGINT, SIGTERM or SIGHUP.

        :param ready: called once it runs.
        :returns: the number of that signal.
        :raises Unavailable: it does not start, or ends by itself.
        """
        ended: list[int] = []

        def signalled(number: int, frame: FrameType | None) -> None:
            ended.append(number)

        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signalled)
        self.start()
        assert self._process is not None
        ready()
        while not ended:
            with suppress(subprocess.TimeoutExpired):
                self._process.wait(LOOK_SECONDS)
                if not ended:
                    raise Unavailable(f"the server has ended: see {self._log}")
            if (stamp := file_stamp(self._files.configuration)) != self._stamp:
                self._stamp = stamp
                self._process.send_signal(signal.SIGHUP)
        self.stop()
        return ended[0]

    def stop(self) -> None:
        """End it, with all it has stored on the disk."""
        assert self._process is not None
        self._process.terminate()
        self._process.wait()

    @property
    def _address(self) -> tuple[str, int]:
        address, _, port = self._files.listen.rpartition(":")
        return address.strip("[]"), int(port)

    def _require_free(self) -> None:
        """:raises Unavailable: something listens there already, which would be taken for the server."""
        with suppress(OSError):
            socket.create_connection(self._address, timeout=1.0).close()
            raise Unavailable(f"{self._files.listen} is in use: a server runs already, or --listen takes another port")

    def _answers(self) -> bool:
        try:
            socket.create_connection(self._address, timeout=1.0).close()
        except OSError:
            return False
        return self._process is not None and self._process.poll() is None

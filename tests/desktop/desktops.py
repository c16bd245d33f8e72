"""Desktops for tests: a display, a window manager and buses of their own, and the server as the product runs it."""

from __future__ import annotations

import base64
import ctypes
import io
import json
import os
import select
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tests.commands import PR_SET_CHILD_SUBREAPER
from tests.programs import find, program

SECONDS = 120.0
"""How long something may take that takes far less than a second on an idle machine."""

MARK = "IRONCURTAIN_TEST_DESKTOP"
"""A variable of all processes of a desktop, by which they are found at its end: buses start some of them."""

SCREEN = (1280, 800)

_PARTS = ("dbus-daemon", "/usr/libexec/at-spi-bus-launcher", "zenity", "mousepad")


def wait_for(condition: Callable[[], Any], what: str, pause: float = 0.02) -> Any:
    """
    Look ever less often, since a look at a desktop takes its processes tens of milliseconds.

    :param pause: seconds between the first two looks.
    :returns: the first true result of a condition, which other processes bring about.
    """
    until = time.monotonic() + SECONDS
    while not (found := condition()):
        if time.monotonic() > until:
            raise AssertionError(f"{what} did not come within {SECONDS:g} s")
        select.select([], [], [], pause)
        pause = min(pause * 1.5, 0.25)
    return found


def listens(path: str) -> bool:
    """:returns: whether a program listens at a socket, which can exist before that."""
    with socket.socket(socket.AF_UNIX) as trial:
        return trial.connect_ex(path) == 0


class Desktop:
    """
    A bus in a directory of its own; what is shown comes with subclasses.

    :param as_nobody: whether its processes belong to the account ``nobody``, if this is root.
    :ivar environ: of its processes; names it to the server.
    :ivar display: the process of its X server, if it has one.
    """

    def __init__(self, as_nobody: bool = False) -> None:
        for name in _PARTS:
            program(name)
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        self.top = tempfile.mkdtemp(prefix="ic-desktop-")
        self.display: subprocess.Popen[bytes]
        self._mark = uuid.uuid4().hex
        self._before: list[str] = []
        self._started: list[subprocess.Popen[bytes]] = []
        if as_nobody and os.geteuid() == 0:
            self._before = [program("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
            os.chown(self.top, 65534, 65534)
        self.environ = {
            "PATH": f"{os.environ['PATH']}:/usr/sbin",
            "HOME": self.top,
            "XDG_RUNTIME_DIR": self.top,
            "LC_ALL": "C.UTF-8",
            "GTK_A11Y": "atspi",
            "GSK_RENDERER": "cairo",
            "GSETTINGS_BACKEND": "memory",
            MARK: self._mark,
        }
        self.show()
        self.run("dbus-daemon", "--session", "--nofork", "--nopidfile", f"--address=unix:path={self.top}/bus")
        wait_for(lambda: listens(f"{self.top}/bus"), "the bus")
        self.environ["DBUS_SESSION_BUS_ADDRESS"] = f"unix:path={self.top}/bus"

    def show(self) -> None:
        """Start a display, before the bus, so that what the bus starts has it too."""

    def run(self, name: str, *words: str, **options: Any) -> subprocess.Popen[bytes]:
        """Start a program on this desktop; the end of the desktop ends it."""
        line = [*self._before, find(name) or name, *words]
        nothing = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.DEVNULL)
        process = subprocess.Popen(
            line, cwd=self.top, start_new_session=True, **{"env": self.environ, **nothing, **options}
        )
        self._started.append(process)
        return process

    def server(self) -> Server:
        """:returns: the server for the desktop, which runs with the variables that the product gives it."""
        from ironcurtain.mcp_proxy.launch import FOR_DESKTOP, FOR_PYTHON

        environ = {name: self.environ[name] for name in (*FOR_DESKTOP, *FOR_PYTHON) if name in self.environ}
        environ |= {"LC_ALL": "C.UTF-8", MARK: self._mark}
        reaching = ["unshare", "--mount", "sh", "-c", f'{_reachable()}exec "$@"', "sh"] if self._before else []
        return Server([*reaching, *self._before, sys.executable, "-I", "-m", "ironcurtain.servers.desktop"], environ)

    def close(self) -> None:
        """End all processes, those too that a bus started."""
        mark = f"{MARK}={self._mark}".encode()

        def left() -> list[int]:
            found = []
            for entry in Path("/proc").iterdir():
                with suppress(OSError, ValueError):
                    if entry.name.isdecimal() and mark in (entry / "environ").read_bytes().split(b"\0"):
                        found.append(int(entry.name))
            return found

        for process in reversed(self._started):
            process.terminate()
        for process in self._started:
            with suppress(subprocess.TimeoutExpired):
                process.wait(2)  # the display removes its files
        known = {process.pid for process in self._started}
        others: set[int] = set()

        def ended() -> bool:
            for pid in (pids := left()):
                others.update({pid} - known)
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            return not pids

        wait_for(ended, "the end of all processes")
        for process in self._started:
            process.wait()
        for pid in others:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)
        shutil.rmtree(self.top, ignore_errors=True)

    def start_x(self) -> str:
        """:returns: the name of a display with X11, shown nowhere."""
        program("Xvfb")
        reading, writing = os.pipe()
        with open(reading, "rb") as number:
            size = f"{SCREEN[0]}x{SCREEN[1]}x24"
            words = ("-displayfd", str(writing), "-screen", "0", size, "-nolisten", "tcp", "-noreset")
            self.display = self.run("Xvfb", *words, pass_fds=[writing])
            os.close(writing)
            line = number.readline().decode().strip()  # to its end, or it has nowhere to write that
        if not line:
            raise AssertionError(f"Xvfb ended with status {self.display.wait()}")
        return f":{line}"


class XDesktop(Desktop):
    """One with X11, shown nowhere, and openbox."""

    def show(self) -> None:
        """Start a display."""
        program("openbox")
        self.environ["DISPLAY"] = self.start_x()
        self.run("openbox")


def _reachable() -> str:
    """:returns: commands of a shell that open the directories which hide our Python from others, in their view only."""
    steps = ""
    for path in map(Path, (os.path.realpath(sys.executable), sys.prefix, os.path.realpath(__file__))):
        for directory in reversed(path.parents):
            if not directory.stat().st_mode & 0o001:
                child = directory / path.relative_to(directory).parts[0]
                quoted = shlex.quote(str(directory)), shlex.quote(str(child))
                steps += (
                    "kept=$(mktemp -d) && mount --bind {1} $kept && mount -t tmpfs -o mode=755 none {0} && "
                    "mkdir {1} && mount --move $kept {1} && rmdir $kept && "
                ).format(*quoted)
    return steps


class Server:
    """The server, and its client."""

    def __init__(self, line: Sequence[str], environ: Mapping[str, str]) -> None:
        self.process = subprocess.Popen(line, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self._count = 0
        self.answer(self.send("initialize", protocolVersion="2025-11-25"))

    def send(self, method: str, **params: Any) -> int:
        """:returns: the number of the request."""
        assert self.process.stdin is not None
        self._count += 1
        message = {"jsonrpc": "2.0", "id": self._count, "method": method, "params": params}
        self.process.stdin.write(json.dumps(message) + "\n")
        self.process.stdin.flush()
        return self._count

    def answer(self, number: int) -> Any:
        """:returns: the result of a request."""
        assert self.process.stdout is not None
        found = json.loads(self.process.stdout.readline())
        assert found["id"] == number, found
        return found["result"]

    def parts(self, tool: str, **arguments: Any) -> list[dict[str, Any]]:
        """:returns: the parts of the result of a call that succeeds."""
        result = self.answer(self.send("tools/call", name=tool, arguments=arguments))
        assert not result["isError"], result
        return list(result["content"])

    def call(self, tool: str, **arguments: Any) -> Any:
        """:returns: the last part of the result of a call that succeeds."""
        return self.value({"content": self.parts(tool, **arguments)})

    @staticmethod
    def value(result: Mapping[str, Any]) -> Any:
        """:returns: the last part of a result."""
        return json.loads(result["content"][-1]["text"])

    def refusal(self, tool: str, **arguments: Any) -> str:
        """:returns: why a call is refused."""
        result = self.answer(self.send("tools/call", name=tool, arguments=arguments))
        assert result["isError"], result
        return str(result["content"][0]["text"])

    def window(self, app: str, title: str = "") -> dict[str, Any]:
        """:returns: a window, once it is there and where it stays: it may be moved after it was drawn."""
        places = list[Any]()

        def found() -> Any:
            listed = self.call("windows", app=app)
            window = next((each for each in listed if title in each["title"] and each["bounds"][2] > 20), None)
            places.append(window and window["bounds"])
            return window if places[-2:-1] == places[-1:] else None

        return dict(wait_for(found, f"a window of {app}", 0.1))

    def element(self, app: str, role: str, name: str = "", ref: str = "") -> dict[str, Any]:
        """:returns: an element, once it is there."""

        def found() -> Any:
            result = self.answer(self.send("tools/call", name="tree", arguments={"app": app, "ref": ref}))
            listed = [] if result["isError"] else json.loads(result["content"][-1]["text"])["elements"]
            return next((each for each in listed if (each["role"], each["name"]) == (role, name)), None)

        return dict(wait_for(found, f"{role} {name!r} of {app}"))

    def on(self, element: Mapping[str, Any], app: str) -> dict[str, Any]:
        """:returns: the arguments that name an element."""
        return {"app": app, "ref": element["ref"], "role": element["role"], "name": element["name"]}

    def close(self) -> None:
        """End its input, and wait for its end."""
        assert self.process.stdin is not None and self.process.stdout is not None
        self.process.stdin.close()
        self.process.wait(SECONDS)
        self.process.stdout.close()


BLACK = {(0, 0, 0)}
"""Colours of what is painted over."""


def colours(picture: dict[str, Any], about: str, bounds: list[int]) -> set[Any]:
    """:returns: the colours within a part of the screen in a picture, without its rim."""
    from PIL import Image

    known = json.loads(about)
    image, scale = Image.open(io.BytesIO(base64.b64decode(picture["data"]))).convert("RGB"), known["scale"]
    left, top = (bounds[at] - known["origin"][at] for at in (0, 1))
    box = (left + 6, top + 6, left + bounds[2] - 6, top + bounds[3] - 6)
    found = image.crop(tuple(int(edge * scale) for edge in box)).getcolors(1 << 24)  # type: ignore[arg-type]
    return {colour for _, colour in found or ()}

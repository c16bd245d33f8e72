"""The installed product, used as a person would: its commands as processes, in a home of their own."""

from __future__ import annotations

import atexit
import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, TypeVar

from tests.commands import Command as Command
from tests.commands import ForkServer
from tests.login import login_environ

LIMIT = 400.0
"""Seconds after which a command that hangs is killed and its test fails."""

ENDING_SECONDS = 60.0
"""How long what a command started may take to notice that the command is gone; what stays longer was left behind."""

BARE = ("HOME", "IRONCURTAIN_SSH_PORT", "IRONCURTAIN_TEST_RUN", "PATH", "TERM", "USER")
"""The variables that no command can do without in a test."""

CHANGING = (
    "CI",
    "COLUMNS",
    "DISPLAY",
    "DOCKER_HOST",
    "SHELL",
    "WAYLAND_DISPLAY",
)
"""What rightly changes answers, as it says where something is or how wide the terminal is; tests set these."""

T = TypeVar("T")


def _toml(value: Any) -> str:
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{name} = {_toml(member)}' for name, member in value.items())} }}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return json.dumps(value)


@cache
def fork_server() -> ForkServer:
    """:returns: one for all tests of this process, with a login like that of each home."""
    place = tempfile.TemporaryDirectory(prefix="ic-")
    atexit.register(place.cleanup)
    return ForkServer({**login_environ(Path(place.name)), "PATH": os.environ["PATH"]})


class Product:
    """A person's home with IronCurtain in it, below the temporary directory."""

    def __init__(self) -> None:
        self._fork_server = fork_server()
        self._before = set(children())
        self.person = Path(tempfile.mkdtemp(prefix="ic-"))
        self.person.chmod(
            0o1777
        )  # as root, sessions run as another account, which shall be able to do what is approved
        self.home = self.person / ".ironcurtain"
        self.project = self.person / "project"
        self.project.mkdir()
        kept = {name: os.environ[name] for name in BARE if name in os.environ}
        said = {name: value for name, value in login_environ(self.person / "my files").items() if name not in CHANGING}
        self.environ = {**said, **kept, "HOME": str(self.person), "TERM": "dumb", "USER": "ada"}
        self.environ |= {"PWD": str(self.project), "OLDPWD": str(self.person)}
        self.environ["IRONCURTAIN_SSH_PORT"] = "0"  # the usual port may be another daemon's
        self._started: list[Command] = []

    def script(self, *turns: dict[str, Any]) -> str:
        """:returns: the backend of a scripted model with these turns."""
        path = self.person / "script.toml"
        lines = ["version = 1"]
        for turn in turns:
            lines += ["[[turns]]", *(f"{name} = {_toml(value)}" for name, value in turn.items())]
        path.write_text("\n".join(lines))
        return f"scripted:{path}"

    def held(self, text: str) -> tuple[str, Path]:
        """:returns: the backend of a model that answers with a text as soon as a file exists, and that file."""
        gate, program = self.person / "gate", self.person / "held.sh"
        program.write_text(f"cat >/dev/null\nuntil test -e {gate}; do sleep 0.05; done\necho {shlex.quote(text)}\n")
        return f"subprocess:sh {program}", gate

    def command(self, *words: str, program: str = "ironcurtain") -> list[str]:
        """:returns: the command line of one of our commands."""
        return [str(Path(sys.executable).parent / program), *words]

    def run(self, *words: str, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a command to its end."""
        return self._run(self.start(*words, stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE), stdin)

    def start(self, *words: str, stdin: int = subprocess.PIPE) -> Command:
        """Start a command whose three streams are pipes, unless the first is another descriptor."""
        return self._start(self.command(*words), self.project, stdin)

    def twistd(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run twistd to its end: with a daemon, until that is up."""
        return self._run(self._start(self.command(*words, program="twistd"), self.person, subprocess.DEVNULL))

    def daemon(self, *words: str, inside: Sequence[str] = (), **variables: str) -> Command:
        """
        Start a daemon that stays in the foreground, without a terminal, as one of systemd's has none.

        :param words: options of twistd and of the daemon, with the name of the plugin.
        :param inside: the beginning of the command line.
        :param variables: more of its environment.
        """
        line = [*inside, *self.command("-n", "--pidfile=", *words, program="twistd")]
        return self._start(line, self.person, subprocess.DEVNULL, alone=True, **variables)

    def _start(
        self, line: Sequence[str], directory: Path, stdin: int, *, alone: bool = False, **variables: str
    ) -> Command:
        """Start a program of ours, if it makes no difference in a process where Python has begun already."""
        pipe, environ = subprocess.PIPE, {**self.environ, **variables}
        process: Command
        if self._fork_server.can_run(line, environ):
            with open(os.devnull, "rb") as nothing:
                given = {pipe: None, subprocess.DEVNULL: nothing.fileno()}.get(stdin, stdin)
                process = self._fork_server.start(line, environ, directory, given, alone=alone)
        else:
            process = subprocess.Popen(
                line, env=environ, cwd=directory, text=True, stdin=stdin, stdout=pipe, stderr=pipe,
                start_new_session=alone,
            )  # fmt: skip
        self._started.append(process)
        return process

    def _run(self, process: Command, stdin: str | None = None) -> subprocess.CompletedProcess[str]:
        try:
            read = process.communicate(stdin, LIMIT)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
        self._started.remove(process)
        assert process.returncode is not None
        return subprocess.CompletedProcess(process.args, process.returncode, *read)

    def on_a_terminal(self, *words: str) -> str:
        """:returns: what a command writes to a terminal of 24 rows, through a pager that stops nowhere."""
        ours, theirs = os.openpty()
        environ = {**self.environ, "PAGER": "cat", "TERM": "xterm", "LINES": "24", "COLUMNS": "80"}
        process = subprocess.Popen(
            self.command(*words), env=environ, cwd=self.project, stdin=theirs, stdout=theirs, stderr=subprocess.PIPE
        )
        os.close(theirs)
        written = b""
        with suppress(OSError):  # it ends so once the other side is closed
            while data := os.read(ours, 65536):
                written += data
        os.close(ours)
        _, error = process.communicate()
        assert process.returncode == 0, error
        return written.decode().replace("\r\n", "\n")

    def json(self, *words: str) -> Any:
        """:returns: what a command prints with ``--json``."""
        done = self.run(*words, "--json")
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def sessions(self) -> list[dict[str, Any]]:
        """:returns: the open sessions, without the command that lists them, which is slow to wait with."""
        return [session for session in self._ask_owners("/v1/sessions") if session["state"] != "closed"]

    def escalations(self) -> list[dict[str, Any]]:
        """:returns: what waits for a decision, in the same way."""
        return self._ask_owners("/v1/escalations?closed=0&after=0")

    def _ask_owners(self, path: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []
        for place in (self.home / "run").glob("*.sock"):
            with socket.socket(socket.AF_UNIX) as asking, suppress(ConnectionError, FileNotFoundError):
                asking.settimeout(LIMIT)
                asking.connect(str(place))
                asking.sendall(f"GET {path} HTTP/1.0\r\n\r\n".encode())
                head, _, body = b"".join(iter(partial(asking.recv, 65536), b"")).partition(b"\r\n\r\n")
                found += json.loads(body) if b" 200 " in head else ()
        return found

    def audit(self) -> list[dict[str, Any]]:
        """:returns: the records of the only session; one that is being written is left out."""
        (path,) = self.home.glob("sessions/*/audit.jsonl")
        return [json.loads(line) for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]

    def close(self) -> list[str]:
        """
        End everything and remove the home.

        :returns: the command lines of processes that commands left behind.
        """
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        end = time.monotonic() + ENDING_SECONDS
        while (left := self._running()) and time.monotonic() < end:
            time.sleep(0.02)
        for pid in left:
            os.kill(pid, 9)
        for pid in set(children()) - self._before:
            os.waitpid(pid, 0)
        shutil.rmtree(self.person)
        return list(left.values())

    def _running(self) -> dict[int, str]:
        """:returns: the command lines of processes that commands left behind; a zombie has none."""
        lines = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in set(children()) - self._before}
        return {pid: line.replace(b"\0", b" ").decode() for pid, line in lines.items() if line}


def children() -> Iterator[int]:
    """:returns: the pids of our children, adopted ones among them."""
    for task in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError, ProcessLookupError):  # a thread that has just ended
            yield from map(int, (task / "children").read_text().split())


def wait_until(holds: Callable[[], T], seconds: float = LIMIT) -> T:
    """
    Wait for something of which nobody tells, and look ever less often.

    :returns: what came true.
    :raises AssertionError: nothing did.
    """
    pause, end = 0.01, time.monotonic() + seconds
    while not (found := holds()):
        if time.monotonic() > end:
            raise AssertionError("it did not happen")
        time.sleep(pause)
        pause = min(pause * 1.3, 0.1)
    return found


def until(stream: Any, text: str) -> str:
    """
    Read a stream until a line holds a text.

    :returns: that line.
    """
    seen = []
    for line in stream:
        seen.append(line)
        if text in line:
            return str(line)
    raise AssertionError(f"{text!r} did not come; instead: {''.join(seen)}")

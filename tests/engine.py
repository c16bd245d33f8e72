"""
A Docker Engine for tests: one that is there already, or one that is started for this process and ended with it.

:func:`engine` gives the socket, :func:`image` an image to run. Where that cannot be, both
skip the test with the reason, which is a failure under CI.
"""

from __future__ import annotations

import atexit
import fcntl
import http.client
import io
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from twisted.trial.unittest import SkipTest

from tests.machine import demand_namespaces, process_descriptor
from tests.programs import program

START_SECONDS = 60.0
"""How long dockerd may take until it serves (it took 2 s)."""

STOP_SECONDS = 30.0
"""How long it may take to end (it took 1 s)."""

LABEL = "ironcurtain.test"
"""On every image of ours."""


@cache
def _found() -> str | SkipTest:
    """:returns: the socket, or why there is none; the answer holds for the whole test run."""
    try:
        return next(filter(_answers, _usual_sockets()), "") or _Daemon().socket
    except SkipTest as e:
        return e


def engine() -> str:
    """:returns: the path of an Engine's socket."""
    found = _found()
    if isinstance(found, SkipTest):
        raise found
    return found


def environment() -> dict[str, str]:
    """:returns: what tells programs which Engine to use."""
    return {"DOCKER_HOST": f"unix://{engine()}"}


@cache
def image(*programs: str) -> str:
    """
    :param programs: of this machine, such as ``socat``; ``python3`` is the Python of the tests.
    :returns: a small image with BusyBox (sh, sleep, setsid and some 300 others), those programs, and nothing else.
    """
    engine()
    return _import("-".join(("busybox", *programs)), _root_file_system(_busybox(), programs), "/bin")


@cache
def host_image() -> str:
    """
    :returns: an image without any program: its containers need ``/usr`` of this machine mounted, to which it has links.
    """
    engine()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        _add_directories(archive, *("etc", "etc/ssl", "etc/ssl/certs", "sbin", "usr", "var"))
        archive.addfile(tarfile.TarInfo("etc/ssl/certs/ca-certificates.crt"))
        for name in ("bin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            archive.addfile(link)
    return _import("host", buffer.getvalue(), "/usr/bin")


def _import(name: str, root: bytes, path: str) -> str:
    """:returns: the name of an image, made of an archive, that is removed with this process."""
    repository, tag = "ironcurtain-test", f"{name}-{os.getpid()}"
    query = urlencode({"fromSrc": "-", "repo": repository, "tag": tag})
    changes = urlencode([("changes", f"LABEL {LABEL}=1"), ("changes", f"ENV PATH={path}")])
    call("POST", f"/images/create?{query}&{changes}", root, "application/x-tar")
    atexit.register(call, "DELETE", f"/images/{repository}:{tag}?force=1")
    return f"{repository}:{tag}"


def _add_directories(archive: tarfile.TarFile, *names: str) -> None:
    for name in (*names, "tmp", "var/tmp"):
        entry = tarfile.TarInfo(name)
        entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if name.endswith("tmp") else 0o755
        archive.addfile(entry)


def call(method: str, path: str, body: bytes | None = None, content_type: str = "application/json") -> Any:
    """
    Make a call without the client that is tested.

    :returns: the answer's JSON; the lines' where it has several.
    """
    return _call(engine(), method, path, body, content_type)


def _call(socket: str, method: str, path: str, body: bytes | None = None, content_type: str = "") -> Any:
    connection = _Connection(socket)
    connection.request(method, path, body, {"Content-Type": content_type})
    answer = connection.getresponse()
    content = answer.read().decode()
    connection.close()
    if answer.status >= 400:
        raise AssertionError(f"{method} {path}: {answer.status} {content}")
    return [json.loads(line) for line in content.splitlines() if line.strip()]


class _Connection(http.client.HTTPConnection):
    def __init__(self, path: str) -> None:
        super().__init__("docker", timeout=START_SECONDS)
        self._path = path

    def connect(self) -> None:
        """Connect with the socket in place of a host."""
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


def _usual_sockets() -> Iterator[str]:
    if named := os.environ.get("DOCKER_HOST"):
        yield named.removeprefix("unix://")
        return
    yield "/var/run/docker.sock"
    if runtime := os.environ.get("XDG_RUNTIME_DIR"):
        yield f"{runtime}/docker.sock"


def _answers(path: str) -> bool:
    connection = _Connection(path)
    try:
        connection.request("GET", "/_ping")
        return connection.getresponse().status == 200
    except OSError:
        return False
    finally:
        connection.close()


class _Daemon:
    """
    dockerd with directories of its own, without a bridge, ended when this process ends, in whatever way.

    What it stores is kept for the next run, so that agents' images are built once; a second one at the same time stores
    elsewhere.
    """

    def __init__(self) -> None:
        if os.environ.get("DOCKER_HOST"):
            raise SkipTest(f"no Docker Engine answers at {os.environ['DOCKER_HOST']}")
        dockerd, setpriv = program("dockerd"), program("setpriv")
        if os.geteuid() != 0:
            raise SkipTest("no Docker Engine runs, and only root can start one")
        demand_namespaces()  # without them it starts, but no image can be made or run
        self._directory = Path(tempfile.mkdtemp(prefix="ic-docker-"))
        self._data = self._kept() or self._directory / "data"
        self.socket = str(self._directory / "docker.sock")
        with (self._directory / "log").open("wb") as log, socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ready:
            ready.bind(str(self._directory / "ready"))
            self._process = subprocess.Popen(
                [setpriv, "--pdeathsig", "TERM", dockerd, *self._options()],
                env={**os.environ, "NOTIFY_SOCKET": str(self._directory / "ready")},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
            atexit.register(self.stop)
            self._wait(ready)
        [containers] = _call(self.socket, "GET", "/containers/json?all=1")
        for left in containers:
            _call(self.socket, "DELETE", f"/containers/{left['Id']}?force=1")  # of a run that was killed

    def _options(self) -> list[str]:
        own = {
            "--host": f"unix://{self.socket}",
            "--data-root": self._data,
            "--exec-root": self._directory / "exec",
            "--pidfile": self._directory / "pid",
            "--bridge": "none",
            "--iptables": "false",
        }
        return [f"{name}={value}" for name, value in own.items()]

    def _kept(self) -> Path | None:
        """:returns: the directory that outlives this process, if no other one uses it; locked until this one ends."""
        cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "ironcurtain-tests")
        cache.mkdir(parents=True, exist_ok=True)
        self._lock = (cache / "docker.lock").open("w")
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return None
        return cache / "docker"

    def _wait(self, ready: socket.socket) -> None:
        """Until it says that it serves (sd_notify(3)), or ends."""
        ended = process_descriptor(self._process.pid)
        try:
            while True:
                readable, _, _ = select.select([ready.fileno(), ended], [], [], START_SECONDS)
                if ready.fileno() not in readable:
                    log = (self._directory / "log").read_text().splitlines()
                    raise SkipTest("dockerd does not start: " + " | ".join(log[-3:]))
                if b"READY=1" in ready.recv(4096):
                    return
        finally:
            os.close(ended)

    def stop(self) -> None:
        """End it, with its containers, and remove its files."""
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for line in Path("/proc/self/mounts").read_text().splitlines():  # network namespaces stay mounted
            if (target := line.split()[1]).startswith(f"{self._directory}/"):
                subprocess.run(["umount", "--lazy", target], check=False)
        shutil.rmtree(self._directory)


def _busybox() -> bytes:
    """:returns: the program, which must need no library."""
    content = Path(program("busybox")).read_bytes()
    if b"/ld-linux" in content[:4096]:  # the head of a program names the loader of its libraries
        raise SkipTest("busybox needs libraries (Debian and Ubuntu: apt install busybox-static)")
    return content


def _root_file_system(busybox: bytes, programs: tuple[str, ...]) -> bytes:
    listed = subprocess.run(["busybox", "--list"], capture_output=True, text=True, check=True).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        _add_directories(archive, "bin", "etc", "var")
        main = tarfile.TarInfo("bin/busybox")
        main.mode, main.size = 0o755, len(busybox)
        archive.addfile(main, io.BytesIO(busybox))
        links = dict.fromkeys(sorted(set(listed) - {"busybox"}), "busybox")
        for name in programs:
            links[name] = os.path.realpath(sys.executable if name == "python3" else program(name))
        for path in dict.fromkeys(path for name in programs for path in _files(links[name])):
            archive.add(os.path.realpath(path), path, filter=_needed)
        for name, target in links.items():
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
    return buffer.getvalue()


def _files(program: str) -> list[str]:
    """:returns: a program, its libraries, and those of Python if it is that."""
    libraries = subprocess.run(["ldd", program], capture_output=True, text=True, check=False).stdout
    python = [sysconfig.get_path("stdlib")] if program == os.path.realpath(sys.executable) else []
    return [program, *re.findall(r"(/\S+) \(0x", libraries), *python]


def _needed(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    left_out = {"test", "tests", "site-packages", "dist-packages", "idlelib", "lib2to3", "ensurepip"}
    parts = entry.name.split("/")
    return None if left_out & set(parts) or any(part.startswith("config-") for part in parts) else entry

"""
The proxy process of a program in a container: ``python -m ironcurtain.sandbox.run_container DESCRIPTOR PROGRAM ...``.

The container is removed when this process ends for any reason: a second process waits for that.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from threading import Thread

import msgspec
from docker.errors import DockerException, ImageNotFound
from docker.utils.socket import STDERR, frames_iter

from ironcurtain.sandbox.container import CANNOT_START, IMAGE, Order, image, request
from ironcurtain.sandbox.docker_client import DockerClient, connect
from ironcurtain.sandbox.spec import Sandbox

CALL_SECONDS = 60
"""Time limit in seconds of a call to the Engine; a busy disk needs seconds for a container."""


def main() -> int:
    """:returns: the program's exit status."""
    with open(int(sys.argv[1]), "rb") as given:
        order = msgspec.json.decode(given.read(), type=Order)
    own = Path(tempfile.mkdtemp(prefix="ironcurtain-sandbox-"))
    name = own.name
    _clean_up_after(order.engine, name, own)
    _write(own, order.sandbox)
    try:
        engine = connect(order.engine, CALL_SECONDS, CALL_SECONDS)
        made = request(order.sandbox, sys.argv[2:], os.environ, _image(engine), str(own))
        engine.create_container_from_config(made, name)
        attached = engine.attach_socket(name, {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1, "detachKeys": ""})
        # Only the descriptor of the package's socket object is used: the object cannot shut down one direction.
        stream = socket.socket(fileno=os.dup(attached.fileno()))
        stream.setblocking(True)
        engine.start(name)
    except (DockerException, OSError) as e:  # OSError: exceptions of requests
        print(f"the Docker Engine created no sandbox: {getattr(e, 'explanation', '') or e}", file=sys.stderr)
        return CANNOT_START
    Thread(target=_pass_input, args=(stream,), daemon=True).start()
    for kind, data in frames_iter(stream, tty=False):
        _write_all(2 if kind == STDERR else 1, data)
    return int(engine.wait(name)["StatusCode"])


def _image(engine: DockerClient) -> str:
    data = image()
    tag = hashlib.sha256(data).hexdigest()[:16]
    try:
        engine.inspect_image(f"{IMAGE}:{tag}")
    except ImageNotFound:
        engine.import_image_from_data(data, repository=IMAGE, tag=tag)
    return f"{IMAGE}:{tag}"


def _write(own: Path, sandbox: Sandbox) -> None:
    own.chmod(0o711)
    (own / "directory").mkdir(mode=0o555)
    for number, (_, content) in enumerate(sandbox.files):
        (own / str(number)).write_bytes(content)
        (own / str(number)).chmod(0o444)


def _clean_up_after(address: str, name: str, own: Path) -> None:
    reader, writer = os.pipe()
    if os.fork():
        os.close(reader)
        os.set_inheritable(writer, False)
        return
    os.close(writer)
    os.setsid()  # signals for the program's process group do not reach it
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    os.read(reader, 1)  # returns when the other process has ended
    with contextlib.suppress(Exception):
        connect(address, CALL_SECONDS, CALL_SECONDS).remove_container(name, force=True, v=True)
    shutil.rmtree(own, ignore_errors=True)
    os._exit(0)


def _pass_input(stream: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while data := os.read(0, 65536):
            stream.sendall(data)
        stream.shutdown(socket.SHUT_WR)


def _write_all(descriptor: int, data: bytes) -> None:
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    sys.exit(main())

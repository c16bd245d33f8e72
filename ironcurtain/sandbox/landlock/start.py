"""
Make a sandbox and execute a program in it. The helper process's first module.

It becomes three processes: the one that was started, which waits and has the program's exit status; the guard, in a
session of its own, so that signals to the first one's group do not reach it; the program, in the first one's group.
"""

from __future__ import annotations

import os
import platform
import resource
import signal
import socket
import sys
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from pathlib import Path

from ironcurtain.platform.files import PATH_ONLY
from ironcurtain.platform.processes import MARK_RESOURCE
from ironcurtain.sandbox.landlock import kernel
from ironcurtain.sandbox.landlock.broker import Broker
from ironcurtain.sandbox.landlock.guard import Guard, directory_name, new_mark, remove
from ironcurtain.sandbox.landlock.order import Order
from ironcurtain.sandbox.landlock.reach import Identity, identity

ORDER_DESCRIPTOR = 3

CANNOT_START = 125
"""Exit status if no sandbox could be made."""

NOT_EXECUTABLE = 126
"""Exit status if the program cannot be executed in it."""

DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")

_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main() -> None:
    """
    Run the program that the arguments name after ``--``; does not return. The arguments before it are pairs of numbers
    of descriptors: those of the order, and the real ones.
    """
    end = sys.argv.index("--")
    real = {int(own): int(actual) for own, _, actual in (word.partition("=") for word in sys.argv[1:end])}
    argv = sys.argv[end + 1 :]
    order = Order.decoded(_content(real.get(ORDER_DESCRIPTOR, ORDER_DESCRIPTOR)))
    contents = [(path, _content(real.get(number, number))) for path, number in order.files]
    kernel.prctl(kernel.SET_DEATH_SIGNAL, signal.SIGTERM)
    reader, writer = os.pipe()
    starter = os.getpid()
    if (guard := os.fork()) == 0:
        os.close(reader)
        _end_with(starter, signal.SIGTERM)
        os._exit(_reported(lambda: _guard(order, argv, contents, writer)))
    os.close(writer)
    for number in _FORWARDED:
        signal.signal(number, lambda number, _: _send(guard, number))
    _leave_streams()
    told = _all_of(reader)
    os.waitpid(guard, 0)
    _end_as(int(told) if told else CANNOT_START << 8)


def _guard(order: Order, argv: Sequence[str], contents: Iterable[tuple[str, bytes]], writer: int) -> int:
    kernel.prctl(kernel.SET_SUBREAPER, 1)
    mark, who = new_mark(), identity(order, argv[0])
    own = None if order.temporary == "" else _own_directory(order, mark, who, contents)
    ours, theirs = socket.socketpair()
    guard = os.getpid()
    if (program := os.fork()) == 0:
        ours.close()
        os._exit(_reported(lambda: _run(order, argv, mark, who, own, theirs, guard)))
    theirs.close()
    os.setsid()
    _leave_streams()
    watching = Guard(program, mark)
    ours.sendall(b"!")  # from now on, signals to the program's group do not end this process
    listener = _received(ours) if order.brokered else -1
    places = [*order.write, *([str(own)] if own is not None else [])]
    broker = Broker(listener, [os.path.realpath(path) for path in places], *who.ids, platform.machine())
    status = watching.watch(listener, broker.serve)
    if own is not None:
        remove(own)
    os.write(writer, str(status).encode())
    return 0


def _run(
    order: Order, argv: Sequence[str], mark: int, who: Identity, own: Path | None, guard: socket.socket, parent: int
) -> int:
    """Execute the program; returns only if that fails."""
    if not guard.recv(1):
        return CANNOT_START
    rules = list(_rules(order, own))
    program = os.open(argv[0], os.O_RDONLY | os.O_CLOEXEC) if who.by_descriptor else None
    os.chdir(order.cwd if own is None or os.path.isdir(order.cwd) else own / "home")
    for number, limit in (*order.limits, (MARK_RESOURCE, mark)):
        resource.setrlimit(number, (limit, limit))
    environment = dict(os.environ)
    if own is not None:
        environment |= {"HOME": f"{own}/home", "GIT_CONFIG_NOSYSTEM": "1"}
        environment |= dict.fromkeys(("TMPDIR", "TMP", "TEMP"), f"{own}/tmp")
    who.assume()
    kernel.prctl(kernel.NO_NEW_PRIVILEGES, 1)
    kernel.restrict(kernel.make_rules(rules, order.landlock))
    listener = kernel.filter_calls(order.calls, platform.machine(), order.brokered)
    if order.brokered:
        socket.send_fds(guard, [b"!"], [listener])
        os.close(listener)
    _end_with(parent, signal.SIGKILL)
    for number in (*_FORWARDED, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(number, signal.SIG_DFL)  # Python ignores the last two
    try:
        os.execve(argv[0] if program is None else program, list(argv), environment)
    except OSError as e:
        _say(f"{argv[0]} cannot be executed in its sandbox: {e.strerror}")
    return NOT_EXECUTABLE


def _rules(order: Order, own: Path | None) -> Iterable[tuple[int, int]]:
    writing = kernel.handled(order.landlock) & ~kernel.MAKE_CHARACTER_DEVICE & ~kernel.MAKE_BLOCK_DEVICE
    given = [(path, kernel.READING) for path in order.read] + [(path, writing) for path in order.write]
    given += [(str(own), writing)] if own is not None else []
    given += [(path, kernel.READ_FILE | kernel.WRITE_FILE) for path in DEVICES]
    for path, rights in given:
        try:
            descriptor = os.open(path, PATH_ONLY | os.O_CLOEXEC)
        except OSError:  # it does not exist, so it cannot be reached
            continue
        yield descriptor, rights if os.path.isdir(path) else rights & kernel.ON_FILES


def _own_directory(order: Order, mark: int, who: Identity, contents: Iterable[tuple[str, bytes]]) -> Path:
    """:returns: a new directory with ``home``, which has the sandbox's files, and ``tmp``."""
    own = Path(order.temporary, directory_name(mark))
    own.mkdir(mode=0o711)  # this process's, so that a sweep knows it; what is in it is the program's
    for directory in (own / "home", own / "tmp"):
        directory.mkdir(mode=0o700)
    for name, content in contents:
        path = own / "home" / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o400)
    if os.geteuid() == 0:
        for path in own.rglob("*"):
            os.chown(path, *who.ids)
    return own


def _reported(action: Callable[[], int]) -> int:
    try:
        return action()
    except OSError as e:
        _say(f"no sandbox could be made with Landlock: {e}")
        return CANNOT_START


def _say(sentence: str) -> None:
    with suppress(OSError):
        os.write(2, f"{sentence}\n".encode(errors="replace"))


def _end_with(parent: int, number: signal.Signals) -> None:
    """Get a signal when the parent ends, also if it has ended already."""
    kernel.prctl(kernel.SET_DEATH_SIGNAL, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def _end_as(status: int) -> None:
    """End as the program did, by the same signal or with the same exit status."""
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        signal.signal(number, signal.SIG_DFL) if number != signal.SIGKILL else None
        os.kill(os.getpid(), number)
    os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _send(pid: int, number: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _leave_streams() -> None:
    """Let the program alone hold the standard streams, so that their ends are noticed."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)


def _received(guard: socket.socket) -> int:
    """:returns: the descriptor that the program sent before it was executed; -1 if it failed before."""
    _, descriptors, _, _ = socket.recv_fds(guard, 1, 1)
    return descriptors[0] if descriptors else -1


def _content(descriptor: int) -> bytes:
    with os.fdopen(descriptor, "rb") as file:
        return file.read()


def _all_of(descriptor: int) -> bytes:
    found = b""
    while data := os.read(descriptor, 64):
        found += data
    return found


def arguments(top: str) -> Sequence[str]:
    """
    :param top: the directory that contains this package.
    :returns: arguments for Python that run :func:`main`; its own modules come first, so that nothing replaces them.
    """
    code = f"import sys; sys.path.append({top!r}); from {__name__} import main; main()"
    return ("-I", "-S", "-c", code)

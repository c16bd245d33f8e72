"""
Make listening sockets inside another network namespace, and hand them out.

There is nothing in the namespace but loopback, and nothing that runs inside belongs to IronCurtain: what programs there
connect to is accepted by whoever gets the sockets.

``python -I -S hold.py DESCRIPTOR LISTENERS BWRAP OPTION ...`` starts bubblewrap, and its program only afterwards. This
process becomes bubblewrap; a second one enters its new namespace while bubblewrap holds its program back, and ends. If
anything fails, it kills bubblewrap.

``python -I -S hold.py DESCRIPTOR LISTENERS PROCESS CONTAINER`` enters the namespace of a container, by the ids of its
first process and of itself.

It is run by its path, without the rest of the package. A session waits for it, so it imports no more than it needs, and
most of that while bubblewrap starts.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
else:
    import _socket as socket  # the C module behind it, whose enumerations take as long to import as Python to start

NEW_USER, NEW_NETWORK = 0x10000000, 0x40000000
"""``CLONE_NEWUSER`` and ``CLONE_NEWNET``, of setns(2)."""

OWNER_OF_NAMESPACE = 0xB701
"""``NS_GET_USERNS``, of ioctl_ns(2)."""

SIGKILL = 9
"""signal(7)"""

FREE_BIND = 15
"""``IP_FREEBIND``, of ip(7): bubblewrap may not have set up loopback yet."""

GIVE_ADDRESS = 0x8916
"""``SIOCSIFADDR``, of netdevice(7)."""

BACKLOG = 512
"""Connections that wait to be accepted."""

WATCHES, WATCH_SECONDS = 100, 0.02
"""How often, and at what intervals, bubblewrap is watched after its program was let go."""

_INT = 4
"""Size in bytes of a descriptor's number."""

FAILED = b"!"
"""First byte of the message that says why there are no sockets; with them, the message is one other byte."""


def main() -> None:
    """Do what the command line says."""
    handover, listeners, *line = sys.argv[1:]
    if line[0].isdigit():
        _join(int(handover), listeners.split(","), line[0], line[1])
    else:
        _start(int(handover), listeners.split(","), line)


def _join(handover: int, listeners: list[str], process: str, container: str) -> None:
    outside = socket.socket(fileno=handover)
    try:
        directory = os.open(f"/proc/{process}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        # What is opened below it is this process's, or nothing, also if the id belongs to another one by now.
        with open(os.open("cgroup", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)) as groups:
            if container not in groups.read():
                raise OSError(f"process {process} is not the container's")
        enter(directory)
        _hand_out(outside, listeners)
    except Exception as e:
        _say(outside, str(e))


def _start(handover: int, listeners: list[str], line: list[str]) -> None:
    if not _has_parent(handover):
        sys.exit(1)
    bubblewrap = os.getpid()
    info_reader, info_writer = os.pipe()
    go_reader, go_writer = os.pipe()
    if os.fork() == 0:
        os.close(info_writer)
        os.close(go_reader)
        os._exit(_enter(bubblewrap, info_reader, go_writer, handover, listeners))
    for descriptor in (info_writer, go_reader):
        os.set_inheritable(descriptor, True)
    os.close(handover)
    os.execv(line[0], [line[0], "--info-fd", str(info_writer), "--block-fd", str(go_reader), *line[1:]])


def _has_parent(handover: int) -> bool:
    """
    :returns: whether whoever started this is still there: it holds the other end of the socket. If it ends later, the
        sockets cannot be handed out.
    """
    import select

    waiting = select.poll()
    waiting.register(handover, 0)
    return not waiting.poll(0)


def _enter(bubblewrap: int, info: int, go: int, handover: int, listeners: list[str]) -> int:
    """:returns: the exit status."""
    for needed in ("ctypes", "fcntl"):  # to enter it, imported while bubblewrap starts
        __import__(needed)
    outside = socket.socket(fileno=handover)
    if not (child := _child(info)):
        _kill_holders(go)
        return 1  # bubblewrap ended, and has said why
    if sys.platform != "linux":
        return 1
    try:
        held = os.pidfd_open(child)
    except ProcessLookupError:
        return 1
    try:
        enter(os.open(f"/proc/{child}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
        _hand_out(outside, listeners)
    except Exception as e:
        _kill(held)  # before the pipe is closed, which lets the program go, too
        if os.getppid() == bubblewrap:
            os.kill(bubblewrap, SIGKILL)
        if not isinstance(e, (FileNotFoundError, ProcessLookupError)):  # else bubblewrap ended by itself
            _say(outside, f"its network could not be made: {e}")
        return 1
    outside.close()
    try:
        os.write(go, b".")
    except BrokenPipeError:  # bubblewrap ended
        pass
    os.closerange(0, 3)  # whoever reads what the program prints waits for its end only
    _watch(held, bubblewrap)
    return 0


def _say(outside: socket.socket, why: str) -> None:
    for say in (lambda: outside.send(FAILED + why.encode(errors="replace")), lambda: os.write(2, _line(why))):
        try:
            say()
        except OSError:  # nobody may be there to hear it
            pass


def _line(why: str) -> bytes:
    return f"IronCurtain: {why}\n".encode(errors="replace")


def _watch(held: int, bubblewrap: int) -> None:
    """
    Kill the first process inside if bubblewrap is killed. That process asks to be killed with it only after it was let
    go.
    """
    import time

    for _ in range(WATCHES):
        if os.getppid() != bubblewrap:
            _kill(held)
            return
        time.sleep(WATCH_SECONDS)


def _kill(held: int) -> None:
    import signal

    if sys.platform == "linux":
        try:
            signal.pidfd_send_signal(held, SIGKILL)
        except ProcessLookupError:
            pass


def _kill_holders(descriptor: int) -> None:
    """
    End all others that have this pipe. If bubblewrap is killed before it tells the id of its process inside, that one
    waits for it for ever.
    """
    pipe = os.readlink(f"/proc/self/fd/{descriptor}")
    for process in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            held = [os.readlink(f"/proc/{process}/fd/{name}") for name in os.listdir(f"/proc/{process}/fd")]
            if pipe in held and process != os.getpid():
                os.kill(process, SIGKILL)
        except OSError:  # it is somebody else's, or has ended
            pass


def _child(info: int) -> int:
    """:returns: id of the first process in bubblewrap's namespaces; 0 if there is none."""
    said = b""
    while not said.rstrip().endswith(b"}"):
        if not (data := os.read(info, 4096)):
            return 0
        said += data
    # {"child-pid": 123, ...}; this needs no module.
    return int(said.partition(b'"child-pid":')[2].partition(b"\n")[0].rstrip(b"}, "))


def enter(process: int) -> None:
    """
    Enter the network namespace of a process, for which this one must have a single thread.

    :param process: descriptor of its directory in ``/proc``.
    :raises OSError: this is not permitted.
    """
    import fcntl

    network = os.open("ns/net", os.O_RDONLY | os.O_CLOEXEC, dir_fd=process)
    if os.path.sameopenfile(network, os.open("/proc/self/ns/net", os.O_RDONLY | os.O_CLOEXEC)):
        raise OSError("it has no network namespace of its own")
    # The namespace of accounts that the network belongs to; the process itself may be in a further one by now.
    owner = fcntl.ioctl(network, OWNER_OF_NAMESPACE)
    if not os.path.sameopenfile(owner, os.open("/proc/self/ns/user", os.O_RDONLY | os.O_CLOEXEC)):
        _set_namespace(owner, NEW_USER)
    _set_namespace(network, NEW_NETWORK)


def _set_namespace(descriptor: int, kind: int) -> None:
    import ctypes

    if ctypes.CDLL(None, use_errno=True).setns(descriptor, kind):
        raise OSError(ctypes.get_errno(), f"setns: {os.strerror(ctypes.get_errno())}")


def _hand_out(outside: socket.socket, listeners: list[str]) -> None:
    made = [_listening(listener, number) for number, listener in enumerate(listeners, 1)]
    numbers = b"".join(each.fileno().to_bytes(_INT, sys.byteorder) for each in made)
    outside.sendmsg([b"."], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, numbers)])


def _listening(listener: str, number: int) -> socket.socket:
    address, port, kind = listener.split("/")
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    made = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    if not address.startswith("127.") and address != "::1":
        _give(made, address, number)
    made.setsockopt(socket.IPPROTO_IP, FREE_BIND, 1)
    made.bind((address, int(port)))
    if kind == "tcp":
        made.listen(BACKLOG)
    return made


def _give(made: socket.socket, address: str, number: int) -> None:
    """Give loopback a further address (netdevice(7))."""
    import fcntl
    import struct

    packed = socket.inet_pton(made.family, address)
    if made.family == socket.AF_INET6:
        asked = struct.pack("=16sIi", packed, 128, socket.if_nametoindex("lo"))
    else:
        asked = struct.pack("=16sHH4s16x", f"lo:{number}".encode(), socket.AF_INET, 0, packed)
    fcntl.ioctl(made.fileno(), GIVE_ADDRESS, asked)


if __name__ == "__main__":
    main()

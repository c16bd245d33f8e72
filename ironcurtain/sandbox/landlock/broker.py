"""
Change permissions, owners and times of files on behalf of a sandboxed program.

Landlock does not cover these calls, so that a program could change those of every file of its account. The filter of
system calls hands them over instead (seccomp_unotify(2)): this process reads the path from the program's memory, opens
it by itself, and acts on what it has opened, if that is a place where the program may write.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import stat
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress

from ironcurtain.platform.files import PATH_ONLY
from ironcurtain.sandbox.landlock.kernel import call

CALLS = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "fchown": (93, 55),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
}
"""Numbers of the calls on x86_64 and aarch64 that are handed over."""

SPECIAL_MODE = 0o6000
"""The bits of a mode that give a program its owner's rights, whoever starts it. They are refused."""

_RECEIVE, _SEND, _IS_VALID = 0xC0502100, 0xC0182101, 0x40082102
_OPENAT2, _UTIMENSAT = 437, {"x86_64": 280, "aarch64": 88}
_NO_MAGIC_LINKS = 2
_AT_EMPTY_PATH, _AT_FDCWD, _NO_FOLLOW = 0x1000, -100, 0x100
_PATH_LIMIT = 4096
_PAGE = 4096


class Broker:
    """
    :param listener: descriptor from which the calls are read.
    :param places: real paths below which the program may write.
    :param uid: the account of the program.
    :param machine: as ``uname -m`` prints it.
    """

    def __init__(self, listener: int, places: Sequence[str], uid: int, gid: int, machine: str) -> None:
        self._listener, self._places, self._machine = listener, tuple(places), machine
        self._ids = (uid, gid)
        column = 0 if machine == "x86_64" else 1
        self._names = {numbers[column]: name for name, numbers in CALLS.items()}

    def serve(self) -> bool:
        """:returns: whether a call was answered; otherwise no process of the sandbox is left."""
        notification = bytearray(80)
        try:
            fcntl.ioctl(self._listener, _RECEIVE, notification)
        except InterruptedError:
            return True
        except OSError as e:
            return e.errno == errno.ENOENT  # the calling process was ended meanwhile
        token, pid, _, number, _, _, *arguments = struct.unpack("=QIIiIQ6Q", notification)
        try:
            self._carry_out(_Caller(pid, lambda: self._is_valid(token)), self._names[number], arguments)
            code = 0
        except OSError as e:
            code = e.errno or errno.EPERM
        with suppress(OSError):
            fcntl.ioctl(self._listener, _SEND, struct.pack("=QqiI", token, 0, -code, 0))
        return True

    def _is_valid(self, token: int) -> bool:
        try:
            fcntl.ioctl(self._listener, _IS_VALID, struct.pack("=Q", token))
        except OSError:
            return False
        return True

    def _carry_out(self, caller: _Caller, name: str, arguments: Sequence[int]) -> None:
        first, second, third, fourth = arguments[:4]
        if name in ("chmod", "fchmod", "fchmodat", "fchmodat2"):
            mode = second if name in ("chmod", "fchmod") else third
            if mode & SPECIAL_MODE:
                raise PermissionError(errno.EPERM, "special mode")
            at = (first, second, fourth if name == "fchmodat2" else 0)
            with self._opened(caller, name, at) as place:
                self._as_program(lambda: os.chmod(place.path, stat.S_IMODE(mode)))
        elif name in ("chown", "fchown", "lchown", "fchownat"):
            owner, group = arguments[2:4] if name == "fchownat" else arguments[1:3]
            at = (first, second, arguments[4] if name == "fchownat" else _NO_FOLLOW if name == "lchown" else 0)
            with self._opened(caller, name, at) as place:
                self._keep_owner(place, (_signed(owner), _signed(group)))
        else:
            at = (first, second, fourth if name == "utimensat" else 0)
            times = _times(caller, name, second if name in ("utime", "utimes") else third)
            with self._opened(caller, name, at) as place:
                number = _UTIMENSAT[self._machine]
                self._as_program(lambda: call(number, place.descriptor, b"", times, _AT_EMPTY_PATH))

    def _opened(self, caller: _Caller, name: str, at: tuple[int, int, int]) -> _Place:
        first, second, flags = at
        if name in ("fchmod", "fchown") or (name in ("utimensat", "futimesat") and not second):
            place = caller.descriptor(_signed(first))
        elif name in ("chmod", "chown", "lchown", "utime", "utimes"):
            place = caller.path(_AT_FDCWD, first, flags)
        else:
            place = caller.path(_signed(first), second, flags)
        real = os.readlink(place.path)
        if not any(real == top or real.startswith(f"{top}/") for top in self._places):
            place.close()
            raise PermissionError(errno.EPERM, "outside")
        return place

    def _keep_owner(self, place: _Place, wanted: tuple[int, int]) -> None:
        """An ordinary account cannot give files away; naming itself again, as copying programs do, is harmless."""
        status = os.stat(place.descriptor)
        now = (status.st_uid, status.st_gid)
        if status.st_uid != self._ids[0] or any(want not in (-1, have) for want, have in zip(wanted, now, strict=True)):
            raise PermissionError(errno.EPERM, "owner")

    def _as_program(self, act: Callable[[], object]) -> None:
        """This process may be root, where the program is not."""
        if os.geteuid() == self._ids[0]:
            act()
            return
        os.setegid(self._ids[1])
        os.seteuid(self._ids[0])
        try:
            act()
        finally:
            os.seteuid(0)
            os.setegid(0)


class _Place:
    """A file that is opened without any right but to act on it. A context manager."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor, self.path = descriptor, f"/proc/self/fd/{descriptor}"

    def __enter__(self) -> _Place:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it."""
        os.close(self.descriptor)


class _Caller:
    """
    A thread that waits for its call.

    :param is_waiting: whether it still does; then its id is not that of another one.
    """

    def __init__(self, pid: int, is_waiting: Callable[[], bool]) -> None:
        self._pid, self._is_waiting = pid, is_waiting

    def memory(self, address: int, size: int) -> bytes:
        """:raises OSError: it cannot be read."""
        found = b""
        while len(found) < size:
            found += self._page(address + len(found), size - len(found))
        return found

    def text(self, address: int) -> bytes:
        """:raises OSError: it cannot be read, or is too long for a path."""
        found = b""
        while b"\0" not in found:
            if len(found) >= _PATH_LIMIT:
                raise OSError(errno.ENAMETOOLONG, "path")
            found += self._page(address + len(found), _PATH_LIMIT)
        return found.partition(b"\0")[0]

    def _page(self, address: int, size: int) -> bytes:
        """:returns: at most ``size`` bytes, up to the end of a page, as the next one may not exist."""
        descriptor = os.open(f"/proc/{self._pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        try:
            if not self._is_waiting():
                raise ProcessLookupError(errno.ESRCH, "ended")
            if data := os.pread(descriptor, min(size, _PAGE - address % _PAGE), address):
                return data
        except OverflowError:
            pass
        finally:
            os.close(descriptor)
        raise OSError(errno.EFAULT, "address")

    def descriptor(self, number: int) -> _Place:
        """:raises OSError: it has no such descriptor."""
        if number < 0:
            raise OSError(errno.EBADF, "descriptor")
        try:
            opened = os.open(f"/proc/{self._pid}/fd/{number}", PATH_ONLY | os.O_CLOEXEC)
        except FileNotFoundError:
            raise OSError(errno.EBADF, "descriptor") from None
        return self._valid(opened)

    def path(self, directory: int, address: int, flags: int) -> _Place:
        """:raises OSError: there is no such file, or a link of ``/proc`` leads to it."""
        text = self.text(address)
        if not text:
            if flags & _AT_EMPTY_PATH:
                return self.descriptor(directory)
            raise OSError(errno.ENOENT, "path")
        base = "/" if text.startswith(b"/") else self._base(directory)
        start = os.open(base, PATH_ONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            follow = os.O_NOFOLLOW if flags & _NO_FOLLOW else 0
            how = struct.pack("=QQQ", PATH_ONLY | os.O_CLOEXEC | follow, 0, _NO_MAGIC_LINKS)
            return self._valid(call(_OPENAT2, start, text + b"\0", how, len(how)))
        finally:
            os.close(start)

    def _base(self, directory: int) -> str:
        return f"/proc/{self._pid}/cwd" if directory == _AT_FDCWD else f"/proc/{self._pid}/fd/{directory}"

    def _valid(self, descriptor: int) -> _Place:
        if not self._is_waiting():
            os.close(descriptor)
            raise ProcessLookupError(errno.ESRCH, "ended")
        return _Place(descriptor)


def _times(caller: _Caller, name: str, address: int) -> bytes | None:
    """:returns: what utimensat(2) takes, ``None`` for now."""
    if not address:
        return None
    if name == "utime":
        accessed, modified = struct.unpack("@ll", caller.memory(address, 16))
        return struct.pack("@llll", accessed, 0, modified, 0)
    seconds, parts, seconds_too, parts_too = struct.unpack("@llll", caller.memory(address, 32))
    scale = 1 if name == "utimensat" else 1000
    return struct.pack("@llll", seconds, parts * scale, seconds_too, parts_too * scale)


def _signed(value: int) -> int:
    """:returns: an argument as the C type ``int``."""
    return ctypes.c_int(value & 0xFFFFFFFF).value

"""What the caller tells the helper process besides the program's command line, as JSON on a descriptor."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Order:
    """
    :param read: absolute paths that it may read; those that do not exist are left out.
    :param write: absolute paths that it may read and write.
    :param files: paths relative to its home directory, and the descriptors from which their contents are read.
    :param uid: the account that it runs as; -1 for that of this process.
    :param limits: number of a resource (getrlimit(2)) and its limit.
    :param calls: the filter of system calls.
    :param brokered: whether the filter hands calls over to the broker.
    :param landlock: the version of Landlock to use.
    :param temporary: the directory in which the sandbox gets its own.
    """

    read: tuple[str, ...]
    write: tuple[str, ...]
    files: tuple[tuple[str, int], ...]
    cwd: str
    uid: int
    gid: int
    limits: tuple[tuple[int, int], ...]
    calls: bytes
    brokered: bool
    landlock: int
    temporary: str

    def encoded(self) -> bytes:
        """:returns: the order for :meth:`decoded`."""
        return json.dumps({**asdict(self), "calls": b64encode(self.calls).decode()}).encode()

    @classmethod
    def decoded(cls, data: bytes) -> Order:
        """:returns: the order that was encoded."""
        known: dict[str, Any] = json.loads(data)
        pairs = {name: tuple((first, second) for first, second in known[name]) for name in ("files", "limits")}
        words = {name: tuple(known[name]) for name in ("read", "write")}
        return cls(**{**known, **pairs, **words, "calls": b64decode(known["calls"])})

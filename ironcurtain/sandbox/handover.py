"""Get the listening sockets of a sandbox's network, which are made inside while its program is held back."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence

from ironcurtain.errors import Unavailable
from ironcurtain.sandbox.hold import FAILED
from ironcurtain.sandbox.spec import LISTENERS, Listener

_REASON_LIMIT = 1000

Sockets = Mapping[Listener, socket.socket]
"""The listening sockets of a sandbox; whoever has them closes them."""


class Handover:
    """
    The way on which they come.

    :param listeners: as in :class:`~ironcurtain.sandbox.spec.Sandbox`.
    :ivar theirs: what the sandbox inherits; close it once the sandbox was started.
    """

    def __init__(self, listeners: Sequence[Listener]) -> None:
        self._listeners = tuple(listeners)
        self._ours, self.theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    def take(self) -> Sockets:
        """
        Wait for the sockets, and take them.

        :raises Unavailable: there are none, and the program did not run.
        """
        with self._ours:
            try:
                said, descriptors, _, _ = socket.recv_fds(self._ours, _REASON_LIMIT, LISTENERS)
            except OSError as e:
                raise Unavailable(f"its network could not be made: {e.strerror}") from None
            made = [socket.socket(fileno=descriptor) for descriptor in descriptors]
        if len(made) == len(self._listeners) and said[:1] != FAILED:
            return dict(zip(self._listeners, made, strict=True))
        for each in made:
            each.close()
        reason = said.removeprefix(FAILED).decode(errors="replace")
        raise Unavailable(reason or "its network could not be made: the sandbox did not start")

    def fileno(self) -> int:
        """:returns: the descriptor that becomes readable; -1 once they were taken or given up."""
        return self._ours.fileno()

    def give_up(self) -> None:
        """Take no sockets any more."""
        self._ours.close()

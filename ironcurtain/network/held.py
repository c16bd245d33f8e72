"""Open connections that are ended when a person takes back what allowed them."""

from __future__ import annotations

from collections.abc import Callable

End = Callable[[], None]


class HeldConnections:
    """The connections of all parties of one session whose bytes are not judged."""

    def __init__(self) -> None:
        self._open: dict[object, tuple[str, str, int, End]] = {}

    def add(self, party: str, host: str, port: int, end: End) -> End:
        """See :meth:`~ironcurtain.network.judge.NetworkJudge.hold`."""
        key = object()
        self._open[key] = party, host, port, end

        def ended() -> None:
            self._open.pop(key, None)

        return ended

    def recheck(self, allowed: Callable[[str, str, int], bool]) -> None:
        """
        End what is not allowed any more.

        :param allowed: whether a party may connect to a host and port without being asked about.
        """
        for key, (party, host, port, end) in list(self._open.items()):
            if not allowed(party, host, port):
                self._open.pop(key, None)
                end()

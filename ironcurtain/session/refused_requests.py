"""Report requests and connections that are refused: each kind once, with its number in the log."""

from __future__ import annotations

from collections.abc import Callable

from ironcurtain.session import events

KINDS_TOLD = 20
"""Maximum number of kinds, each a host and a rule, that are reported; an agent can send anything."""


class RefusedRequests:
    """
    :param log: writes a line to the session's log; takes the source and the line.
    """

    def __init__(self, emit: Callable[[events.SessionEvent], None], log: Callable[[str, str], None]) -> None:
        self._emit, self._log = emit, log
        self._times: dict[tuple[str, str], int] = {}

    def add(self, event: events.RequestRefused, rule: str) -> None:
        """
        Report a refusal, if it is the first of its kind; else log the number of them, if that is a power of ten.

        :param rule: what refused it.
        """
        kind = (event.host, rule)
        if kind not in self._times and len(self._times) > KINDS_TOLD:
            kind = ("other hosts", "")
        times = self._times[kind] = self._times.get(kind, 0) + 1
        if times == 1:
            self._emit(event)
        elif str(times).strip("0") == "1":
            self._log("session", f"requests to {kind[0]} were refused {times} times so far: {event.reason}")

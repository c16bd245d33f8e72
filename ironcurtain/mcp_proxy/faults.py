"""Record what servers sent that breaks the protocol and was mended or left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence

FAULTS_LIMIT = 50
"""Maximum number of faults kept of one server."""


class ServerFaults:
    """
    The faults of the servers of one session.

    :param report: called with a server and a sentence about a new fault; returns the sentence as it may be shown.
    """

    def __init__(self, report: Callable[[str, str], str]) -> None:
        self._report = report
        self._known: dict[str, dict[tuple[str, str], str]] = {}

    def replace(self, server: str, source: str, sentences: Sequence[str]) -> None:
        """
        Take the faults of a list, in place of those of the same list before.

        :param source: the list's method.
        """
        known = self._known.setdefault(server, {})
        for key in [key for key in known if key[0] == source and key[1] not in sentences]:
            del known[key]
        for sentence in sentences:
            self.add(server, source, sentence)

    def add(self, server: str, source: str, sentence: str) -> None:
        """Take one fault; it is reported if it is new."""
        known = self._known.setdefault(server, {})
        if (source, sentence) not in known and len(known) < FAULTS_LIMIT:
            known[source, sentence] = self._report(server, sentence)

    def shown(self) -> dict[str, tuple[str, ...]]:
        """:returns: the sentences about each server that has faults."""
        return {server: tuple(dict.fromkeys(known.values())) for server, known in self._known.items() if known}

"""The outcome of each attempt, and the report for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec


class Attempt(msgspec.Struct, frozen=True):
    """
    One attempt to break out.

    :param group: group of similar attempts, such as files.
    :param what: in a few words.
    :param outcome: "failed", which is good, "succeeded", or "not tried" if the kind of sandbox has no such limit.
    :param detail: the system's answer.
    """

    group: str
    what: str
    outcome: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Report:
    """
    One run of the hostile program.

    :param subject: what it ran in.
    :param complete: whether it finished.
    :param seen: its traces outside.
    :param unlimited: attempts that were not to be tried.
    """

    subject: str
    attempts: Sequence[Attempt]
    complete: bool
    seen: Sequence[str] = ()
    unlimited: Sequence[str] = ()

    @property
    def held(self) -> bool:
        """Whether every attempt failed, according to the program and as seen from outside."""
        return self.complete and not self.seen and not any(map(self._got_out, self.attempts))

    def lines(self) -> Iterable[str]:
        """:returns: the lines of the report, without line ends."""
        yield f"{self.subject}"
        group = ""
        for attempt in self.attempts:
            if attempt.group != group:
                group = attempt.group
                yield f"  {group}"
            mark = "OUT " if self._got_out(attempt) else "held" if attempt.outcome == "failed" else "    "
            yield f"    {mark}  {attempt.what}" + (f": {attempt.detail}" if attempt.detail else "")
        for trace in self.seen:
            yield f"    OUT   seen from outside: {trace}"
        if not self.complete:
            yield "    OUT   the program did not finish, so the result is unknown"
        out = sum(map(self._got_out, self.attempts)) + len(self.seen)
        yield f"  {len(self.attempts)} attempts, {out} got out; outside, " + (
            "traces were found" if self.seen else "nothing was read, changed, reached or ended"
        )

    def _got_out(self, attempt: Attempt) -> bool:
        is_unlimited = attempt.outcome == "not tried" and attempt.what in self.unlimited
        return attempt.outcome != "failed" and not is_unlimited


def parse(output: bytes) -> tuple[list[Attempt], bool]:
    """
    :param output: output of the hostile program, which is not trusted where it is known to lie.
    :returns: the attempts, and whether it finished.
    """
    attempts: list[Attempt] = []
    for line in output.splitlines():
        try:
            attempts.append(msgspec.json.decode(line, type=Attempt))
        except msgspec.DecodeError:
            try:
                return attempts, msgspec.json.decode(line) == {"end": len(attempts)}
            except msgspec.DecodeError:
                continue
    return attempts, False

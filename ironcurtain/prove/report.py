"""The outcome of each attempt, and the report for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec

from ironcurtain.prove.outside import FILLING


class Attempt(msgspec.Struct, frozen=True):
    """
    One attempt to break out.

    :param group: group of similar attempts, such as files.
    :param what: in a few words.
    :param outcome: "failed", which is good; "succeeded"; "not limited" if the kind of sandbox has no such limit on this
        machine; "not tried" if this machine cannot tell.
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
    :param unlimited: attempts against limits that do not exist here, of which people are told.
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
            mark = "OUT " if self._got_out(attempt) else "held" if attempt.outcome == "failed" else attempt.outcome
            yield f"    {mark}  {attempt.what}" + (f": {attempt.detail}" if attempt.detail else "")
        for trace in self.seen:
            yield f"    OUT   seen from outside: {trace}"
        if not self.complete:
            yield "    OUT   the program did not finish, so the result is unknown"
        out = sum(map(self._got_out, self.attempts)) + len(self.seen)
        others = [
            f"{count} {outcome}"
            for outcome in ("not limited", "not tried")
            if (count := sum(attempt.outcome == outcome for attempt in self.attempts))
        ]
        yield f"  {', '.join((f'{len(self.attempts)} attempts', f'{out} got out', *others))}; outside, " + (
            "traces were found" if self.seen else "nothing was read, changed, reached or ended"
        )

    def _got_out(self, attempt: Attempt) -> bool:
        is_unlimited = attempt.outcome == "not limited" and attempt.what in self.unlimited
        is_untried = attempt.outcome == "not tried" and attempt.what == FILLING
        return attempt.outcome != "failed" and not is_unlimited and not is_untried


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

"""The outcome of each attempt, and the report for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec

from ironcurtain.prove.outside import FILLING
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted


class Attempt(msgspec.Struct, frozen=True):
    """
    One attempt to break out.

    :param group: group of similar attempts, such as files.
    :param what: in a few words.
    :param outcome: "failed", which is good; "succeeded"; "not limited" if the kind of sandbox has no such limit on this
        machine, or the configuration opens it; "not tried" if this machine cannot tell.
    :param detail: the system's answer.
    """

    group: str
    what: str
    outcome: str
    detail: str = ""


class Report(msgspec.Struct, frozen=True):
    """
    One run of the hostile program.

    :param subject: what it ran in.
    :param complete: whether it finished.
    :param seen: its traces outside.
    :param unlimited: attempts against limits that do not exist here, of which people are told, with the reason.
    :param lacks: what these limits are, as in "the number of processes".
    """

    subject: str
    attempts: Sequence[Attempt]
    complete: bool
    seen: Sequence[str] = ()
    unlimited: Mapping[str, str] = msgspec.field(default_factory=dict)
    lacks: Sequence[str] = ()

    @property
    def held(self) -> bool:
        """Whether there were attempts and every one failed, according to the program and as seen from outside."""
        is_whole = self.complete and bool(self.attempts) and not self.seen
        return is_whole and not any(map(self._got_out, self.attempts))

    @property
    def untried(self) -> Iterable[Attempt]:
        """The attempts that could not be made on this machine."""
        return filter(self._is_untried, self.attempts)

    def lines(self) -> Iterable[str]:
        """:returns: the lines of the report, without line ends."""
        yield f"{self.subject}"
        group = ""
        for attempt in self.attempts:
            if attempt.group != group:
                group = attempt.group
                yield f"  {group}"
            mark = "OUT " if self._got_out(attempt) else "held" if attempt.outcome == "failed" else attempt.outcome
            yield f"    {mark}  {attempt.what}" + (f": {one_line(attempt.detail, 200)}" if attempt.detail else "")
        for trace in self.seen:
            yield f"    OUT   seen from outside: {trace}"
        if not self.attempts:
            yield "    OUT   no attempt was made, so nothing is known"
        elif not self.complete:
            yield "    OUT   the program did not finish, so the result is unknown"
        out = sum(map(self._got_out, self.attempts)) + len(self.seen)
        others = [
            f"{count} {outcome}"
            for outcome in ("not limited", "not tried")
            if (count := sum(attempt.outcome == outcome for attempt in self.attempts))
        ]
        yield f"  {', '.join((counted(len(self.attempts), 'attempt'), f'{out} got out', *others))}; outside, " + (
            "traces were found" if self.seen else "nothing was read, changed, reached or ended"
        )

    def _got_out(self, attempt: Attempt) -> bool:
        is_unlimited = attempt.outcome == "not limited" and attempt.what in self.unlimited
        return attempt.outcome != "failed" and not is_unlimited and not self._is_untried(attempt)

    def _is_untried(self, attempt: Attempt) -> bool:
        return attempt.outcome == "not tried" and attempt.what == FILLING


def parse(output: bytes) -> tuple[list[Attempt], bool]:
    """
    :param output: output of the hostile program, which is not trusted where it is known to lie.
    :returns: the attempts, and whether it finished.
    """
    attempts: list[Attempt] = []
    for line in output.splitlines():
        try:
            attempts.append(msgspec.json.decode(line, type=Attempt))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            try:
                return attempts, msgspec.json.decode(line) == {"end": len(attempts)}
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
                continue
    return attempts, False

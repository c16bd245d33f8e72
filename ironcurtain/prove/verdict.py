"""The verdict on all places: what held, what was not tested, and what is not limited on this machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from ironcurtain.prove.report import Report
from ironcurtain.text.display import one_line
from ironcurtain.text.quantities import counted

HELD, OUT, UNKNOWN = 0, 1, 69
"""Exit statuses: everything held; something got out; a test could not run."""


class Untested(msgspec.Struct, frozen=True):
    """
    Something that was not tested.

    :param name: what, as people know it.
    :param reason: why not, in a few words.
    :param could_not: whether its test was wanted, and could not run.
    """

    name: str
    reason: str
    could_not: bool = False


class Verdict(msgspec.Struct, frozen=True):
    """
    :param reports: one for each place that was tested.
    :param untested: what was left out; what single reports did not try is added.
    """

    reports: Sequence[Report]
    untested: Sequence[Untested]

    @property
    def status(self) -> int:
        """The exit status."""
        if not all(report.held for report in self.reports):
            return OUT
        return UNKNOWN if not self.reports or any(each.could_not for each in self.untested) else HELD

    @property
    def sentence(self) -> str:
        """The result, which never says that nothing got out without saying of what."""
        untested = ", ".join(
            f"{each.name} ({one_line(each.reason, None if each.could_not else 300)})" for each in self._all_untested()
        )
        parts = [f"Not tested: {untested}"]
        if lacks := self._lacks():
            parts.append(f"not limited here: {', '.join(lacks)}")
        return f"{self._result()} {'; '.join(parts)}."

    def as_json(self) -> list[dict[str, Any]]:
        """:returns: the reports, for programs, each with all that was not tested."""
        untested = [{"name": each.name, "reason": each.reason} for each in self._all_untested()]
        return [
            {
                "subject": report.subject,
                "attempts": report.attempts,
                "complete": report.complete,
                "seen": report.seen,
                "unlimited": list(report.unlimited),
                "held": report.held,
                "not_limited": report.lacks,
                "not_tested": untested,
            }
            for report in self.reports
        ]

    def _result(self) -> str:
        if not self.reports:
            return "Nothing was tested, so nothing is known."
        out = sum(not report.held for report in self.reports)
        return f"{counted(len(self.reports), 'place was', 'places were')} tested; " + (
            f"{out} did not hold." if out else "all held."
        )

    def _all_untested(self) -> Iterator[Untested]:
        yield from self.untested
        for what in sorted({attempt.what for report in self.reports for attempt in report.untried}):
            yield Untested(f"the attempt to {what}", "this machine has too little free memory")

    def _lacks(self) -> list[str]:
        return list(dict.fromkeys(what for report in self.reports for what in report.lacks))

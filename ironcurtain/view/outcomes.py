"""What became of escalations, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironcurtain.operations.model import EscalationView
from ironcurtain.text.columns import Style
from ironcurtain.text.display import one_line
from ironcurtain.view.escalations import approvals_words

GONE = "gone"
"""The outcome of an escalation whose process is gone."""

_WORDS: Mapping[str, str] = {
    "expired": "expired: nobody decided in time",
    "withdrawn": "was withdrawn: the call no longer waits",
    GONE: "is gone, with the process it came from",
}


def outcome_words(record: EscalationView) -> str:
    """:returns: the outcome of an escalation in words; escaped."""
    words = _WORDS.get(record.outcome)
    if words is not None:
        return words
    by = one_line(record.by, 64) or "somebody"
    return f"was {one_line(record.outcome, 20)} by {by}{', and kept' if record.kept else ''}"


def outcome_of_all(
    outcome: str, good: bool, numbers: Sequence[int], results: Sequence[EscalationView | str]
) -> tuple[str, Style]:
    """
    Summarise decisions that were made together.

    :param good: whether the outcome lets something happen.
    :param results: for each number the decided escalation, or the reason of the failure.
    :returns: a summary, and its style.
    """
    failed = [(number, why) for number, why in zip(numbers, results, strict=True) if isinstance(why, str)]
    style: Style = "good" if good else "bad"
    match results:
        case [str(why)]:
            return why, "warn"
        case [EscalationView(outcome="") as waiting]:
            return f"escalation {waiting.number} {approvals_words(waiting)}", "warn"
        case [EscalationView() as record]:
            return f"escalation {record.number} {outcome_words(record)}", style
    words = f"{len(numbers) - len(failed)} {outcome}"
    if half := [record.number for record in results if isinstance(record, EscalationView) and not record.outcome]:
        words += f", of which {', '.join(map(str, half))} need another person's approval, too"
    if not failed:
        return words, style
    return f"{words}; {len(failed)} failed: {', '.join(f'{number} ({why})' for number, why in failed)}", "warn"

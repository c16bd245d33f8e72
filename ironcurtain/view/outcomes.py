"""What became of escalations, in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ironcurtain.operations.model import EscalationView
from ironcurtain.text.columns import Style
from ironcurtain.text.display import one_line
from ironcurtain.view.escalations import VALUE_LIMIT, approvals_words

GONE = "gone"
"""The outcome of an escalation whose process is gone."""

_WORDS: Mapping[str, str] = {
    "expired": "expired, nobody decided in time",
    "withdrawn": "withdrawn, the call no longer waits",
    "unattended": "refused, nobody was there to ask",
    "too-many": "refused, too many questions wait already",
    GONE: "gone, with the process it came from",
}


def ended_words(outcome: str, by: str = "") -> str:
    """
    :param by: who decided, if anybody did.
    :returns: an outcome in words; not escaped.
    """
    return _WORDS.get(outcome, f"{outcome} by {by}" if by else outcome)


def outcome_words(record: EscalationView) -> str:
    """:returns: what became of an escalation, after its number or name; escaped."""
    verb = {"expired": "", GONE: "is "}.get(record.outcome, "was ")
    words = one_line(ended_words(record.outcome, record.by or "somebody"), VALUE_LIMIT)
    return f"{verb}{words}{', and kept' if record.kept else ''}"


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

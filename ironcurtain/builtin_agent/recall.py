"""Read a conversation back from its records, and find what was cut off when its process died."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import msgspec

from ironcurtain.builtin_agent.prompt import EXECUTE_CODE
from ironcurtain.builtin_agent.records import (
    AnyRecord,
    Called,
    CallEnded,
    Ended,
    Replied,
    Results,
    Resumed,
    Said,
    Shorter,
    Started,
    TextPart,
    UsePart,
    blocks,
    results,
)
from ironcurtain.codemode.names import assigned_names
from ironcurtain.llm.compaction import lean
from ironcurtain.llm.conversation import Conversation, Past, keep_newest
from ironcurtain.llm.model import TokenUsage
from ironcurtain.session.model import Turn
from ironcurtain.text.display import json_line, shorten

CUT_OFF = "cut off: IronCurtain was ended meanwhile"
"""The result of a tool use without one."""

CALLS_TOLD, NAMES_TOLD = 50, 100
"""Maximum number of calls, the last ones, and of variables that the model is told of."""

MESSAGE_TOLD, ARGUMENTS_TOLD = 500, 300
"""Maximum length in characters of a message and of a call's arguments there; the conversation has all of it."""


class Recall(msgspec.Struct):
    """
    The state after all records so far.

    :ivar conversation: what the model gets.
    :ivar unfinished: the message that is worked on; ``None`` between turns.
    :ivar calls: those of that turn.
    :ivar ends: their ends, by number.
    :ivar names: the variables of the interpreter.
    :ivar usage: tokens of that turn.
    :ivar cut_off: tokens of all turns that were cut off by the end of the process.
    """

    conversation: Conversation = msgspec.field(default_factory=Conversation)
    unfinished: str | None = None
    calls: list[Called] = msgspec.field(default_factory=list)
    ends: dict[int, CallEnded] = msgspec.field(default_factory=dict)
    names: set[str] = msgspec.field(default_factory=set)
    usage: TokenUsage = msgspec.field(default_factory=TokenUsage)
    cut_off: TokenUsage = msgspec.field(default_factory=TokenUsage)

    def feed(self, record: AnyRecord) -> None:
        """Process the next record. Some may be missing."""
        match record:
            case Started():
                self.names.clear()
            case Said(text=text):
                self._begin(text)
                self.conversation.say(text)
            case Replied():
                self.usage += record.usage
                self.conversation.answer(blocks(record.content))
                for part in record.content:
                    if isinstance(part, UsePart) and part.name == EXECUTE_CODE:
                        self.names |= assigned_names(str(part.input.get("code", "")))
            case Called():
                self.calls.append(record)
            case CallEnded():
                self.ends[record.number] = record
            case Results():
                self.conversation.results(results(record.results))
                if record.variables_lost:
                    self.names.clear()
            case Ended(error=error, left_out=left_out):
                if error and not (left_out and self.conversation.leave_out()):
                    self.conversation.interrupt(error)
                self._begin(None)
            case Resumed(note=note):
                if self.unfinished is not None:
                    self.cut_off += self.usage
                    self.conversation.interrupt(CUT_OFF)
                self.conversation.note(note)
                self._begin(None)
            case Shorter():
                self.conversation.replace(shortened(self.conversation.past, record))

    def open_calls(self) -> list[Called]:
        """:returns: the calls of the unfinished turn that were begun, and whose end is not recorded here."""
        return [call for call in self.calls if call.number not in self.ends]

    def note(self, audit: Iterable[Mapping[str, Any]] = ()) -> str:
        """
        :param audit: the records of the session's audit log.
        :returns: what the model has to know when the session is resumed; empty if nothing was cut off or lost.
        """
        lines = []
        if self.unfinished is not None:
            lines += [
                "IronCurtain was ended in the middle of your turn, and the session was resumed. The message that you "
                f"worked on got no answer: {json_line(shorten(self.unfinished, MESSAGE_TOLD))}",
                *self._told(fates(self.calls, audit)),
            ]
        if names := sorted(self.names):
            more = f" and {len(names) - NAMES_TOLD} more" if len(names) > NAMES_TOLD else ""
            lines.append(
                f"The interpreter was restarted, so these variables are gone: {', '.join(names[:NAMES_TOLD])}{more}."
            )
        return "[" + "\n".join(lines) + "]" if lines else ""

    def _begin(self, message: str | None) -> None:
        self.unfinished, self.usage = message, TokenUsage()
        self.calls, self.ends = [], {}

    def _told(self, fates: Mapping[int, str]) -> list[str]:
        ended, unknown = list[str](), list[str]()
        for call in self.calls[-CALLS_TOLD:]:
            shown = f"- {call.server}.{call.tool} {json_line(call.arguments, ARGUMENTS_TOLD)}"
            end = self.ends.get(call.number)
            if end is not None:
                error = f" ({shorten(end.error, ARGUMENTS_TOLD)})" if end.error else ""
                ended.append(f"{shown}: {end.outcome}{error}")
            elif fate := fates.get(call.number):
                ended.append(f"{shown}: {fate}")
            else:
                unknown.append(shown)
        lines = []
        if len(self.calls) > CALLS_TOLD:
            lines.append(f"{len(self.calls) - CALLS_TOLD} earlier calls of this turn are not listed.")
        if ended:
            lines += ["Calls of this turn that are over, do not repeat what succeeded:", *ended]
        if unknown:
            lines += ["Calls that were begun, outcome unknown; look what they did before you repeat them:", *unknown]
        return lines or ["No call was begun."]


def shortened(past: Past, record: Shorter) -> Past:
    """:returns: the conversation as it was shortened."""
    past = keep_newest(past, record.images)
    gone = max(0, len(past.exchanges) - record.kept)
    kept = past.exchanges[gone:]
    return Past((*map(lean, kept[: record.lean]), *kept[record.lean :]), past.dropped + gone, record.summary)


def fates(calls: Iterable[Called], audit: Iterable[Mapping[str, Any]]) -> dict[int, str]:
    """
    Find what became of calls. The audit log has a call's record before anything is done, and its end, if possible.

    :param calls: in the order in which they were begun.
    :param audit: records of the audit log.
    :returns: by number, what is known for certain.
    """
    waiting = list(calls)
    found: dict[int, str] = {call.number: "not made" for call in waiting}
    of: dict[str, int] = {}
    for record in audit:
        if record.get("kind") == "call":
            match = next((call for call in waiting if _is(call, record)), None)
            if match is not None:
                waiting.remove(match)
                of[str(record.get("callId"))] = match.number
                found[match.number] = _judged(str(record.get("decision")))
        elif (number := of.get(str(record.get("callId")))) is not None:
            if record.get("kind") == "decision":
                found[number] = "" if record.get("outcome") == "approved" else f"not made: {record.get('outcome')}"
            elif record.get("kind") == "outcome":
                found[number] = str(record.get("status"))
    return {number: fate for number, fate in found.items() if fate}


def _is(call: Called, record: Mapping[str, Any]) -> bool:
    return int(record.get("sequence", 0)) > call.audit and (record.get("server"), record.get("tool")) == (
        call.server,
        call.tool,
    )


def _judged(decision: str) -> str:
    return {"deny": "denied", "escalate": "not made: nobody had decided on it"}.get(decision, "")


def of_turns(turns: Iterable[Turn]) -> list[AnyRecord]:
    """:returns: records for a conversation of which only messages and answers are known."""
    made: list[AnyRecord] = []
    for turn in turns:
        made.append(Said(text=turn.message, time=turn.timestamp))
        if turn.answer:
            made.append(Replied(content=(TextPart(text=turn.answer),)))
        made.append(Ended(error=turn.error))
    return made


def read(records: Iterable[AnyRecord], squeeze: Callable[[Conversation], None] | None = None) -> Recall:
    """
    :param squeeze: called after each turn; may shorten the conversation.
    :returns: the state after all records.
    """
    recall = Recall()
    for record in records:
        recall.feed(record)
        if squeeze is not None and isinstance(record, Ended | Resumed):
            squeeze(recall.conversation)
    return recall

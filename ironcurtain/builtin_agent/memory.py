"""The memory of the built-in agent: its conversation with the model, and the file in which it is kept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger

from ironcurtain.builtin_agent import records
from ironcurtain.builtin_agent.recall import shortened
from ironcurtain.builtin_agent.records import TEXT_LIMIT, AnyRecord
from ironcurtain.codemode.interpreter import Call
from ironcurtain.codemode.model import ToolReply
from ironcurtain.files.appending import LineFile
from ironcurtain.llm.conversation import Conversation, Past
from ironcurtain.llm.model import ModelReply, ToolResult, ToolUse
from ironcurtain.llm.pictures import description
from ironcurtain.secrets.redaction import Redactor


class ConversationFile:
    """
    The file of a conversation. A record that cannot be written is lost; the first failure is logged.

    :param file: one record a line.
    """

    log = Logger()

    def __init__(self, file: LineFile) -> None:
        self._file, self._failed = file, False

    def write(self, record: AnyRecord) -> None:
        """Add a record."""
        try:
            self._file.append(records.encode(record))
        except OSError as e:
            if not self._failed:
                self.log.critical("the conversation is not on disk, and cannot be resumed: {error}", error=e)
            self._failed = True

    def read(self) -> Iterator[AnyRecord]:
        """
        :returns: the records so far.
        :raises ConfigurationError: the file has a newer format.
        :raises OSError: it cannot be read.
        """
        for line in self._file.lines():
            if (record := records.decode(line)) is not None:
                yield record


class Memory:
    """
    What the model knows. Whatever happens is written first.

    :param conversation: from before, if the session was resumed.
    :param write: keeps a record.
    :param redactor: keeps secrets out of records.
    :param audited: returns the number of the audit log's last record.
    :param time: returns the time as text.
    """

    def __init__(
        self,
        conversation: Conversation,
        write: Callable[[AnyRecord], None],
        redactor: Redactor,
        audited: Callable[[], int],
        time: Callable[[], str],
    ) -> None:
        self._conversation, self._write, self._redactor = conversation, write, redactor
        self._audited, self._time, self._calls = audited, time, 0
        self._write(records.Started(time=time()))

    @property
    def past(self) -> Past:
        """The conversation."""
        return self._conversation.past

    def say(self, text: str) -> None:
        """The person sent a message."""
        self._write(records.Said(text=self._redactor.text(text), time=self._time()))
        self._conversation.say(text)

    def answer(self, reply: ModelReply) -> list[ToolUse]:
        """
        The model answered.

        :returns: the tool uses, which need :meth:`results` next.
        """
        content = records.parts(reply.content, self._redactor)
        self._write(records.Replied(content=content, usage=reply.usage))
        return self._conversation.answer(reply.content)

    def results(self, results: Sequence[ToolResult], *, variables_lost: bool) -> None:
        """The tool uses have their results."""
        clean = tuple(
            records.ResultPart(r.id, self._redactor.text(r.content), r.is_error, tuple(map(description, r.images)))
            for r in results
        )
        self._write(records.Results(results=clean, variables_lost=variables_lost))
        self._conversation.results(results)

    def end(self, error: str = "", too_long: bool = False) -> None:
        """
        :param error: why the turn has no answer; empty if it has one.
        :param too_long: whether its message did not fit the context, so that it is left out from now on.
        """
        self._write(records.Ended(error=self._redactor.text(error), left_out=too_long))
        if error and not (too_long and self._conversation.leave_out()):
            self._conversation.interrupt(error)

    def shorten(self, shorter: records.Shorter) -> None:
        """The model gets a shorter form of the conversation."""
        self._write(shorter)
        self._conversation.replace(shortened(self.past, shorter))

    def recording(self, call: Call) -> Call:
        """:returns: a function that makes a call, and keeps record of it."""

        def recorded(server: str, tool: str, arguments: dict[str, Any]) -> Deferred[ToolReply]:
            return Deferred.fromCoroutine(self._recorded(call, server, tool, arguments))

        return recorded

    async def _recorded(self, call: Call, server: str, tool: str, arguments: dict[str, Any]) -> ToolReply:
        self._calls = number = self._calls + 1
        shown = self._redactor.value(arguments, TEXT_LIMIT)
        self._write(records.Called(number=number, server=server, tool=tool, arguments=shown, audit=self._audited()))
        try:
            reply = await call(server, tool, arguments)
        except CancelledError:
            self._write(records.CallEnded(number=number, outcome="withdrawn"))
            raise
        outcome = "success" if reply.error is None else "denied" if reply.denied else "failed"
        error = self._redactor.value(reply.error or "", TEXT_LIMIT)
        self._write(records.CallEnded(number=number, outcome=outcome, error=error))
        return reply

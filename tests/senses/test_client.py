from __future__ import annotations

import random
import sys

from twisted.trial.unittest import TestCase

from ironcurtain.errors import Unavailable, UsageError
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.spec import Sandbox
from ironcurtain.senses.client import SensesWorker
from ironcurtain.senses.model import PICTURE_LIMIT, RATE, SOUND_LIMIT, Box
from ironcurtain.services.asyncio_bridge import from_asyncio
from tests.audit.doubles import scratch
from tests.machine import demand_sandbox
from tests.programs import program
from tests.senses.pictures import plain, png
from tests.senses.screen import Screen
from tests.senses.sounds import spoken

SPOKEN = "Open the file and delete the report."


def saying(code: str) -> SensesWorker:
    """:returns: a worker whose processes run a program of Python."""
    return SensesWorker(command=(sys.executable, "-I", "-c", code), seconds=100)


class WorkerTests(TestCase):
    def setUp(self) -> None:
        demand_sandbox()

    async def test_screen_is_read_in_each_kind_of_sandbox(self) -> None:
        program("tesseract")
        screen = Screen(self, "Do you want to delete report-2026.odt?")
        file, found = await screen.shown(), list[Box]()
        for kind, problem in programs.problems(Sandbox(alone=True)):
            if problem is None:
                lines = await from_asyncio(SensesWorker(kind=kind).lines_of(file))
                [line] = [line for line in lines if "delete" in line.text]
                self.assertEqual(line.text, "Do you want to delete report-2026.odt?")
                self.assertGreater(line.confidence, 0.8)
                found.append(line.box)
        hidden = await from_asyncio(SensesWorker().lines_of(file, hidden=found))
        self.assertNotIn("delete", " ".join(line.text for line in hidden))

    async def test_speech_is_written_down_and_noticed(self) -> None:
        worker, pcm = SensesWorker(), spoken(SPOKEN)
        self.assertEqual([said.text for said in await from_asyncio(worker.transcribe(pcm))], [SPOKEN])
        events = await from_asyncio(worker.sound_events(bytes(RATE) + pcm))
        [speech] = [event for event in events if event.kind == "speech"]
        self.assertTrue(0.2 < speech.start < 0.8, speech)

    async def test_silence_and_noise_are_no_speech(self) -> None:
        noise, extremes = random.Random(1).randbytes(RATE * 2 + 1), b"\xff\x7f\0\x80" * RATE
        for sound in (b"\0", extremes, noise):
            events = await from_asyncio(SensesWorker().sound_events(sound))
            self.assertNotIn("speech", [event.kind for event in events])
        self.assertEqual(await from_asyncio(SensesWorker().transcribe(bytes(RATE * 2))), [])

    async def test_picture_is_made_for_a_model(self) -> None:
        made = await from_asyncio(SensesWorker().picture(plain(300, 200), region=Box(0, 0, 200, 200), longest=100))
        self.assertEqual((made.width, made.height, made.scale), (100, 100, 0.5))

    async def test_hostile_pictures_are_refused_and_the_next_is_made(self) -> None:
        worker = SensesWorker()
        for file in (png(50000, 50000), plain(64, 64)[:60], b"GIF89a", b""):
            with self.assertRaises(UsageError):
                await from_asyncio(worker.picture(file))
        self.assertEqual((await from_asyncio(worker.picture(plain(8, 8)))).width, 8)

    async def test_no_text_is_read_in_half_a_picture(self) -> None:
        program("tesseract")
        with self.assertRaises(UsageError):
            await from_asyncio(SensesWorker().lines_of(plain(64, 64)[:60]))

    async def test_too_much_is_refused_before_a_process_starts(self) -> None:
        worker = saying("raise SystemExit(70)")
        for wanted in (worker.picture(bytes(PICTURE_LIMIT + 1)), worker.transcribe(bytes(SOUND_LIMIT + 1))):
            with self.assertRaisesRegex(UsageError, "too many"):
                await from_asyncio(wanted)

    async def test_killed_process_fails_its_order_only(self) -> None:
        with self.assertRaisesRegex(Unavailable, r"failed \((signal (6|11)|status 134)\)"):
            await from_asyncio(saying("import os; os.abort()").picture(plain(8, 8)))

    async def test_process_that_hangs_is_ended(self) -> None:
        worker = SensesWorker(command=(sys.executable, "-I", "-c", "while True: pass"), seconds=1)
        with self.assertRaisesRegex(Unavailable, "took longer than 1 s"):
            await from_asyncio(worker.picture(plain(8, 8)))

    async def test_process_that_eats_memory_fails(self) -> None:
        with self.assertRaisesRegex(Unavailable, "failed"):
            await from_asyncio(saying("x = bytearray(3 << 30)").picture(plain(8, 8)))

    async def test_process_that_answers_wrongly_or_without_end_fails(self) -> None:
        for code in ("print('yes')", "import sys\nwhile True: sys.stdout.buffer.write(bytes(1 << 20))"):
            with self.assertRaisesRegex(Unavailable, "answered wrongly|printed more than"):
                await from_asyncio(saying(code).picture(plain(8, 8)))

    async def test_words_of_a_process_are_escaped(self) -> None:
        with self.assertRaisesRegex(Unavailable, r"\\x1b\[31mred"):
            await from_asyncio(saying("import sys; sys.exit('\\x1b[31mred')").picture(plain(8, 8)))

    async def test_process_reaches_neither_files_nor_network(self) -> None:
        code = f"""if True:
            import os, socket, sys
            done = []
            for name in ("/etc/shadow", "/root", {str(scratch(self))!r}, "/home"):
                try: done.append(str(os.listdir(name) if os.path.isdir(name) else open(name).read(1)))
                except OSError: pass
            bus = "/run/dbus/system_bus_socket"
            for family, address in ((socket.AF_INET, ("127.0.0.1", 9)), (socket.AF_UNIX, bus)):
                try: socket.socket(family, socket.SOCK_STREAM).connect(address); done.append(repr(address))
                except ConnectionRefusedError: pass  # of a network of its own
                except OSError: pass
            sys.exit(f"reached {{done}}")
        """
        # Where Python is in a home, the way to it is there, and nothing else of that home.
        with self.assertRaisesRegex(Unavailable, r"""reached \[(?:"\['\.pyenv'\]")?\]"""):
            await from_asyncio(saying(code).picture(plain(8, 8)))

    def test_everything_is_available_here(self) -> None:
        program("tesseract")
        self.assertEqual(SensesWorker().available(), dict.fromkeys(("pictures", "text", "speech", "sound"), ""))

from __future__ import annotations

import io
import os
import tarfile

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.engine import ContainerState
from ironcurtain.container.errors import EngineError
from ironcurtain.container.streams import EngineStream
from tests import engine as test_engine
from tests.container.support import EngineCase, Until

TERMINAL = ("sh", "-c", "stty raw -echo; echo ready; exec cat")
"""Gives back every byte that it gets."""

SIZES = ("sh", "-c", "trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done")
"""Prints the size of its terminal whenever that changes."""


class LifeTests(EngineCase):
    async def ready(self, trap: str) -> str:
        """:returns: a container whose program does this when it gets SIGTERM, and has said that it will."""
        command = ("sh", "-c", f"trap '{trap}' TERM; echo ready; while :; do sleep 0.1; done")
        container, ready = await self.engine.create(self.spec(command=command, tty=True)), Until("ready")
        stream = await self.engine.attach(container, ready)
        self.addCleanup(stream.abort)
        await self.engine.start(container)
        await ready.seen
        return container

    async def test_stopping_waits_for_the_program(self) -> None:
        container = await self.ready("exit 5")
        await self.engine.stop(container, 10)
        self.assertEqual(await self.engine.wait(container), 5)
        await self.engine.stop(container, 10)

    async def test_stopping_a_program_that_does_not_want_to(self) -> None:
        container = await self.ready("")
        await self.engine.stop(container, 1)
        self.assertEqual(await self.engine.wait(container), 137)

    async def test_output_of_the_main_program(self) -> None:
        container = await self.running(command=("sh", "-c", "exec >&2; echo 1; echo 2; echo 3"))
        await self.engine.wait(container)
        self.assertEqual(await self.engine.output(container, 2), "2\n3\n")

    async def test_containers_are_found_by_their_labels(self) -> None:
        first = await self.running(labels={"a": "1", "b": "2"})
        second = await self.engine.create(self.spec(labels={"a": "1"}))
        own = {"ironcurtain.test": self.label}
        for labels, wanted in (({"a": "1"}, {first, second}), ({"a": "1", "b": "2"}, {first}), ({"a": "2"}, set())):
            self.assertEqual({c["Id"] for c in await self.engine.list_containers({**own, **labels})}, wanted)
        await self.engine.remove(second)
        self.assertEqual([c["Id"] for c in self.containers()], [first])

    async def test_what_does_not_exist(self) -> None:
        for call in (self.engine.inspect, self.engine.start, self.engine.kill, self.engine.remove, self.engine.wait):
            with self.assertRaises(EngineError) as caught:
                await call("no/such container?")
            self.assertEqual(caught.exception.status, 404)

    async def test_information(self) -> None:
        await self.engine.ping()
        self.assertIn("SecurityOptions", await self.engine.info())


class AttachTests(EngineCase):
    async def attached(self, command: tuple[str, ...]) -> tuple[str, EngineStream, bytearray, Until]:
        """:returns: a container with a terminal, its stream, what came, and what waits for a text."""
        container = await self.engine.create(
            self.spec(command=("sh", "-c", 'read -r _; exec "$@"', "sh", *command), tty=True)
        )
        await self.engine.start(container)
        got, ready = bytearray(), Until("ready\r\n")

        def take(data: bytes) -> None:
            got.extend(data)
            ready(data)

        stream = await self.engine.attach(container, take)
        self.addCleanup(stream.abort)
        stream.write(b"\n")
        return container, stream, got, ready

    async def test_every_byte_passes_both_ways(self) -> None:
        container, stream, got, _ = await self.attached(TERMINAL)
        await self.until(got, b"ready")
        got.clear()
        corpus = bytes(range(256)) * 16 + b"."
        stream.write(corpus)
        await self.until(got, corpus[-300:])
        self.assertEqual(got.removeprefix(b"\r\n").removeprefix(b"\n"), corpus)
        await self.engine.kill(container)
        await stream.ended

    async def test_sizes(self) -> None:
        container, _, got, ready = await self.attached(SIZES)
        await ready.seen
        await self.engine.resize(container, 33, 122)
        await self.until(got, b"33 122")
        await self.engine.resize(container, 5, 7)
        await self.until(got, b"5 7")

    async def test_leaving_does_not_end_it(self) -> None:
        container, stream, got, _ = await self.attached(TERMINAL)
        await self.until(got, b"ready")
        stream.abort()
        await stream.ended
        again = bytearray()
        stream = await self.engine.attach(container, again.extend)
        stream.write(b"still here")
        await self.until(again, b"still here")
        stream.abort()

    async def test_one_that_has_not_started_yet(self) -> None:
        container, got = await self.engine.create(self.spec(command=("echo", "first"), tty=True)), bytearray()
        stream = await self.engine.attach(container, got.extend)
        await self.engine.start(container)
        await stream.ended
        self.assertEqual(got, b"first\r\n")

    async def test_one_that_has_ended(self) -> None:
        container = await self.running(command=("true",), tty=True)
        await self.engine.wait(container)
        with self.assertRaises(EngineError) as caught:
            await self.engine.attach(container, lambda _: None)
        self.assertEqual(caught.exception.status, 409)

    async def until(self, got: bytearray, text: bytes) -> None:
        """Wait until a text has come."""
        while text not in got:
            await self.turn()


class ImageTests(EngineCase):
    def setUp(self) -> None:
        super().setUp()
        self.tag = f"ironcurtain-test:{os.getpid()}-{id(self)}"
        self.lines: list[str] = []

    def build(self, dockerfile: str, **files: str) -> Deferred[str]:
        buffer = io.BytesIO()
        with tarfile.open(fileobj=buffer, mode="w") as archive:
            for name, text in {"Dockerfile": dockerfile, **files}.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(text.encode())
                archive.addfile(entry, io.BytesIO(text.encode()))
        return Deferred.fromCoroutine(
            self.engine.build_image(
                buffer.getvalue(),
                tag=self.tag,
                labels={"ironcurtain.test": self.label},
                arguments={"BASE": test_engine.image(), "WORD": "a b"},
                network="none",
                progress=self.lines.append,
            )
        )

    async def test_from_building_to_removing(self) -> None:
        dockerfile = 'ARG BASE\nFROM $BASE\nARG WORD\nCOPY big /big\nRUN echo "the word is $WORD" && wc -c /big\n'
        image = await self.build(dockerfile, big="x" * 2_000_000)
        self.addCleanup(self._remove)
        self.assertIn("the word is a b", self.lines)
        self.assertIn("2000000 /big", self.lines)
        labels = {"ironcurtain.test": self.label}
        self.assertEqual([found["Id"] for found in await self.engine.list_images(labels)], [image])
        self.assertIn(image, [found["Id"] for found in await self.engine.list_images({"ironcurtain.test": ""})])
        self.assertEqual((await self.engine.inspect_image(self.tag))["Id"], image)
        await self.engine.remove_image(self.tag)
        with self.assertRaises(EngineError) as caught:
            await self.engine.inspect_image(self.tag)
        self.assertEqual(caught.exception.status, 404)

    async def test_a_step_that_fails(self) -> None:
        with self.assertRaisesRegex(EngineError, "returned a non-zero code: 3"):
            await self.build("ARG BASE\nFROM $BASE\nRUN echo going on; exit 3\n")
        self.assertIn("going on", self.lines)

    async def test_what_is_no_dockerfile(self) -> None:
        with self.assertRaisesRegex(EngineError, "(?i)dockerfile"):
            await self.build("NONSENSE\n")

    def _remove(self) -> None:
        for image in test_engine.call("GET", "/images/json")[0]:
            if self.tag in (image["RepoTags"] or ()):
                test_engine.call("DELETE", f"/images/{self.tag}")


class StateTests(EngineCase):
    async def test_of_a_real_container(self) -> None:
        container = await self.running()
        state = ContainerState.of(await self.engine.inspect(container))
        self.assertTrue(state.running and state.pid > 1)
        await self.engine.kill(container)
        await self.engine.wait(container)
        state = ContainerState.of(await self.engine.inspect(container))
        self.assertEqual((state.running, state.reason), (False, "it was killed, exit status 137"))


class ReasonTests(SynchronousTestCase):
    """Why a container does not run, from what the Engine says."""

    def reason(self, **state: object) -> str:
        return ContainerState.of({"State": {"Running": False, **state}}).reason

    def test_what_the_engine_says_comes_before_the_status(self) -> None:
        self.assertEqual(self.reason(ExitCode=127, Error="no such program"), "no such program")
        self.assertEqual(self.reason(ExitCode=3), "exit status 3")
        self.assertEqual(self.reason(ExitCode=137), "it was killed, exit status 137")
        self.assertIn("resources.memory_mb", self.reason(ExitCode=137, OOMKilled=True, Error="x"))

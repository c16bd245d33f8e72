from __future__ import annotations

import hashlib

from twisted.internet import reactor
from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.container import execution
from ironcurtain.container.engine import ContainerState
from ironcurtain.container.errors import ContainerDied
from tests.container.support import EngineCase, Until
from tests.machine import UID

ESCAPES = """
trap '' TERM INT HUP
(trap '' TERM; setsid sh -c 'trap "" TERM; echo a >/tmp/a; while :; do sleep 1000; done' &)
setsid setsid sh -c '(trap "" TERM; exec sleep 2000) & echo b >/tmp/b'
sh -c 'kill -STOP $$' &
while ! [ -e /tmp/a ] || ! [ -e /tmp/b ]; do sleep 0.1; done
echo up
sleep 3000
while :; do sleep 4000; done
"""
"""Leaves its session, its parent and its process group, ignores what can be ignored, and stops itself."""

FILL = """
trap '' TERM
fill() { (fill) 2>/dev/null || { sleep 5000 & echo full; }; wait; }
fill
"""
"""Makes processes until no further one is allowed, and holds them."""

BOMB = "trap '' TERM; echo up; bomb() { bomb | bomb & }; while :; do bomb; done"

POLITE = "trap 'sleep 0.5; echo saved >/tmp/saved; exit' TERM; echo up; while :; do sleep 0.1; done"

PROCESSES = "for path in /proc/[0-9]*/cmdline; do tr '\\0' ' ' <$path; echo; done"


class RunTests(EngineCase):
    """Programs that end by themselves."""

    async def test_streams_and_status(self) -> None:
        container = await self.running()
        self.assertEqual(await self.sh(container, "echo out; echo err >&2; exit 7"), (7, "out\n", "err\n"))

    async def test_input_arrives_whole_and_ends(self) -> None:
        container = await self.running()
        text = bytes(range(256)) * 8000
        said = await self.sh(container, "md5sum", stdin=text)
        self.assertEqual((said.status, said.out.split()[0]), (0, hashlib.md5(text).hexdigest()))
        self.assertEqual(await self.sh(container, "cat", stdin=b"x"), (0, "x", ""))

    async def test_without_input_there_is_none_to_wait_for(self) -> None:
        container = await self.running()
        self.assertEqual(await self.sh(container, "cat; echo done"), (0, "done\n", ""))

    async def test_environment_user_and_directory(self) -> None:
        container = await self.running(environment={"A": "1", "B": "2"})
        said = await self.sh(container, 'echo "$A$B $(id -u):$(id -g) $PWD"', B="x y=z")
        self.assertEqual(said.out, f"1x y=z {UID}:{UID} /workspace\n")

    async def test_what_cannot_be_run(self) -> None:
        container = await self.running()
        said = bytearray()
        status = await execution.run(
            self.engine,
            container,
            ("no-such-program",),
            stdin=b"x",
            stdout=said.extend,
            stderr=said.extend,
            environment={},
        )
        self.assertIn(status, (126, 127))
        self.assertIn(b"no-such-program", said)

    async def test_a_slow_consumer_slows_the_program_down(self) -> None:
        container = await self.running()
        waits: list[Deferred[None]] = []
        sizes: list[int] = []

        def take(data: bytes) -> Deferred[None]:
            sizes.append(len(data))
            waits.append(Deferred())
            return waits[-1]

        script = "yes | head -c 20000000; echo done >/tmp/done"
        running = self.start_sh(container, script, take, take)
        for _ in range(5):  # each takes longer than the script does when nobody holds it up
            self.assertEqual((await self.sh(container, "cat /tmp/done")).status, 1, "the program was not held up")
        self.assertLess(sum(sizes), 1_000_000)
        while not running.called:
            while waits:
                waits.pop().callback(None)
            await self.turn()
        self.assertEqual((await running, sum(sizes)), (0, 20_000_000))

    async def test_what_stays_in_the_background_does_not_hold_up_the_end(self) -> None:
        container = await self.running()
        self.assertEqual(await self.sh(container, "sleep 5000 & echo done"), (0, "done\n", ""))
        self.assertIn("sleep 5000", (await self.sh(container, PROCESSES)).out)


class CancelTests(EngineCase):
    """Programs that do not want to end."""

    async def cancelled(self, container: str, script: str, text: str = "up") -> None:
        """Start a script, wait until it has written a text, cancel it, and wait until that is done."""
        up = Until(text)
        running = self.start_sh(container, script, up, up)
        await up.seen
        running.cancel()
        with self.assertRaises(CancelledError):
            await running

    async def test_everything_it_started_is_gone_and_the_rest_lives(self) -> None:
        self.patch(execution, "GRACE_SECONDS", 1)
        self.patch(execution, "END_SECONDS", 60.0)
        container = await self.running()
        await self.cancelled(container, ESCAPES)
        left = [line for line in (await self.sh(container, PROCESSES)).out.splitlines() if "sleep" in line]
        self.assertEqual({line for line in left if "init" not in line}, {"sleep 77777 ", "sleep 88888 "})

    async def test_a_polite_program_has_time_to_finish(self) -> None:
        self.patch(execution, "GRACE_SECONDS", 60)
        container = await self.running()
        await self.cancelled(container, POLITE)
        self.assertEqual((await self.sh(container, "cat /tmp/saved")).out, "saved\n")

    async def test_a_fork_bomb(self) -> None:
        container = await self.running()
        await self.cancelled(container, BOMB)
        if ContainerState.of(await self.engine.inspect(container)).running:
            self.assertNotIn("bomb()", (await self.sh(container, PROCESSES)).out)

    async def test_where_no_process_fits_in_the_container_is_killed(self) -> None:
        container = await self.running(pids=24)
        await self.cancelled(container, FILL, "full")
        self.assertFalse(ContainerState.of(await self.engine.inspect(container)).running)

    async def test_a_second_cancellation_does_not_stop_the_first(self) -> None:
        self.patch(execution, "GRACE_SECONDS", 1)
        self.patch(execution, "END_SECONDS", 60.0)
        container = await self.running()
        timers = set(reactor.getDelayedCalls())
        up = Until("up")
        running = self.start_sh(container, "trap '' TERM; echo up; while :; do sleep 1000; done", up, up)
        await up.seen
        running.cancel()
        running.cancel()
        with self.assertRaises(CancelledError):
            await running
        while "sleep 1000" in (await self.sh(container, PROCESSES)).out or set(reactor.getDelayedCalls()) - timers:
            pass  # a timer that is left is the time limit of the first cancellation


class DeathTests(EngineCase):
    """The container ends while a program runs."""

    async def test_the_reason_is_reported(self) -> None:
        container = await self.running()
        up = Until("up")
        running = self.start_sh(container, "echo up; sleep 5000", up, up)
        await up.seen
        await self.engine.kill(container)
        with self.assertRaisesRegex(ContainerDied, "it was killed, exit status 137"):
            await running
        with self.assertRaisesRegex(ContainerDied, "it was killed"):
            await self.sh(container, "true")
        await self.engine.remove(container)
        with self.assertRaisesRegex(ContainerDied, "removed"):
            await self.sh(container, "true")

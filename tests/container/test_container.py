from __future__ import annotations

import contextlib
import json
from typing import Any

from msgspec.structs import replace
from twisted.internet.defer import CancelledError, Deferred

from ironcurtain.container.container import Container
from ironcurtain.container.engine import Engine
from ironcurtain.container.errors import ContainerDied, EngineError, EngineUnavailable, ProbeFailed
from ironcurtain.container.probe import probe
from ironcurtain.container.spec import WORKSPACE, ContainerSpec, group_text, mounts, passwd_text
from tests import engine as test_engine
from tests.container.support import EngineCase, Until
from tests.machine import UID

LOOP = "while :; do sleep 0.1; done"


def nothing(data: bytes) -> None:
    """A sink for output that does not matter."""


class ContainerCase(EngineCase):
    """Containers as sessions have them."""

    def setUp(self) -> None:
        super().setUp()
        self.deaths: list[str] = []
        self.died: Deferred[None] = Deferred()

    def session_spec(self, **changes: Any) -> ContainerSpec:
        """:returns: a container with all that a session mounts."""
        places = {name: self.mount(name, "/x").source for name in ("workspace", "home", "sockets", "orientation")}
        for name, text in (("passwd", passwd_text(UID, UID)), ("group", group_text(UID))):
            (self.directory / name).write_text(text)
            places[name] = str(self.directory / name)
        return self.spec(mounts=mounts(**places, places=(WORKSPACE,)), **changes)

    def container(self, spec: ContainerSpec, engine: Engine | None = None) -> Container:
        """:returns: a container whose death is noted."""

        def death(error: ContainerDied) -> None:
            self.deaths.append(str(error))
            self.died.callback(None)

        container = Container(engine or self.engine, spec, death)
        self.addCleanup(self.stopped, container)
        return container

    def stopped(self, container: Container) -> Deferred[None]:
        """Stop a container before it is removed, so that nothing looks for it then."""

        async def stop() -> None:
            if container.id:
                with contextlib.suppress(EngineError, EngineUnavailable):
                    await container.stop()

        return Deferred.fromCoroutine(stop())

    async def said(self, container: Container, script: str) -> str:
        """:returns: what a script inside prints."""
        out = bytearray()
        await container.run(("sh", "-c", script), stdin=b"", stdout=out.extend, stderr=out.extend, environment={})
        return out.decode()


class LifeTests(ContainerCase):
    async def test_from_start_to_stop(self) -> None:
        container = self.container(self.session_spec(name=f"ironcurtain-test-{id(self)}"))
        findings = await container.start()
        self.assertEqual({f.problem for f in findings}, {""})
        self.assertGreater(len(findings), 12)
        self.assertEqual(
            await self.said(container, "id -un; echo ~; touch /workspace/a ~/b && echo ok"), "agent\n/home/agent\nok\n"
        )
        self.assertEqual([c["Names"] for c in self.containers()], [[f"/ironcurtain-test-{id(self)}"]])
        await container.stop()
        self.assertEqual(self.containers(), [])
        self.assertEqual((self.directory / "workspace" / "a").stat().st_uid, UID)
        await container.stop()
        self.assertEqual(self.deaths, [])

    async def test_open_program_takes_input_until_it_is_closed(self) -> None:
        container = self.container(self.session_spec())
        await container.start()
        said, errors = bytearray(), bytearray()
        answered = Until("first")

        def take(data: bytes) -> None:
            said.extend(data)
            answered(data)

        line = ("sh", "-c", 'while read -r word; do echo "$word"; done; echo "$A" >&2; exit 3')
        program = await container.open(line, stdout=take, stderr=errors.extend, environment={"A": "end"})
        program.write(b"first\n")
        await answered.seen
        program.write(b"second\n")
        program.close_input()
        ended = await program.ended
        self.assertEqual((ended.status, said, errors), (3, b"first\nsecond\n", b"end\n"))

    async def test_open_program_is_ended_with_what_it_started(self) -> None:
        container = self.container(self.session_spec())
        await container.start()
        up = Until("up")
        line = ("sh", "-c", "setsid sleep 5000 & echo up; cat")
        program = await container.open(line, stdout=up, stderr=nothing, environment={})
        await up.seen
        await program.end()
        self.assertEqual((await program.ended).status, 143)
        self.assertNotIn("sleep 5000", await self.said(container, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '"))

    async def test_an_image_that_does_not_exist(self) -> None:
        container = self.container(replace(self.spec(), image="ironcurtain-no-such-image:1"))
        with self.assertRaises(EngineError) as caught:
            await container.start()
        self.assertEqual(caught.exception.status, 404)

    async def test_a_program_that_does_not_exist(self) -> None:
        container = self.container(self.spec(command=("no-such-program",)))
        with self.assertRaises((EngineError, ContainerDied)) as caught:
            await container.start()
        self.assertIn("no-such-program", str(caught.exception))
        self.assertEqual(self.containers(), [])

    async def test_one_that_ends_at_once_says_why(self) -> None:
        container = self.container(self.spec(command=("sh", "-c", "echo the bridge is missing >&2; exit 3")))
        with self.assertRaisesRegex(ContainerDied, "exit status 3, saying: the bridge is missing"):
            await container.start()
        self.assertEqual((self.containers(), self.deaths), ([], []))

    async def test_a_name_that_is_taken_is_left_to_its_owner(self) -> None:
        spec = self.spec(name=f"ironcurtain-test-{id(self)}")
        first = self.container(spec)
        await first.start()
        with self.assertRaises(EngineError) as caught:
            await self.container(spec).start()
        self.assertEqual(caught.exception.status, 409)
        self.assertEqual(len(self.containers()), 1)
        await first.stop()

    async def test_cancelling_the_start_leaves_nothing(self) -> None:
        for turns in (0, 1, 20, 200):
            container = self.container(self.spec())
            starting = Deferred.fromCoroutine(container.start())
            for _ in range(turns):
                await self.turn()
            starting.cancel()
            with self.assertRaises(CancelledError):
                await starting
            self.assertEqual(self.containers(), [], f"after {turns} turns")


class DeathTests(ContainerCase):
    async def test_it_is_told_with_the_reason(self) -> None:
        container = self.container(self.spec(command=("sh", "-c", f"trap 'exit 9' TERM; echo hello; {LOOP}")))
        await container.start()
        test_engine.call("POST", f"/containers/{container.id}/kill?signal=TERM")
        await self.died
        self.assertEqual(self.deaths, ["the container ended: exit status 9, saying: hello"])
        await container.stop()
        self.assertEqual(self.containers(), [])

    async def test_memory_that_is_used_up_by_the_main_program(self) -> None:
        container = self.container(
            self.spec(memory_mb=96, command=("sh", "-c", f"trap 'exec tail /dev/zero' TERM; {LOOP}"))
        )
        await container.start()
        test_engine.call("POST", f"/containers/{container.id}/kill?signal=TERM")
        await self.died
        self.assertIn("memory", self.deaths[0])
        await container.stop()

    async def test_memory_that_is_used_up_by_a_program(self) -> None:
        container = self.container(self.spec(memory_mb=96))
        await container.start()
        line = ("tail", "/dev/zero")
        ended = await container.run(line, stdin=b"", stdout=nothing, stderr=nothing, environment={})
        self.assertEqual((ended.status, ended.out_of_memory), (137, True))
        ended = await container.run(("false",), stdin=b"", stdout=nothing, stderr=nothing, environment={})
        self.assertEqual((ended.status, ended.out_of_memory), (1, False))
        self.assertEqual(self.deaths, [])
        await container.stop()

    async def test_removed_by_somebody_else(self) -> None:
        container = self.container(self.spec())
        await container.start()
        test_engine.call("DELETE", f"/containers/{container.id}?force=1")
        await self.died
        self.assertIn("another program removed", self.deaths[0])
        await container.stop()


class ProbeTests(ContainerCase):
    """Containers that are not what was ordered."""

    async def problems(self, spec: ContainerSpec, made: dict[str, Any]) -> str:
        """:returns: what the probe says of a container that was made otherwise."""
        request = spec.create_request()
        request["HostConfig"].update(made.pop("HostConfig", {}))
        request.update(made)
        body = json.dumps(request).encode()
        [answer] = test_engine.call("POST", "/containers/create", body)
        await self.engine.start(answer["Id"])
        with self.assertRaises(ProbeFailed) as caught:
            await probe(self.engine, answer["Id"], spec)
        return str(caught.exception)

    async def test_each_weakness_is_found_from_inside_or_outside(self) -> None:
        for made, says in (
            ({"NetworkMode": "host"}, ("network interfaces", "NetworkMode", "shares the net namespace")),
            ({"PidMode": "host"}, ("PidMode", "shares the pid namespace")),
            ({"CapDrop": [], "SecurityOpt": []}, ("CapBnd", "no-new-privileges is off", "the kernel says")),
            ({"SecurityOpt": ["no-new-privileges", "seccomp=unconfined"]}, ("seccomp is off", "create namespaces")),
            ({"ReadonlyRootfs": False}, ("not mounted read-only", "writing to /var/tmp ended with: written")),
            (
                {"Memory": 0, "MemorySwap": 0, "PidsLimit": 0},
                ("limit of memory", "limit of pids", "ironcurtain doctor"),
            ),
            ({"Privileged": True}, ("CapBnd", "it has devices: /dev/", "create namespaces")),
            ({"Tmpfs": {"/data": ""}}, ("at /data",)),
            ({"Binds": [f"{self.directory}:/host"]}, ("/host", "unexpected mount")),
        ):
            told = await self.problems(self.spec(), {"HostConfig": made})
            for text in says:
                self.assertIn(text, told, f"{made}: {told}")

    async def test_root(self) -> None:
        told = await self.problems(self.spec(), {"User": "0"})
        self.assertIn(f"its uid is 0 0 0 0, not {UID}", told)

    async def test_a_volume_of_the_image(self) -> None:
        self.assertIn("/data", await self.problems(self.spec(), {"Volumes": {"/data": {}}}))

    async def test_the_engines_own_socket(self) -> None:
        socket = test_engine.engine()
        told = await self.problems(self.spec(), {"HostConfig": {"Binds": [f"{socket}:/var/run/docker.sock"]}})
        self.assertIn("there is a socket /var/run/docker.sock", told)

    async def test_nothing_is_left_of_a_container_that_is_not_closed(self) -> None:
        spec = self.session_spec()
        listener = self.listen("workspace/engine.sock")
        with self.assertRaisesRegex(ProbeFailed, "listens on .*engine.sock"):
            await self.container(spec).start()
        self.assertEqual(self.containers(), [])
        listener.close()


class AbsenceTests(ContainerCase):
    async def test_without_an_engine_nothing_is_made(self) -> None:
        absent = Engine(self.engine.clock, str(self.directory / "docker.sock"))
        container = self.container(self.spec(), absent)
        with self.assertRaisesRegex(EngineUnavailable, "ironcurtain doctor"):
            await container.start()
        self.assertEqual(container.id, "")

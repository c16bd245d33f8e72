from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.errors import EngineError
from ironcurtain.container.spec import owner_labels, owner_of
from ironcurtain.container_agent.leftovers import clear_logins, leftovers, sweep
from ironcurtain.files.locks import FileLock
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.process.identity import ProcessIdentity, identify
from tests.container.support import EngineCase


def dead() -> ProcessIdentity:
    """:returns: a process that lived and lives no more."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        identity = identify(process.pid)
    return identity


class OwnerTests(SynchronousTestCase):
    @given(st.text(), st.text(), st.integers(1, 2**31), st.integers(0, 2**63), st.text())
    def test_labels_name_the_owner(self, session: str, home: str, pid: int, start: int, boot: str) -> None:
        owner = ProcessIdentity(pid, start, boot)
        self.assertEqual(owner_of(owner_labels(session, home, owner)), owner)

    @given(st.dictionaries(st.sampled_from(sorted(owner_labels("s", "h", ProcessIdentity(1, 2, "b")))), st.text()))
    def test_other_labels_name_nobody_or_somebody(self, labels: dict[str, str]) -> None:
        owner = owner_of(labels)
        self.assertTrue(owner is None or str(owner.pid) == labels["ironcurtain.pid"].lstrip("0") or owner.pid == 0)

    def test_what_is_missing_is_not_guessed(self) -> None:
        labels = owner_labels("s", "h", ProcessIdentity(1, 2, "b"))
        for name in ("ironcurtain.pid", "ironcurtain.pid-start", "ironcurtain.boot-id"):
            self.assertIsNone(owner_of({k: v for k, v in labels.items() if k != name}))
        self.assertIsNone(owner_of({**labels, "ironcurtain.pid": "-1"}))
        self.assertIsNone(owner_of({**labels, "ironcurtain.pid": "\uff11"}))


class LoginLeftoverTests(SynchronousTestCase):
    def test_files_of_killed_logins_are_removed_and_those_of_others_kept(self) -> None:
        top = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, top)
        home = Home(top, top / "runtime")
        clear_logins(home)
        for name in ("dead", "living"):
            (home.logins / name / "home").mkdir(parents=True)
            (home.logins / name / "home" / "token").write_text("canary")
            home.session_run(name).directory.mkdir(parents=True)
        lock = FileLock(SessionPaths(home.logins / "living").lock)
        lock.acquire()
        self.addCleanup(lock.release)
        clear_logins(home)
        self.assertEqual([path.name for path in home.logins.iterdir()], ["living"])
        self.assertEqual([path.name for path in home.run.iterdir()], ["living"])


class SweepTests(EngineCase):
    """Containers of owners that live and that do not."""

    def setUp(self) -> None:
        super().setUp()
        self.home = Path(f"/home/of/{self.label}")

    async def container(self, owner: ProcessIdentity, home: Path | None = None, session: str = "s1") -> str:
        """:returns: the name of a container that runs."""
        name = f"ironcurtain-test-{len(self.containers())}-{id(self)}"
        await self.running(name=name, labels=owner_labels(session, str(home or self.home), owner))
        return name

    def names(self) -> set[str]:
        """:returns: of the containers that are there."""
        return {container["Names"][0].lstrip("/") for container in self.containers()}

    async def test_only_what_dead_owners_of_this_home_left_is_removed(self) -> None:
        gone, here = dead(), identify()
        kept = {
            await self.container(here),
            await self.container(gone, self.home / "other"),
            await self.container(gone, Path("/")),
        }
        left = [
            await self.container(gone, session="a"),
            await self.container(ProcessIdentity(here.pid, here.start_time + 1, here.boot_id), session="b"),
            await self.container(ProcessIdentity(here.pid, here.start_time, "another-boot"), session="c"),
        ]
        found = await leftovers(self.engine, self.home)
        self.assertEqual([(f.name, f.session) for f in found], list(zip(left, "abc", strict=True)))
        self.assertEqual(self.names(), kept | set(left))
        self.assertEqual(await sweep(self.engine, self.home), found)
        self.assertEqual(self.names(), kept)
        self.assertEqual(await sweep(self.engine, self.home), [])

    async def test_networks_and_volumes_of_dead_owners_go_with_their_containers(self) -> None:
        labels = {owner: owner_labels("s", str(self.home), owner) for owner in (dead(), identify())}
        for owner, each in labels.items():
            name = f"ironcurtain-test-{owner.pid}"
            self.removed_later(self.engine.remove_network, await self.engine.create_network(name, each, internal=True))
            self.removed_later(self.engine.remove_volume, await self.engine.create_volume(name, each, {}))
        await self.container(next(iter(labels)))
        removed = await sweep(self.engine, self.home)
        self.assertEqual([each.kind for each in removed], ["container", "network", "volume"])
        for found in (
            await self.engine.list_networks({"ironcurtain.home": str(self.home)}),
            await self.engine.list_volumes({"ironcurtain.home": str(self.home)}),
        ):
            self.assertEqual([each["Labels"]["ironcurtain.pid"] for each in found], [str(identify().pid)])

    def removed_later(self, remove: Callable[[str], Awaitable[None]], name: str) -> None:
        """Remove at the end what may be gone by then."""

        async def removed() -> None:
            with contextlib.suppress(EngineError):
                await remove(name)

        self.addCleanup(lambda: Deferred.fromCoroutine(removed()))

    async def test_what_cannot_be_read_is_left_alone(self) -> None:
        labels = {**owner_labels("s", str(self.home), dead()), "ironcurtain.pid": "many"}
        await self.running(labels=labels)
        self.assertEqual(await sweep(self.engine, self.home), [])
        self.assertEqual(len(self.containers()), 1)

    async def test_one_that_has_ended_is_removed_as_well(self) -> None:
        await self.container(dead())
        await self.engine.kill(self.containers()[0]["Id"])
        self.assertEqual(len(await sweep(self.engine, self.home)), 1)
        self.assertEqual(self.containers(), [])

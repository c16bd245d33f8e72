"""Real programs that install packages, in sessions, from registries on this machine that lie."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec.structs import replace
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SkipTest

from ironcurtain.agents.adapter import Facts
from ironcurtain.container.image_plans import Basis
from ironcurtain.container.spec import ContainerSpec, Mount
from ironcurtain.container_agent.kind import ContainerKind
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.registry_sections import Registries, RegistrySettings
from ironcurtain.home.sections import EscalationSettings, Resources
from ironcurtain.home.settings import Settings
from ironcurtain.sandbox.system_paths import is_system
from ironcurtain.session.events import RequestRefused
from tests import engine
from tests.container_agent.test_without_docker import IN_BUBBLEWRAP, demand
from tests.container_agent.worlds import ContainerTestCase, ScriptAgent, SmallImages, World
from tests.machine import UID
from tests.programs import program
from tests.registries.indexes import INDEXES, OLD, YOUNG, Index
from tests.registries.managers import LIES, MANAGERS, REFUSALS, Manager, find_program, modules
from tests.registries.upstream import sha256

PROGRAM = "package-agent"
"""The agent's program: a shell, and a file that names what else its sandbox must have."""

TOOLS = "/opt/tools"
"""Where its directory is in containers, which have a ``/tmp`` of their own."""

RUST = (".rustup", ".cargo/bin")
"""Where a person's Rust is, below the home."""

IMPATIENT = "npm_config_fetch_retries=0 pnpm_config_fetch_retry_mintimeout=1 CARGO_NET_RETRY=0"
"""Variables that keep managers from waiting before they ask again for a file that broke off."""

PATHS = (
    ("https://registry.npmjs.org", "/@s%2f", "secret"),
    ("https://registry.npmjs.org", "/example/-/", "secret-1.0.0.tgz"),
    ("https://pypi.org", "/simple/", "secret/"),
    ("https://files.pythonhosted.org", "/packages/", "secret-1.0.tar.gz"),
    ("https://index.crates.io", "/se/cr/", "secret"),
    ("https://static.crates.io", "/crates/example/", "secret/download"),
    ("https://proxy.golang.org", "/host.test/", "secret/@v/list"),
    ("http://deb.debian.org", "/debian/pool/main/", "secret_1_all.deb"),
)
"""Hosts of registries, and the beginnings and ends of paths there."""

OUTCOME = re.compile(r"^@@@ (\S+)\n(.*?)^@@@ (\d+)$", re.MULTILINE | re.DOTALL)
"""What :meth:`ManagerCase.attempts` prints of each use: its label, what the manager printed, and its status."""


def package_of(label: str) -> str:
    """:returns: the package that a use of a manager is about."""
    return {"again": "example", "locked": "fresh"}.get(label, label)


def stopped(index: Index) -> Deferred[None]:
    """End a registry."""
    return Deferred.fromCoroutine(index.server.stop())


def is_further(place: str) -> bool:
    """:returns: whether a directory has to be mounted besides ``/usr``."""
    return place != "/" and not is_system(place) and os.path.isdir(place)


class PackageAgent(ScriptAgent):
    """Runs shell scripts."""

    def turn(self, facts: Facts, first: bool) -> tuple[str, ...]:
        """:returns: the shell."""
        return (PROGRAM, "-s")


class PackageWorld(World):
    adapter_class = PackageAgent


class Attempt(NamedTuple):
    """
    What came of one use of a manager.

    :ivar installed: whether what was to be installed is there.
    """

    printed: str
    status: int
    installed: bool


class ManagerCase(ContainerTestCase):
    """A session whose agent uses package managers of this machine, and registries of which the test decides."""

    world_class = PackageWorld
    search = ""
    """Where the managers are, as ``PATH``."""

    async def begin(self, managers: Sequence[str], **options: Any) -> None:
        """Start a session with some managers."""
        self.indexes = {index.name: index() for index in INDEXES}
        opened: dict[str, Any] = {}
        for name, index in self.indexes.items():
            self.addCleanup(stopped, index)
            opened[name] = RegistrySettings(url=index.url, deny=("denied", "*/denied"))
            index.publish("example", {"1.0.0": OLD, "2.0.0": YOUNG})
            index.publish("fresh", {"1.0.0": YOUNG})
            index.publish("denied", {"1.0.0": OLD})
            for package, lie in LIES.items():
                index.publish(package, {"1.0.0": OLD}, lie)
        self.work = self.top / "work"
        self.work.mkdir()
        self.top.chmod(0o755)
        if os.geteuid() == 0:
            os.chown(self.work, UID, UID)
        names = [name for manager in managers for name in MANAGERS[manager].programs]
        self.make_tools({name: find_program(name) for name in names})
        self.environ["PATH"] = self.search
        self.world = self.another(
            self.with_settings(
                registries=Registries(**opened, max_file_mb=1),
                resources=Resources(memory_mb=3072, pids=500),
                escalation=EscalationSettings(timeout_seconds=1),
            )
        )
        self.session = await self.start(workspace=self.work, options=options)

    def make_tools(self, needed: Mapping[str, str]) -> None:
        """
        Make a directory with a program that needs others, and find where all of them are.

        :param needed: their paths, by name.
        """
        tools = self.top / "tools"
        tools.mkdir()
        (tools / "package.json").write_text('{"name": "tools"}')
        lines = ["#!/bin/sh", 'exec /bin/sh "$@"', *(f"exec {path}" for path in needed.values())]
        (tools / PROGRAM).write_text("\n".join(lines) + "\n")
        (tools / PROGRAM).chmod(0o755)
        for name, path in needed.items():
            if os.path.basename(path) != name:
                (tools / name).symlink_to(path)
        for name in RUST:  # the session's person has another home
            if (Path.home() / name).exists():
                (self.top / name).parent.mkdir(exist_ok=True)
                (self.top / name).symlink_to(Path.home() / name)
        places = [str(tools), f"{self.top}/.cargo/bin", *(os.path.dirname(path) for path in needed.values())]
        self.search = ":".join((*dict.fromkeys(places), os.defpath))

    async def attempts(self, name: str, labels: Sequence[str]) -> dict[str, Attempt]:
        """
        Use a manager several times, each time in a directory and with a home of its own.

        :param labels: ``example``, ``again`` and those of :data:`REFUSALS`.
        :returns: what came of each.
        """
        manager, script = MANAGERS[name], ["set -u"]
        for label in labels:
            command = {"again": manager.again, "locked": manager.again, "publish": manager.publish}
            command["endless"] = f"export {IMPATIENT}; ({manager.install}\n) 2>/dev/null || {manager.install}"
            package = package_of(label)
            copied = "cp -R ../example/. . && rm -rf home node_modules"
            if label == "locked":
                copied += " && find . -maxdepth 1 -type f | xargs sed -i s/example/fresh/g"
            script += [
                f"mkdir -p '/workspace/{name}/{label}' && cd '/workspace/{name}/{label}' && echo '@@@ {label}'",
                f"set {package}; {copied if label in ('again', 'locked') else ':'}",
                "mkdir -p home; export HOME=$PWD/home pnpm_config_store_dir=$PWD/home/store",
                f'({command.get(label, manager.install)}\n) </dev/null 2>&1; echo "@@@ $?"',
            ]
        found = {}
        for label, printed, status in OUTCOME.findall(await self.say(self.session, *script)):
            package = package_of(label)
            there = (self.work / name / label).glob(manager.installed.replace("{}", package))
            found[label] = Attempt(printed, int(status), any(there))
        self.assertEqual(list(found), list(labels))
        return found

    async def check(self, name: str, refused: Iterable[str] = REFUSALS) -> None:
        """Assert that a manager installs what it may, and that all else is refused with a reason."""
        manager = MANAGERS[name]
        tried = [
            label for label in refused if label not in manager.left_out and (label != "publish" or manager.publish)
        ]
        wrong = []
        for label, attempt in (await self.attempts(name, ("example", "again", *tried))).items():
            if label in REFUSALS:
                good = attempt.status != 0 and not attempt.installed and self.explained(manager, label, attempt.printed)
            else:
                good = attempt.status == 0 and attempt.installed
            if not good:
                wrong.append(f"{name} {label}: {attempt.status} {attempt.installed}\n{attempt.printed}")
        self.assertEqual(wrong, [], "\n".join(wrong))

    def explained(self, manager: Manager, label: str, printed: str) -> bool:
        """:returns: whether the reason of a refusal is printed, or stands in the log if the manager is silent."""
        if label in manager.own and manager.own[label] in printed:
            return True
        reason = REFUSALS[label]
        if label in manager.silent:
            told = [event for event in self.seen(self.session, RequestRefused) if package_of(label) in event.host]
            return any(re.search(reason, event.reason) for event in told)
        flat = re.sub(r"[\s│]+", " ", printed)  # some wrap lines
        return re.search(f"IronCurtain: [^:]*(:.*)?({reason})", flat) is not None


class SandboxTests(ManagerCase):
    """In a sandbox of bubblewrap."""

    def setUp(self) -> None:
        demand()
        super().setUp()

    async def in_sandbox(self, name: str) -> None:
        await self.begin([name], **IN_BUBBLEWRAP)
        await self.check(name)

    async def test_npm(self) -> None:
        await self.in_sandbox("npm")

    async def test_pnpm(self) -> None:
        await self.in_sandbox("pnpm")
        await self.say(
            self.session, "mkdir /workspace/project; cd /workspace/project", f"set example; {MANAGERS['pnpm'].install}"
        )
        self.assertEqual({path.name for path in self.work.iterdir()}, {"pnpm", "project"})

    async def test_yarn_1(self) -> None:
        await self.in_sandbox("yarn 1")

    async def test_yarn_4(self) -> None:
        await self.in_sandbox("yarn 4")

    async def test_bun(self) -> None:
        await self.in_sandbox("bun")

    async def test_pip(self) -> None:
        await self.in_sandbox("pip")

    async def test_uv(self) -> None:
        await self.in_sandbox("uv")

    async def test_poetry(self) -> None:
        await self.in_sandbox("poetry")
        await self.install_younger_by_lock()

    async def install_younger_by_lock(self) -> None:
        """Let a lock file of poetry, which binds it to its project, name another version with its digest."""
        ((_, answer),) = [each for each in self.indexes["pypi"].server.answers.items() if "/example-2.0.0-" in each[0]]
        digest = sha256(answer.partition(b"\r\n\r\n")[2])
        printed = await self.say(
            self.session,
            "cp -R /workspace/poetry/example /workspace/younger; cd /workspace/younger; rm -rf .venv home",
            f"sed -i -E 's/1[.]0[.]0/2.0.0/g; s/sha256:[0-9a-f]+/sha256:{digest}/' poetry.lock; export HOME=$PWD",
            f"({MANAGERS['poetry'].again}\n) 2>&1 || echo failed",
        )
        self.assertRegex(printed, "IronCurtain: example 2.0.0 is too young")
        self.assertIn("failed", printed)

    async def test_cargo(self) -> None:
        await self.in_sandbox("cargo")

    async def test_go(self) -> None:
        await self.in_sandbox("go")

    async def test_apt_get(self) -> None:
        await self.in_sandbox("apt-get")

    async def test_curl_shows_why_something_is_refused(self) -> None:
        program("curl")
        await self.begin([], **IN_BUBBLEWRAP)
        printed = await self.say(self.session, "curl -sS https://registry.npmjs.org/fresh")
        self.assertIn("IronCurtain: fresh 1.0.0 is too young", printed)
        before = {name: len(index.server.heads) for name, index in self.indexes.items()}
        urls = [f"{host}{path}{out}{rest}" for host, path, rest in PATHS for out in ("../../", "..%2f..%2f", "%2e%2e/")]
        printed = await self.say(self.session, *(f"curl -sS --path-as-is '{url}'" for url in urls))
        answers = printed.splitlines()
        self.assertEqual([answer for answer in answers if not answer.startswith("IronCurtain: ")], [])
        self.assertEqual(len(answers), len(urls))
        self.assertEqual({name: len(index.server.heads) for name, index in self.indexes.items()}, before)


class HostKind(ContainerKind):
    """Its containers have further directories of this machine, read-only."""

    further: Sequence[Mount] = ()

    async def _spec(self, *arguments: Any, **options: Any) -> ContainerSpec:
        spec = await super()._spec(*arguments, **options)
        return replace(spec, mounts=(*spec.mounts, *self.further))


class HostImages(SmallImages):
    """
    An image with nothing but links into the programs of this machine.

    :ivar environment: of all programs.
    """

    def __init__(self) -> None:
        self.environment: Mapping[str, str] = {}

    def choose(self, workspace: str, settings: ContainerSettings) -> Basis:
        """See :class:`SmallImages`."""
        return Basis(environment=self.environment)

    async def ensure(self, agent: str, progress: Callable[[str], None], basis: Basis) -> str:
        """:returns: the image."""
        return engine.host_image()


class HostWorld(PackageWorld):
    images_class, kind_class = HostImages, HostKind


class ContainerTests(ManagerCase):
    """In a container of the Engine, which has the programs of this machine."""

    world_class = HostWorld

    def another(self, settings: Settings | None = None) -> World:
        """:returns: a world whose containers have the programs, once these are known."""
        world = super().another(settings)
        if self.search:
            images, maker = world.images, world.maker
            assert isinstance(images, HostImages) and isinstance(maker, HostKind)
            search = f"{TOOLS}:{Path.home()}/.cargo/bin:{self.search}"
            images.environment = {"PATH": search, "RUSTUP_HOME": str(Path.home() / ".rustup")}
            maker.further = (Mount(f"{self.top}/tools", TOOLS), *(Mount(each, each) for each in self.places()))
        return world

    def places(self) -> list[str]:
        """:returns: the directories with the programs."""
        outside = (place for place in self.search.split(":") if not place.startswith(f"{self.top}/"))
        installed = [os.path.dirname(place) for place in outside]
        installed += [
            str(modules().resolve()),
            str(Path.home() / ".rustup"),
            str(Path.home() / ".cargo"),
            "/etc/alternatives",
        ]
        for place in list(installed):
            if (Path(place) / "pyvenv.cfg").exists():
                installed.append(os.path.dirname(os.path.dirname(os.path.realpath(f"{place}/bin/python3"))))
        return ["/usr", *sorted(place for place in set(installed) if is_further(place))]

    async def test_packages_are_installed_and_lies_refused(self) -> None:
        missing = ""
        found = []
        for name, manager in MANAGERS.items():
            try:
                for each in manager.programs:
                    find_program(each)
                found.append(name)
            except SkipTest as e:
                missing = str(e)
        await self.begin(found)
        for name in found:
            await self.check(name, ("changed",))
        if missing:
            raise SkipTest(missing)

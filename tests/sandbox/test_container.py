"""Sandboxes that the Docker Engine makes: what is true of those of bubblewrap is true of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox import container
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.sandbox.spec import Sandbox
from tests import engine
from tests.product import wait_until
from tests.sandbox import test_bubblewrap


class ByTheEngine(SynchronousTestCase):
    """How the tests of sandboxes get theirs."""

    def prepare(self) -> None:
        engine.engine()

    def command(self, sandbox: Sandbox, words: Sequence[str], descriptors: Mapping[int, int]) -> list[str]:
        return container.command(words, descriptors)

    def inputs(self, sandbox: Sandbox) -> dict[int, bytes]:
        return container.inputs(sandbox, engine.environment())


class SandboxTests(ByTheEngine, test_bubblewrap.SandboxTests):
    def test_nothing_is_left(self) -> None:
        before = set(Path("/tmp").glob("ironcurtain-sandbox-*"))
        self.assertEqual(self.run_inside("cat read 2>&1; exit 3")[0], 3)
        wait_until(lambda: not set(Path("/tmp").glob("ironcurtain-sandbox-*")) - before)
        names = [name for made in containers() for name in made["Names"] if "ironcurtain-sandbox" in name]
        self.assertEqual(names, [])

    def test_input_and_its_end(self) -> None:
        with opened(self.inputs(self.sandbox)) as descriptors:
            done = subprocess.run(
                self.command(self.sandbox, ["cat"], descriptors),
                input=b"line\n" * 50_000,
                capture_output=True,
                pass_fds=list(descriptors.values()),
                env=os.environ,
                check=False,
            )
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, b"line\n" * 50_000, b""))

    def test_an_engine_that_is_gone_is_said(self) -> None:
        with opened(container.inputs(self.sandbox, {"DOCKER_HOST": "unix:///nowhere/docker.sock"})) as descriptors:
            line = container.command(["true"], descriptors)
            done = subprocess.run(line, capture_output=True, pass_fds=list(descriptors.values()), check=False)
        self.assertEqual((done.returncode, b"Traceback" in done.stderr), (container.CANNOT_START, False), done.stderr)
        self.assertIn(b"the Docker Engine created no sandbox", done.stderr)

    def test_what_the_engine_refuses_is_said(self) -> None:
        done = self.run_words(self.sandbox, "/nowhere/program")
        self.assertEqual(done.returncode, container.CANNOT_START)
        self.assertIn(b"the Docker Engine created no sandbox", done.stderr)


class FitnessTests(SynchronousTestCase):
    def test_engine_without_limits_or_with_other_accounts_is_not_used(self) -> None:
        self.assertIsNone(container.unfit({"MemoryLimit": True, "SecurityOptions": ["name=seccomp"]}))
        self.assertIn("memory", str(container.unfit({"MemoryLimit": False, "PidsLimit": True})))
        self.assertIn("processes", str(container.unfit({"PidsLimit": False})))
        self.assertIn("accounts", str(container.unfit({"SecurityOptions": ["name=rootless"]})))
        self.assertIn("Podman", str(container.unfit({"BuildahVersion": "1.28.2", "Rootless": False})))

    def test_memory_and_every_directory_in_memory_have_a_size(self) -> None:
        sandbox = Sandbox(home="/home/a")
        host = container.request(sandbox, ["true"], {}, "image", "/own")["HostConfig"]
        limits = sandbox.limits
        self.assertEqual((host["Memory"], host["MemorySwap"]), (limits.memory, limits.memory))
        self.assertEqual(host["ShmSize"], limits.temporary)
        self.assertEqual({option.rpartition("=")[2] for option in host["Tmpfs"].values()}, {str(limits.temporary)})


class OtherAccountTests(ByTheEngine, test_bubblewrap.OtherAccountTests):
    pass


def containers() -> list[dict[str, Any]]:
    """:returns: what the Engine says of each."""
    found: list[dict[str, Any]]
    (found,) = engine.call("GET", "/containers/json?all=1")
    return found

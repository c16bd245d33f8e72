"""Real clones from a web server of our own, over TLS."""

from __future__ import annotations

import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import deferLater
from twisted.trial.unittest import TestCase

from ironcurtain.errors import UsageError
from ironcurtain.process.accounts import Account
from ironcurtain.project.clone import CloneFailed, clone
from tests.audit.doubles import scratch
from tests.model_stub.certificates import Authority
from tests.product import children
from tests.project.git_server import publish, serve
from tests.trees import DEEP

reactor: Any = global_reactor


@dataclass
class _Silent(Protocol):
    """Takes connections and says nothing."""

    came: Deferred[None]

    def connectionMade(self) -> None:
        if not self.came.called:
            self.came.callback(None)


def living() -> set[int]:
    """:returns: our children that run; some that ended may wait for somebody to ask how."""
    return {pid for pid in children() if "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()}


class CloneTestCase(TestCase):
    def setUp(self) -> None:
        self.top = scratch(self)
        self.top.chmod(0o755)
        self.home, self.to = self.top / "home", self.top / "sandbox"
        self.home.mkdir()
        self.to.mkdir()
        self.authority = Authority.make("git test")
        (self.home / "ca.pem").write_bytes(self.authority.pem)
        (self.home / ".gitconfig").write_text(f"[http]\n\tsslCAInfo = {self.home}/ca.pem\n")
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(self.home)}
        self.account = Account(os.geteuid(), os.getegid(), "", str(self.home))
        self.said: list[str] = []
        self.children = living()

    def serve(self) -> str:
        """:returns: the address of a new repository."""
        publish(self.top, self.environ)
        return self.served()

    def served(self) -> str:
        """:returns: the same repository's at a new server."""
        port, address = serve(reactor, self.top, self.authority)
        self.addCleanup(port.stopListening)
        return address

    async def clone(self, address: str, seconds: float = 120.0) -> None:
        await clone(reactor, address, self.to, self.account, self.environ, self.said.append, seconds)

    async def fails(self, address: str, seconds: float = 120.0) -> str:
        try:
            await self.clone(address, seconds)
        except CloneFailed as e:
            self.assertEqual(list(self.to.iterdir()), [])
            return str(e)
        self.fail("it was cloned")


class CloneTests(CloneTestCase):
    async def test_files_come_and_nothing_is_run_or_left(self) -> None:
        template = self.top / "template" / "hooks"
        template.mkdir(parents=True)
        (template / "post-checkout").write_text(f"#!/bin/sh\ntouch {self.top}/owned\n")
        (template / "post-checkout").chmod(0o755)
        with (self.home / ".gitconfig").open("a") as file:
            file.write(f"[init]\n\ttemplateDir = {template.parent}\n[core]\n\thooksPath = {template}\n")
            file.write("[submodule]\n\trecurse = true\n")
        address = self.serve()
        await self.clone(address)
        self.assertEqual((self.to / "README").read_text(), "hello\n")
        self.assertEqual(os.readlink(self.to / "link"), "/etc/passwd")
        self.assertFalse((self.top / "owned").exists())
        self.assertFalse((self.to / ".git" / "hooks").exists())
        self.assertFalse((self.to / "evil").exists() and any((self.to / "evil").iterdir()))
        config = (self.to / ".git" / "config").read_text()
        self.assertIn(address, config)
        self.assertNotIn("hooksPath", config)
        self.assertTrue(self.said)

    async def test_another_account_needs_no_temporary_directory_of_ours(self) -> None:
        self.as_another()
        own = self.top / "tmp"
        own.mkdir(mode=0o700)
        self.patch(tempfile, "tempdir", str(own))
        self.environ["TMPDIR"] = str(own)
        await self.clone(self.serve())
        self.assertEqual((self.to / "README").read_text(), "hello\n")

    async def test_as_another_account_its_files_are_that_account_s(self) -> None:
        self.as_another()
        self.top.chmod(0o700)  # the account cannot reach the workspace by its path, nor its own home
        self.environ["GIT_SSL_CAINFO"] = "ignored"
        said = await self.fails(self.serve())
        self.assertIn("certificate", said)  # its own settings could not be read, and nothing of ours was taken instead
        self.top.chmod(0o755)
        await self.clone(self.served())
        owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in self.to.rglob("*")}
        self.assertEqual(owners, {(4711, 4712)})

    def as_another(self) -> None:
        if os.geteuid() != 0:
            raise self.skipTest("only root can be somebody else")
        self.account = Account(4711, 4712, "", str(self.home))
        self.home.chmod(0o755)
        os.chown(self.to, 4711, 4712)

    async def test_as_another_account_to_another_file_system(self) -> None:
        self.to = Path(tempfile.mkdtemp(dir="/dev/shm"))
        self.addCleanup(shutil.rmtree, self.to)
        self.as_another()
        await self.clone(self.serve())
        self.assertEqual(os.readlink(self.to / "link"), "/etc/passwd")
        self.assertTrue((self.to / ".git" / "HEAD").exists())
        owners = {(path.lstat().st_uid, path.lstat().st_gid) for path in self.to.rglob("*")}
        self.assertEqual(owners, {(4711, 4712)})

    async def test_what_the_account_puts_in_the_place_of_its_clone_gives_it_nothing_of_ours(self) -> None:
        self.as_another()
        ours = self.top / "ours"
        (ours / ".git").mkdir(parents=True)
        address = "https://localhost/x.git"
        (ours / ".git" / "config").write_text(f'[remote "origin"]\n\turl = {address}\n')
        (ours / "key").write_text("secret")
        programs = self.top / "programs"
        programs.mkdir()
        git = programs / "git"
        swap = f'for place; do :; done\nmv "$place" "$place.gone"\nln -s {ours} "$place"\n'
        git.write_text(f"#!/bin/sh\n{swap}exit 0\n")
        git.chmod(0o755)
        self.environ["PATH"] = f"{programs}:{self.environ['PATH']}"
        await self.fails(address)
        self.assertEqual((ours / "key").read_text(), "secret")

    def deep_and_then_failing(self) -> None:
        """Have a git that leaves directories in each other, more than Python's stack, and fails."""
        programs = self.top / "programs"
        programs.mkdir()
        git = programs / "git"
        levels = "d/" * DEEP
        git.write_text(f'#!/bin/sh\nfor place; do :; done\nmkdir -p "$place/{levels}"\ntouch "$place/file"\nexit 1\n')
        git.chmod(0o755)
        self.environ["PATH"] = f"{programs}:{self.environ['PATH']}"

    async def test_what_is_nested_deep_goes_too(self) -> None:
        self.deep_and_then_failing()
        self.assertIn("failed", await self.fails("https://localhost/x.git"))

    async def test_as_another_account_what_is_nested_deep_goes_too(self) -> None:
        self.as_another()
        self.deep_and_then_failing()
        self.addCleanup(setattr, tempfile, "tempdir", tempfile.tempdir)
        tempfile.tempdir = str(self.top / "temporary")
        os.mkdir(tempfile.tempdir, 0o711)
        self.assertIn("failed", await self.fails("https://localhost/x.git"))
        self.assertEqual(os.listdir(tempfile.tempdir), [])

    async def test_what_cannot_be_reached_is_told_in_git_s_words(self) -> None:
        said = await self.fails("https://localhost:1/x.git")
        self.assertIn("onnect", said)

    async def test_a_redirect_to_another_protocol_is_not_followed(self) -> None:
        self.assertIn("git clone", await self.fails(self.serve() + "-missing"))

    async def test_wrong_addresses_start_nothing(self) -> None:
        for address in ("ext::sh -c evil", "/etc", "--upload-pack=evil"):
            with self.assertRaises(UsageError):
                await self.clone(address)


class EndingTests(CloneTestCase):
    """Git waits for a server that never answers."""

    async def all_gone(self) -> None:
        while living() - self.children:  # the test's own time limit ends this
            await deferLater(reactor, 0.01)

    async def silent(self) -> tuple[str, Deferred[None]]:
        came: Deferred[None] = Deferred()
        port = reactor.listenTCP(0, Factory.forProtocol(lambda: _Silent(came)), interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        return f"https://localhost:{port.getHost().port}/x.git", came

    async def test_the_time_limit(self) -> None:
        address, _ = await self.silent()
        self.assertIn("took more than 0.4 s", await self.fails(address, 0.4))
        await self.all_gone()

    async def test_cancelling_ends_git_and_what_it_started(self) -> None:
        address, came = await self.silent()
        cloning = Deferred.fromCoroutine(self.clone(address))
        await came
        self.assertNotEqual(living(), self.children)
        cloning.cancel()
        with self.assertRaises(CancelledError):
            await cloning
        await self.all_gone()
        self.assertEqual(list(self.to.iterdir()), [])

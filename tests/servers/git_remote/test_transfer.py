"""The server that fetches and pushes, with a real git server behind TLS, and repositories that mean harm."""

from __future__ import annotations

import resource
import shutil
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.protocol import Factory

from ironcurtain.errors import IronCurtainError
from ironcurtain.servers.git_remote.runner import Runner
from ironcurtain.servers.git_remote.tools import GitRemoteTools
from tests.http.proxy_stub import WANTS_BASIC, ProxyStub
from tests.servers.git_remote.served import ServedCase

the_reactor: Any = _reactor


class TransferTests(ServedCase):
    async def test_clone_commit_push_and_pull(self) -> None:
        await self.call("git_clone", directory="app")
        clone = self.workspace / "app"
        self.assertEqual((clone / "one").read_text(), "one\n")
        self.assertEqual(self.git("remote", "get-url", "origin", cwd=clone).strip(), self.url)
        self.commit(clone, "two")
        await self.call("git_push", repository="app", branch="main")
        log = self.git("log", "--format=%s", "main", cwd=self.served / "app.git")
        self.assertEqual(log.split(), ["two", "one"])
        other = self.top / "other"
        self.git("clone", "-q", str(self.served / "app.git"), str(other))
        self.commit(other, "three")
        self.git("push", "-q", cwd=other)
        await self.call("git_pull", repository="app", branch="main")
        self.assertEqual((clone / "three").read_text(), "three\n")
        await self.call("git_fetch", repository="app")
        self.assertIn("three", self.git("log", "--format=%s", "origin/main", cwd=clone))
        hosts = {line for line in self.asked.read_text().splitlines() if line.startswith("host=")}
        self.assertEqual(hosts, {f"host=localhost:{self.port.getHost().port}"})

    async def test_upstream_proxy_is_used_with_its_own_password(self) -> None:
        proxy = ProxyStub({"git.example": self.port.getHost().port})
        proxy.answer = lambda head: b"" if "Basic bWU6cCB3\r\n" in head else WANTS_BASIC
        where = f"http://me:p%20w@127.0.0.1:{await proxy.start()}"
        self.addCleanup(proxy.stop)
        self.tools = GitRemoteTools(Runner(str(self.workspace), {**self.environ, "https_proxy": where}))
        await self.call("git_clone", url="https://git.example/app.git", directory="app")
        self.assertEqual((self.workspace / "app" / "one").read_text(), "one\n")
        self.assertEqual({head.split(" ")[1] for head in proxy.heads}, {"git.example:443"})
        self.assertNotIn("127.0.0.1", self.asked.read_text())

    async def test_what_the_repository_says_leads_nowhere(self) -> None:
        await self.call("git_clone", directory="app")
        clone, canary = self.workspace / "app", self.person / "canary"
        canary.write_text("mine\n")
        self.commit(clone, "two")
        evil = f"https://localhost:{self.port.getHost().port}/evil.git"
        run = f"touch {self.person}/ran; cat"
        for words in (
            ("url." + evil + ".insteadOf", self.url), ("url." + evil + ".pushInsteadOf", self.url),
            ("remote.origin.pushurl", evil), ("core.sshCommand", run), ("core.fsmonitor", run),
            ("credential.helper", f"!{run}"), ("http.cookieFile", str(canary)), ("http.saveCookies", "true"),
            ("http.proxy", "http://127.0.0.1:1"), ("uploadpack.packObjectsHook", run),
            ("core.alternateRefsCommand", run), ("include.path", str(canary)), ("core.hooksPath", "hooks"),
            ("core.pager", run),
        ):  # fmt: skip
            self.git("config", "--add", *words, cwd=clone)
        for name in ("pre-push", "reference-transaction", "post-checkout", "post-merge"):
            hook = clone / "hooks" / name
            hook.parent.mkdir(exist_ok=True)
            hook.write_text(f"#!/bin/sh\n{run}\n")
            hook.chmod(0o755)
        self.seen.clear()
        await self.call("git_push", repository="app", branch="main")
        await self.call("git_fetch", repository="app")
        self.assertEqual([line for line in self.seen if "evil" in line], [])
        self.assertIn("two", self.git("log", "--format=%s", "main", cwd=self.served / "app.git"))
        self.assertEqual(canary.read_text(), "mine\n")
        self.assertFalse((self.person / "ran").exists())

    async def test_server_that_leads_elsewhere_is_not_followed(self) -> None:
        elsewhere: list[Any] = []
        factory = Factory()
        factory.buildProtocol = elsewhere.append  # type: ignore[method-assign, assignment]
        port = the_reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.addCleanup(port.stopListening)
        self.backend.other = port.getHost().port
        self.url = self.url.replace("app.git", "moved.git")
        error = await self.assertFailure(self.call("git_clone", directory="app"), IronCurtainError)
        self.assertIn("redirects to another address", str(error))
        self.assertTrue(any("moved.git" in line for line in self.seen))
        self.assertEqual(elsewhere, [])

    async def test_links_lead_nowhere(self) -> None:
        await self.call("git_clone", directory="app")
        clone = self.workspace / "app"
        outside = self.person / "outside"
        for name in ("HEAD", "config", "packed-refs", "FETCH_HEAD", "ORIG_HEAD", "index", "refs", "objects", "shallow"):
            kept = self.top / "kept"
            shutil.rmtree(kept, ignore_errors=True)
            shutil.copytree(clone, kept, symlinks=True)
            outside.write_text("mine\n")
            place = clone / ".git" / name
            if place.is_dir():
                shutil.rmtree(place)
            else:
                place.unlink(missing_ok=True)
            place.symlink_to(outside)
            for tool, more in (("git_push", {"branch": "main"}), ("git_pull", {"branch": "main"}), ("git_fetch", {})):
                try:
                    said = await self.call(tool, repository="app", **more)
                except IronCurtainError as e:
                    said = str(e)
                self.assertNotIn("mine", said, name)
            self.assertEqual(outside.read_text(), "mine\n", name)
            shutil.rmtree(clone)
            shutil.copytree(kept, clone, symlinks=True)

    async def test_a_repository_that_is_a_link_to_elsewhere(self) -> None:
        secret = self.person / "secret"
        self.git("init", "-q", "-b", "main", str(secret))
        self.commit(secret, "key")
        (self.workspace / "link").symlink_to(secret)
        for tool in ("git_push", "git_pull"):
            await self.assertFailure(self.call(tool, repository="link", branch="main"), IronCurtainError)
        self.assertNotIn("key", self.git("log", "--all", "--format=%s", cwd=self.served / "app.git"))

    async def test_flood_of_a_filter_is_not_kept(self) -> None:
        await self.call("git_clone", directory="app")
        clone, other = self.workspace / "app", self.top / "other"
        self.git("config", "filter.x.smudge", "head -c 300000000 /dev/zero >&2; cat", cwd=clone)
        self.git("clone", "-q", str(self.served / "app.git"), str(other))
        (other / ".gitattributes").write_text("* filter=x\n")
        self.commit(other, "two")
        self.git("push", "-q", cwd=other)
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        await self.call("git_pull", repository="app", branch="main")
        self.assertEqual((clone / "two").read_text(), "two\n")
        self.assertLess(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before, 64 * 1024)

    async def test_what_is_refused(self) -> None:
        for arguments in (
            {"url": "origin"}, {"url": "ext::sh -c x"}, {"url": "file:///etc"}, {"url": "--upload-pack=x"},
            {"branch": "--all"}, {"branch": "a..b"}, {"branch": "a b"}, {"repository": "../person"}, {"branch": "x:y"},
            {"repository": str(self.person)}, {"to": "-d"},
        ):  # fmt: skip
            call = self.call("git_push", **{"repository": "app", "branch": "main", **arguments})
            await self.assertFailure(call, IronCurtainError)

    async def test_a_wrong_certificate(self) -> None:
        (self.person / ".gitconfig").write_text("[user]\n\tname = Ada\n")
        error = await self.assertFailure(self.call("git_clone", directory="app"), IronCurtainError)
        self.assertIn("certificate", str(error))
        self.assertFalse((self.workspace / "app").exists())

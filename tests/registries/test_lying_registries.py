"""PyPI, crates, Debian and Go against upstream registries that refer to hosts and files that must not be fetched."""

from __future__ import annotations

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twisted.internet import reactor
from twisted.internet.defer import Deferred
from twisted.trial.unittest import TestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.home.registry_sections import Registries, RegistrySettings
from ironcurtain.http.head import RequestHead
from ironcurtain.network.dialling import Dialer
from ironcurtain.network.refusal_records import REFUSALS
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.opening import OpenRegistries, RegistrySurroundings
from ironcurtain.registries.recording import PackageRefused, PackageTraffic
from ironcurtain.secrets.redaction import Redactor
from tests.http.direct import DIRECT
from tests.network.names import Names
from tests.registries.stub import LyingRegistry, response
from tests.registries.upstream import NOW, OLD, at_once, iso, sha256, whole

METADATA_SERVICE = "169.254.169.254"
"""Where machines of clouds find their own credentials."""


class LyingTests(TestCase):
    """Asks all four registries, whose upstream servers are one on this machine."""

    def setUp(self) -> None:
        self.upstream, self.names, self.traffic = LyingRegistry(), Names("10.0.0.1"), list[PackageTraffic]()
        self.addCleanup(lambda: Deferred.fromCoroutine(self.upstream.stop()))
        directory = TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        redactor = Redactor()
        self.path = Path(directory.name) / "audit.jsonl"
        self.audit = AuditLog(self.path, "s1", redactor, reactor, time.time, at_once)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.audit.close()))
        here: dict[str, Any] = {
            name: RegistrySettings(url=self.upstream.url + path)
            for name, path in (("pypi", "/simple"), ("crates", ""), ("debian", ""), ("go", ""))
        }
        dialer = Dialer(reactor, self.names, DIRECT)  # type: ignore[arg-type]
        around = RegistrySurroundings(reactor, dialer, self.audit, redactor, _no_key, lambda: NOW, self.traffic.append)
        self.opened = OpenRegistries(Registries(**here, max_file_mb=1), around)
        self.addCleanup(lambda: Deferred.fromCoroutine(self.opened.stop()))

    async def ask(self, host: str, path: str) -> LocalResponse | RequestRefusal:
        """:returns: the answer to a GET."""
        return await self.opened.responders[host, 443].respond(RequestHead("GET", path, path, "", ()))

    async def why(self, host: str, path: str) -> str:
        """:returns: why a request is refused."""
        answer = await self.ask(host, path)
        assert isinstance(answer, RequestRefusal), answer
        self.assertEqual(answer.status, 403)
        return answer.reason

    def python_file(self, url: str) -> None:
        """Let the index say where the file of ``six`` is."""
        file = {"filename": "six-1.0.tar.gz", "url": url, "hashes": {"sha256": sha256(b"six")}, "upload-time": iso(OLD)}
        self.upstream.answers["/simple/six/"] = response(json.dumps({"files": [file]}).encode())

    def crate(self, download: str) -> None:
        """Let the index say where the file of ``serde`` is."""
        line = {"name": "serde", "vers": "1.0.0", "cksum": sha256(b"serde"), "pubtime": iso(OLD)}
        self.upstream.answers["/se/rd/serde"] = response(json.dumps(line).encode())
        self.upstream.answers["/config.json"] = response(json.dumps({"dl": download}).encode())

    async def test_files_are_not_fetched_from_private_addresses(self) -> None:
        for host in (METADATA_SERVICE, "internal.example", "[::1]", "[::ffff:7f00:1]", "127.0.0.1:1"):
            self.python_file(f"https://{host}/six-1.0.tar.gz")
            why = await self.why("files.pythonhosted.org", "/packages/six-1.0.tar.gz")
            self.assertRegex(why, "is not on the public internet|no project of the index|is refused", host)
            self.crate(f"https://{host}/crates")
            why = await self.why("static.crates.io", "/crates/serde/1.0.0/download")
            self.assertRegex(why, "is not on the public internet|dl in its config.json", host)

    async def test_files_are_not_fetched_without_tls_from_other_hosts(self) -> None:
        self.python_file("http://files.example/six-1.0.tar.gz")
        self.assertIn("without TLS", await self.why("files.pythonhosted.org", "/packages/six-1.0.tar.gz"))
        self.crate("http://files.example/crates")
        self.assertIn("without TLS", await self.why("static.crates.io", "/crates/serde/1.0.0/download"))
        self.assertEqual(self.names.asked, [])

    async def test_redirects_to_private_addresses_are_not_followed(self) -> None:
        elsewhere = response(b"", f"Location: https://{METADATA_SERVICE}/latest/", status=302)
        for path in ("/simple/six/", "/1/x", "/debian/dists/stable/InRelease", "/m/@v/list"):
            self.upstream.answers[path] = elsewhere
        for host, path in (
            ("pypi.org", "/simple/six/"),
            ("index.crates.io", "/1/x"),
            ("deb.debian.org", "/debian/dists/stable/InRelease"),
            ("proxy.golang.org", "/m/@v/list"),
        ):
            self.assertIn("is not on the public internet", await self.why(host, path))

    async def test_refusals_name_the_package_whose_metadata_cannot_be_used(self) -> None:
        self.upstream.answers["/simple/six/"] = response(
            json.dumps({"files": [{"filename": "other-1.0.zip"}]}).encode()
        )
        await self.why("pypi.org", "/simple/six/")
        self.upstream.answers["/se/rd/serde"] = response(b'{"name": "other"}')
        await self.why("index.crates.io", "/se/rd/serde")
        self.upstream.answers["/host.test/m/@v/v1.0.0.info"] = response(b"{}")
        await self.why("proxy.golang.org", "/host.test/m/@v/v1.0.0.info")
        refused = [(each.name, each.rule) for each in self.traffic if isinstance(each, PackageRefused)]
        names = ("six", "serde", "host.test/m")
        self.assertEqual(refused, [(name, "package-unusable") for name in names])

    async def test_another_file_is_refused(self) -> None:
        self.python_file("../../six-1.0.tar.gz")
        self.upstream.answers["/six-1.0.tar.gz"] = response(b"evil")
        self.assertIn("digest", await self.why("files.pythonhosted.org", "/packages/six-1.0.tar.gz"))
        self.upstream.answers["/six-1.0.tar.gz"] = response(b"six")
        answer = await self.ask("files.pythonhosted.org", "/packages/six-1.0.tar.gz")
        self.assertEqual(await whole(answer), b"six")

    async def test_endless_files_are_given_up(self) -> None:
        path = "/debian/dists/stable/InRelease"
        self.upstream.answers[path] = b"HTTP/1.1 200 OK\r\n\r\n"
        self.upstream.endless[path] = b"x" * 65536
        answer = await self.ask("deb.debian.org", path)
        with self.assertRaisesRegex(Exception, "larger than 1 MB"):
            await whole(answer)

    async def test_only_get_and_head_are_answered(self) -> None:
        for host, path in (("pypi.org", "/legacy/"), ("index.crates.io", "/api/v1/crates/new"), ("pypi.org", "/pypi")):
            head = RequestHead("POST", path, path, "", ())
            answer = await self.opened.responders[host, 443].respond(head)
            assert isinstance(answer, RequestRefusal)
            self.assertEqual(answer.code, "registry-read-only")
        self.assertEqual(self.upstream.heads, [])

    async def test_refusals_are_recorded_in_a_bounded_number_and_counted(self) -> None:
        for _ in range(REFUSALS + 5):
            await self.why("pypi.org", "/search/")
        self.assertEqual(len(self.traffic), REFUSALS + 5)
        await self.opened.stop()
        records = [json.loads(line) for line in self.path.read_text().splitlines()]
        self.assertEqual(len([each for each in records if each["kind"] == "package-request"]), REFUSALS)
        counted = [(each["rule"], each["count"]) for each in records if each["kind"] == "unrecorded"]
        self.assertEqual(counted, [("not-for-installing", 5)])

    async def test_a_head_gets_no_body(self) -> None:
        self.python_file("../../six-1.0.tar.gz")
        self.upstream.answers["/six-1.0.tar.gz"] = response(b"six")
        path = "/packages/six-1.0.tar.gz"
        answer = await self.opened.responders["files.pythonhosted.org", 443].respond(
            RequestHead("HEAD", path, path, "", ())
        )
        assert isinstance(answer, LocalResponse)
        self.assertEqual((answer.length, await whole(answer)), (3, b""))
        self.assertNotIn("accept-ranges", dict(answer.headers))


async def _no_key(*_: Any) -> Any:
    raise AssertionError("no key is configured")

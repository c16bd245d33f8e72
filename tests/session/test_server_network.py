"""The proxy of servers whose sandboxes have a network."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.threads import deferToThread
from twisted.trial.unittest import TestCase

from ironcurtain.audit.log import AuditLog
from ironcurtain.mitm_proxy.authority import Authority
from ironcurtain.network.access import PROXY_VARIABLES, listeners, read_access
from ironcurtain.network.listed import ListedJudge
from ironcurtain.process.bounded import Bounds
from ironcurtain.sandbox import certificates, programs
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.secrets.redaction import Redactor
from ironcurtain.session.server_network import way_out
from tests.audit.doubles import at_once
from tests.http.direct import DIRECT
from tests.machine import demand_sandbox, python_inside

reactor: Any = _reactor

FETCH = """
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        print(urllib.request.urlopen(url, timeout=60).status)
    except urllib.error.HTTPError as e:
        print(e.code, e.reason)
    except OSError as e:
        print("failed", e)
"""


class ServerProxyTests(TestCase):
    """A program that takes the proxy from its environment."""

    def setUp(self) -> None:
        demand_sandbox(Sandbox(kind=Kind.BUBBLEWRAP))
        self.top = Path(tempfile.mkdtemp(prefix="ic"))
        self.addCleanup(shutil.rmtree, self.top)

    async def fetched(self, network: bool | list[str], *urls: str) -> list[str]:
        """:returns: what became of each URL."""
        audit, logged = AuditLog(self.top / "audit.jsonl", "s", Redactor(), reactor, time.time, at_once), list[str]()
        services = SimpleNamespace(redactor=Redactor(), proxies=DIRECT)
        core: Any = SimpleNamespace(
            id="s", audit=audit, services=services, log_line=lambda *line: logged.append(str(line))
        )
        authority = Authority.load_or_make(self.top / "ca", time.time)
        access = read_access(network)
        judge = ListedJudge(access, "the list")
        gateway = way_out(core, authority, reactor).gateway(access, judge, logged.append)
        place, bundle = certificates.bundle(authority.certificate_pem)
        python, needed = python_inside()
        sandbox = Sandbox(read=needed, listeners=listeners(access, True), files=(*access.files(), (place, bundle)))
        environ = {"PATH": os.environ["PATH"], **PROXY_VARIABLES, **certificates.variables(place)}
        words = [python, "-S", "-c", FETCH, *urls]
        handover = gateway.handover()
        try:
            done = await deferToThread(programs.run, sandbox, words, environ, Bounds(100.0), handover=handover)
        finally:
            handover.theirs.close()
            await gateway.stop()
            await audit.close()
        self.assertEqual((done.errors, logged), (b"", []))
        return done.output.decode().splitlines()

    async def test_what_is_not_listed_is_refused_inside_tls_in_words(self) -> None:
        said = await self.fetched(
            ["api.example.com"],
            "https://other.example.com/",
            "http://other.example.com/",
            "https://api.example.com:8443/",
        )
        self.assertEqual(len(said), 3)
        for line in said[:2]:
            self.assertRegex(line, r"\A403 IronCurtain: the connection to other.example.com:\d+ is refused")
        self.assertIn("403", said[2])

"""A real git server behind TLS, and the tools that transfer between it and a workspace."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

from twisted.internet import reactor as _reactor
from twisted.internet.defer import Deferred
from twisted.internet.threads import deferToThread
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.trial.unittest import SkipTest, TestCase
from twisted.web.resource import Resource
from twisted.web.server import NOT_DONE_YET, Site

from ironcurtain.sandbox import bubblewrap
from ironcurtain.servers.git_remote.runner import Runner
from ironcurtain.servers.git_remote.tools import GitRemoteTools
from tests.model_stub.certificates import Authority

the_reactor: Any = _reactor
PERSON = "[user]\n\tname = Ada\n\temail = ada@example.com\n[http]\n\tsslCAInfo = {ca}\n"
ALONE = (
    '[credential]\n\thelper = "!f() { test $1 = get && cat >>{asked} && echo username=ada && '
    'echo password=secret; }; f"\n'
)


class _Backend(Resource):
    """``git http-backend`` (RFC 3875 around it), behind the password of :data:`ALONE`."""

    isLeaf = True

    def __init__(self, top: Path, seen: list[str]) -> None:
        super().__init__()
        self._top, self._seen = top, seen
        self.other = 0
        """The port to which ``moved.git`` leads."""

    def render(self, request: Any) -> Any:
        self._seen.append(f"{request.method.decode()} {request.uri.decode()}")
        if b"moved.git" in request.uri:
            request.redirect(request.uri.replace(b"/moved.git", b"https://127.0.0.1:%d/app.git" % self.other))
            return b""
        if (request.getUser(), request.getPassword()) != (b"ada", b"secret"):
            request.setResponseCode(401)
            request.setHeader(b"WWW-Authenticate", b'Basic realm="git"')
            return b""
        path, _, query = request.uri.decode().partition("?")
        environment = {
            "PATH": os.environ["PATH"], "HOME": "/nonexistent", "REMOTE_USER": "ada", "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_PROJECT_ROOT": str(self._top), "PATH_INFO": path, "QUERY_STRING": query,
            "REQUEST_METHOD": request.method.decode(), "CONTENT_TYPE": request.getHeader("content-type") or "",
            "HTTP_CONTENT_ENCODING": request.getHeader("content-encoding") or "",
            "GIT_PROTOCOL": request.getHeader("git-protocol") or "",
        }  # fmt: skip
        body = request.content.read()
        run = deferToThread(
            subprocess.run, ["git", "http-backend"], input=body, capture_output=True, env=environment, check=True
        )
        run.addCallback(lambda done: self._answer(request, done.stdout))
        return NOT_DONE_YET

    def _answer(self, request: Any, printed: bytes) -> None:
        head, _, body = printed.partition(b"\r\n\r\n")
        for line in head.split(b"\r\n"):
            name, _, value = line.partition(b": ")
            if name == b"Status":
                request.setResponseCode(int(value[:3]))
            else:
                request.setHeader(name, value)
        request.write(body)
        request.finish()


class ServedCase(TestCase):
    """What the tests of transfers share."""

    def setUp(self) -> None:
        if (problem := bubblewrap.available()) is not None:
            raise SkipTest(problem)
        self.top = Path(tempfile.mkdtemp(prefix="ic", dir="/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.person, self.workspace, self.served = (self.top / name for name in ("person", "workspace", "served"))
        for directory in (self.person, self.workspace, self.served):
            directory.mkdir()
        authority = Authority.make("tests")
        ca = self.top / "ca.pem"
        ca.write_bytes(authority.pem)
        self.asked = self.top / "asked"
        settings = PERSON.format(ca=ca) + ALONE.replace("{asked}", str(self.asked))
        (self.person / ".gitconfig").write_text(settings)
        self.environ = {"HOME": str(self.person), "PATH": os.environ["PATH"]}
        self.seen: list[str] = []
        self.backend = _Backend(self.served, self.seen)
        factory = TLSMemoryBIOFactory(authority.server("localhost", "git.example"), False, Site(self.backend))
        self.port = the_reactor.listenTCP(0, factory, interface="127.0.0.1")
        self.addCleanup(self.port.stopListening)
        self.url = f"https://localhost:{self.port.getHost().port}/app.git"
        self.git("init", "-q", "--bare", "-b", "main", "app.git", cwd=self.served)
        self.git("config", "http.receivepack", "true", cwd=self.served / "app.git")
        seed = self.top / "seed"
        self.git("init", "-q", "-b", "main", str(seed))
        self.commit(seed, "one")
        self.git("push", "-q", str(self.served / "app.git"), "main", cwd=seed)
        self.tools = self.tools_for(self.environ)

    def tools_for(self, environ: dict[str, str]) -> GitRemoteTools:
        return GitRemoteTools(Runner(str(self.workspace), environ))

    def git(self, *words: str, cwd: Path | None = None) -> str:
        done = subprocess.run(
            ["git", *words], cwd=cwd or self.top, env=self.environ, check=True, capture_output=True, text=True
        )
        return done.stdout

    def commit(self, repository: Path, name: str) -> None:
        (repository / name).write_text(f"{name}\n")
        self.git("add", ".", cwd=repository)
        self.git("commit", "-qm", name, cwd=repository)

    def call(self, tool: str, **arguments: Any) -> Deferred[str]:
        def work() -> str:
            return str(self.tools.call(tool, {"url": self.url, **arguments})[0]["text"])

        return deferToThread(work)

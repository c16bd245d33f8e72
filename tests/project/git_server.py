"""A web server with TLS and a repository on it, from which git clones."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.internet.interfaces import IListeningPort
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from tests.model_stub.certificates import Authority


class _Files(Resource):
    """The files of a directory."""

    isLeaf = True

    def __init__(self, top: Path) -> None:
        super().__init__()
        self._top = top

    def render_GET(self, request: Request) -> bytes:
        path = self._top / request.path.decode().lstrip("/")
        if not path.is_file():
            request.setResponseCode(404)
            return b""
        return path.read_bytes()


def publish(top: Path, environ: Mapping[str, str]) -> None:
    """Make a bare repository that a plain web server can serve, with a submodule and a link in it."""
    source, bare = top / "source", top / "served" / "x.git"
    source.mkdir()
    _git(environ, source, "init", "-q")
    (source / "README").write_text("hello\n")
    (source / "link").symlink_to("/etc/passwd")
    (source / ".gitmodules").write_text('[submodule "evil"]\n\tpath = evil\n\turl = ext::sh -c touch${IFS}owned\n')
    _git(environ, source, "add", ".")
    _git(environ, source, "commit", "-qm", "one")
    _git(environ, top, "clone", "-q", "--bare", str(source), str(bare))
    _git(environ, bare, "update-server-info")


def serve(reactor: Any, top: Path, authority: Authority) -> tuple[IListeningPort, str]:
    """:returns: the port, and the address of what :func:`publish` made."""
    factory = TLSMemoryBIOFactory(authority.server("localhost"), False, Site(_Files(top / "served")))
    port: IListeningPort = reactor.listenTCP(0, factory, interface="127.0.0.1")
    return port, f"https://localhost:{port.getHost().port}/x.git"  # type: ignore[attr-defined]


def _git(environ: Mapping[str, str], cwd: Path, *words: str) -> None:
    person = dict.fromkeys((f"GIT_{who}_{what}" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")), "a")
    subprocess.run(["git", *words], cwd=cwd, env={**environ, **person}, check=True, capture_output=True)

"""The credential in git's sandbox: real git asks for many things, and gets it for one; also through a real proxy."""

from __future__ import annotations

import os
import socket
import subprocess
import tempfile
from base64 import b64encode
from collections.abc import Callable
from pathlib import Path
from threading import Thread

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.errors import IronCurtainError
from ironcurtain.sandbox import bubblewrap
from ironcurtain.servers.git_remote.credentials import CREDENTIAL, HELPER, helper_files, question
from ironcurtain.servers.git_remote.runner import Runner
from tests.programs import program

FILLED = b"protocol=https\nhost=x\nusername=ada\npassword=hunter2\n"
ANY = '[credential]\n\thelper = "!f() { test $1 = get && echo username=ada && echo password=hunter2; }; f"\n'
"""Settings with a helper that answers whatever is asked."""


class AnswerTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.git = program("git")
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.top = directory.name

    def filled(self, url: str, asked: str) -> bool:
        """:returns: whether git gets the credential of a URL if it asks for something."""
        for path, content in helper_files(url, FILLED):
            content = content.replace(CREDENTIAL.encode(), f"{self.top}/credential".encode())
            Path(self.top, os.path.basename(path)).write_bytes(content)
        helper = f"!sh {self.top}/{os.path.basename(HELPER)}"
        done = subprocess.run(
            [self.git, "-c", "core.askPass=", "-c", f"credential.helper={helper}", "credential", "fill"],
            input=asked.encode(),
            capture_output=True,
            env={"PATH": os.environ["PATH"], "HOME": self.top, "GIT_TERMINAL_PROMPT": "0"},
            check=False,
        )
        self.assertEqual(b"password=hunter2" in done.stdout, done.returncode == 0, done.stderr)
        return done.returncode == 0

    def test_what_git_asks_at_the_url_is_answered(self) -> None:
        for url in ("https://example.com/a.git", "https://example.com:8443/a", "https://[::1]:8443/a"):
            self.assertTrue(self.filled(url, question(url).decode()), url)
            self.assertTrue(self.filled(url, f"url={url}\n\n"), url)

    def test_every_other_scheme_host_and_port_is_refused(self) -> None:
        for asked in (
            "protocol=http\nhost=example.com:8443", "protocol=https\nhost=example.com",
            "protocol=https\nhost=example.com:443", "protocol=https\nhost=example.com:84430",
            "protocol=https\nhost=a.example.com:8443", "protocol=https\nhost=example.com.evil:8443",
            "protocol=http\nhost=proxy:3128\nusername=user", "protocol=https\nhost=proxy:3128\nusername=ada",
            "protocol=cert\nhost=\npath=/home/ada/key.pem", "protocol=socks5h\nhost=example.com:8443",
            "protocol=https\nhost=example.com:8443/", "url=http://ada@example.com:8443/a.git",
            "protocol=https\nhost=*", "protocol=https\nhost=example.com:8443\nhost=evil",
        ):  # fmt: skip
            self.assertFalse(self.filled("https://example.com:8443/a.git", f"{asked}\n\n"), asked)

    @given(st.lists(st.sampled_from((b"username=u", b"password=p", b"host=evil", b"url=https://evil", b"path=x"))))
    def test_answer_is_user_name_and_password_only(self, lines: list[bytes]) -> None:
        files = dict(helper_files("https://example.com/x", b"\n".join(lines)))
        self.assertEqual(bool(files), b"password=p" in lines)
        self.assertNotIn(b"evil", b"".join(files.values()))


class _Proxy:
    """A proxy that demands a password, or else a server that answers every request with something."""

    def __init__(self, answer: Callable[[bytes], bytes]) -> None:
        self._listener, self.heard, self._answer = socket.create_server(("127.0.0.1", 0)), b"", answer
        self.port = self._listener.getsockname()[1]
        self._thread = Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            try:
                peer, _ = self._listener.accept()
            except OSError:
                return
            with peer:
                peer.settimeout(10)
                head = b""
                while b"\r\n\r\n" not in head and (data := peer.recv(4096)):
                    head += data
                self.heard += head
                peer.sendall(self._answer(head))

    def close(self) -> None:
        """Stop."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()


class ProxyTests(SynchronousTestCase):
    def setUp(self) -> None:
        if (problem := bubblewrap.available()) is not None:
            raise SkipTest(problem)
        directory = tempfile.TemporaryDirectory(prefix="ic", dir="/tmp")
        self.addCleanup(directory.cleanup)
        self.top = Path(directory.name).resolve()

    def heard(self, setting: str, url: str = "https://example.invalid/a.git") -> tuple[bytes, str]:
        """:returns: what a proxy hears, and git's words."""

        def refuse(head: bytes) -> bytes:
            lines = (
                "HTTP/1.1 407 No",
                "Proxy-Authenticate: Basic realm=x",
                "Proxy-Connection: close",
                "Connection: close",
            )
            return "\r\n".join((*lines, "Content-Length: 0", "", "")).encode()

        proxy = _Proxy(refuse)
        self.addCleanup(proxy.close)
        settings = f"[http]\n\tproxy = {setting.replace('PORT', str(proxy.port))}\n{ANY}"
        (self.top / ".gitconfig").write_text(settings)
        runner = Runner(str(self.top), {"HOME": str(self.top), "PATH": os.environ["PATH"]})
        (private := self.top / "private").mkdir(exist_ok=True)
        runner.in_private(["init", "--quiet", "--bare", "."], str(private))
        with self.assertRaises(IronCurtainError) as caught:
            runner.in_network(["ls-remote", "--", url], str(private), url)
        return proxy.heard, str(caught.exception)

    def test_proxy_never_hears_the_password_of_the_remote(self) -> None:
        secrets = [b"hunter2", b64encode(b"ada:hunter2"), b64encode(b"user:hunter2")]
        for setting in ("http://user@127.0.0.1:PORT", "user@127.0.0.1:PORT", "http://ada@localhost:PORT"):
            heard, said = self.heard(setting)
            self.assertFalse(any(secret in heard for secret in secrets), heard)
            self.assertIn("could not read Password for 'http://", said)
        heard, said = self.heard("http://127.0.0.1:PORT")
        self.assertIn(b"CONNECT example.invalid:443", heard)
        self.assertFalse(any(secret in heard for secret in secrets), heard)

    def test_proxy_hears_its_own_password(self) -> None:
        heard, _ = self.heard("http://user:own@127.0.0.1:PORT")
        self.assertIn(b64encode(b"user:own"), heard)

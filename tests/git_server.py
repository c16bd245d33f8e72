"""A git server behind TLS and a password, in threads: for programs that are waited for."""

from __future__ import annotations

import base64
import os
import ssl
import subprocess
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from unittest import TestCase

from tests.programs import program

USER, PASSWORD = "ada", "canary-of-git-0123456789"

HELPER = f'[credential]\n\thelper = "!f() {{ echo username={USER}; echo password={PASSWORD}; }}; f"\n'
"""Lines of git's settings: who asks them gets the password."""


class GitServer(ThreadingHTTPServer):
    """
    Serves from now to the end of a test.

    :param top: an empty directory, which gets an empty repository ``app.git``.
    :ivar settings: lines of git's settings for somebody who has an account here.
    """

    def __init__(self, case: TestCase, top: Path) -> None:
        self.top, certificate, key = top, top / "certificate.pem", top / "key.pem"
        self.repository = top / "app.git"
        subprocess.run(["git", "init", "-q", "--bare", "-b", "main", self.repository], check=True)
        subprocess.run(["git", "config", "http.receivepack", "true"], cwd=self.repository, check=True)
        made = f"req -x509 -nodes -newkey rsa:2048 -subj /CN=localhost -days 2 -keyout {key} -out {certificate}"
        line = [program("openssl"), *made.split(), "-addext", "subjectAltName=DNS:localhost"]
        subprocess.run(line, check=True, capture_output=True)
        super().__init__(("127.0.0.1", 0), _Handler)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate, key)
        self.socket = context.wrap_socket(self.socket, server_side=True)
        self.url = f"https://localhost:{self.server_port}/app.git"
        self.settings = f"[http]\n\tsslCAInfo = {certificate}\n{HELPER}"
        Thread(target=self.serve_forever, daemon=True).start()
        case.addCleanup(self.server_close)
        case.addCleanup(self.shutdown)

    def log(self, branch: str) -> list[str]:
        """:returns: the subjects of a branch's commits, the newest first; none if there is no such branch."""
        line = ["git", "log", "--format=%s", f"refs/heads/{branch}", "--"]
        return subprocess.run(line, cwd=self.repository, capture_output=True, text=True, check=False).stdout.split(
            "\n"
        )[:-1]


class _Handler(BaseHTTPRequestHandler):
    server: GitServer

    def do_GET(self) -> None:
        expected = "Basic " + base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()
        if self.headers.get("Authorization") != expected:
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="git"')
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        path, _, query = self.path.partition("?")
        environ = {
            "PATH": os.environ["PATH"], "REMOTE_USER": USER, "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
            "GIT_PROJECT_ROOT": str(self.server.top), "QUERY_STRING": query, "REQUEST_METHOD": self.command,
            "CONTENT_TYPE": self.headers.get("Content-Type", ""),
            "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
        }  # fmt: skip
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(["git", "http-backend"], input=body, capture_output=True, env=environ, check=True)
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200")[:3]))
        for name, value in {**fields, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

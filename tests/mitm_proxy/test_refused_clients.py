"""What real programs print of a refused request, each a process of its own."""

from __future__ import annotations

import os
import socket
import sys

from twisted.internet.utils import getProcessOutputAndValue

from tests.mitm_proxy.open_hosts import DENIED, OpenBase
from tests.programs import program

REASON = f"IronCurtain: {DENIED.reason}"
PIP = ("-m", "pip", "--isolated", "--disable-pip-version-check", "--retries", "0", "download", "--no-cache-dir")


class RefusedTests(OpenBase):
    """Each shows the reason, to whoever reads its output, at once."""

    async def test_reason_is_in_the_output_of_curl_git_npm_pip_and_urllib(self) -> None:
        bench = await self.open_bench()
        bench.judge.answers["connect"] = DENIED
        listening = socket.socket()
        listening.bind(("127.0.0.1", 0))
        proxy = f"http://127.0.0.1:{listening.getsockname()[1]}"
        await bench.proxy.accept(listening)
        names = ("SSL_CERT_FILE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "PIP_CERT", "npm_config_cafile")
        environ = {
            "PATH": os.environ["PATH"],
            "HOME": str(bench.top),
            **dict.fromkeys(("https_proxy", "http_proxy"), proxy),
            **dict.fromkeys(names, str(bench.authority.certificate_path)),
        }
        script = "import urllib.request as u; u.urlopen('https://host.example/x')"
        for command in (
            (program("curl"), "-sS", "https://host.example/x"),
            (program("curl"), "-sS", "http://host.example/x"),
            (program("git"), "ls-remote", "https://host.example/a.git"),
            (program("npm"), "install", "--registry", "https://host.example/", "x"),
            (sys.executable, *PIP, "--cert", environ["PIP_CERT"], "--index-url", "https://host.example/simple/", "x"),
            (sys.executable, "-c", script),
        ):
            name, *arguments = command
            output, errors, _ = await getProcessOutputAndValue(name, arguments, env=environ, path=str(bench.top))
            self.assertIn(REASON, (output + errors).decode(), command)
        self.assertEqual(bench.origin.connections, [])

"""What a real agent's own tools get of the network: packages, hosts that a person opens, reasons of refusals."""

from __future__ import annotations

import base64
import hashlib
import io
import json
import tarfile
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from tests.container_agent.test_real_agents import CLAUDE, PATIENCE, RealAgentCase, text

NAME = "left-trim"


def tarball(version: str) -> bytes:
    """:returns: a package of npm's."""
    files = {
        "package.json": json.dumps({"name": NAME, "version": version, "main": "index.js"}),
        "index.js": "module.exports = (text) => text.trimStart() + ' trimmed'\n",
    }
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w:gz") as archive:
        for name, said in files.items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size, member.mode = len(said), 0o644
            archive.addfile(member, io.BytesIO(said.encode()))
    return content.getvalue()


class Registry(ThreadingHTTPServer):
    """A registry of npm packages on this machine, with one package: an old version, and one of yesterday."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}"
        now = datetime.now(UTC)
        self.files = {version: tarball(version) for version in ("1.0.0", "2.0.0")}
        ages = {"1.0.0": timedelta(days=100), "2.0.0": timedelta(days=1)}
        self.packument = {
            "name": NAME,
            "dist-tags": {"latest": "2.0.0"},
            "time": {version: (now - age).isoformat() for version, age in ages.items()},
            "versions": {version: self._manifest(version) for version in self.files},
        }

    def _manifest(self, version: str) -> dict[str, Any]:
        digest = base64.b64encode(hashlib.sha512(self.files[version]).digest()).decode()
        place = f"{self.url}/{NAME}/-/{NAME}-{version}.tgz"
        return {"name": NAME, "version": version, "dist": {"tarball": place, "integrity": f"sha512-{digest}"}}


class _Handler(BaseHTTPRequestHandler):
    server: Registry

    def do_GET(self) -> None:
        """Answer."""
        version = self.path.removeprefix(f"/{NAME}/-/{NAME}-").removesuffix(".tgz")
        content = self.server.files.get(version)
        if content is None and self.path == f"/{NAME}":
            content = json.dumps(self.server.packument).encode()
        self.send_response(404 if content is None else 200)
        self.send_header("Content-Length", str(len(content or b"")))
        self.end_headers()
        self.wfile.write(content or b"")

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is logged."""


FETCH = """python3 - <<'END'
import urllib.request, urllib.error
for url in {urls}:
    try:
        print(url, urllib.request.urlopen(url).read())
    except urllib.error.HTTPError as e:
        print(url, e.code, e.reason, e.read())
END
"""
"""What the images have no program for: fetch some addresses, and print what comes."""


def shell(command: str) -> dict[str, Any]:
    """:returns: an answer of the model that runs a command with the agent's own tool."""
    return {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": command}}]}


class OwnToolTests(RealAgentCase):
    """Claude Code's own shell, in its container."""

    def test_packages_are_given_and_refusals_say_why(self) -> None:
        registry = Registry()
        Thread(target=registry.serve_forever, daemon=True).start()
        self.addCleanup(registry.server_close)
        self.addCleanup(registry.shutdown)
        public = f"https://registry.npmjs.org/{NAME}"
        packages = [public, f"{public}/-/{NAME}-1.0.0.tgz", f"{public}/-/{NAME}-2.0.0.tgz"]
        self.play(
            CLAUDE,
            shell(FETCH.format(urls=packages)),
            shell(FETCH.format(urls=["https://host.example/a?secret", "http://host.example/b"])),
            shell("git ls-remote https://host.example/r 2>&1"),
            text("Done."),
        )
        with (self.product.home / "config.toml").open("a") as file:
            file.write(f'[registries.npm]\nurl = "{registry.url}"\n')
        done = self.run_agent("fix the failing test")
        self.assertEqual(done.stdout, "Done.\n")
        installed, fetched, listed = (str(turn["results"]) for turn in self.stub.turns[-3:])
        self.assertIn('"latest":"1.0.0"', installed.replace('": ', '":'))
        self.assertIn(f"{NAME}-1.0.0.tgz b", installed)
        self.assertIn(f"403 IronCurtain: {NAME} 2.0.0 is too young", installed)
        self.assertEqual(fetched.count("403 IronCurtain: "), 2, fetched)
        self.assertIn("IronCurtain: ", listed)
        (package,) = [record for record in self.records("package") if record.get("digest")]
        self.assertEqual((package["name"], package["release"]), (NAME, "1.0.0"))
        self.assertIn(f"Fetched from package registries: {NAME} 1.0.0 (npm)", done.stderr)
        judged = [record for record in self.product.audit() if record["kind"] != "agent-reported"]
        self.assertNotIn("secret", json.dumps(judged).replace("secret.txt", ""))

    def test_a_person_opens_a_host(self) -> None:
        self.play(CLAUDE, shell(FETCH.format(urls=["https://host.example/"])), text("Done."))
        process = self.product.start("start", "--agent", CLAUDE.id)
        assert process.stdin is not None
        process.stdin.write("Look it up.\n")
        process.stdin.flush()
        (escalation,) = self.waiting()
        self.assertEqual((escalation["server"], escalation["tool"]), ("network", "connect"))
        self.assertEqual(escalation["arguments"], {"host": "host.example", "port": 443, "party": "the agent"})
        done = self.product.run("approve", str(escalation["number"]), "--digest", escalation["digest"])
        self.assertEqual(done.returncode, 0, done.stderr)
        out, err = process.communicate("/quit\n", timeout=PATIENCE)
        self.assertEqual((process.returncode, out), (0, "Done.\n"), err)
        # It was allowed, but there is no such host.
        answered = str(self.stub.turns[-1]["results"])
        self.assertIn("host.example", answered)
        self.assertNotIn("403", answered)

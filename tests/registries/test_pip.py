"""A real client: pip, through the MITM proxy, and an index on this machine."""

from __future__ import annotations

import io
import json
import os
import sys
import zipfile
from datetime import datetime

from tests.mitm_proxy.support import Bench
from tests.registries.clients import OLD, YOUNG, ClientCase
from tests.registries.stub import response
from tests.registries.upstream import iso, sha256


def wheel(name: str, version: str) -> bytes:
    """:returns: a package with one module."""
    content, info = io.BytesIO(), f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": f"VERSION = {version!r}\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(content, "w") as archive:
        for path, text in files.items():
            archive.writestr(path, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"]))
    return content.getvalue()


class PipTests(ClientCase):
    """Installs packages of an index whose files the test decides on."""

    registry, path = "pypi", "/simple"

    def publish(self, name: str, versions: dict[str, datetime], content: bytes | None = None) -> None:
        """:param content: what the files are in truth, if they are not what the index says."""
        files = []
        for version, time in versions.items():
            file, whole = f"{name}-{version}-py3-none-any.whl", wheel(name, version)
            self.index.answers[f"/files/{file}"] = response(whole if content is None else content)
            known = {"filename": file, "url": f"/files/{file}", "hashes": {"sha256": sha256(whole)}}
            files.append(known | {"upload-time": iso(time)})
        self.index.answers[f"/simple/{name}/"] = response(json.dumps({"files": files}).encode())

    async def install(self, bench: Bench, *what: str) -> tuple[str, int]:
        """:returns: what pip printed, and its status."""
        environ = {
            "REQUESTS_CA_BUNDLE": str(bench.authority.certificate_path),
            "PIP_CONFIG_FILE": os.devnull,
        }
        options = ("--no-cache-dir", "--disable-pip-version-check", "--target", str(bench.top / "installed"))
        return await self.execute(bench, sys.executable, "-m", "pip", "install", *options, *what, environ=environ)

    async def test_the_newest_old_version_is_installed(self) -> None:
        bench = await self.start()
        self.publish("example", {"1.0": OLD, "2.0": YOUNG})
        printed, status = await self.install(bench, "example")
        self.assertEqual(status, 0, printed)
        self.assertIn("Successfully installed example-1.0", printed)
        self.assertEqual([record["release"] for record in bench.records("package")], ["1.0"])

    async def test_refusals_say_why(self) -> None:
        bench = await self.start()
        self.publish("example", {"1.0": OLD, "2.0": YOUNG})
        self.publish("fresh", {"1.0": YOUNG})
        self.publish("changed", {"1.0": OLD}, b"evil")
        for what, why in (
            ("example==2.0", "IronCurtain: example 2.0 is too young (published "),
            ("fresh", "IronCurtain: fresh 1.0 is too young (published "),
            ("changed", "IronCurtain: the file has the digest sha256-"),
        ):
            printed, status = await self.install(bench, what)
            self.assertEqual(status, 1, printed)
            self.assertIn(why, printed)
        self.assertEqual(bench.records("package"), [])

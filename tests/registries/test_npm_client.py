"""A real client: npm, through the MITM proxy, and a registry on this machine."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path

from tests.mitm_proxy.support import Bench
from tests.programs import program
from tests.registries.clients import OLD, YOUNG, ClientCase
from tests.registries.stub import response
from tests.registries.tarballs import tarball
from tests.registries.upstream import iso


class NpmTests(ClientCase):
    """Installs packages of a registry whose files the test decides on."""

    registry = "npm"

    def publish(self, name: str, versions: Mapping[str, datetime], changed: bool = False) -> None:
        """:param changed: whether the files have other content than the registry says."""
        manifests = {}
        for version in versions:
            content = tarball({"package/package.json": json.dumps({"name": name, "version": version})})
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
            path = f"/{name}/-/{name}-{version}.tgz"
            self.index.answers[path] = response(b"evil" if changed else content)
            dist = {"tarball": f"{self.index.url}{path}", "integrity": integrity}
            manifests[version] = {"name": name, "version": version, "dist": dist}
        packument = {
            "name": name,
            "dist-tags": {"latest": list(versions)[-1]},
            "time": {version: iso(time) for version, time in versions.items()},
            "versions": manifests,
        }
        self.index.answers[f"/{name}"] = response(json.dumps(packument).encode())

    async def npm(self, bench: Bench, *words: str) -> tuple[str, int]:
        """:returns: what npm printed, and its status."""
        npm = program("npm")
        self.project = bench.top / "project"
        self.project.mkdir(exist_ok=True)
        environ = {
            "PATH": f"{Path(npm).parent}:{os.defpath}",
            "npm_config_cafile": str(bench.authority.certificate_path),
            "npm_config_globalconfig": str(bench.top / "global"),
            "npm_config_userconfig": str(bench.top / "user"),
        }
        return await self.execute(bench, npm, "--prefix", str(self.project), *words, environ=environ)

    def installed(self, name: str) -> str:
        """:returns: the version of an installed package."""
        version: str = json.loads((self.project / "node_modules" / name / "package.json").read_text())["version"]
        return version

    async def test_newest_old_version_is_installed_and_its_lock_file_holds(self) -> None:
        bench = await self.start()
        self.publish("example", {"1.0.0": OLD, "2.0.0": YOUNG})
        printed, status = await self.npm(bench, "install", "example")
        self.assertEqual((status, self.installed("example")), (0, "1.0.0"), printed)
        printed, status = await self.npm(bench, "ci")
        self.assertEqual((status, self.installed("example")), (0, "1.0.0"), printed)
        self.assertEqual({record["release"] for record in bench.records("package")}, {"1.0.0"})

    async def test_changed_file_is_refused_with_the_reason(self) -> None:
        bench = await self.start()
        self.publish("changed", {"1.0.0": OLD}, changed=True)
        printed, status = await self.npm(bench, "install", "changed")
        self.assertNotEqual(status, 0, printed)
        self.assertIn("IronCurtain: the file has the digest sha512-", printed)

    async def test_young_version_of_a_lock_file_is_refused_with_the_reason(self) -> None:
        bench = await self.start()
        self.publish("fresh", {"1.0.0": YOUNG})
        needed = {"dependencies": {"fresh": "*"}}
        file = "https://registry.npmjs.org/fresh/-/fresh-1.0.0.tgz"
        packages = {"": needed, "node_modules/fresh": {"version": "1.0.0", "resolved": file}}
        (bench.top / "project").mkdir()
        (bench.top / "project/package.json").write_text(json.dumps(needed))
        lock = {"lockfileVersion": 3, "requires": True, "packages": packages}
        (bench.top / "project/package-lock.json").write_text(json.dumps(lock))
        printed, status = await self.npm(bench, "ci")
        self.assertNotEqual(status, 0, printed)
        self.assertIn("IronCurtain: fresh 1.0.0 is too young", printed)
        self.assertEqual(bench.records("package"), [])

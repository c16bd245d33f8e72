"""A real client: apt-get, through the MITM proxy, and an archive on this machine."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from datetime import datetime
from email.utils import format_datetime
from urllib.parse import quote

from tests.mitm_proxy.support import Bench
from tests.programs import program
from tests.registries.clients import OLD, YOUNG, ClientCase
from tests.registries.stub import response
from tests.registries.tarballs import tarball
from tests.registries.upstream import sha256

SUITE, LIST = "/debian/dists/stable", "main/binary-amd64/Packages"


def package(name: str, control: str) -> bytes:
    """:returns: a package of Debian with one file (deb(5), ar(5))."""
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tarball({"./control": control}),
        "data.tar.gz": tarball({f"./{name}.txt": "installed"}),
    }
    archive = b"!<arch>\n"
    for member, content in members.items():
        archive += f"{member:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        archive += content + b"\n" * (len(content) % 2)
    return archive


class AptTests(ClientCase):
    """Installs packages of an archive whose files the test decides on, as somebody who is not root can."""

    registry = "debian"

    def publish(self, packages: Mapping[str, datetime | None], changed: bool = False) -> None:
        """
        :param packages: when their files were changed last, which the archive tells.
        :param changed: whether the files have other content than the list says.
        """
        entries = []
        for name, time in packages.items():
            control = f"Package: {name}\nVersion: 1.0+x\nArchitecture: all\nMaintainer: A <a@host.example>\n"
            control += "Description: none\n"
            whole, path = package(name, control), f"pool/main/{name}_1.0+x_all.deb"
            headers = () if time is None else (f"Last-Modified: {format_datetime(time, usegmt=True)}",)
            self.index.answers[f"/debian/{quote(path)}"] = response(whole[::-1] if changed else whole, *headers)
            entries.append(f"{control}Filename: {path}\nSize: {len(whole)}\nSHA256: {sha256(whole)}\n")
        plain = "\n".join(entries).encode()
        packed = gzip.compress(plain, mtime=0)
        release = "Suite: stable\nArchitectures: amd64\nComponents: main\nAcquire-By-Hash: yes\nSHA256:\n"
        for content, path in ((plain, LIST), (packed, f"{LIST}.gz")):
            release += f" {sha256(content)} {len(content)} {path}\n"
        self.list = f"{SUITE}/main/binary-amd64/by-hash/SHA256/{sha256(packed)}"
        self.index.answers |= {f"{SUITE}/Release": response(release.encode()), self.list: response(packed)}

    async def start(self) -> Bench:
        """:returns: a bench with a root of its own for ``apt-get``."""
        self.apt = program("apt-get")
        bench = await super().start()
        self.root = bench.top / "root"
        for place in (
            "etc/apt/apt.conf.d",
            "etc/apt/preferences.d",
            "lists/partial",
            "var/cache/apt/archives/partial",
            "var/log/apt",
            "var/lib/dpkg",
        ):
            (self.root / place).mkdir(parents=True)
        (self.root / "etc/apt/sources.list").write_text("deb [trusted=yes] http://deb.debian.org/debian stable main\n")
        for name in ("status", "available"):
            (self.root / "var/lib/dpkg" / name).touch()
        settings = {
            "Dir": self.root,
            "Dir::State::status": self.root / "var/lib/dpkg/status",
            "Dir::State::lists": self.root / "lists",
            "APT::Architecture": "amd64",
            "APT::Sandbox::User": "",
            "Acquire::Languages": "none",
            "DPkg::Options::": "--force-not-root,script-chrootless,bad-path,architecture",
        }
        lines = [f'{name} "{value}";' for name, value in settings.items()]
        lines += [f'DPkg::Options:: "--{each}";' for each in (f"root={self.root}", f"log={self.root}/log")]
        (bench.top / "apt.conf").write_text("\n".join(lines))
        return bench

    async def run_apt(self, bench: Bench, *words: str) -> tuple[str, int]:
        """:returns: what apt-get printed, and its status."""
        environ = {
            "APT_CONFIG": str(bench.top / "apt.conf"),
            "LC_ALL": "C.UTF-8",
            "PATH": "/usr/sbin:/usr/bin:/sbin:/bin",
        }
        return await self.execute(bench, self.apt, *words, environ=environ)

    async def test_package_is_installed(self) -> None:
        bench = await self.start()
        self.publish({"example": OLD})
        for words in (("update",), ("install", "--yes", "example")):
            printed, status = await self.run_apt(bench, *words)
            self.assertEqual(status, 0, printed)
        self.assertEqual((self.root / "example.txt").read_text(), "installed")
        self.assertEqual([record["name"] for record in bench.records("package")], ["example"])

    async def test_refusals_say_why(self) -> None:
        bench = await self.start()
        self.publish({"fresh": YOUNG, "undated": None})
        await self.run_apt(bench, "update")
        for name, why in (("fresh", "is too young (published 2"), ("undated", "is too young (published at an unknown")):
            printed, status = await self.run_apt(bench, "install", "--yes", name)
            self.assertEqual(status, 100, printed)
            self.assertIn(f"403  IronCurtain: {name} 1.0+x {why}", printed)
        self.assertEqual(bench.records("package"), [])

    async def test_another_file_is_not_installed(self) -> None:
        bench = await self.start()
        self.publish({"changed": OLD}, changed=True)
        await self.run_apt(bench, "update")
        printed, status = await self.run_apt(bench, "install", "--yes", "changed")
        self.assertEqual(status, 100, printed)
        self.assertIn("Hash Sum mismatch", printed)
        self.assertFalse((self.root / "changed.txt").exists())

    async def test_another_list_is_refused(self) -> None:
        bench = await self.start()
        self.publish({"example": OLD})
        self.index.answers[self.list] = response(gzip.compress(b"Package: evil\n"))
        printed, status = await self.run_apt(bench, "update")
        self.assertEqual(status, 100, printed)
        self.assertIn("IronCurtain: the file has the digest sha256-", printed)

"""Registries on this machine whose packages, and whose lies about them, a test decides on."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import zipfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from enum import Enum, auto
from typing import Any, Final
from urllib.parse import quote

from tests.registries.stub import LyingRegistry, response
from tests.registries.tarballs import tarball
from tests.registries.upstream import iso, sha256

NOW: Final = datetime.now(UTC).replace(microsecond=0)  # cargo reads no fractions of seconds
OLD, YOUNG = NOW - timedelta(days=30), NOW - timedelta(days=2)

LARGE: Final = 2_000_000
"""Size in bytes of a file that is too large for a registry with ``max_file_mb = 1``."""

ELSEWHERE: Final = "https://169.254.169.254/latest/"
"""Where machines of clouds find their own credentials."""

GO_HOST: Final = "host.test"
"""The names of modules begin with it."""


class Lie(Enum):
    """What is wrong with a package's file."""

    NONE = auto()
    CHANGED = auto()
    """Its content is not the one that the metadata describe."""
    FOREIGN = auto()
    """It is one of another package."""
    REDIRECTED = auto()
    """It is where only this machine could fetch it."""
    LARGE = auto()
    """It is larger than the settings allow."""
    ENDLESS = auto()
    """It has no end, and the registry names no size."""
    TRICKY = auto()
    """Its name leads out of the directory that it should be in."""


Versions = Mapping[str, datetime | None]
"""When each version was published, the latest one last; ``None``: the registry does not tell."""


class Index(ABC):
    """
    One registry.

    :cvar name: of its kind, in the settings.
    :cvar path: of the index, below the registry's address.
    """

    name: str
    path = ""

    def __init__(self) -> None:
        self.server = LyingRegistry()

    @property
    def url(self) -> str:
        """What the settings name."""
        return f"{self.server.url}{self.path}"

    @abstractmethod
    def publish(self, package: str, versions: Versions, lie: Lie = Lie.NONE) -> None:
        """Add a package, whose file contains its version, or replace it."""

    def add(self, path: str, content: bytes, lie: Lie, *headers: str) -> None:
        """Add the file of a package."""
        answers: Mapping[Lie, Callable[[], bytes]] = {
            Lie.CHANGED: lambda: response(content[::-1], *headers),
            Lie.REDIRECTED: lambda: response(b"", f"Location: {ELSEWHERE}", status=302),
            Lie.LARGE: lambda: response(b"x" * LARGE, *headers),
            Lie.ENDLESS: lambda: "\r\n".join(("HTTP/1.1 200 OK", *headers, "", "")).encode(),
        }
        answer = answers.get(lie, lambda: response(content, *headers))
        self.server.answers[path] = answer()
        if lie is Lie.ENDLESS:
            self.server.endless[path] = b"x" * 65536

    def add_json(self, path: str, document: object) -> None:
        """Add metadata."""
        self.server.answers[path] = response(json.dumps(document).encode())


class NpmIndex(Index):
    """Of npm's packages."""

    name = "npm"

    def publish(self, package: str, versions: Versions, lie: Lie = Lie.NONE) -> None:
        """See :meth:`Index.publish`."""
        shown = {f"../{version}" if lie is Lie.TRICKY else version: time for version, time in versions.items()}
        manifests = {}
        for version in shown:
            named = "other" if lie is Lie.FOREIGN else package
            description = {"name": named, "version": version, "main": "index.js"}
            files = {"package/package.json": json.dumps(description), "package/index.js": "module.exports = 1\n"}
            content, path = tarball(files), f"/{named}/-/{named}-{version}.tgz"
            self.add(path, content, lie)
            integrity = "sha512-" + base64.b64encode(hashlib.sha512(content).digest()).decode()
            manifests[version] = {
                "name": named,
                "version": version,
                "dist": {"tarball": f"{self.server.url}{path}", "integrity": integrity},
            }
        packument = {
            "name": package,
            "dist-tags": {"latest": list(shown)[-1]},
            "time": {version: iso(time) for version, time in shown.items() if time is not None},
            "versions": manifests,
        }
        self.add_json(f"/{package}", packument)


def wheel(name: str, version: str) -> bytes:
    """:returns: a package of Python with one module."""
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


class PythonIndex(Index):
    """Of Python's packages."""

    name, path = "pypi", "/simple"

    def publish(self, package: str, versions: Versions, lie: Lie = Lie.NONE) -> None:
        """See :meth:`Index.publish`."""
        files = []
        for version, time in versions.items():
            named = "other" if lie is Lie.FOREIGN else package
            file = f"{named}-{version}-py3-none-any.whl"
            content = wheel(named, version)
            self.add(f"/files/{file}", content, lie)
            known = {
                "filename": f"../../{file}" if lie is Lie.TRICKY else file,
                "url": f"/files/{file}",
                "hashes": {"sha256": sha256(content)},
            }
            files.append(known if time is None else known | {"upload-time": iso(time)})
        self.add_json(f"{self.path}/{package}/", {"files": files})


class CrateIndex(Index):
    """Of crates."""

    name = "crates"

    def publish(self, package: str, versions: Versions, lie: Lie = Lie.NONE) -> None:
        """See :meth:`Index.publish`."""
        lines = []
        for version, time in versions.items():
            shown = f"../{version}" if lie is Lie.TRICKY else version
            manifest = f'[package]\nname = "{package}"\nversion = "{version}"\nedition = "2021"\n'
            source = {
                f"{package}-{version}/Cargo.toml": manifest,
                f"{package}-{version}/src/lib.rs": "pub fn one() {}\n",
            }
            content = tarball(source)
            self.add(f"/crates/{package}/{version}/download", content, lie)
            line: dict[str, Any] = {
                "name": "other" if lie is Lie.FOREIGN else package,
                "vers": shown,
                "deps": [],
                "cksum": sha256(content),
                "features": {},
                "links": None,
                "yanked": False,
            }
            lines.append(json.dumps(line if time is None else line | {"pubtime": iso(time)}))
        self.server.answers[f"/{package[:2]}/{package[2:4]}/{package}"] = response("\n".join(lines).encode())
        self.add_json("/config.json", {"dl": f"{self.server.url}/crates"})


class GoIndex(Index):
    """Of Go's modules, without checksum database."""

    name = "go"

    def publish(self, package: str, versions: Versions, lie: Lie = Lie.NONE) -> None:
        """See :meth:`Index.publish`."""
        module = f"{GO_HOST}/{package}"
        top = f"/{module}/@v"
        shown = {f"v{version}": time for version, time in versions.items()}
        self.server.answers[f"{top}/list"] = response("\n".join(shown).encode())
        for version, time in shown.items():
            told = {Lie.FOREIGN: "v9.0.0", Lie.TRICKY: f"../../{version}"}.get(lie, version)
            self.add_json(f"{top}/{version}.info", {"Version": told} | ({} if time is None else {"Time": iso(time)}))
            self.server.answers[f"{top}/{version}.mod"] = response(f"module {module}\n".encode())
            content = io.BytesIO()
            with zipfile.ZipFile(content, "w") as archive:
                archive.writestr(f"{module}@{version}/go.mod", f"module {module}\n")
                archive.writestr(f"{module}@{version}/one.go", f"package {package}\n")
            self.add(f"{top}/{version}.zip", content.getvalue(), lie)


def debian_package(name: str, control: str) -> bytes:
    """:returns: a package of Debian with one file (deb(5), ar(5))."""
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.gz": tarball({"./control": control}),
        "data.tar.gz": tarball({f"./{name}.txt": "1.0"}),
    }
    archive = b"!<arch>\n"
    for member, content in members.items():
        archive += f"{member:16}{0:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode()
        archive += content + b"\n" * (len(content) % 2)
    return archive


class DebianIndex(Index):
    """An archive of Debian's packages, which has one version of each."""

    name = "debian"
    suite: Final = "/debian/dists/stable"
    list_path: Final = "main/binary-amd64/Packages"

    def __init__(self) -> None:
        super().__init__()
        self._entries: dict[str, str] = {}

    def publish(self, package: str, versions: Versions, lie: Lie = Lie.NONE) -> None:
        """See :meth:`Index.publish`; a file that is :attr:`Lie.FOREIGN` has the control data of another package."""
        version, time = next(iter(versions.items()))
        version = f"{version}+x"
        control = f"Package: {package}\nVersion: {version}\nArchitecture: all\nMaintainer: A <a@host.example>\n"
        control += "Description: none\n"
        whole, path = debian_package(package, control), f"pool/main/{package}_{version}_all.deb"
        headers = () if time is None else (f"Last-Modified: {format_datetime(time, usegmt=True)}",)
        self.add(f"/debian/{quote(path)}", whole, lie, *headers)
        named = {Lie.TRICKY: f"pool/../../{package}.deb", Lie.FOREIGN: "other/evil.bin"}.get(lie, path)
        self._entries[package] = f"{control}Filename: {named}\nSize: {len(whole)}\nSHA256: {sha256(whole)}\n"
        plain = "\n".join(self._entries.values()).encode()
        packed = gzip.compress(plain, mtime=0)
        release = "Suite: stable\nArchitectures: amd64\nComponents: main\nAcquire-By-Hash: yes\nSHA256:\n"
        for content, where in ((plain, self.list_path), (packed, f"{self.list_path}.gz")):
            release += f" {sha256(content)} {len(content)} {where}\n"
        by_hash = f"{self.suite}/main/binary-amd64/by-hash/SHA256/{sha256(packed)}"
        self.server.answers |= {f"{self.suite}/Release": response(release.encode()), by_hash: response(packed)}


INDEXES: Final = (NpmIndex, PythonIndex, CrateIndex, GoIndex, DebianIndex)

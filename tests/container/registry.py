"""A registry of images for tests: the part of the OCI distribution API with which an Engine pulls, over HTTP."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import tarfile
from collections.abc import Mapping
from typing import Any

from twisted.internet import reactor as global_reactor
from twisted.protocols.policies import ProtocolWrapper, WrappingFactory
from twisted.web.http import Request
from twisted.web.resource import Resource
from twisted.web.server import Site

reactor: Any = global_reactor

MANIFEST = "application/vnd.oci.image.manifest.v1+json"
CONFIG = "application/vnd.oci.image.config.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"


def digest(data: bytes) -> str:
    """:returns: what names a content."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class _Channel(ProtocolWrapper):
    """Ends a connection that begins with a TLS handshake, which Engines try first and wait for."""

    def dataReceived(self, data: bytes) -> None:
        """Take what the Engine sends."""
        if data.startswith(b"\x16"):
            self.loseConnection()
        else:
            super().dataReceived(data)


class _Plain(WrappingFactory):
    protocol = _Channel


class Registry(Resource):
    """
    :ivar asked: the paths that were asked for.
    """

    isLeaf = True

    def __init__(self) -> None:
        super().__init__()
        self._answers: dict[str, tuple[str, bytes]] = {"/v2/": ("application/json", b"{}")}
        self.asked: list[str] = []

    def start(self) -> Any:
        """
        Serve on a port of 127.0.0.1, with which Engines speak without TLS.

        :returns: the port.
        """
        self._port = reactor.listenTCP(0, _Plain(Site(self)), interface="127.0.0.1")
        return self._port

    @property
    def address(self) -> str:
        """Host and port, as names of images begin."""
        return f"127.0.0.1:{self._port.getHost().port}"

    def add(self, repository: str, tag: str, labels: Mapping[str, str], files: Mapping[str, bytes]) -> str:
        """
        Publish an image of one layer.

        :returns: its digest.
        """
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            for name, data in files.items():
                entry = tarfile.TarInfo(name)
                entry.size = len(data)
                archive.addfile(entry, io.BytesIO(data))
        layer = gzip.compress(packed.getvalue(), mtime=0)
        described = {
            "architecture": "amd64",
            "os": "linux",
            "config": {"Labels": dict(labels)},
            "rootfs": {"type": "layers", "diff_ids": [digest(packed.getvalue())]},
        }
        config = json.dumps(described).encode()
        parts = [
            {"mediaType": kind, "digest": digest(d), "size": len(d)} for kind, d in ((CONFIG, config), (LAYER, layer))
        ]
        manifest = json.dumps(
            {"schemaVersion": 2, "mediaType": MANIFEST, "config": parts[0], "layers": parts[1:]}
        ).encode()
        for data in (config, layer):
            self._answers[f"/v2/{repository}/blobs/{digest(data)}"] = ("application/octet-stream", data)
        for reference in (tag, digest(manifest)):
            self._answers[f"/v2/{repository}/manifests/{reference}"] = (MANIFEST, manifest)
        return digest(manifest)

    def replace(self, repository: str, reference: str, other: str) -> None:
        """Lie: answer to a reference with the content of another one."""
        self._answers[f"/v2/{repository}/manifests/{reference}"] = self._answers[f"/v2/{repository}/manifests/{other}"]

    def render(self, request: Request) -> bytes:
        """:returns: the answer to one request."""
        path = request.path.decode()
        self.asked.append(path)
        if path not in self._answers:
            request.setResponseCode(404)
            return b'{"errors": [{"code": "MANIFEST_UNKNOWN", "message": "manifest unknown"}]}'
        kind, data = self._answers[path]
        request.setHeader("Content-Type", kind)
        request.setHeader("Docker-Content-Digest", digest(data))
        request.setHeader("Content-Length", str(len(data)))
        return b"" if request.method == b"HEAD" else data

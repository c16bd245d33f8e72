"""Find the Engine that the command ``docker`` uses, which its contexts may name (``docker context``)."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Mapping
from pathlib import Path

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.text.decoding import decode_text

_DEFAULT = "default"
"""The context that stands for ``DOCKER_HOST`` and the usual socket."""


class DockerContext(msgspec.Struct, frozen=True):
    """
    :param host: address of its Engine, such as ``unix:///run/user/1000/docker.sock`` or ``ssh://...``.
    """

    name: str
    host: str


class _Config(msgspec.Struct):
    current: str = msgspec.field(default="", name="currentContext")


class _Endpoint(msgspec.Struct):
    host: str = msgspec.field(default="", name="Host")


class _Meta(msgspec.Struct):
    endpoints: dict[str, _Endpoint] = msgspec.field(default_factory=dict, name="Endpoints")


def used_context(environ: Mapping[str, str]) -> DockerContext | None:
    """
    :param environ: the environment: ``DOCKER_CONTEXT``, ``DOCKER_HOST``, ``DOCKER_CONFIG`` and ``HOME``.
    :returns: the context that ``docker`` uses; ``None`` if it uses none, or one that cannot be read.
    :raises ConfigurationError: a file has an encoding that ``docker`` does not read.
    """
    own = Path(environ.get("DOCKER_CONFIG") or Path(environ.get("HOME", "/nonexistent"), ".docker"))
    name = environ.get("DOCKER_CONTEXT", "")
    try:
        if not name and not environ.get("DOCKER_HOST"):
            name = msgspec.json.decode(_text(own / "config.json"), type=_Config).current
        if name in ("", _DEFAULT):
            return None
        place = own / "contexts/meta" / hashlib.sha256(name.encode()).hexdigest() / "meta.json"
        found = msgspec.json.decode(_text(place), type=_Meta).endpoints.get("docker", _Endpoint())
    except (OSError, ValueError):  # what msgspec raises is a ValueError
        return None
    return DockerContext(name, found.host) if found.host else None


def _text(path: Path) -> str:
    data = path.read_bytes()
    if data.startswith(codecs.BOM_UTF8):
        raise ConfigurationError(str(path), "begins with a byte order mark: save it without")
    return decode_text(str(path), data)

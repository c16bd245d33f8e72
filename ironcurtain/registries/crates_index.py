"""
The sparse index of crates: its paths, its lines, and where it says that files are.

A line is one version of a crate, in JSON. Versions that are too young are marked as yanked, not removed: then ``cargo``
does not choose them, but a ``Cargo.lock`` that has one is still understood, and the refusal of the file says why.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, Final, NamedTuple

import msgspec

from ironcurtain.registries.releases import Digest, hex_digest, publication

NAME_LIMIT: Final = 64
"""Maximum length in characters of a crate's name, as crates.io has it."""

_NAME = re.compile(rf"[A-Za-z0-9_][A-Za-z0-9_-]{{0,{NAME_LIMIT - 1}}}")
_VERSION = re.compile(r"[0-9A-Za-z.+-]{1,100}")
_MARKER = re.compile(r"\{([^{}]*)\}")


class BadIndex(ValueError):
    """What the upstream server sent is no index of crates. The message says why."""


class CrateFile(NamedTuple):
    """A version of a crate, as the path of its file names it."""

    crate: str
    version: str


class CrateVersion(NamedTuple):
    """
    What the index says of a version.

    :ivar crate: its name as its author writes it.
    :ivar published: when; ``None`` if the line does not tell, or what it tells is not credible.
    :ivar digest: of the file.
    """

    crate: str
    version: str
    published: datetime | None
    digest: Digest


class IndexLine(NamedTuple):
    """
    One line of the index.

    :ivar members: everything that it says.
    """

    version: CrateVersion
    members: dict[str, Any]


def normalise(name: str) -> str:
    """:returns: the form of a crate's name that is equal for all its spellings."""
    return name.lower().replace("_", "-")


def index_path(crate: str) -> str:
    """
    :param crate: a name, in lower case or not.
    :returns: the path of its file in the index, such as ``/se/rd/serde``.
    """
    return f"/{_prefix(crate.lower())}/{crate.lower()}"


def read_index_path(path: str) -> str | None:
    """
    :param path: of a request to the index.
    :returns: the name of the crate that it asks for, in lower case; ``None`` if it is no such path.
    """
    name = path.rpartition("/")[2]
    return name if _NAME.fullmatch(name) and path == index_path(name) else None


def read_file_path(path: str) -> CrateFile | None:
    """
    :param path: of a request to the host of the files, as ``cargo`` makes it or as browsers do:
        ``/crates/NAME/VERSION/download`` or ``/crates/NAME/NAME-VERSION.crate``.
    """
    match path.replace("%2B", "+").replace("%2b", "+").split("/"):
        case ["", "crates", crate, version, "download"]:
            pass
        case ["", "crates", crate, file] if file.startswith(f"{crate}-") and file.endswith(".crate"):
            version = file[len(crate) + 1 : -len(".crate")]
        case _:
            return None
    return CrateFile(crate, version) if _NAME.fullmatch(crate) and _VERSION.fullmatch(version) else None


def read_index(body: bytes, crate: str, now: datetime) -> list[IndexLine]:
    """
    :param body: the file of a crate in the index.
    :param crate: the name that was asked for.
    :returns: the lines in their order. Those that are not understood, of other crates, and without digest are left out.
    :raises BadIndex: no line is understood.
    """
    texts = [text for text in body.split(b"\n") if text.strip()]
    lines = [line for text in texts if (line := _read_line(text, crate, now)) is not None]
    if texts and not lines:
        raise BadIndex(f"it sent no versions of {crate} for cargo")
    return lines


def write_index(lines: Iterable[IndexLine], withheld: Callable[[CrateVersion], bool]) -> bytes:
    """
    :param withheld: whether a version must not be installed yet.
    :returns: the file of a crate in the index.
    """
    written = (members | {"yanked": True} if withheld(version) else members for version, members in lines)
    return b"".join(msgspec.json.encode(members) + b"\n" for members in written)


def read_download(body: bytes) -> str:
    """
    :param body: the index's ``config.json``.
    :returns: the pattern of the addresses of files, complete.
    :raises BadIndex: there is none.
    """
    try:
        config = msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
        raise BadIndex(f"its config.json is no JSON: {e}") from None
    pattern = config.get("dl") if isinstance(config, dict) else None
    if not isinstance(pattern, str) or not re.match("https?://", pattern):
        raise BadIndex("its config.json does not tell where files are (dl)")
    return pattern if _MARKER.search(pattern) else f"{pattern}/{{crate}}/{{version}}/download"


def file_address(pattern: str, version: CrateVersion) -> str:
    """
    :param pattern: as :func:`read_download` returns it.
    :returns: the address of the file of a version.
    :raises BadIndex: the pattern contains something else than cargo's markers.
    """
    values = {
        "crate": version.crate,
        "version": version.version,
        "prefix": _prefix(version.crate),
        "lowerprefix": _prefix(version.crate.lower()),
        "sha256-checksum": version.digest.value.hex(),
    }
    try:
        return _MARKER.sub(lambda marker: values[marker[1]], pattern)
    except KeyError as e:
        raise BadIndex(f"dl in its config.json has the unknown marker {{{e.args[0]}}}") from None


def _prefix(name: str) -> str:
    if len(name) <= 2:
        return str(len(name))
    return f"3/{name[0]}" if len(name) == 3 else f"{name[:2]}/{name[2:4]}"


def _read_line(text: bytes, crate: str, now: datetime) -> IndexLine | None:
    try:
        line = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(line, dict):
        return None
    name, version, digest = line.get("name"), line.get("vers"), hex_digest("sha256", line.get("cksum"))
    if not isinstance(name, str) or name.lower() != crate.lower() or digest is None:
        return None
    if not isinstance(version, str) or not _VERSION.fullmatch(version):
        return None
    return IndexLine(CrateVersion(name, version, publication(line.get("pubtime"), now), digest), line)

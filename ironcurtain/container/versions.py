"""Read and write ``versions.toml``: the releases that the agents' images are built from."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Annotated

import msgspec

from ironcurtain.errors import Unavailable
from ironcurtain.home.parsing import parse_toml
from ironcurtain.home.structured import check_version, convert

FORMAT_VERSION = 1
"""Format version of ``versions.toml``; newer ones are refused."""

ANY = "any"
"""The key in place of an architecture for programs that are the same on all."""

BASE = "base"
"""The entry of the base image, whose version is the day of its Debian updates."""

_ANSWER = re.compile(r"newest (?P<name>\S+) (?P<version>[0-9A-Za-z][0-9A-Za-z.+-]*)(?P<integrity>(?: \w+=sha512-\S+)*)")

Version = Annotated[str, msgspec.Meta(pattern=r"^([0-9A-Za-z][0-9A-Za-z.+-]*)?\Z")]
Integrity = Annotated[str, msgspec.Meta(pattern=r"^sha512-[A-Za-z0-9+/]{86}==\Z")]
# Only characters without a special meaning in shells and builds.
Address = Annotated[str, msgspec.Meta(pattern=r"^([A-Za-z0-9@/._:{}-]+)?\Z")]


class NoRelease(Unavailable):
    """
    No release of a program is known for this machine.

    :param program: its name.
    :param architecture: architecture of this machine, as Docker names it.
    """

    code = "NO_RELEASE"

    def __init__(self, program: str, architecture: str) -> None:
        super().__init__(
            f"no release of {program} for {architecture} is chosen: choose the newest with: "
            f"ironcurtain images update {program}"
        )
        self.program, self.architecture = program, architecture


class _Entry(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    version: Version = ""
    follows: Address = ""
    packages: dict[str, Address] = {}
    integrity: dict[str, Integrity] = {}


class ImageProgram(msgspec.Struct, frozen=True):
    """
    One program and its release in images.

    :param version: empty if none is chosen yet.
    :param follows: the source of newer releases: an npm package (``name`` or ``name@range``), or the URL of a page that
        leads to the newest; empty for the base image.
    :param packages: what to download, by architecture as Docker names it or :data:`ANY`; ``{version}`` stands for the
        version.
    :param integrity: checksums of the downloads, as npm writes them.
    """

    name: str
    version: str
    follows: str
    packages: Mapping[str, str]
    integrity: Mapping[str, str]

    def arguments(self, architecture: str) -> dict[str, str]:
        """
        :returns: the build arguments for this release.
        :raises NoRelease: there is none for this architecture.
        """
        prefix = self.name.upper().replace("-", "_")
        if self.name == BASE:
            return {f"{prefix}_VERSION": self.version}
        chosen = ANY if ANY in self.packages else architecture
        if not self.version or chosen not in self.integrity or chosen not in self.packages:
            raise NoRelease(self.name, architecture)
        package = self.packages[chosen].replace("{version}", self.version)
        return {f"{prefix}_PACKAGE": package, f"{prefix}_INTEGRITY": self.integrity[chosen]}


class Release(msgspec.Struct, frozen=True):
    """
    The newest release of a program.

    :param integrity: checksums, by architecture or :data:`ANY`.
    """

    name: str
    version: str
    integrity: Mapping[str, str]


def read_versions(source: str, text: str, shipped: Mapping[str, ImageProgram] | None = None) -> dict[str, ImageProgram]:
    """
    Read a file of versions.

    :param source: the file's name, for messages.
    :param shipped: IronCurtain's programs, for a file of the home, which only selects other releases.
    :returns: each program by its name.
    :raises ConfigurationError: a value is unknown or wrong.
    """
    parsed = parse_toml(source, text)
    check_version(source, parsed, FORMAT_VERSION, text)
    parsed.pop("version", None)
    entries: dict[str, _Entry] = convert(source, parsed, dict[str, _Entry], text)
    if shipped is None:
        return {name: ImageProgram(name, e.version, e.follows, e.packages, e.integrity) for name, e in entries.items()}
    releases = (Release(name, entry.version, entry.integrity) for name, entry in entries.items())
    return moved(shipped, releases)


def moved(programs: Mapping[str, ImageProgram], releases: Iterable[Release]) -> dict[str, ImageProgram]:
    """:returns: the programs with these releases; releases of unknown programs are ignored."""
    result = dict(programs)
    for release in releases:
        if old := programs.get(release.name):
            result[release.name] = ImageProgram(old.name, release.version, old.follows, old.packages, release.integrity)
    return result


def write_versions(programs: Iterable[ImageProgram]) -> str:
    """:returns: the text of a home's file that selects the releases of these programs."""
    lines = ["# Written by: ironcurtain images update", f"version = {FORMAT_VERSION}"]
    for program in programs:
        lines += ["", f"[{program.name}]", f'version = "{program.version}"']
        lines += [f'integrity.{place} = "{value}"' for place, value in sorted(program.integrity.items())]
    return "\n".join([*lines, ""])


def question(program: ImageProgram) -> str:
    """:returns: the arguments with which the downloader finds the newest release of a program."""
    return " ".join([program.name, program.follows, *(f"{place}={p}" for place, p in program.packages.items())])


def read_answer(line: str) -> Release | None:
    """
    :returns: the newest release in a line of the downloader's output; ``None`` if the line is about something else.
    """
    answer = _ANSWER.fullmatch(line.strip())
    if answer is None:
        return None
    integrity = dict(pair.split("=", 1) for pair in answer["integrity"].split())
    return Release(answer["name"], answer["version"], integrity)

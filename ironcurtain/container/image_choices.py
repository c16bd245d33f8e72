"""
How images are built on this machine: what the user chose, what came with IronCurtain, and what other packages bring.

A package brings an image by an entry point of the group :data:`GROUP`: its name is the image's name, its object the
folder.
"""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass
from importlib import metadata
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ironcurtain.container.image_plans import DOCKERFILE, PackageImage, Recipes, arguments, program_names
from ironcurtain.container.versions import ImageProgram, Release, moved, read_versions, write_versions
from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import Home, private_directory, read_configuration

FOLDERS = Path(__file__).parent / "data" / "images"
"""One folder an image, and ``versions.toml``."""

NETWORKS = ("default", "host")
"""What the steps of a build may reach the network by."""


GROUP = "ironcurtain.images"
"""Group of the entry points."""

LARGEST_FOLDER = 64 * 1024 * 1024
"""Most bytes in an image's folder (it is read whole whenever an image is looked for)."""

IGNORED = frozenset(("__init__.py", "__pycache__"))
"""What makes a folder part of a Python package, and is not for the image."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


@dataclass(frozen=True, slots=True)
class Choices:
    """
    What is this machine's own.

    :param source: the image that the base image stands on; empty: the one that its Dockerfile names.
    :param network: one of :data:`NETWORKS`.
    :param registry: address of npm's registry; empty: npm's own default.
    :param certificates: PEM, to be trusted besides the usual while programs are fetched.
    """

    source: str = ""
    network: str = "default"
    registry: str = ""
    certificates: bytes = b""


def find_choices(environ: Mapping[str, str]) -> Choices:
    """
    :returns: what the environment says: ``IRONCURTAIN_IMAGES_BASE``, ``IRONCURTAIN_IMAGES_NETWORK``, and npm's own
        variables for its registry and certificates.
    :raises ConfigurationError: one of them has a value that cannot be used.
    """
    network = environ.get("IRONCURTAIN_IMAGES_NETWORK") or "default"
    if network not in NETWORKS:
        raise _wrong("IRONCURTAIN_IMAGES_NETWORK", f"must be one of: {', '.join(NETWORKS)}")
    return Choices(environ.get("IRONCURTAIN_IMAGES_BASE", ""), network, _registry(environ), _certificates(environ))


def load_recipes(home: Home) -> Recipes:
    """
    :returns: the images that came with IronCurtain, with the releases that the home chooses for them, and those that
        other packages bring.
    :raises ConfigurationError: the home's file of versions is wrong, or the name of an image is there twice.
    """
    folders, programs = shipped_folders(), load_programs(home)
    packaged, broken = package_images(metadata.entry_points(group=GROUP), folders, programs)
    return Recipes(folders, programs, packaged=packaged, broken=broken)


def load_programs(home: Home) -> dict[str, ImageProgram]:
    """
    :returns: the releases in use: the home's before those that came with IronCurtain.
    :raises ConfigurationError: the home's file is wrong.
    """
    path = versions_path(home)
    text = read_configuration(path)
    return shipped_programs() if text is None else read_versions(str(path), text, shipped_programs())


def choose(home: Home, releases: Iterable[Release]) -> None:
    """
    Have the home choose these releases, besides those that it chose before.

    :raises ConfigurationError: the home's file is wrong.
    """
    path, shipped = versions_path(home), shipped_programs()
    programs = moved(load_programs(home), releases)
    private_directory(path.parent)
    own = [program for program in programs.values() if program != shipped[program.name]]
    write_atomically(path, write_versions(own).encode())


def shipped_programs() -> dict[str, ImageProgram]:
    """:returns: the releases that came with IronCurtain."""
    return read_versions("versions.toml", (FOLDERS / "versions.toml").read_text())


def shipped_folders() -> dict[str, dict[str, bytes]]:
    """:returns: the files of each image that came with IronCurtain, by the image's name."""
    return {
        folder.name: {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        for folder in FOLDERS.iterdir()
        if folder.is_dir()
    }


def versions_path(home: Home) -> Path:
    """:returns: the home's own file of versions, which need not exist."""
    return home.path / "images" / "versions.toml"


def _registry(environ: Mapping[str, str]) -> str:
    for variable in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if address := environ.get(variable):
            parts = urlsplit(address)
            if parts.scheme not in ("http", "https") or not parts.hostname:
                raise _wrong(variable, "must be the address of a registry")
            if "@" in parts.netloc or parts.query:
                raise _wrong(variable, "holds a password, which builds would leave in the Engine: use one without")
            return address
    return ""


def _certificates(environ: Mapping[str, str]) -> bytes:
    for variable in ("npm_config_cafile", "NPM_CONFIG_CAFILE", "NODE_EXTRA_CA_CERTS"):
        if path := environ.get(variable):
            text = read_configuration(Path(os.path.abspath(path)))
            if text is None or "-----BEGIN CERTIFICATE-----" not in text:
                raise _wrong(variable, f"{path} holds no certificates (PEM)")
            if "PRIVATE KEY-----" in text:
                raise _wrong(variable, f"{path} holds a private key, which must not get into images")
            return text.encode()
    return b""


def _wrong(variable: str, detail: str) -> ConfigurationError:
    return ConfigurationError(f"environment variable {variable}", detail)


class Unusable(ConfigurationError):
    """A package's folder cannot be used for an image."""


def package_images(
    entry_points: Iterable[metadata.EntryPoint], taken: Container[str], programs: Container[str]
) -> tuple[dict[str, PackageImage], dict[str, str]]:
    """
    :param entry_points: of the group :data:`GROUP`.
    :param taken: names of images that there are already.
    :param programs: names of the programs that can be asked for.
    :returns: the images, and why others cannot be used; both by name.
    :raises ConfigurationError: a name is there twice: nobody may put another image in the place of one that is known.
    """
    found: dict[str, PackageImage] = {}
    broken: dict[str, str] = {}
    for entry in entry_points:
        if entry.name in taken or entry.name in found or entry.name in broken:
            raise ConfigurationError(_source(entry), f"the image {entry.name} is there already")
        try:
            found[entry.name] = _load(entry, programs)
        except Unusable as e:
            broken[entry.name] = str(e)
    return found, broken


def _source(entry: metadata.EntryPoint) -> str:
    return f"{entry.dist.name if entry.dist else entry.value} ({GROUP}: {entry.name} = {entry.value})"


def _load(entry: metadata.EntryPoint, programs: Container[str]) -> PackageImage:
    source = _source(entry)
    if not _NAME.fullmatch(entry.name):
        raise Unusable(source, "its name must be small letters, digits and -, at most 40")
    try:
        files = dict(_files(entry.load(), ""))
    except Exception as e:
        # Code of somebody else runs here, at its import: anything may come out.
        raise Unusable(source, f"cannot be read: {type(e).__name__}: {e}") from e
    if DOCKERFILE not in files:
        raise Unusable(source, f"is no folder with a {DOCKERFILE}")
    if sum(map(len, files.values())) > LARGEST_FOLDER:
        raise Unusable(source, f"holds more than {LARGEST_FOLDER} bytes")
    declared = arguments(files[DOCKERFILE])
    if unknown := [name for name in program_names(declared) if name not in programs]:
        raise Unusable(source, f"asks for a program that is not known here: {', '.join(unknown)}")
    if "BASE" not in declared:
        raise Unusable(source, "must stand on our base image: its Dockerfile begins with ARG BASE and FROM ${BASE}")
    return PackageImage(files, entry.dist.version if entry.dist else "")


def _files(folder: Traversable | Any, above: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name in IGNORED:
            continue
        if entry.is_dir():
            yield from _files(entry, f"{above}{entry.name}/")
        else:
            yield f"{above}{entry.name}", entry.read_bytes()

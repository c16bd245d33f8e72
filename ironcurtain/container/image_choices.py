"""How images are built on this machine: what the user chose, and what came with IronCurtain."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from urllib.parse import urlsplit

from ironcurtain.container.brought_images import GROUP, brought_images
from ironcurtain.container.image_plans import Recipes
from ironcurtain.container.versions import Program, Release, moved, read_versions, write_versions
from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.layout import Home, private_directory, read_configuration

FOLDERS = Path(__file__).parent / "data" / "images"
"""One folder an image, and ``versions.toml``."""

NETWORKS = ("default", "host")
"""What the steps of a build may reach the network by."""


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
    brought, broken = brought_images(metadata.entry_points(group=GROUP), folders, programs)
    return Recipes(folders, programs, brought=brought, broken=broken)


def load_programs(home: Home) -> dict[str, Program]:
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


def shipped_programs() -> dict[str, Program]:
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

"""
The recipes of images: the settings of this machine, the images that come with IronCurtain, and those of other packages.

A package adds an image with an entry point of the group :data:`GROUP`. The entry point's name is the image's name; its
object is the folder.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from ironcurtain.container.image_plans import DOCKERFILE, LANGUAGES, PackageImage, Recipes, arguments, program_names
from ironcurtain.container.versions import ImageProgram, Release, moved, read_versions, write_versions
from ironcurtain.errors import ConfigurationError
from ironcurtain.files.atomic import write_atomically
from ironcurtain.home.container_section import ContainerSettings
from ironcurtain.home.layout import Home, private_directory, read_configuration
from ironcurtain.home.user_paths import absolute_path
from ironcurtain.http.urls import UnclearAddress, read_web_address

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint
    from importlib.resources.abc import Traversable

FOLDERS = Path(__file__).parent / "data" / "images"
"""Directory with one folder per image and ``versions.toml``."""

NETWORKS = ("default", "host")
"""Network modes for the steps of a build."""

GROUP = "ironcurtain.images"
"""Entry point group for images of other packages."""

LARGEST_FOLDER = 64 * 1024 * 1024
"""Maximum size in bytes of an image's folder, which is read whole at each lookup."""

IGNORED = frozenset(("__init__.py", "__pycache__"))
"""Names that belong to the Python package around the folder, not to the image."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Choices(msgspec.Struct, frozen=True):
    """
    Settings for building images on this machine.

    :param source: parent of the base image; empty: the one that its Dockerfile names.
    :param network: one of :data:`NETWORKS`.
    :param registry: address of npm's registry; empty: npm's own default.
    :param certificates: PEM certificates to trust in addition to the usual ones while downloading programs.
    :param languages: presets of :data:`~ironcurtain.container.image_plans.LANGUAGES` in the base image.
    """

    source: str = ""
    network: str = "default"
    registry: str = ""
    certificates: bytes = b""
    languages: tuple[str, ...] = ()


def find_choices(environ: Mapping[str, str], settings: ContainerSettings) -> Choices:
    """
    :param settings: of ``config.toml``, which the environment overrides.
    :returns: the settings in the environment: ``IRONCURTAIN_IMAGES_BASE``, ``IRONCURTAIN_IMAGES_LANGUAGES``,
        ``IRONCURTAIN_IMAGES_NETWORK``, and npm's variables for its registry and certificates.
    :raises ConfigurationError: a variable has an unusable value.
    """
    network = environ.get("IRONCURTAIN_IMAGES_NETWORK") or "default"
    if network not in NETWORKS:
        raise _wrong("IRONCURTAIN_IMAGES_NETWORK", f"must be one of: {', '.join(NETWORKS)}")
    base = environ.get("IRONCURTAIN_IMAGES_BASE") or settings.base
    return Choices(base, network, _registry(environ), _certificates(environ), _languages(environ, settings))


def load_recipes(home: Home) -> Recipes:
    """
    :returns: the images of IronCurtain, with the releases chosen in the home, and the images of other packages.
    :raises ConfigurationError: the home's ``versions.toml`` is wrong, or two images have the same name.
    """
    from importlib.metadata import entry_points  # slow to import

    folders, programs = shipped_folders(), load_programs(home)
    packaged, broken = package_images(entry_points(group=GROUP), folders, programs)
    return Recipes(folders, programs, packaged=packaged, broken=broken)


def load_programs(home: Home) -> dict[str, ImageProgram]:
    """
    :returns: the releases in use. Those chosen in the home override those of IronCurtain.
    :raises ConfigurationError: the home's ``versions.toml`` is wrong.
    """
    path = versions_path(home)
    text = read_configuration(path)
    return shipped_programs() if text is None else read_versions(str(path), text, shipped_programs())


def choose(home: Home, releases: Iterable[Release]) -> None:
    """
    Add releases to those chosen in the home.

    :raises ConfigurationError: the home's ``versions.toml`` is wrong.
    """
    path, shipped = versions_path(home), shipped_programs()
    programs = moved(load_programs(home), releases)
    private_directory(path.parent)
    own = [program for program in programs.values() if program != shipped[program.name]]
    write_atomically(path, write_versions(own).encode())


def shipped_programs() -> dict[str, ImageProgram]:
    """:returns: the releases that IronCurtain ships."""
    return read_versions("versions.toml", (FOLDERS / "versions.toml").read_text())


def shipped_folders() -> dict[str, dict[str, bytes]]:
    """:returns: the files of each image that IronCurtain ships, by image name."""
    return {
        folder.name: {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}
        for folder in FOLDERS.iterdir()
        if folder.is_dir()
    }


def versions_path(home: Home) -> Path:
    """:returns: path of the home's ``versions.toml``, which may not exist."""
    return home.path / "images" / "versions.toml"


def _languages(environ: Mapping[str, str], settings: ContainerSettings) -> tuple[str, ...]:
    if (text := environ.get("IRONCURTAIN_IMAGES_LANGUAGES")) is None:
        return settings.languages
    names = tuple(text.split())
    if any(name not in LANGUAGES for name in names):
        raise _wrong("IRONCURTAIN_IMAGES_LANGUAGES", f"must be a list, with blanks, of: {', '.join(LANGUAGES)}")
    return names


def _registry(environ: Mapping[str, str]) -> str:
    for variable in ("npm_config_registry", "NPM_CONFIG_REGISTRY"):
        if address := environ.get(variable):
            try:
                registry = read_web_address(address)
            except UnclearAddress as e:
                raise _wrong(variable, f"must be the URL of a registry: {e}") from None
            if registry.authority.user or "?" in registry.path:
                raise _wrong(
                    variable, "contains a password, which builds would leave in the Engine: use a URL without one"
                )
            return address
    return ""


def _certificates(environ: Mapping[str, str]) -> bytes:
    for variable in ("npm_config_cafile", "NPM_CONFIG_CAFILE", "NODE_EXTRA_CA_CERTS"):
        if path := environ.get(variable):
            try:
                text = read_configuration(absolute_path(path, environ))
            except ConfigurationError as e:
                raise _wrong(variable, f"{path} {e.detail}") from None
            if text is None or "-----BEGIN CERTIFICATE-----" not in text:
                raise _wrong(variable, f"{path} contains no PEM certificates")
            if "PRIVATE KEY-----" in text:
                raise _wrong(variable, f"{path} contains a private key, which must not get into images")
            return text.encode()
    return b""


def _wrong(variable: str, detail: str) -> ConfigurationError:
    return ConfigurationError(f"environment variable {variable}", detail)


class Unusable(ConfigurationError):
    """A package's folder cannot be used for an image."""


def package_images(
    entry_points: Iterable[EntryPoint], taken: Container[str], programs: Container[str]
) -> tuple[dict[str, PackageImage], dict[str, str]]:
    """
    :param entry_points: of the group :data:`GROUP`.
    :param taken: image names that are in use.
    :param programs: names of the programs that a Dockerfile can request.
    :returns: the usable images, and for each unusable one the reason; both by name.
    :raises ConfigurationError: two images have the same name. A package must not replace an existing image.
    """
    found: dict[str, PackageImage] = {}
    broken: dict[str, str] = {}
    for entry in entry_points:
        if entry.name in taken or entry.name in found or entry.name in broken:
            raise ConfigurationError(_source(entry), f"the image {entry.name} already exists")
        try:
            found[entry.name] = _load(entry, programs)
        except Unusable as e:
            broken[entry.name] = str(e)
    return found, broken


def _source(entry: EntryPoint) -> str:
    return f"{entry.dist.name if entry.dist else entry.value} ({GROUP}: {entry.name} = {entry.value})"


def _load(entry: EntryPoint, programs: Container[str]) -> PackageImage:
    source = _source(entry)
    if not _NAME.fullmatch(entry.name):
        raise Unusable(source, "its name must be at most 40 lower-case letters, digits and hyphens")
    try:
        files = dict(_files(entry.load(), ""))
    except Exception as e:
        # Loading runs code of the other package, which can raise anything.
        raise Unusable(source, f"cannot be read: {type(e).__name__}: {e}") from e
    if DOCKERFILE not in files:
        raise Unusable(source, f"is not a folder with a {DOCKERFILE}")
    if sum(map(len, files.values())) > LARGEST_FOLDER:
        raise Unusable(source, f"is larger than {LARGEST_FOLDER} bytes")
    declared = arguments(files[DOCKERFILE])
    if unknown := [name for name in program_names(declared) if name not in programs]:
        raise Unusable(source, f"requests unknown programs: {', '.join(unknown)}")
    if "BASE" not in declared:
        raise Unusable(
            source, "must be based on IronCurtain's base image: begin its Dockerfile with ARG BASE and FROM ${BASE}"
        )
    return PackageImage(files, entry.dist.version if entry.dist else "")


def _files(folder: Traversable | Any, above: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name in IGNORED:
            continue
        if entry.is_dir():
            yield from _files(entry, f"{above}{entry.name}/")
        else:
            yield f"{above}{entry.name}", entry.read_bytes()

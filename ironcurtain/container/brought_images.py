"""
The images that other packages bring: a folder of theirs for each.

A package brings one by an entry point of the group :data:`GROUP`: its name is the image's name, its object the folder.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator
from importlib import metadata
from importlib.resources.abc import Traversable
from typing import Any

from ironcurtain.container.image_context import arguments
from ironcurtain.container.image_plans import DOCKERFILE, Brought, program_names
from ironcurtain.errors import ConfigurationError

GROUP = "ironcurtain.images"
"""Group of the entry points."""

LARGEST_FOLDER = 64 * 1024 * 1024
"""Most bytes in an image's folder (it is read whole whenever an image is looked for)."""

IGNORED = frozenset(("__init__.py", "__pycache__"))
"""What makes a folder part of a Python package, and is not for the image."""

_NAME = re.compile(r"[a-z][a-z0-9-]{0,39}")


class Unusable(ConfigurationError):
    """A package's folder cannot be used for an image."""


def brought_images(
    entry_points: Iterable[metadata.EntryPoint], taken: Container[str], programs: Container[str]
) -> tuple[dict[str, Brought], dict[str, str]]:
    """
    :param entry_points: of the group :data:`GROUP`.
    :param taken: names of images that there are already.
    :param programs: names of the programs that can be asked for.
    :returns: the images, and why others cannot be used; both by name.
    :raises ConfigurationError: a name is there twice: nobody may put another image in the place of one that is known.
    """
    found: dict[str, Brought] = {}
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


def _load(entry: metadata.EntryPoint, programs: Container[str]) -> Brought:
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
    return Brought(files, entry.dist.version if entry.dist else "")


def _files(folder: Traversable | Any, above: str) -> Iterator[tuple[str, bytes]]:
    for entry in folder.iterdir():
        if entry.name in IGNORED:
            continue
        if entry.is_dir():
            yield from _files(entry, f"{above}{entry.name}/")
        else:
            yield f"{above}{entry.name}", entry.read_bytes()

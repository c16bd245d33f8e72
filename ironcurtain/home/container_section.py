"""The table ``[container]`` of ``config.toml``."""

from __future__ import annotations

import re
from typing import Literal

import msgspec

from ironcurtain.home.sections import Section

Language = Literal["cpp", "go", "jvm", "node", "python", "rust"]
"""A preset of packages for a language."""

_PINNED = re.compile(r"[^\s@]+@sha256:[0-9a-f]{64}")


class Foundation(Section, frozen=True):
    """
    What the agents' images stand on: at most one of three.

    :param base: an image.
    :param dockerfile: a Dockerfile: a person's own by an absolute path or one that begins with ``~``, else one of the
        project.
    :param devcontainer: whether a project's ``devcontainer.json`` is used; ``None``: a person is asked.
    :param build_network: what the steps of that Dockerfile can reach; ``none`` or, as all that this machine reaches,
        ``default``.
    :param image: published images of agents, used in place of those that are built here.
    """

    base: str = ""
    dockerfile: str = ""
    devcontainer: bool | None = None
    build_network: Literal["none", "default"] = "none"
    image: str | tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if sum((bool(self.base), bool(self.dockerfile), self.devcontainer is True)) > 1:
            raise ValueError("give one of base, dockerfile and devcontainer = true")
        for reference in self.images:
            check_pinned(reference)

    @property
    def chooses(self) -> bool:
        """Whether it says what images stand on."""
        return bool(self.base or self.dockerfile or self.devcontainer is not None)

    @property
    def images(self) -> tuple[str, ...]:
        """The published images."""
        return tuple(filter(None, (self.image,))) if isinstance(self.image, str) else self.image


class ProjectContainer(Foundation, frozen=True):
    """
    What differs for one project, the table ``[container.projects."PATH"]``.

    :param languages: ``None``: those of ``[container]``.
    """

    languages: tuple[Language, ...] | None = None


class ContainerSettings(Foundation, frozen=True):
    """
    The images of agents.

    :param languages: the presets that their base gets.
    :param projects: by path of the project, which can begin with ``~``.
    """

    languages: tuple[Language, ...] = ("cpp", "node", "python")
    projects: dict[str, ProjectContainer] = msgspec.field(default_factory=dict)

    def __post_init__(self) -> None:
        super().__post_init__()
        for path in self.projects:
            if not path.startswith(("/", "~")):
                raise ValueError(f"the path of a project is absolute, or begins with ~, and {path!r} is neither")


def check_pinned(reference: str) -> None:
    """:raises ValueError: a reference to an image does not name its content."""
    if not _PINNED.fullmatch(reference):
        raise ValueError(
            f"{reference!r} does not say which content: a tag can be moved to another image. Show its digest with "
            f"'ironcurtain images digest {reference.partition('@')[0]}', and give NAME@sha256:DIGEST"
        )

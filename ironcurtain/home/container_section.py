"""The table ``[container]`` of ``config.toml``."""

from __future__ import annotations

from typing import Literal

from ironcurtain.home.sections import Section

Language = Literal["cpp", "go", "jvm", "node", "python", "rust"]
"""A preset of packages for a language."""


class ContainerSettings(Section, frozen=True):
    """
    The base of the agents' images.

    :param base: the image on which it stands; empty: the one that comes with IronCurtain.
    :param languages: the presets that it gets.
    """

    base: str = ""
    languages: tuple[Language, ...] = ("cpp", "node", "python")

"""The agents' real images for tests, which stay in the Engine: built when a test first needs them."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import cache

from msgspec.structs import replace
from twisted.internet import reactor

from ironcurtain.container.engine import Engine
from ironcurtain.container.image_choices import Choices, find_choices, shipped_folders, shipped_programs
from ironcurtain.container.image_plans import Recipes
from ironcurtain.container.images import AgentImages
from ironcurtain.home.container_section import ContainerSettings
from tests import engine as test_engine
from tests.base_image import base_image

KEPT = ("NPM_CONFIG_REGISTRY", "NPM_CONFIG_CAFILE", "NODE_EXTRA_CA_CERTS", "npm_config_registry", "npm_config_cafile")
"""Variables that say where and how programs are fetched."""


@cache
def choices() -> Choices:
    """:returns: this machine's, but with an image to stand on that is made here, and a network that is always there."""
    return replace(find_choices(os.environ, ContainerSettings(languages=())), source=base_image(), network="host")


@cache
def recipes() -> Recipes:
    """:returns: the images as they are shipped."""
    return Recipes(shipped_folders(), shipped_programs())


async def agent_image(agent: str, progress: Callable[[str], None] = lambda line: None) -> str:
    """:returns: a reference to the image of an agent, which the Engine has."""
    return await AgentImages(Engine(reactor, test_engine.engine()), recipes(), choices()).ensure(agent, progress)


def environment() -> dict[str, str]:
    """:returns: what lets the product's own commands find and build the same images."""
    return {
        **test_engine.environment(),
        "IRONCURTAIN_IMAGES_BASE": base_image(),
        "IRONCURTAIN_IMAGES_LANGUAGES": "",
        "IRONCURTAIN_IMAGES_NETWORK": choices().network,
        **{name: os.environ[name] for name in KEPT if name in os.environ},
    }

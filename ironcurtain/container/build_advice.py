"""What to do about an image that cannot be built, as far as the Engine's words show the reason."""

from __future__ import annotations

import re

_UNRESOLVED = re.compile(
    r"temporary failure (in name resolution|resolving)|(could ?n.t|could not|unable to|cannot) resolve|no such host|"
    r"name or service not known|bad address|network (is )?unreachable|EAI_AGAIN|ENOTFOUND",
    re.IGNORECASE,
)
_BUILDKIT = re.compile(r"BuildKit|unknown flag")
_NO_INSTRUCTION = "unknown instruction"
_HERE_DOCUMENT = "<<"
_NO_APT = re.compile(r"apt-get: (command )?not found|\"/bin/sh\"[^\n]*no such file")
_FULL = re.compile(r"no space left on device|disk quota exceeded", re.IGNORECASE)

ANOTHER = "To use another one, change FROM in its Dockerfile, image in its devcontainer.json, or base in config.toml."
"""About an image to stand on that cannot be used."""

ROOM = "The Engine's disk is full. To make room: ironcurtain images prune, or docker system prune."
CLASSIC = "The Engine's classic builder builds, without BuildKit: RUN --mount and here-documents do not work."
NO_NETWORK = (
    "Steps of a project's Dockerfile have no network. To give them this machine's, set build_network = \"default\" "
    "beside dockerfile or devcontainer in config.toml."
)
NO_NAMES = (
    "Builds need a network with a name server. If this Engine's containers have none, use this machine's: export "
    "IRONCURTAIN_IMAGES_NETWORK=host"
)


def advice(said: str, dockerfile: str, network: str, source: str = "") -> str:
    """
    :param said: the Engine's reason, and the last lines of the build.
    :param dockerfile: its text.
    :param network: what its steps could reach: ``none`` for those of a project, else ``default`` or ``host``.
    :param source: the image on which IronCurtain's own base image stands; empty: another image was built.
    :returns: a sentence for people; empty: nothing is known.
    """
    if _FULL.search(said):
        return ROOM
    if source and _NO_APT.search(said):
        return (
            f"Agents' images stand on what has a shell and apt, as Debian and Ubuntu have; {source} has not. {ANOTHER}"
        )
    if _UNRESOLVED.search(said):
        return {"none": NO_NETWORK, "default": NO_NAMES}.get(network, "")
    if _BUILDKIT.search(said) or (_NO_INSTRUCTION in said and _HERE_DOCUMENT in dockerfile):
        return CLASSIC
    return ""

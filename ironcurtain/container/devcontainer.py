"""
Read a project's ``devcontainer.json`` as data: what an agent's image can take from it, and what it cannot.

Nothing in it is run, and nothing in it opens the container: a project may have been written by an agent, or by anybody.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.json_comments import plain_json
from ironcurtain.text.display import json_line

PLACES = (".devcontainer/devcontainer.json", ".devcontainer.json")
"""Where projects have the file."""

CONFINED = "every agent's container has the same limits, which nothing in a project changes"
ELSEWHERE = "IronCurtain chooses the user, the workspace's path and the main program"

IGNORED: Mapping[str, str] = {
    **dict.fromkeys(("runArgs", "mounts", "privileged", "capAdd", "securityOpt", "init", "gpu"), CONFINED),
    **dict.fromkeys(("containerUser", "remoteUser", "updateRemoteUserUID"), ELSEWHERE),
    **dict.fromkeys(("workspaceMount", "workspaceFolder", "overrideCommand", "shutdownAction"), ELSEWHERE),
    **dict.fromkeys(("forwardPorts", "appPort"), "containers have no network"),
    "remoteEnv": "use containerEnv",
    "secrets": "secrets of this machine do not get into containers",
    "features": (
        "features are not supported: name languages under [container] in config.toml, or install what is missing in "
        "a Dockerfile"
    ),
}
"""Members that have no effect, each with the reason."""

COMMANDS = (
    *("initializeCommand", "onCreateCommand", "updateContentCommand"),
    *("postCreateCommand", "postStartCommand", "postAttachCommand"),
)
"""Members with commands."""

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUBSTITUTED = "${"


class Devcontainer(msgspec.Struct, frozen=True):
    """
    What an image can take from the file.

    :param image: the image to stand on; empty: there is a Dockerfile.
    :param dockerfile: path of the Dockerfile below the project; empty: there is an image.
    :param context: path below the project of the directory that it copies from; empty: the project.
    :param arguments: build arguments.
    :param target: the stage of the Dockerfile that is built; empty: the last one.
    :param environment: variables for the agent's programs.
    :param left_out: what has no effect, in sentences.
    :param commands: what the file wants to be run, as text by member. Nobody runs it.
    """

    image: str
    dockerfile: str
    context: str
    arguments: Mapping[str, str] = msgspec.field(default_factory=dict)
    target: str = ""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    commands: Mapping[str, str] = msgspec.field(default_factory=dict)


def read_devcontainer(source: str, place: str, text: str) -> Devcontainer:
    """
    :param source: the file, for messages.
    :param place: its path below the project.
    :param text: its content: JSON with comments.
    :raises ConfigurationError: it is wrong, or describes what an agent's image cannot be.
    """
    try:
        parsed = msgspec.json.decode(plain_json(source, text).removeprefix("\ufeff"))
    except (msgspec.DecodeError, RecursionError) as e:
        raise ConfigurationError(source, f"is not JSON: {e}") from None
    if not isinstance(parsed, dict):
        raise ConfigurationError(source, "must be an object")
    for member in ("dockerComposeFile", "service", "runServices"):
        if member in parsed:
            raise ConfigurationError(
                source, "Docker Compose is not supported: name an image or a Dockerfile in config.toml", field=member
            )
    build = parsed.get("build", {})
    if not isinstance(build, dict):
        raise ConfigurationError(source, "must be an object", field="build")
    image = _text(source, parsed, "image")
    dockerfile = _text(source, build, "dockerfile", "build.") or _text(source, parsed, "dockerFile")
    if bool(image) == bool(dockerfile):
        raise ConfigurationError(source, "needs either image or build.dockerfile")
    folder = posixpath.dirname(place)
    context = _text(source, build, "context", "build.") or _text(source, parsed, "context") or "."
    environment, lacking = _variables(source, parsed)
    return Devcontainer(
        image,
        dockerfile and below_project(source, "build.dockerfile", folder, dockerfile),
        below_project(source, "build.context", folder, context) if dockerfile else "",
        _texts(source, build, "args", "build."),
        _text(source, build, "target", "build."),
        environment,
        (*_left_out(parsed, build), *lacking),
        {member: _command(parsed[member]) for member in COMMANDS if parsed.get(member)},
    )


def below_project(source: str, member: str, folder: str, path: str) -> str:
    """
    :param folder: a directory below the project.
    :param path: relative to it.
    :returns: the path below the project; empty for the project itself.
    :raises ConfigurationError: it is outside.
    """
    normal = posixpath.normpath(posixpath.join(folder, path))
    if posixpath.isabs(normal) or normal.split("/")[0] == "..":
        raise ConfigurationError(source, f"{path} is outside the project", field=member)
    return "" if normal == "." else normal


def _left_out(parsed: Mapping[str, Any], build: Mapping[str, Any]) -> Iterator[str]:
    for member, reason in IGNORED.items():
        if parsed.get(member):
            yield f"{member} has no effect: {reason}"
    for member in ("options", "cacheFrom"):
        if build.get(member):
            yield f"build.{member} has no effect: {CONFINED if member == 'options' else 'builds use no other images'}"


def _variables(source: str, parsed: Mapping[str, Any]) -> tuple[dict[str, str], list[str]]:
    """:returns: the variables whose values are plain, and a sentence about each other one."""
    plain, left_out = {}, []
    for name, value in _texts(source, parsed, "containerEnv", substituted=True).items():
        if _SUBSTITUTED in value:
            left_out.append(f"containerEnv.{name} has no effect: variables of this machine do not get into containers")
        elif not _VARIABLE.fullmatch(name) or "\0" in value:
            raise ConfigurationError(source, "is not the name of a variable", field=f"containerEnv.{json_line(name)}")
        else:
            plain[name] = value
    return plain, left_out


def _text(source: str, members: Mapping[str, Any], name: str, above: str = "") -> str:
    value = members.get(name, "")
    if not isinstance(value, str):
        raise ConfigurationError(source, "must be text", field=f"{above}{name}")
    return _plain(source, value, f"{above}{name}")


def _texts(
    source: str, members: Mapping[str, Any], name: str, above: str = "", *, substituted: bool = False
) -> dict[str, str]:
    values = members.get(name) or {}
    if not isinstance(values, dict) or not all(isinstance(value, str) for value in values.values()):
        raise ConfigurationError(source, "must be an object of texts", field=f"{above}{name}")
    if substituted:
        return values
    return {key: _plain(source, value, f"{above}{name}.{key}") for key, value in values.items()}


def _plain(source: str, value: str, member: str) -> str:
    if _SUBSTITUTED in value:
        raise ConfigurationError(
            source, f"{json_line(value)}: variables of this machine do not get into images", field=member
        )
    return value


def _command(value: Any) -> str:
    return value if isinstance(value, str) else json_line(value)

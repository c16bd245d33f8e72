"""
Read a project's ``devcontainer.json`` as data: what an agent's image can take from it, and what it cannot.

Nothing in it opens the container, and reading it runs nothing: a project may have been written by an agent, or by
anybody.
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
    "initializeCommand": "it would run on this machine",
    "postAttachCommand": "no editor attaches; use postStartCommand",
    "remoteEnv": "use containerEnv",
    "secrets": "secrets of this machine do not get into containers",
    "features": (
        "features are not supported: name languages under [container] in config.toml, or install what is missing in "
        "a Dockerfile"
    ),
}
"""Members that have no effect, each with the reason."""

ONCE = ("onCreateCommand", "updateContentCommand", "postCreateCommand")
"""Members with commands for a new container, in the order in which they run."""

EACH_START = ("postStartCommand",)
"""Members with commands for each start of a container, which run after :data:`ONCE`."""

_FOLDER = re.compile(r"\$\{(?:container|local)WorkspaceFolder(?P<base>Basename)?\}")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SUBSTITUTED = "${"
_SHELL = ("/bin/sh", "-c")


class LifecycleCommand(msgspec.Struct, frozen=True):
    """
    A command that the file wants run inside the container.

    :param member: its member in the file.
    :param name: the name that it has there; empty: none.
    :param argv: program and arguments.
    """

    member: str
    name: str
    argv: tuple[str, ...]

    @property
    def title(self) -> str:
        """What it is called, not escaped."""
        return f"{self.member} {self.name}".rstrip()

    @property
    def text(self) -> str:
        """What it does, not escaped: a script of the shell as it is, else program and arguments as JSON."""
        return self.argv[-1] if self.argv[:-1] == _SHELL else json_line(self.argv)

    def argv_in(self, directory: str) -> tuple[str, ...]:
        """
        :param directory: the workspace's path for the agent.
        :returns: program and arguments, as they are run there.
        """
        return tuple(in_directory(word, directory) for word in self.argv)

    @property
    def is_once(self) -> bool:
        """Whether it is for a new container only."""
        return self.member in ONCE


class Devcontainer(msgspec.Struct, frozen=True):
    """
    What an image can take from the file.

    :param image: the image to stand on; empty: there is a Dockerfile.
    :param dockerfile: path of the Dockerfile below the project; empty: there is an image.
    :param context: path below the project of the directory that it copies from; empty: the project.
    :param arguments: build arguments.
    :param target: the stage of the Dockerfile that is built; empty: the last one.
    :param environment: variables for the agent's programs, for :func:`in_directory`.
    :param left_out: what has no effect, in sentences.
    :param commands: what the file wants to be run inside, in this order, by whoever got a person's agreement.
    """

    image: str
    dockerfile: str
    context: str
    arguments: Mapping[str, str] = msgspec.field(default_factory=dict)
    target: str = ""
    environment: Mapping[str, str] = msgspec.field(default_factory=dict)
    left_out: tuple[str, ...] = ()
    commands: tuple[LifecycleCommand, ...] = ()


def read_devcontainer(source: str, place: str, text: str) -> Devcontainer:
    """
    :param source: the file, for messages.
    :param place: its path below the project.
    :param text: its content: JSON with comments.
    :raises ConfigurationError: it is wrong, or describes what an agent's image cannot be.
    """
    try:
        parsed = msgspec.json.decode(plain_json(source, text))
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as e:
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
        tuple(_commands(source, parsed)),
    )


def in_directory(text: str, directory: str) -> str:
    """
    :param directory: the workspace's path for the agent.
    :returns: a text of the file, with that path, or its last part, for the variables that stand for it.
    """
    return _FOLDER.sub(lambda found: posixpath.basename(directory) if found["base"] else directory, text)


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
    """:returns: the variables whose values need nothing else of this machine, and a sentence about each other one."""
    plain, left_out = {}, []
    for name, value in _texts(source, parsed, "containerEnv", substituted=True).items():
        if _SUBSTITUTED in in_directory(value, ""):
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


def _commands(source: str, parsed: Mapping[str, Any]) -> Iterator[LifecycleCommand]:
    for member in (*ONCE, *EACH_START):
        value = parsed.get(member) or {}
        for name, each in value.items() if isinstance(value, dict) else [("", value)]:
            argv = (*_SHELL, each) if isinstance(each, str) else tuple(each) if isinstance(each, list) else ()
            if not all(argv) or not all(isinstance(word, str) and "\0" not in word for word in argv) or not argv:
                raise ConfigurationError(
                    source, "must be a command: text, or a list of texts", field=f"{member}.{name}".rstrip(".")
                )
            yield LifecycleCommand(member, name, argv)

"""
The settings of a loop: defaults, overridden by ``ralph.yml``, then by the command line; with the origin of each value.

The file has the keys of Ralph's, also in the older form without sections. Keys of Ralph that have no meaning here are
reported, so that nobody relies on them; one that limits something is refused.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml  # type: ignore[import-untyped, unused-ignore]

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.parsing import not_yaml, require_bounded
from ironcurtain.home.settings import flatten
from ironcurtain.home.structured import convert, refuse_zeros
from ironcurtain.loop.ralph import FLAT, SECTIONS, SIMILAR, bounds, flat_name
from ironcurtain.terminal.echo import Promise
from ironcurtain.text.display import one_line

FILE = "ralph.yml"
"""The default file."""

FILE_LIMIT = 64 * 1024
"""Most bytes of it: an agent can write it, and parsing takes seconds for a megabyte."""

ALIKE = 0.8
"""Similarity, up to 1, from which an unknown key counts as a typing error."""

_EMPTY = re.compile(r"Expected `str` matching .*")

NotNegative = Annotated[float, msgspec.Meta(ge=0, lt=1e9)]
Positive = Annotated[float, msgspec.Meta(gt=0, lt=1e9)]
Count = Annotated[int, msgspec.Meta(ge=1, lt=10**9)]
NotEmpty = Annotated[str, msgspec.Meta(pattern=r"\S")]


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    pass


class EventLoopSettings(_Section, frozen=True):
    """
    What to repeat, and until when.

    :param prompt: the text of the prompt; overrides the file.
    :param prompt_file: read before each iteration.
    :param completion_promise: the line that the agent prints when it is done, also in a tag ``<promise>``.
    :param max_runtime_seconds: of the complete loop; ``None``: no limit.
    :param max_cost_usd: of the complete loop; ``None``: no limit.
    :param max_consecutive_failures: the loop ends after so many failed iterations in a row.
    """

    prompt: str = ""
    prompt_file: NotEmpty = "PROMPT.md"
    completion_promise: NotEmpty = "LOOP_COMPLETE"
    max_iterations: Count = 100
    max_runtime_seconds: Positive | None = None
    max_cost_usd: Positive | None = None
    max_consecutive_failures: Count = 3

    def __post_init__(self) -> None:
        Promise(self.completion_promise)


class CliSettings(_Section, frozen=True):
    """
    What to run.

    :param backend: a name from :mod:`ironcurtain.loop.host`.
    :param pty_mode: whether it gets a terminal.
    :param pty_interactive: whether it gets the terminal's input.
    :param idle_timeout_secs: seconds without output and input after which it is ended, in a terminal; 0: never.
    """

    backend: str = "claude"
    pty_mode: bool = False
    pty_interactive: bool = True
    idle_timeout_secs: NotNegative = 30


ONLY_FLAGS = ("loop.agent", "loop.command")
"""
Settings that a file must not contain: an agent can change files of its workspace, and must not choose what runs outside
of it.
"""


class OwnSettings(_Section, frozen=True):
    """
    Settings that Ralph does not have.

    :param agent: an agent that runs in a container, instead of ``cli.backend``.
    :param command: a command of this machine, instead of it.
    :param git_checkpoint: whether to commit the changes of each iteration.
    :param wait_for_limits: whether to wait until a limit of the agent's account ends, instead of failing.
    """

    agent: str = ""
    command: tuple[str, ...] = ()
    git_checkpoint: bool = False
    wait_for_limits: bool = False


class LoopSettings(_Section, frozen=True):
    """All settings."""

    event_loop: EventLoopSettings = EventLoopSettings()
    cli: CliSettings = CliSettings()
    loop: OwnSettings = OwnSettings()


class SettingsLayer(msgspec.Struct, frozen=True):
    """
    Values from one source.

    :param source: for origins and messages.
    :param values: by dotted name.
    """

    source: str
    values: Mapping[str, Any]


class LoopConfiguration(msgspec.Struct, frozen=True):
    """
    The settings with their origins.

    :param origins: for each dotted name.
    :param warnings: for people.
    """

    settings: LoopSettings
    origins: Mapping[str, str]
    warnings: tuple[str, ...] = ()


def read_file(source: str, text: str) -> tuple[SettingsLayer, tuple[str, ...]]:
    """
    :param source: the file's name, for messages.
    :returns: the values that it sets; and a warning for each key that has no meaning here.
    :raises ConfigurationError: it is not YAML, has aliases, a value is wrong, a key looks like a typing error or occurs
        twice, or it sets a limit that does not exist here.
    """
    try:
        require_bounded(source, text)
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        parsed = loader.construct_document(node) if node is not None else {}
    except (yaml.YAMLError, ValueError, RecursionError) as e:
        raise not_yaml(source, e) from None
    if not isinstance(parsed, dict | None):
        raise ConfigurationError(source, "must contain sections with settings, such as 'event_loop:'")
    lines: dict[str, int] = {}
    for name, line in _lines(node):
        if name in lines:
            raise ConfigurationError(source, f"is also in line {lines[name]}: keep one", field=name, line=line)
        lines[name] = line
    values: dict[str, Any] = {}
    warnings: list[str] = []
    for key, name, value in _known(source, parsed or {}, lines, warnings):
        if name in values:
            detail = f"sets {name} again: keep one"
            raise ConfigurationError(source, detail, field=key, line=lines.get(key))
        values[name] = value
        lines.setdefault(name, lines.get(key, 1))
    _checked(source, values, lines)
    if (file := Path(values.get("event_loop.prompt_file", ""))).is_absolute() or ".." in file.parts:
        detail = "must be a file in the workspace: use --prompt-file for another one"
        name = "event_loop.prompt_file"
        raise ConfigurationError(source, detail, field=name, line=lines.get(name))
    return SettingsLayer(source, values), tuple(warnings)


def configured(*layers: SettingsLayer, warnings: tuple[str, ...] = ()) -> LoopConfiguration:
    """
    :param layers: later ones override earlier ones.
    :raises ConfigurationError: a value is wrong.
    """
    values = dict(flatten(LoopSettings()))
    origins = dict.fromkeys(values, "default")
    for layer in layers:
        _checked(layer.source, layer.values, {})
        values.update(layer.values)
        origins.update(dict.fromkeys(layer.values, layer.source))
    return LoopConfiguration(_build(values), origins, warnings)


def values_of(settings: LoopSettings) -> dict[str, Any]:
    """:returns: all values, by dotted name, as they are stored with a session."""
    return {name: list(value) if isinstance(value, tuple) else value for name, value in flatten(settings)}


def _known(
    source: str, parsed: dict[Any, Any], lines: Mapping[str, int], warnings: list[str]
) -> Iterator[tuple[str, str, Any]]:
    """:returns: each key as it is written, the setting that it means, and the value."""
    names = dict(flatten(LoopSettings()))
    sections = {name.partition(".")[0] for name in names}
    for section, members in parsed.items():
        if section not in sections and (meant := flat_name(str(section), names)):
            if not (meant == "cli.backend" and members == "auto"):  # Ralph's word for the agent that it finds
                yield str(section), meant, members
        elif section not in sections:
            leaves = (name.partition(".") for name in names)
            plain = {leaf for section, _, leaf in leaves if section in SECTIONS} | FLAT.keys() | sections
            _unknown(source, str(section), members, plain, lines, warnings)
        elif not isinstance(members, dict | None):
            raise ConfigurationError(
                source, "must contain settings, one per line", field=section, line=lines.get(section)
            )
        for key, value in (members or {}).items() if section in sections else ():
            if (name := f"{section}.{key}") in ONLY_FLAGS:
                detail = "can only be given on the command line"
                raise ConfigurationError(source, detail, field=name, line=lines.get(name))
            if name in names:
                yield name, name, value
            else:
                _unknown(source, name, value, set(names), lines, warnings)


def _unknown(
    source: str, name: str, value: Any, known: set[str], lines: Mapping[str, int], warnings: list[str]
) -> None:
    if name not in SIMILAR and (meant := difflib.get_close_matches(name, known, 1, ALIKE)):
        detail = f"there is no such setting: did you mean {meant[0]}?"
        raise ConfigurationError(source, detail, field=name, line=lines.get(name))
    for limit in bounds(name, value):
        detail = "this limit cannot be kept here: remove it, and set another, such as event_loop.max_runtime_seconds"
        raise ConfigurationError(source, detail, field=limit, line=_nearest_line(lines, limit))
    warnings.append(f"{source}:{lines.get(name, 1)}: {one_line(name, 200)} has no meaning here and is ignored")


def _nearest_line(lines: Mapping[str, int], name: str) -> int | None:
    while name and name not in lines:
        name = name.rpartition(".")[0]
    return lines.get(name)


def _checked(source: str, values: Mapping[str, Any], lines: Mapping[str, int]) -> None:
    for name, value in values.items():
        try:
            refuse_zeros(source, value)
            convert(source, _nested({name: value}), LoopSettings)
        except ConfigurationError as e:
            detail = "must not be empty" if _EMPTY.fullmatch(e.detail) else e.detail
            raise ConfigurationError(source, detail, field=name, line=lines.get(name)) from None


def _build(values: Mapping[str, Any]) -> LoopSettings:
    return msgspec.convert(_nested(values), LoopSettings)


def _nested(values: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    nested: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        section, _, key = name.partition(".")
        nested.setdefault(section, {})[key] = value
    return nested


def _lines(node: Any, prefix: str = "") -> Iterator[tuple[str, int]]:
    """:returns: the line of each key."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        name = f"{prefix}.{key.value}" if prefix else str(key.value)
        yield name, key.start_mark.line + 1
        if not prefix:
            yield from _lines(value, name)

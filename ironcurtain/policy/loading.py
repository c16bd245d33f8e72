"""
Load policies and annotations from files: ``policy.toml``, and the JSON files of a compiled policy.

Anything that is not valid is an error that names the file, the field and, in TOML, the line. Nothing is ignored, since
a rule without one of its conditions would be a different rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct

from ironcurtain.errors import ConfigurationError
from ironcurtain.home.faults import wrong
from ironcurtain.home.json_comments import plain_json
from ironcurtain.home.layout import read_configuration
from ironcurtain.home.lines import Place
from ironcurtain.home.parsing import parse_json, parse_toml
from ironcurtain.home.structured import check_version, convert
from ironcurtain.policy.annotations import Annotations, Conditional, ServerAnnotations, ToolAnnotation
from ironcurtain.policy.approval_tables import desktop_rules
from ironcurtain.policy.lists import DynamicList
from ironcurtain.policy.named_paths import WrongPath, directory_of
from ironcurtain.policy.roles import Role
from ironcurtain.policy.rules import Policy, Rule

FORMAT_VERSION = 1
"""The newest version of ``policy.toml`` that this module reads."""

DATA = Path(__file__).parent / "data"
"""The files that are installed with IronCurtain."""

DEFAULT_POLICY = DATA / "default-policy.toml"
"""The policy that applies if the user has not written one."""

DYNAMIC_LISTS = "dynamic-lists.json"
TOOL_ANNOTATIONS = "tool-annotations.json"
"""Names of the files with the lists and annotations of a compiled policy, in the same directory."""

_T = TypeVar("_T")
_Roles = tuple[Role, ...] | Conditional


class _Document(Struct, frozen=True, forbid_unknown_fields=True):
    """The top level of a policy. Its named parts are converted one by one, so that error messages can name them."""

    rules: tuple[Any, ...] = ()
    protected: tuple[str, ...] = ()
    version: int = FORMAT_VERSION
    annotations: tuple[str, ...] = ()
    tools: dict[str, dict[str, Any]] = {}
    lists: dict[str, Any] = {}
    approval: dict[str, Any] = {}


class _CompiledDocument(Struct, frozen=True):
    """The top level of a compiled policy. Other fields are metadata."""

    rules: tuple[Any, ...]
    protected: tuple[str, ...] = ()
    lists: dict[str, Any] = {}


class _ListsDocument(Struct, frozen=True):
    """The top level of a file of lists. Other fields are metadata."""

    lists: dict[str, Any] = {}


class _List(DynamicList, frozen=True, forbid_unknown_fields=True):
    """A list in TOML."""


class _Tool(Struct, frozen=True, forbid_unknown_fields=True):
    """A tool in TOML."""

    args: dict[str, Any]
    comment: str = ""


class _AnyTool(Struct, frozen=True):
    """A tool in JSON. Other fields are metadata."""

    name: str = msgspec.field(name="toolName")
    args: dict[str, Any]
    comment: str = ""


class _AnyServer(Struct, frozen=True):
    tools: tuple[_AnyTool, ...] = ()


class _AnnotationsDocument(Struct, frozen=True):
    servers: dict[str, Any]


class _Source:
    """A file and its text, for error messages."""

    def __init__(self, name: str, text: str = "") -> None:
        self.name, self.text = name, text

    def convert(self, value: Any, kind: type[_T] | Any, place: Place = ()) -> _T:
        """
        Convert parsed data to a structure.

        :param place: the path of the data within the file.
        :raises ConfigurationError: the data does not match the schema.
        """
        converted: _T = convert(self.name, value, kind, self.text, place)
        return converted


def load_policy(path: str | Path) -> Policy:
    """
    Load a policy.

    :param path: a ``.toml`` file, or a ``.json`` file with a compiled policy. The lists and annotations of a compiled
        policy are loaded too if they are in the same directory.
    :raises ConfigurationError: the file, or one that it names, does not exist or is not valid.
    """
    path = Path(path)
    return _load_json(path) if path.suffix == ".json" else _load_toml(path)


def load_annotations(path: str | Path) -> Annotations:
    """
    Load a ``tool-annotations.json``.

    :raises ConfigurationError: the file does not exist or is not valid.
    """
    source, data = _read_json(Path(path))
    return _annotations(source, data)


@cache
def default_policy() -> Policy:
    """:returns: the policy that applies if the user has not written one."""
    return load_policy(DEFAULT_POLICY)


@cache
def default_annotations() -> Annotations:
    """:returns: the annotations of common servers, which are installed with IronCurtain."""
    return load_annotations(DATA / TOOL_ANNOTATIONS)


def compiled_policy(data: Mapping[str, Any], name: str = "policy") -> Policy:
    """
    Convert a compiled policy that is in memory.

    :param data: its fields ``rules``, ``protected`` and ``lists``. Others are metadata.
    :param name: the name of the policy in messages.
    :raises ConfigurationError: the policy is not valid.
    """
    source = _Source(name)
    document: _CompiledDocument = source.convert(dict(data), _CompiledDocument)
    return Policy(
        rules=_rules(source, document.rules),
        protected=_protected(source, document.protected),
        lists=_lists(source, document.lists, DynamicList),
        source=name,
    )


def tool_annotations(data: Mapping[str, Any], name: str = "annotations") -> Annotations:
    """
    Convert annotations that are in memory.

    :raises ConfigurationError: the annotations are not valid.
    """
    return _annotations(_Source(name), dict(data))


def _load_json(path: Path) -> Policy:
    source, data = _read_json(path)
    lists, annotations = path.with_name(DYNAMIC_LISTS), path.with_name(TOOL_ANNOTATIONS)
    policy = compiled_policy(source.convert(data, dict[str, Any]), source.name)
    if lists.exists():
        lists_source, lists_data = _read_json(lists)
        document: _ListsDocument = lists_source.convert(lists_data, _ListsDocument)
        read = _lists(lists_source, document.lists, DynamicList)
        policy = msgspec.structs.replace(policy, lists={**read, **policy.lists})
    if annotations.exists():
        policy = msgspec.structs.replace(policy, annotations=load_annotations(annotations))
    return policy


def _load_toml(path: Path) -> Policy:
    text = _read(path)
    source = _Source(str(path), text)
    data = parse_toml(source.name, text)
    check_version(source.name, data, FORMAT_VERSION, text)
    document: _Document = source.convert(data, _Document)
    found = Annotations()
    for name in document.annotations:
        found = found.merged(load_annotations(path.parent / name))
    return Policy(
        rules=_rules(source, document.rules),
        protected=_protected(source, document.protected),
        lists=_lists(source, document.lists, _List),
        annotations=found.merged(_inline_annotations(source, document.tools)),
        approval=document.approval,
        tables=desktop_rules(document.approval, source.name, text),
        source=source.name,
    )


def _rules(source: _Source, rules: Sequence[Any]) -> tuple[Rule, ...]:
    return tuple(source.convert(rule, Rule, ("rules", index)) for index, rule in enumerate(rules))


def _protected(source: _Source, paths: tuple[str, ...]) -> tuple[str, ...]:
    read = []
    for index, path in enumerate(paths):
        try:
            read.append(directory_of(path))
        except WrongPath as e:
            raise wrong(source.name, f"{path!r}: {e}", source.text, ("protected", index)) from None
    return tuple(read)


def _lists(source: _Source, lists: Mapping[str, Any], kind: type[DynamicList]) -> dict[str, DynamicList]:
    return {name: source.convert(raw, kind, ("lists", name)) for name, raw in lists.items()}


def _inline_annotations(source: _Source, tools: Mapping[str, Mapping[str, Any]]) -> Annotations:
    servers = {}
    for server, raw_tools in tools.items():
        found = []
        for name, raw in raw_tools.items():
            tool: _Tool = source.convert(raw, _Tool, ("tools", server, name))
            arguments = _arguments(source, tool.args, ("tools", server, name, "args"))
            found.append(ToolAnnotation(name, arguments, tool.comment))
        servers[server] = ServerAnnotations(tuple(found))
    return Annotations(servers)


def _annotations(source: _Source, data: Any) -> Annotations:
    document: _AnnotationsDocument = source.convert(data, _AnnotationsDocument)
    servers = {}
    for server, raw in document.servers.items():
        place = ("servers", server)
        converted: _AnyServer = source.convert(raw, _AnyServer, place)
        servers[server] = ServerAnnotations(
            tuple(
                ToolAnnotation(tool.name, _arguments(source, tool.args, (*place, "tools", index, "args")), tool.comment)
                for index, tool in enumerate(converted.tools)
            )
        )
    return Annotations(servers)


def _arguments(source: _Source, arguments: Mapping[str, Any], place: Place) -> dict[str, _Roles]:
    try:
        converted: dict[str, _Roles] = source.convert(arguments, dict[str, _Roles], place)
    except ConfigurationError:  # which argument is wrong is known only if each is converted by itself, as is slow
        return {name: source.convert(roles, _Roles, (*place, name)) for name, roles in arguments.items()}
    return converted


def _read_json(path: Path) -> tuple[_Source, Any]:
    return _Source(str(path)), parse_json(str(path), plain_json(str(path), _read(path)))


def _read(path: Path) -> str:
    if (text := read_configuration(path)) is None:
        raise ConfigurationError(str(path), "the file does not exist")
    return text

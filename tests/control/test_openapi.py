"""``docs/control-api.yaml`` describes the API that is served: its routes, parameters, statuses and schemas."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.control import calls, server, wire
from ironcurtain.operations.model import EscalationView, PermissionView, Reloaded
from ironcurtain.session.events import Stamped
from ironcurtain.session.model import Cancelled, SessionInfo, Ticket, Turn
from ironcurtain.session.snapshots import UndoReport

FILE = Path(__file__).parents[2] / "docs" / "control-api.yaml"

SCHEMAS = "  schemas:\n"
"""What stands before the schemas, which end the file."""

TRAVELLING = (
    SessionInfo,
    Turn,
    Cancelled,
    calls._Reply,
    EscalationView,
    PermissionView,
    Stamped,
    Ticket,
    Reloaded,
    UndoReport,
    wire.StartBody,
    wire.AttachBody,
    wire.MessageBody,
    wire.UndoBody,
    wire.WithdrawBody,
    wire.DecisionBody,
    wire.AnswerBody,
    wire.ShownBody,
    wire.DenyAllBody,
    wire._ErrorBody,
)
"""What stands in bodies and events."""

EXAMPLES = {"{name}": "12", "{number}": "7"}
"""A value for each parameter of a path."""


def schemas() -> str:
    """:returns: the schemas of all that travels, as they have to stand in the file."""
    _, found = msgspec.json.schema_components(TRAVELLING, ref_template="#/components/schemas/{name}")
    named = {name.removeprefix("_"): _for_readers(schema) for name, schema in found.items()}
    return "".join(f"{line}\n" for line in _yaml(named, 4)).replace("/schemas/_", "/schemas/")


def _for_readers(schema: Any) -> Any:
    """:returns: the schema without titles, and of each description the first paragraph."""
    if isinstance(schema, list):
        return [_for_readers(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    kept = {key: _for_readers(value) for key, value in schema.items() if key != "title" or isinstance(value, dict)}
    if isinstance(text := kept.get("description"), str):
        kept["description"] = " ".join(text.split("\n\n")[0].split()).replace("``", "'")
    return kept


def _yaml(value: Any, indent: int) -> Iterator[str]:
    """:returns: the lines of a block of YAML; what holds nothing further is written as JSON, which is YAML too."""
    space = " " * indent
    for key, member in value.items() if isinstance(value, dict) else (("-", member) for member in value):
        name = key if key == "-" else f"{key}:"
        if _holds_more(member):
            yield f"{space}{name}"
            yield from _yaml(member, indent + 2)
        else:
            yield f"{space}{name} {json.dumps(member)}"


def _holds_more(member: Any) -> bool:
    if isinstance(member, dict):
        return len(json.dumps(member)) > 100 or any(isinstance(each, dict | list) for each in member.values())
    return isinstance(member, list) and any(isinstance(each, dict | list) for each in member)


def operations(text: str) -> dict[tuple[str, str], str]:
    """:returns: method and path of each operation in the file, with its part of the text."""
    found: dict[tuple[str, str], str] = {}
    for path, members in re.findall(r"^  (/\S+):\n((?:    .*\n)+)", text, re.MULTILINE):
        for method, part in re.findall(r"^    (get|post|put|delete|patch):\n((?:      .*\n)+)", members, re.MULTILINE):
            found[method.upper(), path] = part
    return found


class OpenApiTests(SynchronousTestCase):
    """The file against the program."""

    def setUp(self) -> None:
        self.head, _, self.schemas = FILE.read_text().partition(SCHEMAS)
        self.operations = operations(self.head)

    def test_every_route_is_described_and_every_description_has_its_route(self) -> None:
        left = list(server._ROUTES)
        for method, path in self.operations:
            concrete = re.sub(r"\{\w+\}", lambda parameter: EXAMPLES[parameter.group()], path)
            fitting = [r for r in server._ROUTES if r[0].decode() == method and r[1].fullmatch(concrete)]
            self.assertEqual(len(fitting), 1, f"{method} {path}")
            left.remove(fitting[0])
        self.assertEqual([(method, pattern.pattern) for method, pattern, _ in left], [])

    def test_the_parameters_of_queries(self) -> None:
        handlers = {route[2]: route for route in server._ROUTES}
        for handler, (method, pattern, _) in handlers.items():
            read = set(re.findall(r'_number\(request, b"(\w+)"\)', inspect.getsource(handler)))
            [part] = [
                part
                for (described, path), part in self.operations.items()
                if described == method.decode() and pattern.fullmatch(re.sub(r"\{\w+\}", "1", path))
            ]
            self.assertEqual(set(re.findall(r"name: (\w+), in: query", part)), read, pattern.pattern)

    def test_the_bodies(self) -> None:
        for handler, body in (
            (server._start, wire.StartBody),
            (server._terminal, wire.AttachBody),
            (server._send, wire.MessageBody),
            (server._withdraw, wire.WithdrawBody),
            (server._decide, wire.DecisionBody),
            (server._shown, wire.ShownBody),
            (server._deny_all, wire.DenyAllBody),
        ):
            name = body.__name__
            self.assertIn(f"wire.{name}", inspect.getsource(handler))
            self.assertEqual(sum(f"schemas/{name}" in part for part in self.operations.values()), 1, name)

    def test_the_statuses_of_errors(self) -> None:
        described = set(re.findall(r'^        "(\d+)":', self.head, re.MULTILINE))
        self.assertEqual(described, {"200", "500", *(str(status) for _, status in wire._STATUS)})

    def test_the_schemas_are_those_of_what_travels(self) -> None:
        self.assertEqual(self.schemas, schemas(), f"put this after {SCHEMAS.strip()} in {FILE.name}:\n{schemas()}")

    def test_every_schema_that_is_named_is_there(self) -> None:
        there = set(re.findall(r"^    (\w+):", self.schemas, re.MULTILINE))
        named = set(re.findall(r"#/components/schemas/(\w+)", FILE.read_text()))
        self.assertEqual(named - there, set())

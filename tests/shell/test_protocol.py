from __future__ import annotations

import contextlib
import json
from pathlib import Path
from typing import Any, get_args, get_type_hints

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.shell.messages import Action, Approval, Instruct, Interrupt, Message, ProposedStep
from ironcurtain.shell.protocol import (
    INSTRUCTION_LIMIT,
    LINE_LIMIT,
    InputLines,
    decode_action,
    encode,
    instruction_lines,
    schema,
)

FILE = Path(__file__).parents[2] / "docs" / "shell-protocol.json"

KNOWN: dict[object, st.SearchStrategy[Any]] = {
    float | None: st.none() | st.floats(allow_nan=False, allow_infinity=False),
    float: st.floats(min_value=0.5, max_value=86400.0),
    int | None: st.none() | st.integers(-(2**63), 2**63 - 1),
    int: st.integers(-(2**63), 2**63 - 1),
    dict[str, Any]: st.dictionaries(st.text(), st.text() | st.booleans() | st.lists(st.text())),
}
"""Types of which JSON cannot say every value."""


def built(kind: Any) -> st.SearchStrategy[Any]:
    """:returns: any objects of a class of messages."""
    hints = get_type_hints(kind)
    return st.builds(kind, **{name: values(hints[name]) for name in kind.__struct_fields__})


def values(hint: Any) -> st.SearchStrategy[Any]:
    """:returns: any values of a type."""
    if hint is ProposedStep:
        return built(ProposedStep)
    if hint == tuple[ProposedStep, ...]:
        return st.lists(built(ProposedStep), max_size=3).map(tuple)
    return KNOWN[hint] if hint in KNOWN else st.from_type(hint)


messages = st.one_of([built(kind) for kind in get_args(Message)])
actions = st.one_of([built(kind) for kind in get_args(Action)])
lines = actions.map(lambda action: msgspec.json.encode(action))
parts = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(("type", "text", "step")), inner),
    max_leaves=8,
)
said = st.text("ab #!", max_size=9).map(lambda text: text.strip().lstrip("#").strip()).filter(bool)


class InputTests(SynchronousTestCase):
    """Lines in pieces."""

    @given(st.lists(st.binary(max_size=6).map(lambda line: line.replace(b"\n", b"")), max_size=6), st.data())
    def test_any_slicing_gives_the_same_lines_and_the_last_needs_no_end(self, said: list[bytes], data: Any) -> None:
        stream = b"\n".join(said)
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=4)))
        reader, found = InputLines(), list[bytes | None]()
        for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
            found += reader.feed(stream[start:end])
        found += reader.end()
        expected = said[:-1] if said and not said[-1] else said
        self.assertEqual(found, expected)

    def test_of_a_line_that_is_too_long_nothing_is_kept(self) -> None:
        reader, block = InputLines(), b"x" * (LINE_LIMIT // 2)
        self.assertEqual([reader.feed(block) for _ in range(4)], [[]] * 4)
        self.assertEqual(reader.feed(b"\n# next\n"), [None, b"# next"])
        self.assertEqual(reader.feed(block * 3) + reader.end(), [None])

    def test_what_is_no_instruction_says_why(self) -> None:
        for line, why in (
            (None, "over 1048576 bytes"),
            (b"#", "is empty"),
            (b"#  ## ", "is empty"),
            (b'{"type":"instruction","text":" "}', "is empty"),
            (b"# \xff", "no UTF-8"),
            (b"\x00\xff\xfe", "neither JSON"),
            (b"# " + b"x" * INSTRUCTION_LIMIT + b"y", "put data into a file"),
        ):
            with self.assertRaisesRegex(UsageError, why):
                decode_action(line)


class LineTests(SynchronousTestCase):
    """Lines of both directions."""

    @given(messages)
    def test_a_message_is_one_line_of_json(self, message: Any) -> None:
        line = encode(message)
        self.assertEqual(line.count(b"\n"), 1)
        self.assertTrue(line.endswith(b"\n"))
        self.assertEqual(msgspec.json.decode(line, type=Message), message)

    @given(actions.filter(lambda action: not isinstance(action, Instruct) or action.text.strip()))
    def test_an_action_is_read_as_it_was_written(self, action: Any) -> None:
        if isinstance(action, Instruct):
            action = Instruct(text=action.text.strip())
        self.assertEqual(decode_action(msgspec.json.encode(action) + b"\r\n"), action)

    @given(st.binary() | parts.map(lambda part: json.dumps(part).encode()) | st.tuples(lines, lines).map(b"".join))
    @example(b"[" * 100_000)
    @example(b'{"type":' * 100_000)
    @example(b'{"type":"instruction","text":"\xff"}')
    @example(b'{"type":"steer","plan_id":"p1","context":"\\ud800"}')
    def test_nothing_else_than_a_usage_error_is_raised(self, line: bytes) -> None:
        with contextlib.suppress(UsageError):
            decode_action(line)

    def test_examples(self) -> None:
        for line, action in (
            (b"", None),
            (b" \t\r\n", None),
            (b"# free some space \n", Instruct(text="free some space")),
            (b"## twice", Instruct(text="twice")),
            (b'{"type":"interrupt"}', Interrupt()),
            (
                b'{"type":"approval","plan_id":"p1","decision":"allow","step":2}',
                Approval(plan_id="p1", decision="allow", step=2),
            ),
        ):
            self.assertEqual(decode_action(line), action, line)

    def test_what_is_wrong_is_refused(self) -> None:
        for line in (
            b"ls",
            b"{}",
            b'{"type":"approve"}',
            b'{"type":"approval","plan_id":"p1","decision":"yes"}',
            b'{"type":"approval","plan_id":"p1","decision":"allow","steps":2}',
            b'{"type":"approval","plan_id":"p1","decision":"allow","step":"2"}',
            b'{"type":"instruction","text":"x"} {"type":"kill"}',
        ):
            with self.assertRaises(UsageError, msg=line):
                decode_action(line)


class InstructionFileTests(SynchronousTestCase):
    """Instructions in files."""

    @given(st.lists(st.lists(said, min_size=1, max_size=3), max_size=4), st.sampled_from(("", "echo x", " # no")))
    def test_lines_that_follow_each_other_are_one(self, blocks: list[list[str]], between: str) -> None:
        text = f"\n{between}\n".join("\n".join(f"# {line}" for line in block) for block in blocks)
        wanted = ["\n".join(block) for block in blocks]
        for before in ("", "#!/usr/bin/env -S ironcurtain shell\n"):
            self.assertEqual(instruction_lines(before + text), wanted)

    @given(st.text())
    def test_any_text_is_read(self, text: str) -> None:
        for instruction in instruction_lines(text):
            self.assertTrue(instruction.strip())

    def test_only_the_first_line_is_the_kernels(self) -> None:
        self.assertEqual(instruction_lines("# one\n#! two\n#\n"), ["one\n! two\n"])
        self.assertEqual(instruction_lines("#!x\n#\n\nls\n"), [])


class SchemaTests(SynchronousTestCase):
    """The schema that is published."""

    def test_the_file_is_current(self) -> None:
        current = msgspec.json.format(msgspec.json.encode(schema()), indent=2).decode() + "\n"
        self.assertEqual(FILE.read_text(), current, "write what msgspec.json.format makes of schema() into it")

    def test_it_has_every_message_and_action(self) -> None:
        definitions = json.loads(FILE.read_text())["$defs"]
        kinds = {kind.__name__ for kind in (*get_args(Message), *get_args(Action))}
        self.assertEqual(kinds - set(definitions), set())

"""Whatever a file or another program has in place of JSON is refused by whoever reads it, and ends nothing else."""

from __future__ import annotations

import ast
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.build_report import BuildReport
from ironcurtain.container.streams import error_message
from ironcurtain.errors import IronCurtainError
from ironcurtain.fleet.taken import Taken, TakenFiles
from ironcurtain.fleet.tasks import Started
from ironcurtain.home.layout import Home
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.loop.state import read_state
from ironcurtain.mitm_proxy.reached_limit import ReachedLimit
from ironcurtain.project.manifest import read_manifest
from ironcurtain.prove.report import parse
from ironcurtain.registries.crates_index import BadIndex, read_download
from ironcurtain.registries.pypi_index import NoIndex, read_index
from ironcurtain.session.elsewhere import damaged, described, description, snapshots
from ironcurtain.session.history import read_turns
from ironcurtain.terminal.recording import read_cast
from tests.audit.doubles import scratch
from tests.test_rules import modules, nodes, short

EXPECTED = (
    {"msgspec.DecodeError", "UnicodeDecodeError", "RecursionError"},
    {"msgspec.DecodeError", "UnicodeError", "RecursionError"},
    {"msgspec.MsgspecError", "UnicodeDecodeError", "RecursionError"},
    {"ValueError", "RecursionError"},
)
"""What msgspec raises for bytes that are no JSON, no UTF-8, or nested too deep. Each of these has all of it."""

HOSTILE = (
    b"",
    b"\xff",
    b'"\xff"',
    b'{"id": "\xff"}',
    b'{"error": "\xff", "message": "\xff"}',
    b"[" * 5000,
    b"[" * 5000 + b"]" * 5000,
    b'{"x":' * 5000 + b"1" + b"}" * 5000,
    b'{"x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    b'{"version": 1, "id": [], "number": "x", "files": 3, "dl": {}}',
    b"NaN",
    b"null",
)


FAULTS = frozenset(("msgspec.DecodeError", "msgspec.MsgspecError"))
"""What handlers of bytes that are no JSON name."""


def names_of(handled: ast.Try | ast.With) -> set[str]:
    """:returns: the exceptions that a statement catches or suppresses."""
    if isinstance(handled, ast.Try):
        found = [handler.type for handler in handled.handlers if handler.type is not None]
    else:
        calls = [item.context_expr for item in handled.items if isinstance(item.context_expr, ast.Call)]
        found = [word for call in calls if ast.unparse(call.func) == "suppress" for word in call.args]
    each = [part for word in found for part in (word.elts if isinstance(word, ast.Tuple) else [word])]
    return set(map(ast.unparse, each))


class HandlerTests(SynchronousTestCase):
    def test_whoever_expects_no_json_expects_no_text_and_deep_nesting(self) -> None:
        wrong = []
        for path in modules():
            text = path.read_text()
            for node in nodes(path) if any(name in text for name in FAULTS) else ():
                if isinstance(node, ast.Try | ast.With):
                    caught = names_of(node)
                    if caught & FAULTS:
                        wrong += [] if any(expected <= caught for expected in EXPECTED) else [short(path, node)]
        self.assertEqual(wrong, [])


def reached(data: bytes) -> None:
    """Read what a provider says with status 429."""
    limit = ReachedLimit(())
    limit.feed(data)
    limit.seconds(0.0)


READERS: dict[str, Callable[[bytes], object]] = {
    "limits of a provider": reached,
    "attempts of the hostile program": parse,
    "errors of the Engine": error_message,
    "builds of the Engine": lambda data: BuildReport(list[str]().append).feed(data + b"\n"),
    "indexes of crates": read_download,
    "indexes of PyPI": lambda data: read_index(data, "https://pypi.example", "toy", datetime.now(UTC)),
    "recordings": read_cast,
}

FILES: dict[str, Callable[[Path], object]] = {
    "state of a loop": read_state,
    "manifests": lambda path: read_manifest(path, path.parent),
    "conversations": read_turns,
}


class ReaderTests(SynchronousTestCase):
    def read(self, name: str, reader: Callable[[], object]) -> None:
        """Fail with the name of a reader that raises something else than it says."""
        try:
            reader()
        except (IronCurtainError, BadIndex, NoIndex):
            pass
        except Exception as e:
            self.fail(f"{name}: {e!r}")

    def check(self, data: bytes) -> None:
        """Give bytes to every reader."""
        for name, reader in READERS.items():
            self.read(name, partial(reader, data))
        file = scratch(self) / "file"
        file.write_bytes(data)
        for name, of_file in FILES.items():
            self.read(name, partial(of_file, file))

    def test_hostile_bytes(self) -> None:
        for data in HOSTILE:
            self.check(data)

    @given(st.binary() | st.text().map(str.encode))
    def test_any_bytes(self, data: bytes) -> None:
        self.check(data)

    def test_descriptions_of_sessions(self) -> None:
        home = Home(scratch(self), scratch(self))
        paths = SessionPaths(home.sessions / "one")
        paths.directory.mkdir(parents=True)
        for data in HOSTILE:
            paths.snapshot.write_bytes(data)
            self.assertEqual((list(snapshots(home)), list(described(home))), ([], []), data)
            self.assertEqual(list(damaged(home)), [paths.snapshot])
            self.read("a description", partial(description, paths))

    def test_tasks_of_a_fleet(self) -> None:
        home = Home(scratch(self), scratch(self))
        files, taken = TakenFiles(home), Taken(id="t1", origin="laptop", started=Started())
        files.write(taken)
        (directory,) = (path.parent for path in home.path.rglob("t1.json"))
        for number, data in enumerate(HOSTILE):
            (directory / f"{number}.json").write_bytes(data)
        self.assertEqual(files.all(), [taken])

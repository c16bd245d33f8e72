"""
What a verdict costs, beside the least that finding a real path can cost: ``os.path.realpath`` of the same path.

Run it with the interpreter that has IronCurtain installed::

    python -m benchmarks.verdict [--rounds 5000]
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.sizes import parse
from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.protected import always_protected
from ironcurtain.policy.verdict import ToolCall

ONE_PATH: dict[str, object] = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
MANY_PATHS: dict[str, object] = {
    "type": "object",
    "properties": {"paths": {"type": "array", "items": {"type": "string"}}},
}
ONE_URL: dict[str, object] = {"type": "object", "properties": {"url": {"type": "string"}}}


def microseconds(work: Callable[[], object], rounds: int) -> tuple[float, float]:
    """:returns: the median and the 99th percentile of one call."""
    taken = []
    for _ in range(rounds // 10):
        work()
    for _ in range(rounds):
        start = time.perf_counter()
        work()
        taken.append((time.perf_counter() - start) * 1e6)
    taken.sort()
    return taken[rounds // 2], taken[rounds * 99 // 100]


def measure(place: Path, rounds: int) -> None:
    """Make a home and a workspace in a directory, and print one line a measurement."""
    home = place / "home"
    workspace = home / ".ironcurtain" / "sessions" / "1" / "sandbox"
    for directory in (workspace / "src" / "package", home / "Documents" / "letters"):
        directory.mkdir(parents=True)
    (workspace / "src" / "package" / "module.py").write_text("")
    engine = PolicyEngine(
        default_policy(),
        default_annotations(),
        paths=PathMap(str(workspace)),
        home=str(home),
        protected=always_protected(str(home), str(home / ".ironcurtain")),
    )

    def ask(tool: str, schema: dict[str, object], **arguments: object) -> Callable[[], object]:
        server = "fetch" if tool == "fetch" else "filesystem"
        return lambda: engine.evaluate(ToolCall(server, tool, arguments), schema)

    inside = "/workspace/src/package/module.py"
    floor = str(workspace / "src" / "package" / "module.py")
    hundred = [f"/workspace/src/package/{number}.py" for number in range(100)]
    base = _line("os.path.realpath of the first", lambda: os.path.realpath(floor), rounds, None)
    _line("read a file in the workspace", ask("read_text_file", ONE_PATH, path=inside), rounds, base)
    _line("read a file at home (asks)", ask("read_text_file", ONE_PATH, path="~/Documents/letters/a"), rounds, base)
    _line("read a hundred files", ask("read_multiple_files", MANY_PATHS, paths=hundred), rounds // 20, base)
    _line("fetch documentation", ask("fetch", ONE_URL, url="https://docs.python.org/3/"), rounds, base)


def _line(what: str, work: Callable[[], object], rounds: int, base: float | None) -> float:
    median, high = microseconds(work, max(rounds, 100))
    ratio = f"  {median / base:6.2f} x realpath" if base else ""
    print(f"{what:32} p50 {median:9.1f} us  p99 {high:9.1f} us{ratio}")
    return median


def main() -> None:
    """Measure in a temporary directory."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5000, help="measurements of each kind (default 5000)")
    options = parse(parser, rounds=100)
    with tempfile.TemporaryDirectory() as place:
        measure(Path(os.path.realpath(place)), options.rounds)


if __name__ == "__main__":
    main()

"""
How long commands take to start, against Python itself in the same run: ``python -m benchmarks.startup [--rounds 15]``.

A session of the built-in agent is measured whole: interpreter, MCP server, one scripted answer, and everything ended.
With ``--agents``, Claude Code, Codex and Gemini CLI are started as well, as far as they are installed: alone, in a
session without Docker, and in one of a running daemon, each until its first model request.

Where others use the machine as well, processor times say more than the clock: the smallest of them is printed.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

from benchmarks.first_request import measured
from benchmarks.sizes import parse

BIN = Path(sys.executable).parent
SCRIPT = 'version = 1\n[[turns]]\ntext = "Done."\n'


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="how often each is started (default 15)")
    parser.add_argument("--agents", action="store_true", help="measure agents of this machine, too")
    options = parse(parser, rounds=1, agents=True)
    rounds = options.rounds
    with tempfile.TemporaryDirectory(prefix="ic-") as directory:
        script = Path(directory, "script.toml")
        script.write_text(SCRIPT)
        environ = {**os.environ, "HOME": directory, "IRONCURTAIN_HOME": f"{directory}/home"}
        environ.pop("PYTHONDONTWRITEBYTECODE", None)  # compiled once, as after an installation
        ours = str(BIN / "ironcurtain")
        commands = {
            "python -c pass (floor)": [sys.executable, "-c", "pass"],
            "import twisted.web and the asyncio reactor": [
                sys.executable,
                "-c",
                "from twisted.internet import asyncioreactor; asyncioreactor.install(); import twisted.web.server",
            ],
            "ironcurtain --help": [ours, "--help"],
            "ironcurtain sessions": [ours, "sessions"],
            "ironcurtain start, a whole session": [ours, "start", "--backend", f"scripted:{script}", "hello"],
        }
        times: dict[str, list[float]] = {name: [] for name in commands}
        used: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                begun, before = time.perf_counter(), _processor_seconds()
                subprocess.run(command, env=environ, stdin=subprocess.DEVNULL, capture_output=True, check=True)
                times[name].append(time.perf_counter() - begun)
                used[name].append(_processor_seconds() - before)
    if options.agents:
        times |= measured(str(BIN / "ironcurtain"), rounds)
    floor = median(next(iter(times.values())))
    print(f"{'':<46} {'p50 ms':>8} {'max ms':>8} {'x floor':>8} {'cpu ms':>8}")
    for name, taken in times.items():
        cpu = f"{min(used[name]) * 1e3:8.0f}" if name in used else ""
        print(
            f"{name:<46} {median(taken) * 1e3:8.0f} {max(taken) * 1e3:8.0f} {median(taken) / floor:8.1f} {cpu}".rstrip()
        )


def _processor_seconds() -> float:
    """:returns: of all processes that ended so far, with what they waited for."""
    of = resource.getrusage(resource.RUSAGE_CHILDREN)
    return of.ru_utime + of.ru_stime


if __name__ == "__main__":
    main()

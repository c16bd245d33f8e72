"""
What a model request costs through the MITM proxy, with its judgement and its audit log: beside mitmproxy, beside nginx
(which needs no CONNECT and makes no certificates: as fast as any program that decrypts), with nobody in between, and
beside a relay on our own TLS (``mitm_relay.py``): what ours takes beyond that is its work, not Python's TLS.

All are measured in one run, in turns, with the same provider behind them, so that a busy machine slows all alike. The
agent and the provider are one C program. mitmproxy needs Python 3.12 and an environment of its own::

    python3.13 -m venv /tmp/mitmproxy && /tmp/mitmproxy/bin/pip install mitmproxy
    python -m benchmarks.mitm [--mitmdump /tmp/mitmproxy/bin/mitmdump] [--rounds 5]

Only the ratios to mitmproxy count. The goals: requests 8 times as many on 16 connections and 4.5 times on one, new
connections 5 times; an event at most 0.7 times as late; and at most 96 KiB for an idle tunnel.
"""

from __future__ import annotations

import argparse
import os
import shutil
import statistics
import subprocess
import time
from dataclasses import dataclass, field, replace
from pathlib import Path

from benchmarks.mitm_peers import Peer, peers
from benchmarks.sizes import parse

STREAMS, GAP = 4, 5000
"""How many streams of events at a time, and the microseconds between two events of one."""

CONNECTIONS = 16
"""How many connections make requests at a time."""

TUNNELS = 10, 110
"""Idle tunnels at a time: the memory of the second, less that of the first."""


@dataclass(frozen=True)
class Load:
    """
    One kind of load.

    :param what: the word that the agent knows.
    :param much: how often, a round, on each connection, for a fast peer; ``little`` for mitmproxy.
    """

    name: str
    what: str
    much: int
    little: int
    more: tuple[int, ...] = ()


LOADS = (
    Load("one", "post", 2000, 1000),
    Load("many", "post", 600, 600, (CONNECTIONS,)),  # so many that opening the connections hardly counts
    Load("new", "new", 150, 40),
    Load("events", "events", 100, 100, (STREAMS, GAP)),
)

FEWEST = 10
"""How often each is made where nothing is measured."""


@dataclass
class Seen:
    """What one kind of load showed of one peer: a number for each round, times in microseconds."""

    rate: list[float] = field(default_factory=list)
    middle: list[float] = field(default_factory=list)
    slow: list[float] = field(default_factory=list)
    used: list[float] = field(default_factory=list)


def processor_seconds(pid: int) -> float:
    """:returns: what a process has used so far; 0 for no process."""
    return time.clock_gettime((~pid << 3) | 2) if pid else 0.0  # clock_getcpuclockid(3), as Linux does it


def memory_kib(pid: int) -> float:
    """:returns: a process's share of the memory in use (proc(5): ``Pss``)."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("Pss:")))


def agent(load: Path, peer: Peer, what: str, count: int, *more: int) -> list[str]:
    """:returns: the command that makes a load."""
    where = [str(load), "agent", peer.place, str(peer.tunnel), str(peer.ca_file), peer.key]
    return [*where, what, str(count), *map(str, more)]


def measure(program: Path, peer: Peer, load: Load, seen: Seen) -> None:
    """Make one load once, and note what it showed."""
    count = load.little if peer.name == "mitmproxy" else load.much
    before = processor_seconds(peer.pid)
    command = agent(program, peer, load.what, count, *load.more)
    took, *each = map(float, subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.split())
    seen.used.append((processor_seconds(peer.pid) - before) / len(each) * 1e6)
    seen.rate.append(len(each) / took)
    seen.middle.append(statistics.median(each))
    seen.slow.append(statistics.quantiles(each, n=100)[98])


def tunnel_kib(load: Path, peer: Peer) -> float:
    """:returns: memory for each idle tunnel."""
    sizes = []
    for count in TUNNELS:
        command = agent(load, peer, "idle", count)
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None and process.stdin is not None
            assert process.stdout.readline() == "open\n", "the tunnels could not be opened"
            time.sleep(0.5)
            sizes.append(memory_kib(peer.pid))
            process.stdin.close()
    return (sizes[1] - sizes[0]) / (TUNNELS[1] - TUNNELS[0])


def ratio(ours: list[float], theirs: list[float]) -> float:
    """:returns: the median of the ratios of the rounds."""
    return statistics.median(mine / other for mine, other in zip(ours, theirs, strict=True))


def show(title: str, seen: dict[str, Seen], direct: Seen) -> None:
    """Print what one kind of load showed."""
    print(f"\n{title:<16}{'a second':>10}{'p50 us':>9}{'p99 us':>9}{'added us':>10}{'CPU us':>9}")
    for name, of in seen.items():
        middle, used = statistics.median(of.middle), statistics.median(of.used)
        numbers = f"{statistics.median(of.rate):>10.0f}{middle:>9.0f}{statistics.median(of.slow):>9.0f}"
        print(f"{name:<16}{numbers}{middle - statistics.median(direct.middle):>10.0f}{used:>9.0f}")
    ours = seen["ours"]
    for name in ("nginx", "mitmproxy", "relay"):
        if (other := seen.get(name)) is not None:
            parts = {
                "rate": (ours.rate, other.rate),
                "p50": (ours.middle, other.middle),
                "CPU": (ours.used, other.used),
            }
            ratios = ", ".join(f"{what} {ratio(*pair):.3g}" for what, pair in parts.items())
            print(f"  ours to {name}: {ratios} (1/{1 / ratio(ours.used, other.used):.3g})")


def main() -> None:
    """Measure everybody."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--mitmdump", default=shutil.which("mitmdump") or "", help="mitmproxy's program (default: PATH)"
    )
    parser.add_argument("--rounds", type=int, default=5, help="rounds (default 5)")
    parser.add_argument("--only", choices=[load.name for load in LOADS], help="one kind of load only")
    options = parse(parser, rounds=1)
    if not os.access(options.mitmdump or "mitmdump", os.X_OK):
        print("there is no mitmdump: mitmproxy is left out; see --help for how to install it")
        options.mitmdump = ""
    if options.mitmdump:
        says = subprocess.run([options.mitmdump, "--version"], capture_output=True, text=True, check=True)
        print(" ".join(says.stdout.split()))
    loads = [load for load in LOADS if options.only in (None, load.name)]
    if options.smallest:
        loads = [replace(load, much=FEWEST, little=FEWEST) for load in loads]
    with peers(options.mitmdump) as (program, present):
        seen = {load: {peer.name: Seen() for peer in present} for load in loads}
        for number in range(options.rounds):
            for load in loads:
                for peer in present[number % len(present) :] + present[: number % len(present)]:
                    measure(program, peer, load, seen[load][peer.name])
        for load in loads:
            show(load.name, seen[load], seen[load]["direct"])
        if options.only is None:
            sizes = {peer.name: tunnel_kib(program, peer) for peer in present if peer.pid}
            print("\nKiB for an idle tunnel: " + ", ".join(f"{name} {size:.0f}" for name, size in sizes.items()))


if __name__ == "__main__":
    main()

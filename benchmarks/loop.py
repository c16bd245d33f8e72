"""
What a loop in a terminal costs, beside script(1), which does nothing but pass on: throughput and latency of keys.

Both run the same programs in a terminal that we read as fast as they write. Throughput: from the first byte of some
megabytes to the last one, in turns. Latency: from a key to its echo by a program that writes back what it reads; both
run side by side and get keys in turns, once all that starts with a session is up::

    python -m benchmarks.loop [--megabytes 20] [--rounds 3] [--keys 10000]

The goals: at least 0.5 of its throughput, and at most 2 times its latency at the median. On a busy machine the
processor time of a megabyte, of the process that passes it on, says more than the throughput.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import pty
import select
import statistics
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping
from fcntl import ioctl
from pathlib import Path
from struct import pack

from benchmarks.sizes import parse
from tests.product import Product

PATIENCE = 120.0
"""Seconds that anything may take."""

STARTING = 2.0
"""Seconds until a session's other processes have loaded what they need."""

ECHO = "stty raw -echo; printf ready; exec cat"
READ = 65536
KINDS = {
    "lines": b"a line of a build that says what it does now, and how far it has come\n",
    "colours": b"\x1b[32mok\x1b[0m \x1b[1mtests/test_something.py\x1b[0m::\x1b[36mtest_of_it\x1b[0m passed in 0.01 s\n",
    "screens": b"".join(b"\x1b[%d;1H\x1b[K%d some text of a row that is drawn again" % (n, n) for n in range(1, 24)),
}
"""What is written again and again."""


class Seat:
    """A program in a terminal of ours."""

    def __init__(self, product: Product, line: list[str]) -> None:
        self._master, slave = pty.openpty()
        ioctl(slave, termios.TIOCSWINSZ, pack("4H", 24, 80, 0, 0))
        environ = {**product.environ, "TERM": "xterm-256color"}
        self._process = subprocess.Popen(
            line, stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, env=environ, cwd=product.project,
            start_new_session=True, preexec_fn=lambda: ioctl(0, termios.TIOCSCTTY, 0),
        )  # fmt: skip
        os.close(slave)

    def type(self, data: bytes) -> None:
        """Press keys."""
        os.write(self._master, data)

    def until(self, mark: bytes) -> None:
        """Read until a mark has come."""
        seen, end = b"", time.monotonic() + PATIENCE
        while mark not in seen:
            ready, _, _ = select.select([self._master], [], [], end - time.monotonic())
            assert ready, (mark, seen[-500:])
            seen = seen[-len(mark) :] + os.read(self._master, READ)

    def processor(self) -> float:
        """:returns: seconds of processor time that its process has used, in all threads; not those of its children."""
        tasks = Path(f"/proc/{self._process.pid}/task").glob("*/schedstat")
        return sum(int(task.read_text().split()[0]) for task in tasks) / 1e9

    def close(self) -> None:
        """End it, and close its terminal, as shells ignore SIGTERM."""
        self._process.terminate()
        os.close(self._master)
        self._process.wait(PATIENCE)


def lines(product: Product, program: str) -> dict[str, list[str]]:
    """:returns: by name, who runs a shell's program."""
    options = ("--pty", "-n", "1", "--idle-timeout", "0", "-p", "go on")
    return {
        "script": ["script", "--quiet", "--flush", "--command", program, "/dev/null"],
        "loop": product.command("loop", *options, "--", "sh", "-c", program),
    }


@contextlib.contextmanager
def seat(product: Product, line: list[str]) -> Iterator[Seat]:
    """Run a program for a while."""
    made = Seat(product, line)
    try:
        made.until(b"ready")
        yield made
    finally:
        made.close()


def throughput(product: Product, kind: str, megabytes: int, rounds: int) -> dict[str, tuple[float, float]]:
    """:returns: by name, megabytes a second and seconds of processor time for one, each at the median."""
    unit, file = KINDS[kind], Path(product.project, kind)
    file.write_bytes(unit * (megabytes * 1_000_000 // len(unit)))
    program = f"stty -echo; printf ready; read x; printf beg''in; cat {file}; printf the''end; read x"
    rates: dict[str, list[float]] = {"script": [], "loop": []}
    processor: dict[str, list[float]] = {"script": [], "loop": []}
    for _ in range(rounds):
        for name, line in lines(product, program).items():
            with seat(product, line) as at:
                at.type(b"\n")
                at.until(b"begin")
                begun, used = time.perf_counter(), at.processor()
                at.until(b"theend")
                rates[name].append(megabytes / (time.perf_counter() - begun))
                processor[name].append((at.processor() - used) / megabytes)
    return {name: (statistics.median(rates[name]), statistics.median(processor[name])) for name in rates}


def latency(product: Product, keys: int, commands: Mapping[str, list[str]]) -> dict[str, float]:
    """
    :param commands: by name, command lines that write "ready" and then what they read.
    :returns: by name, seconds at the median.
    """
    times: dict[str, list[float]] = {name: [] for name in commands}
    with contextlib.ExitStack() as stack:
        seats = {name: stack.enter_context(seat(product, line)) for name, line in commands.items()}
        time.sleep(STARTING)
        for number in range(keys):
            key = b"abcdefgh"[number % 8 : number % 8 + 1]
            for name, at in seats.items():
                begun = time.perf_counter()
                at.type(key)
                at.until(key)
                times[name].append(time.perf_counter() - begun)
    return {name: statistics.median(found) for name, found in times.items()}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--keys", type=int, default=10000)
    chosen = parse(parser, megabytes=1, rounds=1, keys=10)
    product = Product()
    try:
        for kind in KINDS:
            rate = throughput(product, kind, chosen.megabytes, chosen.rounds)
            (script, least), (loop, used) = rate["script"], rate["loop"]
            print(f"{kind:<8} script {script:6.1f} MB/s   loop {loop:6.1f} MB/s   x{loop / script:.2f}", end="   ")
            print(f"processor: script {least * 1e3:.1f} ms/MB   loop {used * 1e3:.1f} ms/MB")
        took = latency(product, chosen.keys, lines(product, ECHO))
        times = took["loop"] / took["script"]
        print(f"keys     script {took['script'] * 1e6:6.0f} us     loop {took['loop'] * 1e6:6.0f} us     x{times:.2f}")
    finally:
        product.close()


if __name__ == "__main__":
    main()

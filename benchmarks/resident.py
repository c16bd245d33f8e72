"""
What a further message to an agent costs, and how late its text is seen: ``python -m benchmarks.resident [--turns 9]``.

The peer is the agent's program alone, without a sandbox: a process speaks the same protocol with it, and looks at the
clock. With us, a person types into a conversation (``ironcurtain start``). How late text is seen is measured while
another process shows it, too (``ironcurtain attach``), and another one the console. Claude Code's own interface is
shown by ``ironcurtain start --pty``, the peer, and by ``ironcurtain observe``. The model stamps its text when it sends
it.

Agents are measured as far as they are installed. The goals are that we add 40 ms at the median until the model is asked
a further time, and that nine tenths of the text are seen within 100 ms of when the agent alone tells it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from benchmarks.resident_ends import Alone, Watched
from benchmarks.sizes import parse
from ironcurtain.sandbox import bubblewrap
from tests.model_stub.process import StubProcess
from tests.product import Product, wait_until

PIECES, PAUSE = 10, 0.15
"""How many pieces of text an answer has, and the seconds before each of its events."""

BACK_TAB = b"\x1b[Z"

GOAL_TURN, GOAL_SHOWN = 0.040, 0.100

KEYS = {
    "anthropic": "sk-ant-api03-real-key-of-the-benchmark-0123456789",
    "openai": "sk-proj-real-key-of-the-benchmark-0123456789abcd",
    "google": "AIzaSy-real-key-of-the-benchmark-0123456789abcd",
}
PROVIDERS = {"claude-code": "anthropic", "codex": "openai", "gemini": "google", "opencode": "anthropic"}
VARIABLES = {"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY", "google": "GEMINI_API_KEY"}
PROGRAMS = {"claude-code": "claude", "codex": "codex", "gemini": "gemini", "opencode": "opencode"}


def answer(number: int, pieces: int) -> dict[str, Any]:
    """:returns: the model's answer to a message, a paragraph a piece."""
    chunks = [f"turn {number} at {{{{now}}}}.\n\n" for _ in range(pieces)]
    return {"content": [{"type": "text", "chunks": [*chunks, f"That was {number}."]}], "pause": PAUSE}


class Measured:
    """
    What was seen of one agent.

    :ivar turns: by way, seconds from each message but the first to the model's request.
    :ivar late: by way, seconds from sending each piece of text to its being seen.
    """

    def __init__(self) -> None:
        self.turns: dict[str, list[float]] = {}
        self.late: dict[str, list[float]] = {}

    def seen(self, way: str, stamps: Mapping[float, float]) -> None:
        """:param stamps: when each piece was seen, by when it was sent."""
        self.late.setdefault(way, []).extend(seen - sent for sent, seen in stamps.items())


@contextmanager
def place(agent: str, stub: StubProcess) -> Iterator[Product]:
    """Give a person's home whose model is the stub."""
    product = Product()
    try:
        product.person.chmod(0o755)
        product.project.chmod(0o777)  # root's agents run as another account
        provider = PROVIDERS[agent]
        product.environ |= {VARIABLES[provider]: KEYS[provider], "PATH": os.environ["PATH"], "LANG": "C.UTF-8"}
        product.home.mkdir(mode=0o700)
        (product.home / "config.toml").write_text(f'[providers.{provider}]\nbase_url = "{stub.url}"\n')
        yield product
    finally:
        product.close()


def alone(agent: str, stub: StubProcess, turns: int, pieces: int, into: Measured) -> None:
    """Measure a program without us."""
    with tempfile.TemporaryDirectory(prefix="ic-") as name, Alone(agent, Path(name), stub.url, KEYS) as program:
        before = len(stub.turns)
        for number in range(turns):
            stub.add(answer(number, pieces))
            said = time.monotonic()
            stamps = program.say(f"message {number}")
            at = stub.turns[before:][number]["at"]
            if number:
                into.turns.setdefault("alone", []).append(at - said)
            into.seen("alone", stamps)


def with_us(agent: str, stub: StubProcess, turns: int, pieces: int, into: Measured) -> None:
    """Measure a conversation: alone, as a person has it, and then with other processes that show it, too."""
    with place(agent, stub) as product, ExitStack() as stack:
        line = ("start", "--agent", agent, "--sandbox", "bubblewrap", "--workspace", ".")
        before = len(stub.turns)
        first = stack.enter_context(Watched(product.command(*line), product.environ, str(product.project)))
        ways = {"conversation": first}
        for number in range(2 * turns):
            stub.add(answer(number, pieces))
            said = first.type(f"message {number}")
            turn = wait_until(lambda: stub.turns[before + number :])[0]  # noqa: B023
            if 0 < number < turns:
                into.turns.setdefault("conversation", []).append(turn["at"] - said)
            first.until(f"That was {number}.")
            wait_until(lambda: stub.turns[-1]["end"])  # else the next message would wait in the queue
            if number == turns - 1:
                for way, words in (("attach", ("attach", "1")), ("console", ("escalation-listener",))):
                    ways[way] = stack.enter_context(
                        Watched(product.command(*words), product.environ, str(product.project))
                    )
                ways["attach"].until(f"That was {number}.")
                ways["console"].until(agent)
                ways["console"].quiet()
                ways["console"].press(BACK_TAB)
                ways["console"].quiet()
                ways["console"].press(b"\r")
                ways["console"].until("ACTIVITY")
            for watched in ways.values():
                watched.quiet()
                if number == turns - 1:
                    watched.forget()
        wait_until(lambda: stub.turns[-1]["end"])
        for way, watched in ways.items():
            watched.quiet()
            into.seen(way, watched.stamps)
        first.press(b"\x04")


def screens(stub: StubProcess, turns: int, pieces: int) -> Measured:
    """:returns: how late Claude Code's text is on its own screen, and on that of somebody who looks on."""
    into = Measured()
    with place("claude-code", stub) as product, ExitStack() as stack:
        ways = dict[str, Watched]()
        for way, words in (
            ("its screen", ("start", "--pty", "--agent", "claude-code", "--sandbox", "bubblewrap", "--workspace", ".")),
            ("observe", ("observe", "1")),
        ):
            line = product.command(*words)
            ways[way] = stack.enter_context(Watched(line, product.environ, str(product.project)))
            ways[way].until("bypass permissions on")
            ways[way].quiet()
        for number in range(turns):
            stub.add(answer(number, pieces))
            ways["its screen"].type(f"message {number}")
            for watched in ways.values():
                watched.until(f"That was {number}.")
                watched.quiet()
        for way, watched in ways.items():
            into.seen(way, watched.stamps)
    return into


def table(head: str, ways: Mapping[str, Sequence[float]], goal: float, *, of_most: bool = True) -> None:
    """
    Print what was measured, to the first of these ways.

    :param goal: seconds that the other ways may add at the median; with ``of_most``, at the ninetieth percentile.
    """
    peer, floor = next(iter(ways.items()))
    least = median(floor)
    print(f"  {head:<42} {'p50 ms':>8} {'p90 ms':>8} {'x':>8} {'added ms':>9}")
    for way, taken in ways.items():
        p50, p90 = median(taken), quantiles(taken, n=10)[-1] if len(taken) > 1 else taken[0]
        met = (
            ""
            if way == peer
            else f"   {'within' if (p90 if of_most else p50) - least <= goal else 'OVER'} {goal * 1e3:.0f}"
        )
        times = f"{p50 * 1e3:8.1f} {p90 * 1e3:8.1f} {p50 / least:8.2f} {(p50 - least) * 1e3:9.1f}"
        print(f"  {way:<42} {times}{met}")


def main() -> None:
    """Measure each agent, and print two tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=9, help="messages to each agent, for each table (default 9)")
    parser.add_argument("--pieces", type=int, default=PIECES, help=f"pieces of text in an answer (default {PIECES})")
    parser.add_argument("agents", nargs="*", default=[*PROGRAMS], help="those to measure (default: all)")
    options = parse(parser, turns=2, pieces=2)
    if (problem := bubblewrap.available()) is not None:
        raise SystemExit(problem)
    found = [agent for agent in options.agents if shutil.which(PROGRAMS[agent])]
    print(f"agents: {', '.join(found) or 'none is installed'}; load {os.getloadavg()[0]:.1f}")
    for agent in found[:1] if options.smallest else found:
        stub = StubProcess(keys=KEYS, plain=True)
        try:
            seen = Measured()
            alone(agent, stub, options.turns, options.pieces, seen)
            with_us(agent, stub, options.turns, options.pieces, seen)
            on_screen = agent == "claude-code"
            seen_on_screen = screens(stub, options.turns, options.pieces) if on_screen else None
        finally:
            stub.close()
        print(agent)
        table("a further message, to the model's request", seen.turns, GOAL_TURN, of_most=False)
        table("a piece of text, sent to seen", seen.late, GOAL_SHOWN)
        if seen_on_screen is not None:
            table("the same, in the agent's own interface", seen_on_screen.late, GOAL_SHOWN)


if __name__ == "__main__":
    main()

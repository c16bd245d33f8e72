"""
What ``ironcurtain shell`` costs a person who only uses the shell, beside script(1) and the plain shell.

Latency: from a key to its echo by bash's line editor, in both side by side and in turns. Starting: from the start of a
process until bash has shown its first prompt; and the processor time of that process until then, which says more on a
busy machine. All keys are on one line, which fits on the screen::

    python -m benchmarks.shell [--keys 1500] [--rounds 20]

The goals: at most 2 times the latency of ``script`` at the median, and at most 100 ms more than bash until the prompt.
"""

from __future__ import annotations

import argparse
import statistics
import time

from benchmarks.loop import latency, seat
from benchmarks.sizes import parse
from tests.product import Product

PLAIN = "exec bash -i 2>&1"
PROMPT = "ready"


def lines(product: Product) -> dict[str, list[str]]:
    """:returns: by name, who runs bash."""
    return {
        "script": ["script", "--quiet", "--flush", "--command", PLAIN, "/dev/null"],
        "shell": product.command("shell", "--shell", "bash"),
    }


def starting(product: Product, rounds: int) -> dict[str, tuple[float, float]]:
    """:returns: by name, seconds until the first prompt, and of processor time, each at the median."""
    commands = {"bash": ["sh", "-c", PLAIN], **lines(product)}
    times: dict[str, list[float]] = {name: [] for name in commands}
    processor: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, line in commands.items():
            begun = time.perf_counter()
            with seat(product, line) as at:
                times[name].append(time.perf_counter() - begun)
                processor[name].append(at.processor())
    return {name: (statistics.median(times[name]), statistics.median(processor[name])) for name in commands}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keys", type=int, default=1500)
    parser.add_argument("--rounds", type=int, default=20)
    chosen = parse(parser, keys=10, rounds=1)
    product = Product()
    try:
        (product.person / ".bashrc").write_text(f"PS1='{PROMPT}> '\n")
        began = starting(product, chosen.rounds)
        more = (began["shell"][0] - began["bash"][0]) * 1e3
        shown = (f"{name} {taken * 1e3:5.0f} ms ({used * 1e3:.0f} ms)" for name, (taken, used) in began.items())
        print("prompt   " + "   ".join(shown), end="")
        print(f"   {more:.0f} ms more than bash")
        took = latency(product, chosen.keys, lines(product))
        times = took["shell"] / took["script"]
        print(
            f"keys     script {took['script'] * 1e6:6.0f} us     shell {took['shell'] * 1e6:6.0f} us     x{times:.2f}"
        )
    finally:
        product.close()


if __name__ == "__main__":
    main()

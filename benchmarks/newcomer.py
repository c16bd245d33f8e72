"""
How long a newcomer needs from ``pip install`` to the first reviewed change: ``python -m benchmarks.newcomer``.

A fresh virtual environment gets this checkout with all that it needs, from the registry or pip's cache; then come
``ironcurtain init``, one task for Claude Code, which edits a file of the project, and ``ironcurtain diff``. The model
is played. Nobody reads or types, so this is what the machine takes of a newcomer's time. The peer is Claude Code alone,
in the same run: the same task, and ``git diff``. Without Claude Code, the built-in agent does it, and there is no peer.

``--here`` installs only the checkout; for the rest, the packages of the environment that runs this are used.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from benchmarks.sizes import parse
from ironcurtain.sandbox import bubblewrap
from tests.model_stub.process import StubProcess

TOP = Path(__file__).resolve().parents[1]
LEFT_OUT = (".*", "*.egg-info", "__pycache__", "_build", "build", "dist", "node_modules")

KEY = "sk-ant-api03-real-key-of-the-benchmark-0123456789"
TASK = "Correct the greeting in hello.txt."
CORRECT = "sed -i s/Helo/Hello/ hello.txt"
ALONE = ("claude", "--print", "--allowedTools", "Bash", "--", TASK)
REPLIES = (
    {"content": [{"type": "tool_use", "name": "Bash", "input": {"command": CORRECT, "description": "Correct it"}}]},
    {"content": [{"type": "text", "chunks": ["Corrected."]}]},
)
SCRIPT = """version = 1
[[turns]]
code = 'filesystem.edit_file("hello.txt", [{"oldText": "Helo", "newText": "Hello"}])'
[[turns]]
text = "Corrected."
"""


class Newcomer:
    """
    A person with a new home and a project.

    :param directory: for all of it.
    :ivar took: seconds of each step, in order.
    """

    def __init__(self, directory: Path) -> None:
        self._top, self.took = directory, dict[str, float]()
        self.project = directory / "project"
        self.project.mkdir()
        self.project.chmod(0o777)  # root's agents run as another account
        (self.project / "hello.txt").write_text("Helo, world\n")
        (self.project / "hello.txt").chmod(0o666)
        self._environ = {"HOME": str(directory), "LANG": "C.UTF-8", "ANTHROPIC_API_KEY": KEY}
        own = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "safe.directory=*")
        for words in (("init", "-q"), ("add", "."), ("commit", "-qm", "Begin")):
            self._run("", "git", *own, *words)

    def _run(self, step: str, *line: str, **variables: str) -> str:
        """:returns: what a command prints; its time counts for a step."""
        environ = {"PATH": os.environ["PATH"], **self._environ, **variables}
        begun = time.monotonic()
        done = subprocess.run(
            line, cwd=self.project, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        if step:
            self.took[step] = self.took.get(step, 0.0) + time.monotonic() - begun
        if done.returncode:
            raise SystemExit(f"{' '.join(line)}: {done.stdout}{done.stderr}")
        return done.stdout

    def install(self, here: bool) -> None:
        """Install a copy of the checkout into a new virtual environment."""
        source, place = self._top / "source", self._top / "venv"
        shutil.copytree(TOP, source, ignore=shutil.ignore_patterns(*LEFT_OUT))
        self._run("", sys.executable, "-m", "venv", str(place))
        options = []
        if here:
            (packages,) = place.glob("lib/python*/site-packages")
            (packages / "here.pth").write_text(sysconfig.get_path("purelib"))
            (place / "bin" / "monty").symlink_to(Path(sysconfig.get_path("scripts"), "monty"))
            options = ["--no-deps"]
        pip = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", *options)
        self._run("pip install", str(place / "bin" / "python"), *pip, str(source))

    def use(self, stub: StubProcess | None) -> None:
        """Begin, give the task, and look at the change; without a model, the built-in agent does it."""
        ours = str(self._top / "venv" / "bin" / "ironcurtain")
        self._run("init", ours, "init")
        if stub is not None:
            settings = self._top / ".ironcurtain" / "config.toml"
            model = f'[providers.anthropic]\nbase_url = "{stub.url}"\n'
            settings.write_text(settings.read_text().replace("[providers.anthropic]\n", model))
            agent = ["--agent", "claude-code", "--sandbox", "bubblewrap"]
        else:
            (self._top / "script.toml").write_text(SCRIPT)
            agent = ["--backend", f"scripted:{self._top / 'script.toml'}"]
        said = self._run("task", ours, "start", *agent, "--workspace", ".", TASK)
        assert said == "Corrected.\n", said
        assert "+Hello, world" in self._run("review", ours, "diff")

    def go_alone(self, stub: StubProcess) -> None:
        """Do the same without us."""
        settings = self._top / ".claude.json"
        settings.write_text(json.dumps({"hasCompletedOnboarding": True}))
        self._run("task", *ALONE, ANTHROPIC_BASE_URL=stub.url)
        assert "+Hello, world" in self._run("review", "git", "-c", "safe.directory=*", "diff")


def once(here: bool, with_claude: bool) -> dict[str, Mapping[str, float]]:
    """:returns: the seconds of each step, with us and alone."""
    stub = StubProcess(*REPLIES * 2, keys={"anthropic": KEY}, plain=True) if with_claude else None
    took: dict[str, Mapping[str, float]] = {}
    try:
        with tempfile.TemporaryDirectory(prefix="ic-") as name:
            Path(name).chmod(0o755)
            person = Newcomer(Path(name))
            person.install(here)
            person.use(stub)
            took["with us"] = person.took
        if stub is not None:
            with tempfile.TemporaryDirectory(prefix="ic-") as name:
                person = Newcomer(Path(name))
                person.go_alone(stub)
                took["alone"] = person.took
    finally:
        if stub is not None:
            stub.close()
    return took


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3, help="newcomers (default 3)")
    parser.add_argument("--here", action="store_true", help="install only the checkout")
    options = parse(parser, rounds=1, here=True)
    with_claude = shutil.which("claude") is not None and bubblewrap.available() is None
    rounds = [once(options.here, with_claude) for _ in range(options.rounds)]
    print(f"{'claude-code' if with_claude else 'the built-in agent'}; load {os.getloadavg()[0]:.1f}")
    print(f"{'':<24}" + "".join(f"{way + ' (s)':>14}" for way in rounds[0]) + f"{'x alone':>10}")
    steps = {step: {way: median(each[way].get(step, 0.0) for each in rounds) for way in rounds[0]} for step in STEPS}
    steps["task and review"] = {way: steps["task"][way] + steps["review"][way] for way in rounds[0]}
    steps["all"] = {way: sum(steps[step][way] for step in STEPS) for way in rounds[0]}
    for step, ways in steps.items():
        ratio = f"{ways['with us'] / ways['alone']:10.2f}" if ways.get("alone") else ""
        print(
            f"{step:<24}" + "".join(f"{seconds:14.2f}" if seconds else f"{'':14}" for seconds in ways.values()) + ratio
        )


STEPS = ("pip install", "init", "task", "review")
"""What a newcomer does, in order."""

if __name__ == "__main__":
    main()

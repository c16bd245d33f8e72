"""
Make the pictures of screens: ``python docs/figures/screens.py DIRECTORY``.

Those in the README come from the real program, of which only the model is scripted; those of the console with more
sessions and questions from the examples of its tests. Needs tmux, and the extra ``test``.
"""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import DIMMED_MONOKAI
from rich.text import Text

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from tests.console.frames import STATES, picture
from tests.product import Product
from tests.tmux import Tmux

COLUMNS = 96
REMOTE = "https://git.example.org/calendar.git"

# rich's own frame of a terminal's window, without the font that it would fetch from elsewhere.
FORMAT = """\
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{unique_id}">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width; }}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/></clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g></g></svg>
"""

LOOKS = {
    "dim": "bright_black",
    "bold": "bold",
    "good": "green",
    "bad": "bright_red",
    "warn": "yellow",
    "key": "bold cyan",
    "title": "bold white on blue",
    "chosen": "black on white",
    "old": "red",
    "new": "green",
}
"""Colours of styles, as the console's palette has them."""

PUSH = {
    "text": "The tests pass. I fix the typo in the changelog, and publish the branch.",
    "code": f"filesystem.write_file('CHANGES', 'Calendar 1.3')\ngit_remote.git_push('{REMOTE}', '.', 'release-1.3')",
}
READ = {
    "text": "The settings of the old machine may tell.",
    "code": "print(filesystem.read_text_file('~/notes/old-machine.txt'))",
}


def main(directory: Path) -> None:
    """Write ``screen-*.svg``."""
    for name in STATES:
        lines = picture(name, COLUMNS, 24).lines
        text = Text("\n").join(
            Text.assemble(*((span.text, LOOKS.get(span.style, "")) for span in line)) for line in lines
        )
        _write(text, directory / f"screen-console-{name.replace(' ', '-')}.svg", "ironcurtain escalation-listener")
    product = Product()
    try:
        if os.geteuid() == 0:  # whose sessions say otherwise as whom they run
            product.environ["IRONCURTAIN_RUN_AS"] = "nobody"
        product.run("init")
        _add_server(product)
        _make_project(product)
        asking = _session(product, "Publish release 1.3", PUSH, "push.toml")
        other = _session(product, "Why is the import slow?", READ, "read.toml")
        _save(asking, directory / "screen-approval.svg", "ironcurtain start")
        console = Tmux(product, columns=COLUMNS, rows=20)
        console.type("clear; exec " + " ".join(product.command("escalation-listener")))
        console.wait("(?s)old-machine.*q quit")  # the last part that is drawn
        _save(console, directory / "screen-console.svg", "ironcurtain escalation-listener")
        for terminal in (console, other, asking):
            terminal.close()
    finally:
        product.close()


def _add_server(product: Product) -> None:
    path = product.home / "mcp-servers.json"
    servers = json.loads(path.read_text())
    git = {"command": sys.executable, "args": ["-I", "-m", "ironcurtain.servers.git_remote", "$WORKSPACE"]}
    servers["mcpServers"]["git-remote"] = git
    path.write_text(json.dumps(servers))


def _make_project(product: Product) -> None:
    (product.project / "CHANGES").write_text("Calender 1.3\n")
    (product.person / "notes").mkdir()
    (product.person / "notes" / "old-machine.txt").write_text("slow disk\n")
    git = ["git", "-C", str(product.project), "-c", "user.name=ada", "-c", "user.email=ada@example.org"]
    for words in (["init", "-q", "-b", "release-1.3"], ["add", "."], ["commit", "-qm", "Release 1.3"]):
        subprocess.run([*git, *words], check=True)
    for path in (product.project, *product.project.rglob("*")):
        path.chmod(0o777)  # as root, sessions run as another account


def _session(product: Product, task: str, turn: dict[str, str], name: str) -> Tmux:
    """:returns: a terminal in which a call of a new session waits for an answer."""
    script = Path(product.script(turn, {"text": "Done."}).removeprefix("scripted:"))
    script = script.rename(script.with_name(name))
    terminal = Tmux(product, columns=COLUMNS, rows=22)
    words = product.command("start", "--workspace", str(product.project), "--backend", f"scripted:{script}")
    terminal.type("PS1=; clear; exec " + " ".join(words))
    terminal.wait("ready")
    terminal.type(task)
    terminal.wait("waits for you")
    return terminal


def _save(terminal: Tmux, path: Path, title: str) -> None:
    _write(Text.from_ansi(terminal.run("capture-pane", "-p", "-e").rstrip("\n")), path, title)


def _write(text: Text, path: Path, title: str) -> None:
    console = Console(width=COLUMNS, record=True, file=io.StringIO(), force_terminal=True, legacy_windows=False)
    console.print(text)
    console.save_svg(str(path), title=title, theme=DIMMED_MONOKAI, code_format=FORMAT, unique_id=path.stem)


if __name__ == "__main__":
    main(Path(sys.argv[1]))

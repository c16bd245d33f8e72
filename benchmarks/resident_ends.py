"""The two ends of ``resident.py``: an agent's program without us, and a terminal whose text has stamps."""

from __future__ import annotations

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

import pyte

from ironcurtain.agents.adapter import Facts
from ironcurtain.agents.registry import AgentRegistry
from ironcurtain.agents.streams.reports import Outgoing, Text, TurnOver
from tests.product import wait_until

COLUMNS, ROWS = 120, 50
PATIENCE = 120.0
"""Seconds that anything may take."""

STAMP = re.compile(r"at (\d+\.\d{6})")
ASKS_PLACE, PLACE = b"\x1b[6n", b"\x1b[1;1R"
"""A program asks where the cursor is, and what a terminal answers."""

GEMINI_SETTINGS = {
    "security": {"auth": {"selectedType": "gemini-api-key"}},
    "privacy": {"usageStatisticsEnabled": False},
}


LINES: Mapping[str, Sequence[str]] = {
    "claude-code": (
        *("claude", "--print", "--input-format", "stream-json", "--output-format", "stream-json", "--verbose"),
        *("--include-partial-messages", "--replay-user-messages"),
    ),
    "codex": ("codex", "app-server"),
    "gemini": ("gemini", "--yolo", "--acp"),
    "opencode": ("opencode", "acp"),
}
"""The programs that stay, as the adapters start them, without our MCP server and instructions."""


class Alone:
    """
    A program of this machine that stays, without a sandbox and without us.

    :param directory: becomes its home.
    :param url: of the model.
    :param keys: by provider.
    """

    def __init__(self, agent: str, directory: Path, url: str, keys: Mapping[str, str]) -> None:
        adapter = AgentRegistry().find(agent)
        project, usable = directory / "project", {name: keys[name] for name in adapter.providers if name in keys}
        project.mkdir()
        facts = Facts({next(iter(usable)): next(iter(usable.values()))}, "", "", 300.0, False, directory=str(project))
        environ = {**adapter.environment(facts), **_addresses(url, directory)}
        self._talk = adapter.dialogue(facts)
        self._process = subprocess.Popen(
            LINES[agent] if agent != "codex" else [*LINES[agent], *_codex(url)],
            cwd=project,
            env={"PATH": os.environ["PATH"], "HOME": str(directory), **environ},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._write(self._talk.begin())

    def __enter__(self) -> Alone:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.communicate()

    def say(self, text: str) -> dict[float, float]:
        """:returns: when each stamped piece of the answer came, by its stamp."""
        self._write(self._talk.message(text))
        said, stamps = "", dict[float, float]()
        assert self._process.stdout is not None
        while data := os.read(self._process.stdout.fileno(), 1 << 16):
            now = time.monotonic()
            for report in self._talk.output(data):
                match report:
                    case Outgoing(answer):
                        self._write(answer)
                    case Text(piece):
                        said += piece
                        for stamp in STAMP.findall(said):
                            stamps.setdefault(float(stamp), now)
                    case TurnOver(failed=failed):
                        # Claude Code answers without our MCP server, which its dialogue takes for a failure.
                        assert failed is None or failed.kind == "mcp-down", failed
                        return stamps
        raise SystemExit("the agent's program ended")

    def _write(self, data: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(data)
        self._process.stdin.flush()


def _addresses(url: str, home: Path) -> dict[str, str]:
    settings = home / ".gemini" / "settings.json"
    settings.parent.mkdir()
    settings.write_text(json.dumps(GEMINI_SETTINGS))
    opencode = home / "opencode.json"
    providers = {"anthropic": {"options": {"baseURL": f"{url}/v1"}}}
    # Else it would choose a model of its maker's.
    chosen = {"provider": providers, "disabled_providers": ["google", "opencode"]}
    opencode.write_text(json.dumps({**chosen, "agent": {"title": {"disable": True}}}))
    return {
        "ANTHROPIC_BASE_URL": url,
        "GOOGLE_GEMINI_BASE_URL": url,
        "GEMINI_CLI_TRUST_WORKSPACE": "true",
        "OPENCODE_CONFIG": str(opencode),
    }


def _codex(url: str) -> Sequence[str]:
    name = "model_providers.here"
    return (
        *("-c", 'model_provider="here"', "-c", f'{name}.name="here"', "-c", f'{name}.base_url="{url}/v1"'),
        *("-c", f'{name}.env_key="OPENAI_API_KEY"', "-c", f'{name}.wire_api="responses"'),
    )


class Watched:
    """
    A command in a terminal of its own, which answers what it is asked, and notes when stamps are seen.

    :ivar stamps: when each was seen first.
    """

    def __init__(self, line: Sequence[str], environ: Mapping[str, str], directory: str) -> None:
        self.stamps: dict[float, float] = {}
        self._known = frozenset[float]()
        self._shown, self._last = "", time.monotonic()
        self._screen = pyte.Screen(COLUMNS, ROWS)
        self._stream = pyte.ByteStream(self._screen)
        self._pid, self._terminal = pty.fork()
        if not self._pid:
            os.chdir(directory)
            os.execvpe(line[0], list(line), {**environ, "TERM": "xterm-256color"})
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self._over = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def __enter__(self) -> Watched:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.kill(self._pid, signal.SIGTERM)
        os.waitpid(self._pid, 0)
        self._over.set()
        self._reader.join()
        os.close(self._terminal)

    def type(self, text: str) -> float:
        """:returns: when Enter was pressed, once the text is shown."""
        self.press(text.encode())
        self.quiet()
        said = time.monotonic()
        self.press(b"\r")
        return said

    def press(self, keys: bytes) -> None:
        """Press keys."""
        os.write(self._terminal, keys)

    def until(self, words: str) -> None:
        """
        Wait until words were shown.

        :raises SystemExit: they do not come.
        """
        try:
            wait_until(lambda: words in self._shown, PATIENCE)
        except AssertionError:
            raise SystemExit(f"{words!r} did not come: {self._shown[-2000:]!r}") from None

    def forget(self) -> None:
        """Forget the stamps that were seen so far, although some are still shown."""
        self._known, self.stamps = frozenset(self.stamps), {}

    def quiet(self) -> None:
        """Wait until nothing has come for a while."""
        wait_until(lambda: time.monotonic() - self._last > 0.3, PATIENCE)

    def _read(self) -> None:
        while not self._over.is_set():
            if not select.select([self._terminal], [], [], 0.1)[0]:
                continue
            try:
                data = os.read(self._terminal, 1 << 16)
            except OSError:  # the command has ended
                return
            now = time.monotonic()
            if ASKS_PLACE in data:
                self.press(PLACE)
            self._last = now
            self._stream.feed(data)  # programs draw only the cells that change
            self._shown = "\n".join(self._screen.display)
            for stamp in {float(found) for found in STAMP.findall(self._shown)} - self._known:
                self.stamps.setdefault(stamp, now)

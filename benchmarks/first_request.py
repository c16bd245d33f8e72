"""
How long agents take from their start to their first model request: bare, and in a session without Docker, which runs in
the process of the command or in a daemon.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from benchmarks.daemon import daemon

PATIENCE = 60.0
"""Seconds that a start may take."""

KEY = "sk-ant-api03-real-key-of-the-benchmark-0123456789"


@dataclass(frozen=True, slots=True)
class AgentStart:
    """
    One agent.

    :param agent: as ``--agent`` has it.
    :param argv: the program without us, of which ``URL`` is replaced.
    :param variables: its environment, likewise; ``HOME`` is its home.
    :param provider: the provider in the settings, and ``key``, the variable with its key.
    :param ask: part of the path of a model request.
    :param files: what it needs in its home, by path.
    """

    agent: str
    argv: Sequence[str]
    variables: Mapping[str, str]
    provider: str
    key: str
    ask: str
    files: Mapping[str, str] = field(default_factory=dict)


AGENTS = (
    AgentStart(
        "claude-code",
        ("claude", "--print", "hello"),
        {"ANTHROPIC_BASE_URL": "URL", "ANTHROPIC_API_KEY": KEY},
        "anthropic",
        "ANTHROPIC_API_KEY",
        "/messages",
    ),
    AgentStart(
        "codex",
        (
            *("codex", "exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
            *("-c", 'model_provider="here"', "-c", 'model_providers.here.name="here"'),
            *("-c", 'model_providers.here.base_url="URL/v1"', "-c", 'model_providers.here.env_key="OPENAI_API_KEY"'),
            *("-c", 'model_providers.here.wire_api="responses"', "hello"),
        ),
        {"OPENAI_API_KEY": KEY},
        "openai",
        "OPENAI_API_KEY",
        "/responses",
    ),
    AgentStart(
        "gemini",
        ("gemini", "--yolo", "--prompt", "hello"),
        {
            **{"GOOGLE_GEMINI_BASE_URL": "URL", "GEMINI_API_KEY": KEY, "GEMINI_CLI_TRUST_WORKSPACE": "true"},
            **{"GEMINI_CLI_NO_RELAUNCH": "true", "NODE_COMPILE_CACHE": "HOME/.cache/node-compile-cache"},
        },
        "google",
        "GEMINI_API_KEY",
        "enerateContent",  # the first one asks which model is to answer
        {".gemini/settings.json": '{"security": {"auth": {"selectedType": "gemini-api-key"}}}'},
    ),
)


class _Server(ThreadingHTTPServer):
    def handle_error(self, *words: object) -> None:
        """Say nothing of programs that are ended while they are answered."""


class Model:
    """A server that notices model requests, and refuses all."""

    def __init__(self) -> None:
        self.asked = threading.Event()
        self.wanted = ""
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                """Notice a request."""
                if model.wanted in self.path:
                    model.asked.set()
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                self.send_response(400)
                self.send_header("Content-Length", "0")
                self.end_headers()

            do_GET = do_HEAD = do_POST

            def log_message(self, *words: object) -> None:
                """Say nothing."""

        self._server = _Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def seconds(self, wanted: str, argv: Sequence[str], environ: Mapping[str, str], directory: str) -> float:
        """
        :param wanted: part of the path of a model request.
        :returns: seconds from the start of a program to its first one, after which it is ended.
        :raises RuntimeError: there was none.
        """
        self.wanted = wanted
        self.asked.clear()
        begun = time.perf_counter()
        process = subprocess.Popen(
            argv,
            env=environ,
            cwd=directory,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )
        came = self.asked.wait(PATIENCE)
        taken = time.perf_counter() - begun
        process.terminate()
        said = process.communicate()[1].decode(errors="replace")
        if not came:
            raise RuntimeError(f"{argv[0]} made no model request: {said[-500:]}")
        return taken


def measured(ours: str, rounds: int) -> dict[str, list[float]]:
    """
    :param ours: path of the command ``ironcurtain``.
    :returns: by name, seconds to the first model request, of the agents that are installed.
    """
    times: dict[str, list[float]] = {}
    model = Model()
    for each in AGENTS:
        if shutil.which(each.argv[0]) is None:
            continue
        with tempfile.TemporaryDirectory(prefix="ic-") as directory:
            project = Path(directory, "project")
            project.mkdir()
            project.chmod(0o777)  # root's agents run as another account
            home = Path(directory, ".ironcurtain")
            home.mkdir(mode=0o700)
            (home / "config.toml").write_text(f'[providers.{each.provider}]\nbase_url = "{model.url}"\n')
            usual = {"HOME": directory, "PATH": os.environ["PATH"]}
            bare = {
                name: value.replace("URL", model.url).replace("HOME", directory)
                for name, value in each.variables.items()
            }
            for path, content in each.files.items():
                file = Path(directory, path)
                file.parent.mkdir(parents=True)
                file.write_text(content)
            argv = [word.replace("URL", model.url) for word in each.argv]
            session = [ours, "start", "--agent", each.agent, "--sandbox", "bubblewrap", "--workspace", ".", "hello"]
            own = {**usual, each.key: KEY}
            for _ in range(rounds):
                for name, line, environ in (
                    (f"{each.agent} alone, to its first model request", argv, {**usual, **bare}),
                    (f"{each.agent} in a session without Docker", session, own),
                ):
                    times.setdefault(name, []).append(model.seconds(each.ask, line, environ, str(project)))
            with daemon(home, own):
                name = f"{each.agent} in a session of a daemon"
                times[name] = [model.seconds(each.ask, session, own, str(project)) for _ in range(rounds)]
    return times

"""Start installed applications, by the entries that their packages have for menus (Desktop Entry Specification)."""

from __future__ import annotations

import asyncio
import os
import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from ironcurtain.servers.desktop.guard import Guard
from ironcurtain.servers.desktop.looking import described, text_part
from ironcurtain.servers.desktop.model import DesktopError, shown
from ironcurtain.servers.desktop.screen import screen
from ironcurtain.servers.server import Part
from ironcurtain.text.decoding import decode_anyhow

PLACES = ("/usr/local/share/applications", "/usr/share/applications")
"""Where entries are looked for: where only root can write, so that no agent can add one."""

START_SECONDS = 10.0
"""How long an application may take until it has a window."""

_FIELD = re.compile(r"%[a-zA-Z]")


class Entry(msgspec.Struct, frozen=True):
    """An application: the words that start it, and whether it needs a terminal."""

    words: tuple[str, ...]
    in_terminal: bool


def read_entry(text: str) -> Entry | None:
    """:returns: the application of an entry; ``None`` if it is none."""
    group, found = "", dict[str, str]()
    for line in text.splitlines():
        if line.startswith("["):
            group = line.strip()
        elif group == "[Desktop Entry]" and "=" in line and not line.startswith("#"):
            key, _, value = line.partition("=")
            found.setdefault(key.strip(), value.strip())
    try:
        words = shlex.split(found.get("Exec", ""))
    except ValueError:
        return None
    words = [word.replace("%%", "%") for word in words if not _FIELD.fullmatch(word)]
    if found.get("Type") != "Application" or not words or found.get("Hidden") == "true":
        return None
    return Entry(tuple(words), found.get("Terminal") == "true")


def find(app: str, places: Sequence[str] = PLACES) -> Entry:
    """
    :param app: name of the program that an entry runs.
    :raises DesktopError: no such application is installed.
    """
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9._+ -]{0,99}", app):
        raise DesktopError("app is the name of a program")
    found = []
    for path in (path for place in places for path in sorted(Path(place).glob("*.desktop"))):
        try:
            entry = read_entry(decode_anyhow(path.read_bytes()))
        except OSError:
            continue
        if entry is not None and app == os.path.basename(entry.words[0]):
            found.append(entry)
    if not found:
        raise DesktopError(f"no application {shown(app, 100)} is installed (in {' or '.join(places)})")
    return min(found, key=lambda entry: len(entry.words))  # others open a part of it, such as its settings


async def open_application(environ: Mapping[str, str], app: str) -> list[Part]:
    """It runs on when this server ends: it is the user's now."""
    entry = find(app)
    if entry.in_terminal:
        raise DesktopError(f"{app} needs a terminal; it is not opened")
    with screen(environ) as found:
        before = {each.id for each in found.windows(Guard().app)}
        try:
            process = subprocess.Popen(
                entry.words, env=dict(environ), cwd=environ.get("HOME", "/"), start_new_session=True,
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )  # fmt: skip
        except OSError as e:
            raise DesktopError(f"{app} cannot be started: {e.strerror}") from None
        for _ in range(round(START_SECONDS / 0.1)):
            await asyncio.sleep(0.1)
            process.poll()
            listed = [each for each in found.windows(Guard().app) if each.id not in before]
            if own := [each for each in listed if each.pid == process.pid or each.app == app]:
                return [text_part({"opened": described(own[0])})]
            if process.returncode not in (None, 0):
                raise DesktopError(f"{app} ended with status {process.returncode}")
    return [text_part(f"{app} was started, and has no window yet")]

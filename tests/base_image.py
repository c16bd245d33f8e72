"""
An image for the agents' images to stand on, made where none can be fetched: Debian's smallest, by debootstrap.

It is made once a machine and kept in ``~/.cache/ironcurtain-tests``, so that it is the same in every Engine, and what
was built on it stays good. Where it cannot be made, tests are skipped with the reason, which is a failure under CI.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote

from twisted.trial.unittest import SkipTest

from tests import engine as test_engine
from tests.programs import program

REPOSITORY = "ironcurtain-test-debian"

SCRIPTS = Path("/usr/share/debootstrap/scripts")

LISTS = ("/etc/apt/sources.list", "/etc/apt/sources.list.d/*.list")
SOURCES = "/etc/apt/sources.list.d/*.sources"

MAKE_SECONDS = 1200.0
"""How long debootstrap may take (it took 60 s with two processors)."""


def cache_directory() -> Path:
    """:returns: where images are kept between test runs."""
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    directory = Path(base) / "ironcurtain-tests"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


@cache
def base_image() -> str:
    """:returns: the name of the image, which the Engine has."""
    test_engine.engine()
    mirror, suite = mirror_and_suite()
    name = f"{REPOSITORY}:{suite}"
    directory = cache_directory()
    file = directory / f"{REPOSITORY}-{suite}.tar"
    with (directory / "base-image.lock").open("w") as lock:  # one process makes it, others wait
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not has(name) and file.exists():
            _docker("load", "--quiet", "--input", str(file))
        if not has(name):
            _make(name, mirror, suite)
        if not file.exists():
            part = file.with_suffix(".part")
            _docker("save", "--output", str(part), name)
            part.rename(file)
    return name


def has(name: str) -> bool:
    """:returns: whether the Engine has an image of this name."""
    filters = quote(f'{{"reference":["{name}"]}}')
    return bool(test_engine.call("GET", f"/images/json?filters={filters}")[0])


def mirror_and_suite() -> tuple[str, str]:
    """:returns: where this machine gets its own packages from: the first source that debootstrap knows."""
    for uri, suite, components in (*_lines(), *_stanzas()):
        if "main" in components and (SCRIPTS / suite).exists():
            return uri, suite
    program("debootstrap")
    raise SkipTest("apt has no source here that debootstrap knows")


def _lines() -> Iterator[tuple[str, str, list[str]]]:
    for path in _files(*LISTS):
        for line in path.read_text().splitlines():
            if found := re.match(r"deb\s+(?:\[[^]]*\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)\s+(?P<components>.*)", line):
                yield found["uri"], found["suite"], found["components"].split()


def _stanzas() -> Iterator[tuple[str, str, list[str]]]:
    for path in _files(SOURCES):
        for stanza in re.split(r"\n\s*\n", path.read_text()):
            fields = dict(re.findall(r"^([A-Za-z-]+):[ \t]*(.*)$", stanza, re.MULTILINE))
            if "deb" in fields.get("Types", "").split() and fields.get("URIs") and fields.get("Suites"):
                yield fields["URIs"].split()[0], fields["Suites"].split()[0], fields.get("Components", "").split()


def _files(*patterns: str) -> list[Path]:
    return [path for pattern in patterns for path in sorted(Path("/").glob(pattern.lstrip("/")))]


def _make(name: str, mirror: str, suite: str) -> None:
    debootstrap = program("debootstrap")
    if os.geteuid() != 0:
        raise SkipTest("only root can make an image of Debian")
    with tempfile.TemporaryDirectory(prefix="ic-debian-") as directory:
        root = Path(directory, "root")
        _run(debootstrap, "--variant=minbase", "--include=ca-certificates", suite, str(root), mirror)
        for waste in ("var/cache/apt/archives", "var/lib/apt/lists"):
            shutil.rmtree(root / waste)
        packed = Path(directory, "root.tar")
        _run("tar", "--create", "--numeric-owner", "--file", str(packed), "--directory", str(root), ".")
        _docker("import", "--change", 'CMD ["/bin/sh"]', str(packed), name)


def _docker(*words: str) -> None:
    _run(program("docker"), *words)


def _run(*words: str) -> None:
    environ = {**os.environ, **test_engine.environment()}
    done = subprocess.run(words, env=environ, capture_output=True, text=True, timeout=MAKE_SECONDS, check=False)
    if done.returncode:
        raise SkipTest(f"{' '.join(words[:2])} failed: {(done.stdout + done.stderr)[-500:]}")

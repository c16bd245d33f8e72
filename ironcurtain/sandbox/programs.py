"""Start programs in sandboxes: with bubblewrap, or with the Docker Engine if bubblewrap is unavailable."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from ironcurtain.process.accounts import Account
from ironcurtain.sandbox import bubblewrap, container
from ironcurtain.sandbox.spec import Sandbox


def unavailable(account: Account | None = None) -> str | None:
    """
    :param account: the account that programs will run as; ``None``: that of this process.
    :returns: ``None`` if sandboxes work, else the reason in words.
    """
    if (problem := bubblewrap.available(account)) is None or (no_engine := container.available()) is None:
        return None
    return f"{problem}; nor does the Docker Engine help: {no_engine}"


def inputs(sandbox: Sandbox) -> dict[int, bytes]:
    """:returns: the data that the sandboxing program reads, by descriptor."""
    return bubblewrap.inputs(sandbox) if bubblewrap.available(sandbox.account) is None else {}


def command(sandbox: Sandbox, argv: Sequence[str], descriptors: Mapping[int, int] = {}) -> list[str]:
    """
    :param descriptors: replacements for the descriptor numbers of :func:`inputs`.
    :returns: the command line that runs ``argv`` in a sandbox, its program as an absolute path.
    """
    if bubblewrap.available(sandbox.account) is not None:
        return container.command(sandbox, argv, os.environ)
    return bubblewrap.command(sandbox, argv, descriptors)


def run(
    sandbox: Sandbox,
    argv: Sequence[str],
    environment: Mapping[str, str],
    seconds: float | None = None,
    out: Path | None = None,
) -> subprocess.CompletedProcess[bytes]:
    """
    Run a program without input, and wait for its end.

    :param out: a file for its standard output.
    :raises subprocess.TimeoutExpired: it took longer than ``seconds``; it is ended.
    """
    with ExitStack() as stack:
        descriptors = stack.enter_context(bubblewrap.opened(inputs(sandbox)))
        output = subprocess.PIPE if out is None else stack.enter_context(out.open("wb"))
        return subprocess.run(
            command(sandbox, argv, descriptors),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=seconds,
            env=dict(environment),
            pass_fds=list(descriptors.values()),
            check=False,
        )

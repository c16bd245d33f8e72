"""Choose the surface for the standard streams."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TextIO

from twisted.internet.interfaces import IReactorFDSet

from ironcurtain.cli.terminal.plain import PlainSurface
from ironcurtain.cli.terminal.surface import Surface


def standard_surface(
    reactor: IReactorFDSet,
    stdin: TextIO | None,
    stdout: TextIO | None,
    stderr: TextIO | None,
    environ: Mapping[str, str],
    now: Callable[[], float],
) -> Surface:
    """
    :param now: returns seconds of the reactor's clock.
    :returns: the terminal, if input and output are one that can be drawn on; else plain streams.
    """
    if stdin is not None and stdin.isatty() and not in_foreground(stdin.fileno()):
        return PlainSurface(reactor, None, stdout, stderr, now)
    if stdin is None or stderr is None or not (stdin.isatty() and stderr.isatty() and _can_redraw(environ)):
        return PlainSurface(reactor, stdin, stdout, stderr, now)
    from ironcurtain.cli.terminal.prompt import prompt_surface

    return prompt_surface(stdin, stderr, environ, now)


def _can_redraw(environ: Mapping[str, str]) -> bool:
    return environ.get("TERM", "") not in ("", "dumb")


def in_foreground(fd: int) -> bool:
    """:returns: whether this process may read the terminal; a background job would be stopped."""
    try:
        return os.tcgetpgrp(fd) == os.getpgrp()
    except OSError:  # it is not the controlling terminal
        return True

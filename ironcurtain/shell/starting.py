"""How the user's shell is started, as the command line, the settings and the environment say."""

from __future__ import annotations

import os
import pwd
import shlex
from collections.abc import Callable, Mapping
from typing import Any, Literal

import msgspec

from ironcurtain.errors import ConfigurationError, UsageError
from ironcurtain.home.sections import Context
from ironcurtain.home.settings import Settings
from ironcurtain.shell.inheritance import VARIABLE, as_variable, policies_in
from ironcurtain.shell_integration.preparation import Prepared, prepare
from ironcurtain.traces.context import TraceContext, join_trace, with_sink

MARK, SIGN = "IRONCURTAIN_MARK", "ironcurtain"
"""A variable that users can place in their prompt or title, and what it holds unless they have set it."""

NONCE_BYTES = 16
"""Length of the nonce of a shell's marks."""


class ShellOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """
    What a request says about a shell.

    :param directory: where it starts.
    :param args: its arguments.
    :param program: the shell; empty: ``shell.command``, else ``$SHELL``.
    :param backend: in place of ``shell.backends``; several are asked one after the other.
    :param confirm: in place of ``shell.confirm_mode``.
    """

    directory: str
    args: tuple[str, ...] = ()
    program: str = ""
    backend: str | tuple[str, ...] = ""
    model: str = ""
    confirm: Literal["", "auto", "each", "plan"] = ""


def options_of(options: Mapping[str, Any]) -> ShellOptions:
    """
    :param options: of a session.
    :raises UsageError: they are no options of a shell.
    """
    try:
        return msgspec.convert(options["shell"], ShellOptions)
    except (KeyError, msgspec.ValidationError) as e:
        raise UsageError(f"these are no options of a shell: {e}") from None


class ShellStart(msgspec.Struct, frozen=True):
    """
    How one shell is started.

    :param nonce: of its marks.
    :param trace: the place of its agent in a trace.
    """

    prepared: Prepared
    nonce: str
    trace: TraceContext


def shell_start(
    options: ShellOptions,
    settings: Settings,
    environ: Mapping[str, str],
    traces: str,
    approval: Mapping[str, Any],
    new_id: Callable[[int], str],
) -> ShellStart:
    """
    :param environ: ours, which is the user's.
    :param traces: path of the file of spans where the settings name none.
    :param approval: what its agent may do: ``[approval]`` of the policy.
    :param new_id: gives random bytes in hexadecimal, such as ``secrets.token_hex``.
    """
    own, nonce = settings.shell, new_id(NONCE_BYTES)
    trace = with_sink(join_trace(environ, new_id), settings.telemetry, traces)
    words = [options.program] if options.program else shlex.split(own.command) or [_login_shell(environ)]
    given = {name: value for name, value in environ.items() if name not in ("COLUMNS", "LINES")}
    given[MARK] = given.get(MARK) or SIGN
    given |= trace.environment() if trace.sink is not None else {}
    given |= _passed_on(environ, approval) if own.share_policy else {}
    args = (*words[1:], *options.args)
    if not own.integration:
        return ShellStart(Prepared((words[0], *args), given, False, "shell.integration is false"), nonce, trace)
    return ShellStart(prepare(words[0], args, given, nonce, _asked(settings.context)), nonce, trace)


def _passed_on(environ: Mapping[str, str], approval: Mapping[str, Any]) -> dict[str, str]:
    """:returns: what agents that this one starts on other machines are told."""
    try:
        return {VARIABLE: as_variable(policies_in(environ).joined(approval))}
    except ConfigurationError:  # as it is, it stops them too
        return {}


def _asked(context: Context) -> tuple[str, ...]:
    """:returns: the names of the variables that the shell reports with each instruction."""
    if not context.requery_env:
        return ()
    from ironcurtain.shell.scrubbing import environment

    return tuple(environment(dict.fromkeys(context.include_env, ""), context.include_env))


def _login_shell(environ: Mapping[str, str]) -> str:
    if shell := environ.get("SHELL", ""):
        return shell
    try:
        return pwd.getpwuid(os.geteuid()).pw_shell or "/bin/sh"
    except KeyError:
        return "/bin/sh"

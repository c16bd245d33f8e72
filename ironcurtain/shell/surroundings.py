"""What the parts of one shell's session have in common."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from ironcurtain.home.settings import Settings
from ironcurtain.home.user_paths import person_home
from ironcurtain.policy.rules import Policy
from ironcurtain.session.parts import Core
from ironcurtain.session.tool_files import ToolFiles
from ironcurtain.session.tools import session_protected
from ironcurtain.shell.scrubbing import Scrubber, secrets_of
from ironcurtain.shell.starting import ShellOptions, ShellStart, options_of, shell_start

PIPE_SIZE = (120, 40)
"""Columns and rows of the terminal that a shell has where nobody looks at one."""


class ShellSurroundings(msgspec.Struct, frozen=True):
    """
    :param environ: ours, which is the user's.
    :param options: what the request says about the shell.
    :param start: how the shell is started, or was.
    :param home: absolute path of the user's home directory.
    :param protected: absolute paths that the agent may not touch.
    :param scrubber: keeps secrets out of what leaves the machine.
    """

    core: Core
    reactor: Any
    environ: Mapping[str, str]
    options: ShellOptions
    start: ShellStart
    policy: Policy
    home: str
    protected: tuple[str, ...]
    scrubber: Scrubber

    @classmethod
    def of(cls, core: Core, reactor: Any, environ: Mapping[str, str], started: ShellStart | None) -> ShellSurroundings:
        """
        :param started: the shell that runs in this process's terminal already, if any.
        :raises ConfigurationError: the policy is wrong.
        """
        services, options = core.services, options_of(core.request.options)
        settings, traces = services.settings, str(services.home.traces)
        for secret in secrets_of(environ):  # so that they are not in the session's files either
            services.redactor.add_own(secret)
        policy = ToolFiles.chosen(services.home, core.request.options).load_policy()
        return cls(
            core,
            reactor,
            environ,
            options,
            started or shell_start(options, settings, environ, traces, policy.approval, secrets.token_hex),
            policy,
            person_home(environ, os.geteuid()),
            session_protected(core, environ),
            Scrubber(services.redactor, environ, settings.context.scrub),
        )

    @property
    def settings(self) -> Settings:
        """Of all sessions of this process."""
        return self.core.services.settings

    @property
    def size(self) -> tuple[int, int]:
        """Columns and rows of the shell's terminal at first."""
        return self.core.request.terminal or PIPE_SIZE

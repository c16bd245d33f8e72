"""What the model of a shell's session is told, without secrets."""

from __future__ import annotations

import secrets
import sys
from collections.abc import Mapping, Sequence

from ironcurtain.shell.context import Prompt, ShellState, prompt, result
from ironcurtain.shell.messages import StepCompleted
from ironcurtain.shell.scrubbing import Scrubber, environment
from ironcurtain.shell.wrapped import WrappedShell


class SessionPrompts:
    """
    :param scrubber: takes secrets out.
    :param environ: ours.
    :param included: names of variables that it is told.
    :ivar instruction: the last one.
    """

    def __init__(
        self, scrubber: Scrubber, environ: Mapping[str, str], included: Sequence[str], wrapped: WrappedShell
    ) -> None:
        self._scrubber, self._environ, self._included, self._wrapped = scrubber, environ, included, wrapped
        self._mark = secrets.token_hex(8)
        self.instruction = ""

    def describe(self, instruction: str) -> Prompt:
        """:returns: an instruction, with the state of the shell."""
        self.instruction, wrapped = instruction, self._wrapped
        state = ShellState(
            directory=wrapped.directory,
            shell=wrapped.name,
            platform=sys.platform,
            status=wrapped.state.status,
            environ=environment({**self._environ, **wrapped.state.variables}, self._included),
            terminal=tuple(wrapped.output.lines.take()),
        )
        return prompt(instruction, state, self._scrubber.text, self._mark)

    def result(self, step: StepCompleted, remark: str) -> str:
        """:returns: how a step ended."""
        return result(step.exit_code, step.output, self._scrubber.text, self._mark, remark)

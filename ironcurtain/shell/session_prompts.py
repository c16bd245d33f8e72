"""What the model of a shell's session is told, without secrets."""

from __future__ import annotations

import secrets
import sys

from ironcurtain.shell.context import Prompt, ShellState, prompt, result
from ironcurtain.shell.messages import StepCompleted
from ironcurtain.shell.scrubbing import environment
from ironcurtain.shell.surroundings import ShellSurroundings
from ironcurtain.shell.wrapped import WrappedShell


class SessionPrompts:
    """
    :param wrapped: whose state it is told.
    :ivar instruction: the last one.
    """

    def __init__(self, around: ShellSurroundings, wrapped: WrappedShell) -> None:
        self._around, self._wrapped, self._clean = around, wrapped, around.scrubber.text
        self._mark = secrets.token_hex(8)
        self.instruction = ""

    def describe(self, instruction: str) -> Prompt:
        """:returns: an instruction, with the state of the shell."""
        self.instruction, wrapped = instruction, self._wrapped
        variables = {**self._around.environ, **wrapped.state.variables}
        state = ShellState(
            directory=wrapped.directory,
            shell=wrapped.name,
            platform=sys.platform,
            status=wrapped.state.status,
            environ=environment(variables, self._around.settings.context.include_env),
            terminal=tuple(wrapped.output.lines.take()),
        )
        return prompt(instruction, state, self._clean, self._mark)

    def result(self, step: StepCompleted, remark: str) -> str:
        """:returns: how a step ended."""
        return result(step.exit_code, step.output, self._clean, self._mark, remark)

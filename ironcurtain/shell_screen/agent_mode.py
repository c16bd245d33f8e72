"""The agent mode in a terminal: what the agent says is drawn, keys become actions, commands are edited."""

from __future__ import annotations

import os

from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from ironcurtain.errors import IronCurtainError
from ironcurtain.shell.agent import ShellAgent
from ironcurtain.shell.editor import Editor
from ironcurtain.shell.messages import Action, Edit, Message, Notice
from ironcurtain.shell.terminal_mode import Left
from ironcurtain.shell_screen.keyboard import EditRequested, Keyboard, Local, Suspend
from ironcurtain.shell_screen.panel import Panel
from ironcurtain.shell_screen.screen import Screen
from ironcurtain.terminal.hub import Hub
from ironcurtain.terminal.keys import ForwardedInput
from ironcurtain.view.look import TICK_SECONDS, look_for


class InlineAgentMode:
    """
    Draws below the prompt, for all viewers of a terminal.

    :param agent: gets what keys mean.
    :param hub: of the terminal.
    :param clock: the reactor, or a ``Clock``.
    """

    log = Logger()

    def __init__(self, agent: ShellAgent, hub: Hub, clock: IReactorTime) -> None:
        self._agent, self._hub, self._clock = agent, hub, clock
        self._panel = Panel(look_for(os.environ))
        self._keyboard, self._screen = Keyboard(self._panel), Screen(self._panel, *hub.size)
        self._timer: IDelayedCall | None = None
        self._shown = False
        self._editor: Editor | None = None

    def begin(self) -> None:
        """Take the terminal."""
        self._shown = True
        self._draw()

    def tell(self, message: Message) -> None:
        """Show what the agent says."""
        self._panel.receive(message, self._clock.seconds())
        self._draw()

    def output(self, data: bytes) -> None:
        """Show output of the command that runs."""
        self._hub.received(self._screen.output(data, self._clock.seconds()))

    def typed(self, data: bytes) -> None:
        """Keys."""
        if self._editor is not None:
            self._panel.keys.strike(self._clock.seconds())
            self._editor.write(data)
            return
        self._act(self._keyboard.typed(data, self._clock.seconds()))

    def resized(self, columns: int, rows: int) -> None:
        """The terminal has another size."""
        self._screen.resize(columns, rows)
        if self._editor is not None:
            self._editor.resize(columns, rows)
        self._draw()

    def suspend(self) -> None:
        """Give the terminal back for now."""
        self._hub.received(self._screen.remove())
        self._shown = False
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def end(self) -> Left:
        """
        Give the terminal back.

        :returns: what was typed, and is not for the agent any more.
        """
        self._draw()
        self.suspend()
        unsent, self._panel.unsent = self._panel.unsent, ""
        return Left(unsent, *self._keyboard.give_up())

    def _act(self, wanted: list[Action | Local]) -> None:
        for each in wanted:
            if isinstance(each, Suspend):
                self._agent.suspend(each.rest)
                if self._shown:  # a command that is typed and does not run yet keeps the terminal
                    self._keyboard.untake(each.rest)
                    self._panel.hint = "a command begins: press Esc again when it has ended"
            elif isinstance(each, EditRequested):
                self._edit(each)
            elif isinstance(each, ForwardedInput):
                self._agent.type(each.data)
            else:
                self._do(each)
        self._draw()

    def _do(self, action: Action) -> None:
        try:
            self._agent.act(action)
        except IronCurtainError as e:
            self._panel.receive(Notice(text=str(e)), self._clock.seconds())

    def _draw(self) -> None:
        if not self._shown or self._editor is not None:
            return
        now = self._clock.seconds()
        if drawn := self._screen.draw(now):
            self._hub.received(drawn)
        times = [each for each in (self._keyboard.due, self._panel.due) if each is not None and each > now]
        delay = min(TICK_SECONDS, *(each - now for each in times)) if times else TICK_SECONDS
        if self._timer is not None and self._timer.active():
            self._timer.reset(delay)
        else:
            self._timer = self._clock.callLater(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._act(self._keyboard.tick(self._clock.seconds()))

    def _edit(self, wanted: EditRequested) -> None:
        self._hub.received(self._screen.remove())

        def edited(command: str | None, problem: str) -> None:
            self._editor = None
            if problem:
                self._panel.receive(Notice(text=problem), self._clock.seconds())
            if command is not None and command != wanted.step.command:
                self._do(Edit(plan_id=wanted.plan_id, step=wanted.step.number, command=command))
            self._draw()

        self._editor = Editor(self._agent, self._hub, edited)
        self._editor.begin(wanted.step.command)

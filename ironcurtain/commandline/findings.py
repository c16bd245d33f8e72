"""What the readers of one command line have found so far."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import msgspec

from ironcurtain.commandline.model import CommandLine, SimpleCommand, Stage, Word
from ironcurtain.commandline.plain import Pipeline

COMMAND_LIMIT = 500
"""Most commands in one line."""

WORD_LIMIT = 600
"""Most words in all commands of one line, those around other commands included."""


class Findings(msgspec.Struct):
    """
    The commands, redirections and doubts of one line, including those of texts within it.

    :param variables: the variables whose values are known.
    :param shell: the shell that reads the line.
    """

    variables: Mapping[str, str] = msgspec.field(default_factory=dict)
    shell: str = "bash"
    commands: list[SimpleCommand] = msgspec.field(default_factory=list)
    pipelines: list[tuple[Stage, ...]] = msgspec.field(default_factory=list)
    reads: list[Word] = msgspec.field(default_factory=list)
    writes: list[Word] = msgspec.field(default_factory=list)
    doubts: dict[str, None] = msgspec.field(default_factory=dict)
    changes_shell: bool = False
    words: int = 0

    def doubt(self, *sentences: str) -> None:
        """Add sentences that say what the text does not show."""
        self.doubts.update(dict.fromkeys(sentences))

    def add(self, command: SimpleCommand) -> list[SimpleCommand]:
        """:returns: the command, unless there are too many."""
        if len(self.commands) >= COMMAND_LIMIT:
            self.doubt(f"it has more than {COMMAND_LIMIT} commands")
            return []
        self.words += sum(map(len, command.levels))
        if self.words > WORD_LIMIT:
            self.doubt(f"it has more than {WORD_LIMIT} words")
            return []
        self.commands.append(command)
        return [command]

    def flow(self, stages: Iterable[Iterable[SimpleCommand]]) -> None:
        """Note that the commands of each stage get the output of the stage before."""
        chain = tuple(tuple(stage) for stage in stages)
        if all(chain) and len(self.pipelines) < COMMAND_LIMIT:
            self.pipelines.append(chain)

    def redirect(self, pipeline: Pipeline) -> None:
        """Note the files of its redirections."""
        for command in pipeline:
            self.reads += command.reads
            self.writes += command.writes

    def result(self) -> CommandLine:
        """:returns: everything that was found."""
        return CommandLine(
            tuple(self.commands),
            tuple(self.pipelines),
            tuple(self.reads),
            tuple(self.writes),
            tuple(self.doubts),
            self.changes_shell,
        )

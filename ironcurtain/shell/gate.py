"""
Judges the commands that the agent of a shell wants to run, and the files that it wants to write. Nothing is run here.

A command is judged in two steps, so that a hook can come between them: :meth:`CommandGate.denied` has what nothing can
allow, :meth:`CommandGate.judged` has both that and the tables of the policy. A command that a hook has changed begins
with the first step again.

Aliases and functions that the user's shell has already change what a command means, and are not seen.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec
from msgspec.structs import replace

from ironcurtain.command_rules import Pattern, Places, Risk, risk_of
from ironcurtain.command_rules.classification import is_harmless, is_network_file
from ironcurtain.command_rules.directories import directories_of, moves_unknown
from ironcurtain.command_rules.effect import Effects
from ironcurtain.command_rules.effects import effects, is_known
from ironcurtain.command_rules.globs import can_be_others, paths_cover, paths_hold, paths_overlap
from ironcurtain.command_rules.places import Names, Roots, shown
from ironcurtain.commandline import CommandLine, Match, SimpleCommand, Word, read_command
from ironcurtain.commandline.reading import SIZE_LIMIT
from ironcurtain.policy.verdict import Decision, Resource, Verdict
from ironcurtain.shell.approval import Approval
from ironcurtain.shell.inheritance import VARIABLE
from ironcurtain.shell.permissions import (
    FilePermissions,
    NetworkPermissions,
    Opinion,
    decided,
    file_resources,
    glob_names,
    most_severe,
)
from ironcurtain.shell.repositories import repository_root, whole_repository
from ironcurtain.shell.reversal import reversal_of

_HOME_CHANGED = re.compile(rf"(?<![$\w{{/.])(?:IRONCURTAIN_HOME|HOME|{VARIABLE})\b(?!/)")
"""A variable that says where our home is, or what this agent may do, in another place than an expansion."""

_BACKGROUND = re.compile(r"(?<![&>|])&(?![&>])")


_STRAYS = "is not in its text: they can be any below its directory, and through links others"


class _Case(msgspec.Struct, frozen=True):
    """One command as it was read."""

    command: str
    directory: str
    line: CommandLine
    places: Places
    protected: Roots
    denied: frozenset[Names]
    effects: tuple[tuple[SimpleCommand, tuple[Effects, ...]], ...]

    def words(self) -> Iterator[Word]:
        """:returns: everything in it that can be a path."""
        for command in self.line.commands:
            for words in command.levels:
                yield from words if "/" in words[0].text else words[1:]
        yield from self.line.reads
        yield from self.line.writes

    def trees(self) -> Iterator[Word]:
        """:returns: the directories that it reads, fills, moves or deletes with all that is in them."""
        for each in (each for _, found in self.effects for each in found):
            yield from each.trees


class CommandGate:
    """
    Judges the commands of one session.

    :param approval: the tables of the policy.
    :param protected: absolute paths that no command may use.
    :param home: absolute path of the user's home directory.
    :param realpath: follows symbolic links, as :func:`os.path.realpath`.
    :param workspace: absolute path of the directory whose files snapshots have.
    :param shell: the user's shell: ``bash``, ``zsh`` or ``fish``.
    :param root: see :func:`~ironcurtain.shell.repositories.repository_root`.
    """

    def __init__(
        self,
        approval: Approval,
        protected: Sequence[str],
        home: str,
        realpath: Callable[[str], str],
        workspace: str,
        shell: str = "bash",
        root: Callable[[str], str] = repository_root,
    ) -> None:
        self._root = root
        self._approval, self._home, self._realpath, self._shell = approval, home, realpath, shell
        self._protected, self._workspace = tuple(protected), workspace
        self._network = NetworkPermissions(approval)
        self._changed_by = ""

    def ran(self, command: str) -> None:
        """
        Note that a command ran: names may mean something else from then on.

        :param command: as it was typed.
        """
        if not self._changed_by and read_command(command, shell=self._shell).changes_shell:
            self._changed_by = command

    def denied(self, command: str, directory: str) -> Verdict | None:
        """
        :param command: as it would be typed.
        :param directory: the absolute path that the shell is in.
        :returns: the verdict if nothing can allow the command.
        """
        if (problem := _no_command(command)) is not None:
            return _verdict(command, directory, Opinion(Decision.DENY, "structural-command", problem))
        case = self._read(command, directory)
        found = self._denial(case)
        return None if found is None else _verdict(command, directory, found, self._resources(case))

    def judged(self, command: str, directory: str) -> Verdict:
        """
        :param command: as it would be typed.
        :param directory: the absolute path that the shell is in.
        :returns: the most severe of what the deny list, the doubts and the tables say.
        """
        if (problem := _no_command(command)) is not None:
            return _verdict(command, directory, Opinion(Decision.DENY, "structural-command", problem))
        case = self._read(command, directory)
        if (denial := self._denial(case)) is not None:
            return _verdict(command, directory, denial, self._resources(case))
        return self._decided(case, self._opinions(case))

    def written(self, path: str, directory: str, reads: bool) -> Verdict:
        """
        Judge a file that is written other than by a command.

        :param path: absolute.
        :param directory: the absolute path that the shell is in.
        :param reads: whether it is read, too.
        :returns: the verdict, whose arguments are to be replaced by those of the write.
        """
        case = self._file(path, directory, reads)
        if (denial := self._denial(case)) is not None:
            return _verdict("", directory, denial, self._resources(case))
        files = FilePermissions(self._approval, case.places, self._home, directory)
        opinions = [files.judge(word, writes=True) for word in case.line.writes]
        return self._decided(case, [*opinions, *(files.judge(word, writes=False) for word in case.line.reads)])

    def risk_written(self, path: str, directory: str) -> Risk:
        """:returns: how severe it can be to write a file: see :meth:`written`."""
        case = self._file(path, directory, False)
        return risk_of(case.line, case.places)

    def risk(self, command: str, directory: str) -> Risk:
        """:returns: how severe the effects of a command can be."""
        if _no_command(command) is not None:
            return Risk.UNKNOWN
        case = self._read(command, directory)
        return risk_of(case.line, case.places)

    def _decided(self, case: _Case, opinions: Iterable[Opinion]) -> Verdict:
        opinions = [*self._suspicions(case), *opinions]
        asking = (each.rule for each in opinions if each.decision is Decision.ESCALATE)
        found, resources = most_severe(opinions), self._resources(case)
        verdict = _verdict(case.command, case.directory, found, resources, tuple(dict.fromkeys(asking)))
        reversal = reversal_of(case.line, case.effects, case.places, self._workspace)
        return msgspec.structs.replace(verdict, reversal=reversal)

    def _file(self, path: str, directory: str, reads: bool) -> _Case:
        word = Word.literal(path)
        line = CommandLine(reads=(word,) if reads else (), writes=(word,))
        places = Places(self._home, (directory,), self._realpath)
        return _Case("", directory, line, places, self._roots(), self._denied_globs(directory), ())

    def _read(self, command: str, directory: str) -> _Case:
        variables = {"HOME": self._home}
        if not re.search(r"\b(?:cd|pushd|popd)\b", command):
            variables["PWD"] = directory
        line = read_command(command, variables, self._shell)
        places = Places(self._home, directories_of(line, directory, self._home), self._realpath)
        found = tuple(
            (each, tuple(whole_repository(effect, places, self._root) for effect in effects(each)))
            for each in line.commands
        )
        return _Case(command, directory, line, places, self._roots(), self._denied_globs(directory), found)

    def _denial(self, case: _Case) -> Opinion | None:
        for pattern in self._approval.deny:
            if pattern.denies(case.line, case.places) is Match.YES:
                rule = "approval.shell.deny_patterns"
                return Opinion(Decision.DENY, rule, f"the deny pattern {pattern.text!r} of [approval.shell] matches")
        if (path := self._protected_path(case, Match.YES)) is not None:
            return Opinion(Decision.DENY, "structural-protected-path", f"{path} is protected")
        if (path := _denied_path(case, Match.YES)) is not None:
            return Opinion(Decision.DENY, "approval.filesystem.deny", f"[approval.filesystem] denies {path}")
        return None

    def _protected_path(self, case: _Case, least: Match) -> str | None:
        """:returns: a protected path that the command uses, or that is in what it deletes or moves."""
        for word in case.words():
            for form in case.places.mentioned(word):
                if case.protected.reached(form) >= least:
                    return shown(form)
        for each in (each for _, found in case.effects for each in found):
            for word in each.wholes if least is Match.YES else each.trees:
                for form in case.places.forms(word):
                    if word in each.lands and case.protected.reached(form):
                        return shown(form)
                    if (root := case.protected.held(form)) is not None:
                        return shown(root)
        return None

    def _roots(self) -> Roots:
        places = Places(self._home, ("/",), self._realpath)
        return Roots(form for path in self._protected for form in places.forms(Word.literal(path)))

    def _denied_globs(self, directory: str) -> frozenset[Names]:
        """:returns: what ``deny`` lists, as written and with links followed."""
        places = Places(self._home, ("/",), self._realpath)
        globs = (glob_names(glob, self._home, directory) for glob in self._approval.tables.filesystem.deny)
        return frozenset(form for glob in globs for form in places.forms(Word("/" + "/".join(glob))))

    def _suspicions(self, case: _Case) -> Iterator[Opinion]:
        """:returns: what has to be asked whatever the tables say."""
        if case.line.doubts:
            yield Opinion(Decision.ESCALATE, "structural-doubt", "; ".join(case.line.doubts[:3]))
        if self._changed_by and case.command:
            line = self._changed_by if len(self._changed_by) <= 80 else f"{self._changed_by[:80]}..."
            reason = f"commands may mean something else in this shell since it ran {line!r}"
            yield Opinion(Decision.ESCALATE, "changed-shell", reason)
        if moves_unknown(case.line):
            yield Opinion(Decision.ESCALATE, "structural-doubt", "the text does not show where its relative paths lead")
        for pattern in self._approval.deny:
            if pattern.denies(case.line, case.places) is Match.MAYBE:
                reason = f"the deny pattern {pattern.text!r} may match: the text does not show it"
                yield Opinion(Decision.ESCALATE, "approval.shell.deny_patterns", reason)
        if (path := self._protected_path(case, Match.MAYBE)) is not None:
            yield Opinion(Decision.ESCALATE, "structural-protected-path", f"it may reach {path}, which is protected")
        if (path := _denied_path(case, Match.MAYBE)) is not None:
            reason = f"it may reach what [approval.filesystem] denies: {path}"
            yield Opinion(Decision.ESCALATE, "approval.filesystem.deny", reason)
        if _escapes(case):
            reason = "this policy may not hold for an agent that it starts"
            yield Opinion(Decision.ESCALATE, "structural-agent", reason)
        if any(case.protected.reached(form) for form in case.places.forms(Word.literal(case.directory))):
            yield Opinion(Decision.ESCALATE, "structural-protected-path", f"{case.directory} is protected")

    def _opinions(self, case: _Case) -> Iterator[Opinion]:
        files = FilePermissions(self._approval, case.places, self._home, case.directory)
        mode, field = self._approval.mode("shell")
        if not case.line.commands:
            yield decided(mode, field, "commands")
        for command, found in case.effects:
            matching = [pattern for pattern in self._approval.allow if pattern.allows(command)]
            pattern = next((each for each in matching if _covers_all(each, command)), next(iter(matching), None))
            if pattern is None:
                yield decided(mode, field, command.name)
            else:
                reason = f"the allow pattern {pattern.text!r} of [approval.shell] matches"
                yield Opinion(Decision.ALLOW, "approval.shell.allow_patterns", reason)
                if _covers_all(pattern, command):
                    continue
            for each in found:
                unknown = tuple(word for word in each.reads if not word.known)
                yield from self._about(each if pattern is None else replace(each, reads=unknown), command, files)
                if pattern is not None and each.risk in (Risk.PRIVILEGE, Risk.DESTRUCTIVE):
                    yield decided(mode, field, f"what {command.name} does besides reading")
        yield from self._about(Effects(reads=case.line.reads, writes=case.line.writes), None, files)

    def _about(self, found: Effects, command: SimpleCommand | None, files: FilePermissions) -> Iterator[Opinion]:
        if found.risk is Risk.UNKNOWN and command is not None:
            yield Opinion(Decision.ESCALATE, "unknown-command", f"what {command.name} does is not known")
        for word in found.writes:
            if is_network_file(word):
                yield self._network.judge(Word.literal(word.text.split("/")[3]))
            elif not is_harmless(word):
                if word.text.startswith("/dev/"):
                    yield Opinion(Decision.ESCALATE, "structural-device", f"{word.text} is a device")
                yield files.judge(word, writes=True)
        for word in found.fills:
            yield files.judge_within(word)
        if found.strays and command is not None:
            yield Opinion(Decision.ESCALATE, "structural-unseen", f"which files {command.name} writes {_STRAYS}")
        for word in found.reads:
            if is_network_file(word):
                yield self._network.judge(Word.literal(word.text.split("/")[3]))
            elif not is_harmless(word):
                yield files.judge(word, writes=False)
        if found.risk is Risk.NETWORK or found.addresses:
            for word in found.addresses or (Word("\0"),):
                yield self._network.judge(word)

    def _resources(self, case: _Case) -> tuple[Resource, ...]:
        every = [each for _, found in case.effects for each in found]
        reads = [word for each in every for word in each.reads] + list(case.line.reads)
        writes = [word for each in every for word in each.writes] + list(case.line.writes)
        addresses = dict.fromkeys(word.text for each in every for word in each.addresses)
        return (
            *file_resources(reads, "read-path", case.places),
            *file_resources(writes, "write-path", case.places),
            *(Resource("fetch-url", "", address) for address in addresses),
        )


def _denied_path(case: _Case, least: Match) -> str | None:
    """:returns: a path that ``deny`` lists and the command uses, or one that has such a path in it, which it reads."""
    used = (word for _, found in case.effects for each in found for word in (*each.reads, *each.writes) if word.known)
    named = (form for word in case.words() for form in case.places.mentioned(word))
    for form in (*named, *(form for word in used for form in case.places.forms(word))) if case.denied else ():
        if any(_denies(glob, form) >= least for glob in case.denied):
            return shown(form)
    for form in (form for word in case.trees() for form in case.places.forms(word)) if least is Match.MAYBE else ():
        if any(paths_hold(glob, form) or paths_overlap(glob, form) for glob in case.denied):
            return shown(form)
    return None


def _denies(glob: Names, path: Names) -> Match:
    if not paths_overlap(glob, path):
        return Match.NO
    return Match.YES if paths_cover(glob, path) or not can_be_others(path) else Match.MAYBE


def _covers_all(pattern: Pattern, command: SimpleCommand) -> bool:
    """
    :returns: whether an allow pattern covers all that a command does: one without wildcards says it; with wildcards,
        only of programs of which nobody knows which forms only read.
    """
    return pattern.is_exact or not is_known(command, pattern.names_subcommand())


def _escapes(case: _Case) -> bool:
    """
    :returns: whether a command changes what an agent takes for our home, or starts one that may not be below this
        process: by another program, or in the background.
    """
    words = (word.text for each in case.line.commands for level in each.levels for word in level)
    if _HOME_CHANGED.search(case.command) or any(map(_HOME_CHANGED.match, words)):
        return True
    agents = [each for each in case.line.commands if each.name == "ironcurtain"]
    return any(each.wrappers for each in agents) or bool(agents and _BACKGROUND.search(case.command))


def _no_command(command: str) -> str | None:
    """:returns: why a text is no command to type."""
    if not command.strip():
        return "it is empty"
    if command.lstrip().startswith("#"):
        return "a line that begins with # is no command"
    if any(unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t" for character in command):
        return "it has control characters"
    if len(command.encode()) > SIZE_LIMIT:
        return f"it is longer than {SIZE_LIMIT} bytes"
    return None


def _verdict(
    command: str, directory: str, found: Opinion, resources: tuple[Resource, ...] = (), asking: tuple[str, ...] = ()
) -> Verdict:
    arguments = {"command": command, "directory": directory}
    return Verdict(found.decision, found.rule, found.reason, arguments, resources, asking)

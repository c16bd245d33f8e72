"""
Hooks: the user's own programs, which are asked before an action runs, and told after it.

They lie in ``hooks`` below the home: ``pre-exec*`` and ``post-exec*``, run in the order of their names. Each gets the
action as one line of JSON, and answers with a JSON object: ``decision`` is ``allow``, ``deny`` or ``modify``,
``reason`` is for people, and ``command``, ``arguments`` of a tool, ``content`` of a file or ``task`` of an agent
replace those of the action. Whatever else a hook does means ``deny``.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec

from ironcurtain.errors import Unavailable
from ironcurtain.process.piped import CommandReactor, command_output
from ironcurtain.process.search_path import host_environment
from ironcurtain.text.display import shorten

OUTPUT_LIMIT: Final = 64 * 1024
"""Most bytes of an answer."""

REASON_LIMIT: Final = 500
"""Most characters of a reason."""

ENVIRONMENT: Final = ("PATH", "HOME", "USER", "LANG")
"""The variables of ours that hooks get."""

When = Literal["pre", "post"]
"""Before an action, or after it."""

_NAME: Final = re.compile(r"(pre|post)-exec[A-Za-z0-9._-]*")  # no copies that editors leave, such as pre-exec~


class HookAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="shell", omit_defaults=True):
    """
    A command of the agent's, as hooks are told of it.

    :param directory: where the shell is.
    :param risk: as :class:`~ironcurtain.shell.messages.Risk` names it.
    :param instruction: the user's.
    :param step: number of the step in its plan.
    :param exit_code: after it ended, if it has a status.
    :param duration_ms: after it ended.
    """

    command: str
    directory: str
    risk: str
    instruction: str
    step: int
    exit_code: int | None = None
    duration_ms: int | None = None


class ToolAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="mcp", omit_defaults=True):
    """
    A call of an MCP server's tool, as hooks are told of it.

    :param arguments: with the paths of this machine.
    :param session: the session's id.
    :param decision: what the policy says: ``allow``, or ``escalate``: a person is asked afterwards.
    :param status: after it ended: ``success`` or ``error``.
    :param duration_ms: after it ended.
    """

    server: str
    tool: str
    arguments: dict[str, Any]
    session: str
    decision: str
    status: str = ""
    duration_ms: int | None = None


class EditAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="edit", omit_defaults=True):
    """
    A file that the agent of a shell writes, as hooks are told of it.

    :param path: absolute, with links followed.
    :param content: what it is to hold.
    :param directory: where the shell is; ``risk``, ``instruction`` and ``step`` are as for commands.
    :param status: after it ended: ``success`` or ``error``.
    """

    path: str
    content: str
    directory: str
    risk: str
    instruction: str
    step: int
    status: str = ""


class AgentAction(msgspec.Struct, frozen=True, kw_only=True, tag_field="type", tag="agent", omit_defaults=True):
    """
    An agent that the agent of a shell starts, as hooks are told of it.

    :param task: the instruction for it.
    :param host: where it is to run, as ``ssh`` takes it; empty: on this machine.
    :param directory: where the shell is; ``instruction`` and ``step`` are as for commands.
    :param status: after it ended: ``success`` or ``error``.
    """

    task: str
    host: str
    directory: str
    instruction: str
    step: int
    status: str = ""


Action = HookAction | ToolAction | EditAction | AgentAction

_REPLACED: Final = {HookAction: "command", ToolAction: "arguments", EditAction: "content", AgentAction: "task"}
"""What ``modify`` replaces of each kind of actions."""

_OTHER: Final = {"command": "another command", "content": "another content", "task": "another task"}

_NOT_AGAIN: Final = {
    HookAction: "another command, but this one has run",
    ToolAction: "other arguments, but this call was made",
    EditAction: "another content, but this one was written",
    AgentAction: "another task, but the agent has worked on this one",
}


class _Answer(msgspec.Struct, frozen=True):
    decision: Literal["allow", "deny", "modify"]
    reason: str = ""
    command: str = ""
    arguments: dict[str, Any] | None = None
    content: str | None = None
    task: str = ""


class HookVerdict(msgspec.Struct, frozen=True):
    """
    What the hooks say of an action.

    :param decision: ``modify`` asks for ``command``, ``arguments``, ``content`` or ``task``, whichever the action has,
        instead, which has to be judged afresh.
    :param hook: name of the one that decided; empty where there are none, or all allow it.
    """

    decision: Literal["allow", "deny", "modify"]
    reason: str = ""
    command: str = ""
    hook: str = ""
    arguments: dict[str, Any] | None = None
    content: str | None = None
    task: str = ""

    @property
    def rule(self) -> str:
        """The rule by which it denies."""
        return f"hook {self.hook}".strip()


class RefusedHooks(Exception):
    """Hooks that may not be run, since others could change them. The message names the file and what to do."""


def find_hooks(directory: Path, when: When, uid: int) -> list[Path]:
    """
    :param directory: of the hooks; it need not exist.
    :param uid: whose they must be.
    :returns: the hooks for before or after an action, in their order.
    :raises RefusedHooks: the directory, or one of them, is not the user's alone.
    """
    try:
        status = directory.lstat()
        names = sorted(os.listdir(directory)) if stat.S_ISDIR(status.st_mode) else []
    except FileNotFoundError:
        return []
    except OSError as e:
        raise RefusedHooks(f"the hooks in {directory} cannot be read: {e.strerror}") from None
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != uid or stat.S_IMODE(status.st_mode) & 0o077:
        raise RefusedHooks(f"{directory} must be a directory of your own, which nobody else may enter: chmod 700")
    found = [directory / name for name in names if (match := _NAME.fullmatch(name)) and match[1] == when]
    for path in found:
        if why := _refusal(path, uid):
            raise RefusedHooks(f"the hook {path.name} {why}")
    return found


def _refusal(path: Path, uid: int) -> str:
    try:
        status = path.lstat()
    except OSError as e:
        return f"cannot be read: {e.strerror}"
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode):
        return "is no regular file: put the program itself there"
    if status.st_uid != uid:
        return "belongs to somebody else"
    if mode & 0o022:
        return "can be changed by others: chmod 700"
    return "" if mode & 0o100 else "cannot be run: chmod 700, or remove it"


def read_answer(output: bytes, hook: str, kind: type[Action] = HookAction) -> HookVerdict:
    """
    :param output: all that a hook printed.
    :param hook: its name.
    :param kind: of the action that it was asked about.
    """
    try:
        answer = msgspec.json.decode(output, type=_Answer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _denied(hook, 'gave no answer such as {"decision": "allow"}')
    reason = shorten(answer.reason, REASON_LIMIT)
    if answer.decision != "modify":
        return HookVerdict(answer.decision, reason, "", hook)
    name = _REPLACED[kind]
    wanted = getattr(answer, name)
    if wanted is None or (name in ("command", "task") and not wanted.strip()):
        return _denied(hook, f"wants {_OTHER.get(name, f'other {name}')}, but names none")
    return HookVerdict("modify", reason, hook=hook, **{name: wanted})


def _denied(hook: str, why: str) -> HookVerdict:
    return HookVerdict("deny", f"the hook {hook} {why}", "", hook)


class Hooks:
    """
    The user's hooks, which are looked for at each action.

    :param directory: where they lie.
    :param environ: our environment, for :data:`ENVIRONMENT`.
    :param seconds: how long one may take.
    :param uid: whose they must be: our own.
    """

    def __init__(
        self, reactor: CommandReactor, directory: Path, environ: Mapping[str, str], seconds: float, uid: int
    ) -> None:
        self._reactor, self._directory, self._seconds, self._uid = reactor, directory, seconds, uid
        self._environ = {name: value for name, value in host_environment(environ).items() if name in ENVIRONMENT}

    @property
    def present(self) -> bool:
        """Whether there may be any. Without them, nothing has to be asked."""
        return os.path.lexists(self._directory)

    async def before(self, action: Action) -> HookVerdict:
        """
        Ask about an action, one hook after the other until one denies it.

        :returns: what they say together; what one asks for instead is what the next one is asked about.
        """
        verdict = HookVerdict("allow")
        try:
            hooks = find_hooks(self._directory, "pre", self._uid)
        except RefusedHooks as e:
            return HookVerdict("deny", str(e))
        for hook in hooks:
            answer = await self._ask(hook, action)
            if answer.decision == "deny":
                return answer
            if answer.decision == "modify":
                action, verdict = _changed(action, answer), answer
        return verdict

    async def after(self, action: Action) -> HookVerdict:
        """
        Tell of an action that ran.

        :returns: ``allow``, or ``deny``: nothing more of its plan is to run, or the agent does not get its result.
        """
        try:
            hooks = find_hooks(self._directory, "post", self._uid)
        except RefusedHooks as e:
            return HookVerdict("deny", str(e))
        answers = [await self._ask(hook, action) for hook in hooks]  # all of them are told
        what = _NOT_AGAIN[type(action)]
        return next((_final(answer, what) for answer in answers if answer.decision != "allow"), HookVerdict("allow"))

    async def _ask(self, hook: Path, action: Action) -> HookVerdict:
        name = hook.name
        try:
            ended = await command_output(
                self._reactor,
                (str(hook),),
                self._environ,
                "it",
                seconds=self._seconds,
                limit=OUTPUT_LIMIT,
                stdin=msgspec.json.encode(action) + b"\n",
                directory=str(self._directory),
                keep_errors=True,
                end_group=True,
            )
        except Unavailable as e:
            return _denied(name, f"failed: {e}")
        if ended.status != 0:
            return _denied(name, f"failed: {_how(ended.status)}{_said(ended.errors)}")
        return read_answer(ended.output, name, type(action))


def _changed(action: Action, answer: HookVerdict) -> Action:
    name = _REPLACED[type(action)]
    changed: Action = msgspec.structs.replace(action, **{name: getattr(answer, name)})
    return changed


def _final(answer: HookVerdict, what: str) -> HookVerdict:
    return answer if answer.decision == "deny" else _denied(answer.hook, f"wants {what}")


def _how(status: int | None) -> str:
    return "it was ended by a signal" if status is None else f"it ended with status {status}"


def _said(errors: bytes) -> str:
    text = shorten(errors.decode("utf-8", "replace"), REASON_LIMIT)
    return f": {text}" if text else ""


def check_hooks(directory: Path, uid: int) -> Sequence[str]:
    """:returns: what is wrong with the hooks, for those who look before anything runs."""
    problems = list[str]()
    for when in get_args(When):
        try:
            find_hooks(directory, when, uid)
        except RefusedHooks as e:
            problems.append(str(e))
    return list(dict.fromkeys(problems))

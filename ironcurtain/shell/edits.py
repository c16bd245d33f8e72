"""Steps that write files: shown as diffs, and undone where the snapshot before the plan has the file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
from msgspec.structs import replace

from ironcurtain.errors import UsageError
from ironcurtain.home.user_paths import check_encodable
from ironcurtain.llm.model import ToolSpec, ToolUse
from ironcurtain.mcp_proxy.admission import CallAdmission, OpenCall
from ironcurtain.mcp_proxy.catalogue import ToolDefinition
from ironcurtain.mcp_proxy.hooks import EditAction
from ironcurtain.policy.verdict import Decision, Verdict
from ironcurtain.servers.files import content
from ironcurtain.servers.files.edits import Edit, apply
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import Place, Roots
from ironcurtain.shell.execution import CommandResult
from ironcurtain.shell.messages import ProposedStep, StepKind, StepOutcome
from ironcurtain.shell.model import SERVER
from ironcurtain.shell.step_policy import StepPolicy
from ironcurtain.shell.tools import JudgedStep, StepRun, purpose_of, text_argument
from ironcurtain.text.diffs import unified
from ironcurtain.text.display import without_breaks

EDIT_TOOL: Final = "edit"
"""By what name files that are written stand in the audit log and in escalations."""

SIZE_LIMIT: Final = 128 * 1024
"""Most bytes of a file that is edited, before and after. What is approved has to be shown, all of it."""

APPLIES_RULE: Final = "structural-edit"
"""The rule that denies an edit which cannot be made."""

_TEXT: Final = {"type": "string"}
_PURPOSE: Final = {"type": "string", "description": "what it is for, in one short sentence for the user"}
_PATH: Final = {"type": "string", "description": "the file; a relative path begins where the shell is now"}

WRITE: Final = ToolSpec(
    "write_file",
    "Propose to create a file, or to replace all of its text. It is one step of the plan, approved and judged like a "
    "command; the user sees the change as a diff.",
    {
        "type": "object",
        "properties": {"path": _PATH, "content": _TEXT, "purpose": _PURPOSE},
        "required": ["path", "content", "purpose"],
        "additionalProperties": False,
    },
)
EDIT: Final = ToolSpec(
    "edit_file",
    "Propose to replace passages of a file, each of which must occur in it exactly once. Read the file first. It is "
    "one step of the plan, approved and judged like a command; the user sees the change as a diff.",
    {
        "type": "object",
        "properties": {
            "path": _PATH,
            "edits": {
                "type": "array",
                "minItems": 1,
                "items": {
                    "type": "object",
                    "properties": {"old": _TEXT, "new": _TEXT},
                    "required": ["old", "new"],
                    "additionalProperties": False,
                },
            },
            "purpose": _PURPOSE,
        },
        "required": ["path", "edits", "purpose"],
        "additionalProperties": False,
    },
)

WRITE_TOOL: Final = ToolDefinition(
    SERVER,
    EDIT_TOOL,
    f"{SERVER}.{EDIT_TOOL}",
    {"inputSchema": {"type": "object", "properties": {"path": _TEXT, "content": _TEXT}}},
)
"""A kept approval covers the files of the same directory and below, whatever is written to them."""


class _Replacement(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    old: str
    new: str


class _Change(msgspec.Struct, frozen=True):
    """What a step would write now; or why it cannot."""

    after: str = ""
    diff: str = ""
    version: content.Version | None = None
    problem: str = ""


@dataclass(slots=True)
class EditHand:
    """
    :param protected: absolute paths that nothing may write, whatever links lead there.
    """

    policy: StepPolicy
    protected: Sequence[str]
    kind: StepKind = StepKind.EDIT
    _roots: Roots | None = field(default=None, init=False)

    @property
    def admission(self) -> CallAdmission:
        """Of the session."""
        return self.policy.admission

    def specs(self) -> Sequence[ToolSpec]:
        """:returns: the tools that write a file, and that change one."""
        return WRITE, EDIT

    def names(self, step: ProposedStep) -> tuple[str, str]:
        """:returns: those of all files."""
        return SERVER, EDIT_TOOL

    def proposed(self, number: int, use: ToolUse, directory: str) -> ProposedStep:
        """
        :returns: a step that writes the file which the path means now, links followed.
        :raises UsageError: the arguments are wrong.
        """
        written = text_argument(use, "path")
        if not written or "\0" in written:
            raise UsageError(f"{use.name} needs the path of a file")
        expanded = f"{self.policy.home}{written[1:]}" if written.split("/")[0] == "~" else written
        path = os.path.realpath(os.path.join(directory, expanded))
        check_encodable(path, "path", "use a command")
        arguments: dict[str, Any] = {"path": path}
        if use.name == WRITE.name:
            arguments["content"] = text_argument(use, "content")
        else:
            try:
                msgspec.convert(use.input.get("edits"), list[_Replacement])
            except msgspec.ValidationError as e:
                raise UsageError(f"{use.name} needs the argument edits, a list of old and new texts: {e}") from None
            arguments["edits"] = use.input["edits"]
        verb = "write" if use.name == WRITE.name else "edit"
        return ProposedStep(
            number=number,
            command=f"{verb} {without_breaks(path)}",
            purpose=purpose_of(use),
            kind=StepKind.EDIT,
            arguments=arguments,
        )

    def preview(self, step: ProposedStep, directory: str) -> JudgedStep:
        """:returns: what the policy says now, and what would change."""
        path, reads = step.arguments["path"], "edits" in step.arguments
        verdict, risk = self.policy.gate.written(path, directory, reads), self.policy.gate.risk_written(path, directory)
        if verdict.decision is Decision.DENY:  # then nothing of the file is shown, not even whether it is there
            return JudgedStep(msgspec.structs.replace(step, diff=""), _with(verdict, {"path": path}), risk)
        change = self._change(step)
        if change.problem:
            denied = msgspec.structs.replace(
                verdict, decision=Decision.DENY, rule=APPLIES_RULE, reason=change.problem, asking=()
            )
            return JudgedStep(msgspec.structs.replace(step, diff=""), _with(denied, {"path": path}), risk)
        shown = msgspec.structs.replace(step, diff=change.diff)
        return JudgedStep(shown, _with(verdict, {"path": path, "content": change.after}), risk)

    async def judge(self, step: ProposedStep, directory: str) -> JudgedStep:
        """Judge it when its turn has come: what nothing can allow, then hooks, then what they want written instead."""
        judged = self.preview(step, directory)
        if judged.verdict.decision is Decision.DENY:
            return judged
        answer = await self.policy.hooks.before(self._action(judged, directory))
        if answer.decision == "deny":
            verdict = msgspec.structs.replace(
                judged.verdict,
                decision=Decision.DENY,
                rule=answer.rule,
                reason=answer.reason or "a hook denied it",
                asking=(),
            )
            return JudgedStep(judged.step, verdict, judged.risk, answer.hook)
        if answer.content is not None:
            arguments = {"path": step.arguments["path"], "content": answer.content}
            step = msgspec.structs.replace(step, arguments=arguments)
        judged = self.preview(step, directory)  # once more: the file may have changed while hooks ran
        return judged if not answer.hook else replace(judged, by=f"{judged.by}, changed by {answer.hook}")

    async def finished(self, step: ProposedStep, directory: str, result: CommandResult) -> bool:
        """
        Tell the hooks how it ended.

        :returns: whether the plan may go on.
        """
        status = "success" if result.outcome is StepOutcome.DONE else "error"
        action = self._action(JudgedStep(step, _NOTHING, step.risk), directory)
        return await self.policy.finished(msgspec.structs.replace(action, status=status))

    def tool(self, judged: JudgedStep) -> ToolDefinition | None:
        """:returns: the definition under which an approval of it can be kept."""
        return WRITE_TOOL

    async def run(self, call: OpenCall, judged: JudgedStep, how: StepRun) -> CommandResult:
        """Write exactly what was judged and shown, unless the file has changed since."""
        change = self._change(judged.step)
        problem = change.problem
        if not problem and (change.diff, change.after) != (judged.step.diff, judged.verdict.arguments["content"]):
            problem = "the file changed after its change was shown; nothing was written"
        if not problem:
            try:
                content.replace(self._place(judged.step), change.after.encode(), change.version)
            except FileError as e:
                problem = str(e)
        if problem:
            self.admission.close(call, "error", error=problem)
            return CommandResult(StepOutcome.FAILED, None, b"", reason=problem)
        said = "created" if change.version is None else "changed"
        output = f"{said} {judged.step.arguments['path']} ({len(change.after.encode())} bytes)\n".encode()
        self.admission.close(call, "success", output)
        how.show(output)
        return CommandResult(StepOutcome.DONE, 0, output)

    def interrupt(self) -> None:
        """Nothing takes long."""

    def kill(self) -> None:
        """Nothing takes long."""

    def _action(self, judged: JudgedStep, directory: str) -> EditAction:
        step = judged.step
        text = judged.verdict.arguments.get("content", step.arguments.get("content", ""))
        return EditAction(
            path=step.arguments["path"],
            content=text,
            directory=directory,
            risk=str(judged.risk),
            instruction=self.policy.instruction(),
            step=step.number,
        )

    def _place(self, step: ProposedStep) -> Place:
        if self._roots is None:
            self._roots = Roots(["/"], [os.path.realpath(path) for path in self.protected])
        self._roots.look()
        return self._roots.locate(step.arguments["path"])

    def _change(self, step: ProposedStep) -> _Change:
        path, arguments = step.arguments["path"], step.arguments
        try:
            place = self._place(step)
            before, version = self._before(place, must_be="edits" in arguments)
            after = _after(before, arguments)
        except FileError as e:
            return _Change(problem=str(e))
        if len(after.encode()) > SIZE_LIMIT:
            return _Change(problem=f"it would have over {SIZE_LIMIT // 1024} KiB: write it by a command")
        return _Change(after, unified(path, before, after, limit=4 * SIZE_LIMIT), version)

    def _before(self, place: Place, must_be: bool) -> tuple[str, content.Version | None]:
        """:raises FileError: it is no text of a file that may be read; or it is not there, but must be."""
        if not must_be and not os.path.lexists(place.path):
            return "", None
        data, version = content.read_all(place, SIZE_LIMIT)
        return content.text(data, place), version


_NOTHING: Final = Verdict(Decision.ALLOW, "", "", {})


def _with(verdict: Verdict, arguments: Mapping[str, Any]) -> Verdict:
    return msgspec.structs.replace(verdict, arguments=dict(arguments))


def _after(before: str, arguments: Mapping[str, Any]) -> str:
    """:raises FileError: a passage does not occur exactly once."""
    if "content" in arguments:
        text = arguments["content"]
        assert isinstance(text, str)  # as proposed
        return text
    wanted = msgspec.convert(arguments["edits"], list[_Replacement])
    return apply(before, [Edit(each.old, each.new) for each in wanted])

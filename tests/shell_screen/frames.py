"""
Examples of what the agent mode shows. Run this file to write the pictures that the tests compare with, and read them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

from ironcurtain.command_rules import Risk
from ironcurtain.shell.messages import (
    ApprovalRequested,
    InstructionAccepted,
    InstructionDone,
    ModelText,
    Notice,
    PlanProposed,
    ProposedStep,
    StepCompleted,
    StepDecided,
    StepForming,
    StepOutcome,
    StepStarted,
)
from ironcurtain.view.look import Look
from tests.shell_screen.doubles import CACHES, JOURNAL, LISTING, PLAN, STEPS, AgentMode

SIZES = {
    "wide": (80, 24, Look(color=False)),
    "narrow": (40, 24, Look(color=False)),
    "ascii": (80, 24, Look(unicode=False, color=False)),
}
"""Columns, rows, and what the terminal can show."""

WORDS = "The root file system is 94 % full. I look at the largest directories first, then empty caches.\n"
LONG = ProposedStep(
    number=2,
    command="cat > report.py <<'EOF'\n" + "".join(f"print({n})\n" for n in range(40)) + "EOF",
    purpose="Write a program that reports",
    risk=Risk.WRITE_INSIDE,
)
SCOPED = ApprovalRequested(
    plan_id=PLAN, step=JOURNAL, number=7, digest="d", scope="sudo journalctl with any of its options"
)


def begun(mode: AgentMode) -> None:
    """The agent has an instruction."""
    mode.write(b"$ # free some space\r\n")
    mode.receive(InstructionAccepted(text="free some space"))


def planned(mode: AgentMode) -> None:
    """A plan waits for a decision."""
    begun(mode)
    mode.receive(ModelText(text=WORDS), PlanProposed(plan_id=PLAN, steps=STEPS, confirm=True))


def stepping(mode: AgentMode) -> None:
    """The first step of a plan ran, the second one waits for a decision."""
    planned(mode)
    mode.press(b"s")
    ran(mode, LISTING, b"1.2G\t/usr\r\n12G\t/var\r\n")
    mode.receive(SCOPED)


def ran(
    mode: AgentMode, step: ProposedStep, output: bytes, outcome: StepOutcome = StepOutcome.DONE, code: int = 0
) -> None:
    """The command of a step ran."""
    mode.receive(StepStarted(plan_id=PLAN, step=step.number, command=step.command))
    mode.output(output)
    done = StepCompleted(plan_id=PLAN, step=step.number, outcome=outcome, exit_code=code, duration_ms=1234)
    mode.receive(done)


def thinking(mode: AgentMode) -> None:
    begun(mode)
    mode.passes(3.4)


def writing(mode: AgentMode) -> None:
    begun(mode)
    mode.receive(ModelText(text=WORDS + "\nNothing of yours is"))
    mode.passes(61)


def forming(mode: AgentMode) -> None:
    begun(mode)
    mode.receive(
        ModelText(text=WORDS), StepForming(plan_id=PLAN, step=LISTING), StepForming(plan_id=PLAN, step=JOURNAL)
    )


def selected(mode: AgentMode) -> None:
    planned(mode)
    mode.press(b"\x1b[B", b"j")


def hint(mode: AgentMode) -> None:
    planned(mode)
    mode.press(b"aa")


def policy_says_no(mode: AgentMode) -> None:
    begun(mode)
    denied = ProposedStep(
        number=1, command="cat ~/.ssh/id_ed25519", risk=Risk.READ, decision="deny", reason="keys are protected"
    )
    hiding = ProposedStep(number=2, command="echo a\u202eb\x1b[2J", purpose="Print \x1b[31mletters", risk=Risk.READ)
    mode.receive(PlanProposed(plan_id=PLAN, steps=(denied, hiding), confirm=True))


def long_plan(mode: AgentMode) -> None:
    begun(mode)
    steps = tuple(ProposedStep(number=n, command=f"make part{n}", purpose=f"Build part {n}") for n in range(1, 16))
    mode.receive(PlanProposed(plan_id=PLAN, steps=steps, confirm=True))
    mode.press(b"a")


def long_step(mode: AgentMode) -> None:
    begun(mode)
    mode.receive(PlanProposed(plan_id=PLAN, steps=(LISTING, LONG), confirm=True))


def inspected(mode: AgentMode) -> None:
    long_step(mode)
    mode.press(b"j", b"\r", b" ")


def inspected_by_need(mode: AgentMode) -> None:
    long_step(mode)
    mode.press(b"a")


def step_once(mode: AgentMode) -> None:
    begun(mode)
    mode.receive(ApprovalRequested(plan_id=PLAN, step=LONG, number=7, digest="d"))


def note(mode: AgentMode) -> None:
    planned(mode)
    mode.press(b"n", b"keep the cache of pip")


def steered(mode: AgentMode) -> None:
    stepping(mode)
    mode.press(b"# keep the journal\r")
    mode.receive(PlanProposed(plan_id=PLAN, steps=(CACHES,), confirm=True))


def running(mode: AgentMode) -> None:
    planned(mode)
    mode.press(b"a")
    mode.receive(StepStarted(plan_id=PLAN, step=1, command=LISTING.command))
    mode.output(b"1.2G\t/usr\r\n")
    mode.passes(75)


def between(mode: AgentMode) -> None:
    planned(mode)
    mode.press(b"a")
    ran(mode, LISTING, b"no line end")


def recovering(mode: AgentMode) -> None:
    planned(mode)
    mode.press(b"a")
    ran(mode, LISTING, b"du: cannot read directory '/lost+found'\r\n", StepOutcome.FAILED, 1)
    again = ProposedStep(number=2, command="sudo du -xh /", purpose="Look with more rights", risk=Risk.PRIVILEGE)
    mode.receive(ModelText(text="It may not read all directories.\n"))
    mode.receive(PlanProposed(plan_id=PLAN, steps=(again,), confirm=True))


def outcomes(mode: AgentMode) -> None:
    stepping(mode)
    mode.receive(StepDecided(plan_id=PLAN, step=2, allowed=True, by="ada over ssh"))
    ran(mode, JOURNAL, b"\x1b[31mworking\x1b[K", StepOutcome.INTERRUPTED, 130)
    for outcome in (StepOutcome.DENIED, StepOutcome.SKIPPED, StepOutcome.NOT_RUN):
        mode.receive(
            StepCompleted(plan_id=PLAN, step=3, outcome=outcome, reason="" if outcome != "denied" else "by a hook")
        )


def noticed(mode: AgentMode) -> None:
    begun(mode)
    mode.receive(Notice(text="openai does not answer; anthropic is asked instead"))


def done(mode: AgentMode) -> None:
    between(mode)
    mode.receive(ModelText(text="61 % are used now."))
    ended = InstructionDone(text="61 % are used now.", tokens_in=12345, tokens_out=678, cost=0.0412, model="claude-x")
    mode.receive(ended)


def failed(mode: AgentMode) -> None:
    begun(mode)
    mode.receive(InstructionDone(error="no backend answers: api.anthropic.com: connection refused"))


STATES: dict[str, Callable[[AgentMode], None]] = {
    state.__name__: state
    for state in (
        thinking,
        writing,
        forming,
        planned,
        selected,
        hint,
        policy_says_no,
        long_plan,
        long_step,
        inspected,
        inspected_by_need,
        note,
        stepping,
        step_once,
        steered,
        running,
        between,
        recovering,
        outcomes,
        noticed,
        done,
        failed,
    )
}


def pictures(size: str) -> str:
    """:returns: every example at a terminal of this size, one below the other."""
    columns, rows, look = SIZES[size]
    parts = []
    for name, state in STATES.items():
        mode = AgentMode(columns, rows, look)
        state(mode)
        parts.append(f"== {name}\n{mode.text}\n")
    return "\n".join(parts)


def picture_file(size: str) -> Path:
    """:returns: where the pictures of a size are kept."""
    return Path(__file__).with_name("pictures") / f"{size}.txt"


if __name__ == "__main__":
    for each in SIZES:
        picture_file(each).parent.mkdir(exist_ok=True)
        picture_file(each).write_text(pictures(each))

"""Events as an agent that means harm could make them."""

from __future__ import annotations

import unicodedata

from hypothesis import strategies as st

from ironcurtain.session import agent_events, events

ids = st.sampled_from(("a", "b", "c"))
numbers = st.integers(1, 4)
times = st.floats(0, 1e9)

nasty = st.text(
    st.one_of(
        st.sampled_from("\x1b\x07\x00\x9b\x9d\n\r\t\x7f\u202e\u2066\u200b\u2028\ufeff\u00ad \\/"),
        st.characters(codec="utf-8"),
        st.characters(codec="ascii"),
    ),
    max_size=60,
)
"""Text with much that must not reach a terminal."""

json_values = st.recursive(
    st.one_of(nasty, st.integers(), st.booleans(), st.none()),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(nasty, inner, max_size=4)),
    max_leaves=8,
)

arguments = st.dictionaries(nasty, st.one_of(json_values, nasty.map(lambda text: text * 300)), max_size=20)

session_events = st.one_of(
    st.builds(events.StateChanged, state=st.sampled_from(("ready", "processing", "closed")) | nasty, reason=nasty),
    st.builds(events.TurnStarted, turn=numbers, message=nasty),
    st.builds(events.TurnFinished, turn=numbers, answer=nasty, error=nasty, code=nasty | st.just("CANCELLED")),
    st.builds(events.AgentText, text=nasty),
    st.builds(events.CodeStarted, code=nasty),
    st.builds(events.CodeFinished, error=nasty),
    st.builds(
        events.ToolCallRaised,
        call_id=ids,
        server=nasty,
        tool=nasty,
        arguments=nasty | st.just('{"path": "\\u001b[2J"}'),
    ),
    st.builds(
        events.ToolDecision,
        call_id=ids,
        decision=st.sampled_from(("allow", "deny", "denied", "escalate", "expired")) | nasty,
        rule=nasty,
        reason=nasty,
        by=nasty,
        permission=st.integers(0, 3),
    ),
    st.builds(
        events.ToolFinished,
        call_id=ids,
        status=st.sampled_from(("success", "denied", "error")) | nasty,
        duration_ms=st.floats(0, 1e7),
        size=numbers,
    ),
    st.builds(events.StepFinished, step=numbers),
    st.builds(events.ModelFellBack, failed=nasty, model=nasty, reason=nasty),
    st.builds(events.ModelRetry, delay=st.floats(0, 100), reason=nasty),
    st.builds(events.BudgetWarning, message=nasty),
    st.builds(events.BudgetExhausted, message=nasty),
    st.builds(events.LoopDetected, server=nasty, tool=nasty),
    st.builds(events.ResultTruncated, size=numbers, kept=numbers),
    st.builds(events.MessagesCompacted, strategy=nasty, turns=numbers, before=numbers, after=numbers),
    st.builds(
        events.EscalationRaised,
        number=numbers,
        call_id=ids,
        server=nasty,
        tool=nasty,
        arguments=arguments,
        digest=nasty,
        rule=nasty,
        reason=nasty,
        raised_at=times,
        expires_at=times,
    ),
    st.builds(events.EscalationClosed, number=numbers, outcome=nasty | st.just("approved"), by=nasty),
    st.builds(events.RequestRefused, host=nasty, method=nasty, path=nasty, reason=nasty),
    st.builds(events.Missed, count=numbers),
    st.builds(agent_events.AgentToolStarted, tool_id=ids, name=nasty, what=nasty, parent=ids | nasty),
    st.builds(agent_events.AgentToolFinished, tool_id=ids, status=nasty, what=nasty, diff=nasty),
    st.builds(agent_events.AgentActivity, state=nasty),
    st.builds(agent_events.AgentTextDropped),
    st.builds(agent_events.MessageQueued, number=numbers, message=nasty),
    st.builds(agent_events.MessageTaken, number=numbers),
    st.builds(agent_events.MessageWithdrawn, number=numbers),
)


def harmful(text: str) -> list[str]:
    """:returns: the characters of one line that a terminal acts on or that nobody sees."""
    return [c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")]

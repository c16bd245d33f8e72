"""A conversation is shortened to what fits: a tool use keeps its result, and the newest message stays."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.llm.compaction import NOTE_TOKENS, Room, Shortened, Strategy, lean, shorten, tokens
from ironcurtain.llm.conversation import Conversation, Past
from ironcurtain.llm.model import Block, ModelError, ProviderBlock, TextBlock, ToolResult, ToolUse
from tests.llm.test_conversation import unanswered


def size(block: Block) -> int:
    """:returns: the number of characters of a block; a note is never over what is reserved for it."""
    match block:
        case TextBlock(text):
            return min(len(text), NOTE_TOKENS) if text.startswith("[IronCurtain") else len(text)
        case ToolResult(_, content, _):
            return len(content)
        case ToolUse(_, _, input):
            return len(str(input))
        case ProviderBlock():
            return 10


@st.composite
def pasts(draw: st.DrawFn) -> Past:
    """Conversations of any shape, some with an end in the middle of a turn."""
    conversation, number = Conversation(), 0
    for _ in range(draw(st.integers(1, 6))):
        conversation.say("m" * draw(st.integers(0, 80)))
        for _ in range(draw(st.integers(0, 3))):
            number += 1
            use = ToolUse(f"t{number}", "execute_code", {"code": "c" * draw(st.integers(0, 80))})
            conversation.answer([ProviderBlock("p", {}), TextBlock("w" * draw(st.integers(0, 20))), use])
            if draw(st.booleans()):
                conversation.results([ToolResult(use.id, "r" * draw(st.integers(0, 80)), False)])
            else:
                conversation.interrupt("cut off")
        if draw(st.booleans()):
            conversation.answer([TextBlock("a" * draw(st.integers(1, 80)))])
    past = conversation.past
    dropped = draw(st.integers(0, 3))
    return Past(past.exchanges, dropped, "s" * draw(st.integers(0, 50)) if dropped else "")


ROOMS = st.builds(
    lambda limit, share, turns: Room(limit, int(limit * share), min(60, limit // 4), turns),
    st.integers(0, 1500),
    st.floats(0.1, 1),
    st.integers(1, 4),
)
STRATEGIES = st.sampled_from([Strategy.TRUNCATE, Strategy.SUMMARISE, Strategy.SLIDING])


def total(past: Past) -> int:
    """:returns: tokens of all that is sent."""
    return sum(map(size, past.head)) + sum(tokens(exchange, size) for exchange in past.exchanges)


class ShortenTests(SynchronousTestCase):
    def shorten(self, past: Past, strategy: Strategy, room: Room) -> Shortened | None:
        try:
            return shorten(past, strategy, room, size)
        except ModelError as e:
            self.assertEqual(e.kind, "context-overflow")
            return None

    @given(pasts(), STRATEGIES, ROOMS)
    def test_what_is_sent_fits_and_is_a_conversation(self, past: Past, strategy: Strategy, room: Room) -> None:
        found = self.shorten(past, strategy, room)
        if found is None:
            newest = tokens(past.exchanges[-1], size)
            self.assertGreater(newest + max(NOTE_TOKENS, room.summary) + 50, room.limit)
            return
        self.assertEqual(found.past.exchanges[-1], past.exchanges[-1])
        messages = found.past.messages
        self.assertEqual([m.role for m in messages], (["user", "assistant"] * len(messages))[: len(messages)])
        self.assertEqual(unanswered(messages), set())
        uses = {block.id for m in messages for block in m.content if isinstance(block, ToolUse)}
        results = {block.id for m in messages for block in m.content if isinstance(block, ToolResult)}
        self.assertEqual(uses, results)
        self.assertEqual(found.past.dropped, past.dropped + len(found.gone))
        self.assertEqual(len(found.gone) + len(found.past.exchanges), len(past.exchanges))
        if not (strategy is Strategy.SUMMARISE and found.gone):
            self.assertLessEqual(total(found.past), room.limit)

    @given(pasts(), STRATEGIES, ROOMS)
    def test_results_go_before_turns(self, past: Past, strategy: Strategy, room: Room) -> None:
        found = self.shorten(past, strategy, room)
        assume(found is not None)
        assert found is not None
        old = past.exchanges[len(found.gone) : -1]
        kept = found.past.exchanges[:-1]
        self.assertEqual(kept, (*map(lean, old[: found.lean]), *old[found.lean :]))
        self.assertEqual(found.gone, tuple(map(lean, past.exchanges[: len(found.gone)])))
        if found.gone:
            self.assertEqual(found.lean, len(old))

    @given(pasts(), STRATEGIES)
    def test_what_fits_stays_as_it_is(self, past: Past, strategy: Strategy) -> None:
        enough = total(past)
        found = shorten(past, strategy, Room(enough, enough, 10, 1), size)
        self.assertEqual(found, Shortened(past, (), 0))

    def test_each_strategy(self) -> None:
        conversation = Conversation()
        for letter in "abcdef":
            conversation.say(letter * 100)
            conversation.answer([TextBlock(letter * 100)])
        conversation.say("now")
        past = conversation.past
        left = {}
        for strategy in (Strategy.TRUNCATE, Strategy.SLIDING, Strategy.SUMMARISE):
            found = shorten(past, strategy, Room(1100, 1000, 300, 3), size)
            said = [block.text for e in found.past.exchanges for block in e[0].content if isinstance(block, TextBlock)]
            left[strategy] = "".join(text[0] for text in said)
        self.assertEqual(left, {"truncate": "cdefn", "sliding": "efn", "summarise": "defn"})

    def test_a_lean_turn_keeps_what_was_said(self) -> None:
        conversation = Conversation()
        conversation.say("look")
        conversation.answer([TextBlock("I look."), ToolUse("t1", "execute_code", {"code": "x"})])
        conversation.results([ToolResult("t1", "much", False)])
        conversation.answer([TextBlock("Seen.")])
        asked, said = lean(conversation.past.exchanges[0])
        self.assertEqual(asked.content[0], TextBlock("look"))
        self.assertIn("left out", str(asked.content[1]))
        self.assertEqual(said.content, (TextBlock("I look."), TextBlock("Seen.")))

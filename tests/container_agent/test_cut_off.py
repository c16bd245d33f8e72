"""An agent whose turn was cut off by the end of its owner is told so with its next message."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, cast

from twisted.internet.defer import Deferred, succeed
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import Facts
from ironcurtain.agents.outcome import TurnFailed
from ironcurtain.container.container import ProgramEnded
from ironcurtain.container_agent.agent import ContainerAgent, Making
from ironcurtain.container_agent.conversation import cut_off
from ironcurtain.container_agent.program import NOT_COMPACTED
from ironcurtain.session.history import History, read_turns
from ironcurtain.session.model import Turn, Usage
from tests.audit.doubles import scratch
from tests.container_agent.worlds import ScriptAgent
from tests.session.doubles import World, request


class Programs:
    """A container whose programs end at once, with given statuses."""

    id = "c1"
    most_processes = 10

    def __init__(self, *statuses: int) -> None:
        self.statuses, self.messages = list(statuses), list[str]()
        self.commands: list[tuple[str, ...]] = []

    async def start(self) -> tuple[()]:
        """Nothing is found."""
        return ()

    async def crowded(self) -> bool:
        """There is always room."""
        return False

    async def open(
        self,
        command: tuple[str, ...],
        *,
        stdout: Callable[[bytes], None],
        stderr: Callable[[bytes], None],
        environment: Mapping[str, str],
    ) -> Any:
        """:returns: a program that keeps the message, and ends when its input does."""
        self.commands.append(command)
        ended: Deferred[ProgramEnded] = Deferred()
        status = self.statuses.pop(0)
        return SimpleNamespace(
            ended=ended,
            write=lambda data: self.messages.append(data.decode()),
            close_input=lambda: ended.callback(ProgramEnded(status, out_of_memory=False)),
        )


class CutOffTests(SynchronousTestCase):
    def agent(self, notice: str, container: Programs) -> ContainerAgent:
        world = World(scratch(self))
        self.successResultOf(Deferred.fromCoroutine(world.manager.create(request())))
        core = world.agents[-1].core
        assert core is not None
        traffic: Any = SimpleNamespace(begin=lambda: None, rest=lambda: None, look=lambda: None, usage=Usage, cut=False)
        making = Making(
            lambda died: succeed(cast(Any, container)), lambda facts: None, lambda: succeed("here"), lambda: None
        )
        facts = Facts({"anthropic": "fake"}, "", "", 1.0, True)
        proxies: Any = SimpleNamespace(dead="")
        agent = ContainerAgent(core, proxies, ScriptAgent(), facts, making, traffic, True, notice)
        self.successResultOf(Deferred.fromCoroutine(agent.start()))
        return agent

    def test_until_a_message_is_answered(self) -> None:
        container = Programs(7, 0, 0)
        agent = self.agent("[cut off]", container)
        self.failureResultOf(Deferred.fromCoroutine(agent.respond("one")), TurnFailed)
        for message in ("two", "three"):
            self.successResultOf(Deferred.fromCoroutine(agent.respond(message)))
        self.assertEqual(container.messages, ["[cut off]\n\none", "[cut off]\n\ntwo", "three"])

    def test_clearing_begins_anew_and_a_model_is_used_from_then_on(self) -> None:
        container = Programs(0, 0)
        agent = self.agent("[cut off]", container)
        for message, said in (
            ("/model", "the default"),
            ("/model m2", "the model is m2"),
            ("/clear", "new conversation"),
        ):
            self.assertIn(said, self.successResultOf(Deferred.fromCoroutine(agent.respond(message))).text)
        self.successResultOf(Deferred.fromCoroutine(agent.respond("one")))
        self.assertEqual((container.messages, container.commands), (["one"], [("sh", "-s", "first")]))
        self.assertEqual(agent.model, "m2")

    def test_a_program_without_the_command_compacts_nothing(self) -> None:
        agent = self.agent("", container := Programs(0))
        reply = self.successResultOf(Deferred.fromCoroutine(agent.respond("/compact")))
        self.assertEqual((reply.text, container.messages), (NOT_COMPACTED, []))

    def test_only_if_the_last_turn_has_no_end(self) -> None:
        path = scratch(self) / "history.jsonl"
        history = History(path)
        self.assertEqual(cut_off(read_turns(path)), "")
        history.begin("mend\x1b it", "now")
        notice = cut_off(read_turns(path))
        self.assertIn('The message was: "mend it"', notice)
        self.assertIn("look before you do it again", notice)
        history.append(Turn(number=1, message="mend it", answer="", usage=Usage(), timestamp="", error="no money"))
        self.assertEqual(cut_off(read_turns(path)), "")

"""The user's own files in a real container."""

from __future__ import annotations

from ironcurtain.agents.adapter import Shareable
from ironcurtain.home.sections import Agents, NamedAgent
from ironcurtain.session import events
from tests.container_agent.worlds import ContainerTestCase


class SharedFilesTests(ContainerTestCase):
    async def test_agent_reads_what_is_shared_and_cannot_change_it(self) -> None:
        (self.top / ".agent/skills").mkdir(parents=True)
        for name, text in (("MEMORY.md", "use tabs"), ("skills/a.md", "skilled"), ("settings.json", "{}")):
            (self.top / ".agent" / name).write_text(f"{text}\n")
        named = {"script": NamedAgent(share=True)}
        world = self.another(self.with_settings(agents=Agents(named=named)))
        offered = (Shareable("memory", ".agent/MEMORY.md"), Shareable("skills", ".agent/skills"))
        world.adapter.shareable = offered
        session = await self.start(world)
        said = await self.say(
            session,
            "cd ~/.agent; cat MEMORY.md skills/a.md; ls; (echo x >>MEMORY.md) 2>/dev/null || echo refused",
            "(echo x >skills/b.md) 2>/dev/null || echo refused; rm -f MEMORY.md; cat MEMORY.md",
        )
        expected = ["use tabs", "skilled", "MEMORY.md", "settings", "skills", "state", "refused", "refused", "use tabs"]
        self.assertEqual(said.split("\n")[:-1], expected)
        self.assertEqual((self.top / ".agent/MEMORY.md").read_text(), "use tabs\n")
        told = [event.text for event in self.seen(session, events.Notice)]
        self.assertIn("the agent may read your ~/.agent/MEMORY.md, ~/.agent/skills", told)

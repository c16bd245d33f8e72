"""The agents' real programs log in at servers on this machine, each in its image, at a real terminal."""

from __future__ import annotations

from twisted.internet.defer import Deferred

from ironcurtain.accounts.login_programs import PROGRAMS
from ironcurtain.home.account_sections import AccountName
from tests.accounts.login_stub import LoginStub
from tests.agent_images import agent_image
from tests.container_agent.test_account_login import LoginCase

BUILD_SECONDS = 1800


class RealLoginTests(LoginCase):
    timeout = BUILD_SECONDS

    async def kept(self, account: AccountName, question: bytes = b"", answer: bytes = b"") -> str:
        """
        :param question: what the program shows before a person types the answer.
        :returns: what was kept, in words.
        """
        image = await agent_image(PROGRAMS[account].agent)
        stub = LoginStub()
        self.addCleanup(lambda: Deferred.fromCoroutine(stub.stop()))
        self.log_in(account, image, port=await stub.start(), ca=stub.authority.pem.decode())
        if question:
            await self.watcher.shows(question)
            self.pty.write(answer)
        await self.watcher.shows(b" end\r\n")
        await self.pty.done
        self.assertEqual(self.left(), [])
        self.assertLessEqual({asked.partition("/")[0] for asked in stub.asked}, set(PROGRAMS[account].hosts))
        return self.watcher.seen.decode(errors="replace").rpartition("kept ")[2]

    async def test_claude_code_asks_for_the_code(self) -> None:
        said = await self.kept("claude", b"Paste code", b"code#state\r")
        self.assertIn("Claude subscription (max) of ada@example.com | sk-ant-oat01-can", said)

    async def test_codex_shows_a_code(self) -> None:
        self.assertIn("ChatGPT plan (plus) of ada@example.com | eyJ", await self.kept("chatgpt"))

    async def test_gemini_asks_for_the_code_and_is_ended(self) -> None:
        said = await self.kept("google", b"Enter the authorization code", b"code\r")
        self.assertIn("login with Google of ada@example.com | ya29.canary", said)

    async def test_opencode_shows_a_code(self) -> None:
        self.assertIn("GitHub Copilot | gho_canary", await self.kept("copilot", b"deployment type", b"\r"))

"""Real agents that the person's own logins pay for, whose tokens the agents never have."""

from __future__ import annotations

import json
from typing import Any

from tests.accounts.samples import CANARY, codex_file, google_file, opencode_file
from tests.container_agent.test_real_agents import CODEX, GEMINI, OPENCODE, Agent, call, text
from tests.container_agent.test_real_without_docker import WithoutDockerCase
from tests.model_stub.copilot import MODEL
from tests.model_stub.openai import CODE_MODE

LOOK = "(env; cat /proc/[0-9]*/environ; find ~ /etc/ironcurtain /tmp . -type f -exec cat {} +) 2>/dev/null"
"""Shows all that an agent has."""

FOUND = "found.txt"
"""Where that is kept, in the workspace: agents do not always show all output of a command."""

SHOWN = 4
"""How many letters of a fake token are searched for."""


def search(token: str, fake: str = "") -> str:
    """
    :param token: the real one.
    :param fake: a part of the fake one; empty: it begins with the same letters.
    :returns: a command that shows which kinds of tokens are in the sandbox.
    """
    words = (word.replace(".", "[.]") for word in (token, CANARY, fake or token[:SHOWN]))
    wanted = "|".join(f"{word[:-1]}[{word[-1]}]" for word in words)  # does not find itself
    return f"{LOOK} | grep -aohE '{wanted}' | sort -u | tee {FOUND}"


def look(tool: str, token: str, fake: str = "", **arguments: str) -> dict[str, Any]:
    """:returns: an answer of the model that searches the sandbox, by the agent's own tool."""
    block = {"type": "tool_use", "name": tool, "input": {"command": search(token, fake), **arguments}}
    return {"content": [block]}


class PlanTests(WithoutDockerCase):
    def test_codex_with_a_chatgpt_plan(self) -> None:
        token = json.loads(codex_file())["tokens"]["access_token"]
        agent = CODEX._replace(provider="chatgpt", canary=token)
        script = f"text(await tools.exec_command({json.dumps({'cmd': search(token)})}));"
        self.pay(
            agent,
            "codex",
            ".codex/auth.json",
            codex_file(),
            {"content": [{"type": "custom_tool", "name": CODE_MODE, "input": script}]},
        )

    def test_gemini_with_a_google_login(self) -> None:
        token = json.loads(google_file())["access_token"]
        agent = GEMINI._replace(provider="google-login", canary=token)
        self.pay(agent, "gemini", ".gemini/oauth_creds.json", google_file(), look("run_shell_command", token))

    def test_opencode_with_github_copilot(self) -> None:
        token = json.loads(opencode_file())["github-copilot"]["access"]
        agent = OPENCODE._replace(provider="copilot", canary=token)
        file, words = ".local/share/opencode/auth.json", ("--model", f"copilot/{MODEL}")
        self.pay(agent, "opencode", file, opencode_file(), look("bash", token, description="Look"), words=words)

    def pay(
        self, agent: Agent, name: str, file: str, content: bytes, looking: dict[str, Any], words: tuple[str, ...] = ()
    ) -> None:
        """
        A turn with tools, and a model that says the token that it was paid with.

        :param file: of the login, below the person's home.
        :param looking: the answer of the model that searches the sandbox.
        """
        write = call("filesystem__write_file", path="/workspace/hello.txt", content="hello\n")
        self.play(agent, name, write, looking, text("The key is {{key}}."))
        product, account = self.product, agent.provider.partition("-")[0]
        del product.environ[agent.variable]
        login = product.person / file
        login.parent.mkdir(parents=True)
        login.touch(0o600)
        login.write_bytes(content)
        product.home.mkdir(mode=0o700)
        (product.home / "config.toml").write_text(f'[accounts.{account}]\nsource = "cli"\n{self.model}')
        product.project.chmod(0o777)
        done = product.run("start", "--agent", agent.id, *words, "--workspace", ".", "Go.")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("The key is ", done.stdout)
        self.assertIn(f" from ~/{file}", done.stderr)
        self.assertNotIn("request refused", done.stderr)
        self.assertEqual((product.project / "hello.txt").read_text(), "hello\n")
        self.check_requests(agent)
        files = [path for path in product.home.rglob("*") if path.is_file() and not path.is_symlink()]
        self.assertGreater(len(files), 10)
        for seen in (done.stdout, done.stderr, *(path.read_bytes().decode("latin-1") for path in files)):
            self.assertNotIn(agent.canary, seen)
            self.assertNotIn(CANARY, seen)

    def check_requests(self, agent: Agent) -> None:
        """The model's server saw the real token alone, and the agent's own tool only the fake one."""
        self.assertEqual(len(self.stub.turns), 3)
        for request in self.stub.requests:
            self.assertEqual(request["headers"]["authorization"], f"Bearer {agent.canary}", request["path"])
        seen = str(self.stub.turns[-1]["results"]) + (self.product.project / FOUND).read_text()
        self.assertIn(agent.canary[:SHOWN], seen)
        self.assertNotIn(agent.canary, seen)
        self.assertNotIn(CANARY, seen)

"""Agents that accounts of clouds and gateways pay for, whose keys they never have."""

from __future__ import annotations

from typing import Any

from tests.container_agent.test_real_agents import Agent, call, text
from tests.container_agent.test_real_plans import FOUND, SHOWN, look
from tests.container_agent.test_real_without_docker import WithoutDockerCase
from tests.model_stub.gateway import BELOW

BEDROCK = Agent(
    "claude-code", "bedrock", "AWS_BEARER_TOKEN_BEDROCK", "ABSKcanary-of-bedrock-0123456789abcdef0123456789"
)
VERTEX = Agent("claude-code", "vertex", "VERTEX_TOKEN", "ya29.canary-of-vertex-0123456789abcdef0123456789")
FOUNDRY = Agent("claude-code", "foundry", "ANTHROPIC_FOUNDRY_API_KEY", "canary-of-foundry-0123456789abcdef0123456789")


ROUTED = Agent("opencode", "openrouter", "OPENROUTER_API_KEY", "sk-or-v1-canary-of-openrouter-0123456789abcdef01")
GATED = Agent("claude-code", "anthropic", "ANTHROPIC_AUTH_TOKEN", "canary-of-a-gateway-0123456789abcdef0123456789")


class CloudTests(WithoutDockerCase):
    def test_bedrock_with_a_bearer_token(self) -> None:
        self.pay(BEDROCK, 'region = "eu-central-1"')

    def test_vertex_with_the_token_of_a_command(self) -> None:
        command = 'key = { command = "printenv VERTEX_TOKEN" }'
        self.pay(VERTEX, f'region = "europe-west1"\nproject = "my-project"\n{command}')

    def test_foundry(self) -> None:
        self.pay(FOUNDRY, 'resource = "my-resource"', fake="FOUNDRY_API_KEY=ic")

    def test_openrouter(self) -> None:
        words = ("--model", "openrouter/some/model")
        self.pay(ROUTED, "", name="opencode", tool="bash", spoken="openai-chat", words=words)

    def test_gateway_without_tls_for_a_bearer_token(self) -> None:
        key = 'key = { env = "ANTHROPIC_AUTH_TOKEN", header = "authorization" }'
        self.pay(GATED, key, fake="sk-ant-api03-", plain=True, below=BELOW)

    def pay(
        self,
        agent: Agent,
        place: str,
        *,
        name: str = "claude",
        tool: str = "Bash",
        words: tuple[str, ...] = (),
        below: str = "",
        fake: str = "",
        **options: Any,
    ) -> None:
        """
        A turn with tools, and a search of the sandbox for the key.

        :param place: settings of the provider.
        :param name: of the program.
        :param tool: of the agent, for commands.
        :param words: further options of ``start``.
        :param below: the path of the provider's address.
        :param fake: a part of the fake key; empty: it begins as the real one does.
        """
        write = call("filesystem__write_file", path="/workspace/hello.txt", content="hello\n")
        looking = look(tool, agent.canary, fake, **({"description": "Look"} if tool == "bash" else {}))
        self.play(agent, name, write, looking, text("All ", "done."), **options)
        self.product.home.mkdir(mode=0o700)
        model = self.model.replace(self.stub.url, f"{self.stub.url}{below}")
        (self.product.home / "config.toml").write_text(f"{model}{place}\n")
        self.product.project.chmod(0o777)
        done = self.product.run("start", "--agent", agent.id, *words, "--workspace", ".", "Go.")
        self.assertEqual((done.returncode, done.stdout), (0, "All done.\n"), done.stderr)
        self.assertNotIn("request refused", done.stderr)
        self.assertEqual((self.product.project / "hello.txt").read_text(), "hello\n")
        self.assertEqual(len(self.stub.turns), 3)
        seen = str(self.stub.turns[-1]["results"]) + (self.product.project / FOUND).read_text()
        self.assertIn(fake or agent.canary[:SHOWN], seen)
        self.assertNotIn(agent.canary, seen)
        files = [path for path in self.product.home.rglob("*") if path.is_file() and not path.is_symlink()]
        for shown in (done.stderr, *(path.read_bytes().decode("latin-1") for path in files)):
            self.assertNotIn(agent.canary, shown)

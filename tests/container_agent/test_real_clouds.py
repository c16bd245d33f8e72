"""Claude Code that accounts of clouds pay for, whose keys it never has."""

from __future__ import annotations

from tests.container_agent.test_real_agents import Agent, call, text
from tests.container_agent.test_real_plans import SHOWN, look
from tests.container_agent.test_real_without_docker import WithoutDockerCase

BEDROCK = Agent(
    "claude-code", "bedrock", "AWS_BEARER_TOKEN_BEDROCK", "ABSKcanary-of-bedrock-0123456789abcdef0123456789"
)
VERTEX = Agent("claude-code", "vertex", "VERTEX_TOKEN", "ya29.canary-of-vertex-0123456789abcdef0123456789")
FOUNDRY = Agent("claude-code", "foundry", "ANTHROPIC_FOUNDRY_API_KEY", "canary-of-foundry-0123456789abcdef0123456789")


class CloudTests(WithoutDockerCase):
    def test_bedrock_with_a_bearer_token(self) -> None:
        self.pay(BEDROCK, 'region = "eu-central-1"')

    def test_vertex_with_the_token_of_a_command(self) -> None:
        command = 'key = { command = "printenv VERTEX_TOKEN" }'
        self.pay(VERTEX, f'region = "europe-west1"\nproject = "my-project"\n{command}')

    def test_foundry(self) -> None:
        self.pay(FOUNDRY, 'resource = "my-resource"')

    def pay(self, agent: Agent, place: str) -> None:
        """
        A turn with tools, and a search of the sandbox for the key.

        :param place: settings of the provider.
        """
        write = call("filesystem__write_file", path="/workspace/hello.txt", content="hello\n")
        self.play(agent, "claude", write, look("Bash", agent.canary), text("All ", "done."))
        self.product.home.mkdir(mode=0o700)
        (self.product.home / "config.toml").write_text(f"{self.model}{place}\n")
        self.product.project.chmod(0o777)
        done = self.product.run("start", "--agent", agent.id, "--workspace", ".", "Go.")
        self.assertEqual((done.returncode, done.stdout), (0, "All done.\n"), done.stderr)
        self.assertNotIn("request refused", done.stderr)
        self.assertEqual((self.product.project / "hello.txt").read_text(), "hello\n")
        self.assertEqual(len(self.stub.turns), 3)
        seen = str(self.stub.turns[-1]["results"])
        self.assertIn(agent.canary[:SHOWN], seen)
        self.assertNotIn(agent.canary, seen)

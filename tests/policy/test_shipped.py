"""The shipped policy and annotations: what happens without any settings."""

from __future__ import annotations

import asyncio
import importlib
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from unittest import SkipTest

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.protected import CREDENTIAL_STORES, always_protected
from ironcurtain.policy.verdict import ToolCall
from tests.policy.worlds import World


class DefaultTests(SynchronousTestCase):
    """Verdicts under the shipped policy, in a workspace inside our own directory."""

    def setUp(self) -> None:
        self.world = World.make({"workspace": "$HOME/.ironcurtain/sessions/1/sandbox", "home": "$ROOT/home"})
        self.addCleanup(self.world.remove)
        world = self.world
        world.workspace = f"{world.home}/.ironcurtain/sessions/1/sandbox"
        world.add({"dirs": ["$WORKSPACE"], "files": {"$HOME/Documents/a": "", "$HOME/.ssh/key": ""}})
        self.engine = PolicyEngine(
            default_policy(),
            default_annotations(),
            paths=PathMap(world.workspace),
            home=world.home,
            protected=always_protected(world.home, f"{world.home}/.ironcurtain", f"{world.root}/elsewhere.toml"),
        )

    def verdict(self, server: str, tool: str, **arguments: Any) -> str:
        """:returns: decision and rule."""
        schema = {"type": "object", "properties": {name: {} for name in arguments}}
        found = self.engine.evaluate(ToolCall(server, tool, arguments), schema)
        return f"{found.decision} {found.rule}"

    def test_files(self) -> None:
        for path, expected in (
            ("x", "allow structural-sandbox-allow"),
            ("~/Documents/a", "escalate read-home"),
            ("/etc/hostname", "deny default-deny"),
            ("/usr/share/doc/x", "allow read-system-documentation"),
            ("~/.ssh/key", "deny structural-protected-path"),
            ("~/.bash_history", "deny structural-protected-path"),
            ("~/.ironcurtain/policy.toml", "deny structural-protected-path"),
            ("../../2/sandbox/x", "deny structural-protected-path"),
            ("/proc/self/environ", "deny structural-protected-path"),
            (f"{self.world.root}/elsewhere.toml", "deny structural-protected-path"),
        ):
            self.assertEqual(self.verdict("filesystem", "read_text_file", path=path), expected, path)
        for path, expected in (("~/x", "escalate"), ("/etc/x", "escalate"), ("~/.ssh/x", "deny")):
            found = self.verdict("filesystem", "write_file", path=path, content="")
            self.assertEqual(found.partition(" ")[0], expected, path)
        self.assertEqual(self.verdict("filesystem", "delete_file", path="~/x"), "escalate change-outside-the-workspace")

    def test_git(self) -> None:
        for tool, arguments, expected in (
            ("git_commit", {"repo_path": "x", "message": "-m"}, "allow structural-sandbox-allow"),
            ("git_status", {"repo_path": "~/src"}, "escalate read-repositories-at-home"),
            ("git_reset", {"repo_path": "~/src"}, "escalate read-repositories-at-home"),
            ("git_push", {"path": "x"}, "escalate git-remotes"),
            ("git_clone", {"url": "https://a.test/x", "localPath": "y"}, "escalate git-remotes"),
        ):
            self.assertEqual(self.verdict("git", tool, **arguments), expected, tool)

    def test_web_and_time(self) -> None:
        self.assertEqual(self.verdict("fetch", "fetch", url="https://docs.python.org/3/"), "allow fetch-documentation")
        self.assertEqual(self.verdict("fetch", "fetch", url="http://169.254.169.254/"), "escalate fetch-elsewhere")
        self.assertEqual(self.verdict("time", "convert_time", time="12:00"), "allow tell-the-time")

    def test_memory_and_thoughts(self) -> None:
        self.assertEqual(self.verdict("sequential-thinking", "sequentialthinking", thought="x"), "allow think-aloud")
        self.assertEqual(self.verdict("memory", "read_graph"), "allow remember")
        self.assertEqual(self.verdict("memory", "add_observations", observations=[]), "escalate keep-in-memory")

    def test_every_store_of_credentials(self) -> None:
        for store in CREDENTIAL_STORES:
            for path in (f"~/{store}", f"~/{store}/x"):
                found = self.verdict("filesystem", "read_text_file", path=path)
                self.assertEqual(found, "deny structural-protected-path", path)


class InstalledServerTests(SynchronousTestCase):
    """The annotations name the arguments that the published servers have."""

    def check(self, server: str, created: Any) -> None:
        """:param created: the server's own object."""
        table = default_annotations().table()
        with ThreadPoolExecutor(1) as other:  # in this thread the reactor's event loop would be taken away
            tools = other.submit(asyncio.run, created.list_tools()).result()
        for tool in tools:
            schema = tool.model_dump(by_alias=True)["inputSchema"]
            self.assertEqual(set(schema["properties"]) - set(table[server, tool.name].args), set(), tool.name)

    def test_git(self) -> None:
        self.check("git", _module("mcp_server_git.server").create_server(None))

    def test_time(self) -> None:
        self.check("time", _module("mcp_server_time.server").create_server("UTC"))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        raise SkipTest(f"{name} is not installed") from None

"""What the agents of a session may never touch, and what is told of their calls."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.layout import find_home
from ironcurtain.home.settings import load
from ironcurtain.home.user_paths import person_home
from ironcurtain.mcp_proxy.calls import CallRaised
from ironcurtain.mcp_proxy.servers_config import CommandServer, HttpServer, SandboxConfig
from ironcurtain.network.access import Access, Entry
from ironcurtain.policy.engine import ServerBounds
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.rules import Conditions, Rule
from ironcurtain.secrets.redaction import Redactor, Secret
from ironcurtain.session import events, tools
from ironcurtain.session.call_events import teller
from ironcurtain.session.model import SessionRequest
from ironcurtain.session.server_events import ServerDown
from ironcurtain.session.tool_files import ToolFiles
from ironcurtain.session.tools import protected_paths, server_bounds, wait_for_servers
from ironcurtain.text.columns import unstyled
from ironcurtain.view.chronicle import Chronicle
from tests.audit.doubles import scratch
from tests.mcp_proxy.support import until
from tests.mcp_proxy.test_protocol import Base


class TellerTests(SynchronousTestCase):
    """:func:`teller`"""

    def test_no_part_of_an_event_has_a_secret(self) -> None:
        told: list[events.SessionEvent] = []
        tell = teller(told.append, Redactor([Secret("a-key-of-ours")]), PathMap("/x/work").to_agent_text)
        path, rule = "/a-key-of-ours", "default-deny"
        tell(CallRaised("1", "filesystem", "read_file", {"path": path}, "deny", rule, f"no rule allows {path}"))
        self.assertEqual(len(told), 2)
        self.assertNotIn("a-key-of-ours", repr(told))

    def test_what_would_deceive_reaches_the_screens_that_show_it_escaped(self) -> None:
        chronicle = Chronicle()
        told: list[events.SessionEvent] = []
        tell = teller(told.append, Redactor(()), PathMap("/x/work").to_agent_text)
        tell(CallRaised("1", "filesystem", "read_file", {"path": "/evil\u202etxt.\x1b[31m.sh"}, "deny", "r", ""))
        chronicle.add(events.Stamped(1, 0.0, told[0]))
        chronicle.add(events.Stamped(2, 0.0, events.ToolFinished(call_id="1", status="denied")))
        self.assertIn(r"path=/evil\u202etxt.\x1b[31m.sh", unstyled(chronicle.lines(80, 0.0)[0]))

    def test_long_arguments_are_cut(self) -> None:
        told: list[events.SessionEvent] = []
        tell = teller(told.append, Redactor(()), PathMap("/x/work").to_agent_text)
        tell(CallRaised("1", "filesystem", "edit", {"a": "x" * 150, "b": "y" * 150}, "deny", "r", ""))
        assert isinstance(told[0], events.ToolCallRaised)
        self.assertEqual(told[0].arguments, f"a={'x' * 150} b={'y' * 44}…")


class WaitingTests(Base):
    """:func:`wait_for_servers`"""

    async def waited(self, task: str) -> list[events.SessionEvent]:
        """:returns: the events of waiting for a server that speaks, but is never ready, and ends once it is awaited."""
        self.patch(tools, "SERVERS_SECONDS", 0.0)
        awaited = scratch(self) / "awaited"
        script = ("-c", f"echo 'Please log in'; until [ -e {awaited} ]; do sleep 0.05; done")
        mute = CommandServer("mute", "/bin/sh", script, sandbox=None, start_seconds=600.0)
        rule = Rule("mute", Conditions(server=("mute",)), "allow", "tests")
        bench = await self.bench(mute, rules=[rule])
        await until(lambda: bool(bench.proxy.failures))
        emitted: list[events.SessionEvent] = []

        def emit(event: events.SessionEvent) -> None:
            emitted.append(event)
            awaited.touch()

        await wait_for_servers(bench.proxy, SessionRequest("builtin", task), emit)
        return emitted

    async def test_conversation_begins_without_slow_servers_and_says_why_they_are_not_ready(self) -> None:
        (down,) = await self.waited("")
        why = "is not ready yet; instead of messages it sent 'Please log in': it is not JSON: "
        assert isinstance(down, ServerDown)
        self.assertEqual((down.server, down.reason[: len(why)]), ("mute", why))

    async def test_task_waits_for_servers_that_the_policy_names(self) -> None:
        (waiting,) = await self.waited("do it")  # the failure is reported by the proxy
        self.assertEqual(waiting, events.Progress(text="waiting for MCP servers that the policy names: mute"))


class ProtectedTests(SynchronousTestCase):
    """:func:`protected_paths`"""

    def protected(self, config: str = "") -> tuple[str, ...]:
        home = find_home({"IRONCURTAIN_HOME": "/x/home"}, 7)
        settings = load("config.toml", config, {}).settings
        return protected_paths(home, "/x/person", ToolFiles.chosen(home, {}), settings)

    def test_the_credentials_of_the_account_whatever_home_says(self) -> None:
        protected, account = self.protected(), pwd.getpwuid(os.geteuid()).pw_dir
        for path in ("/x/home", "/x/person/.ssh"):
            self.assertIn(path, protected)
        # What the account itself cannot enter, as some home in a container, has nothing of it.
        self.assertEqual(f"{account}/.ssh" in protected, os.access(account, os.X_OK))

    def test_the_file_of_a_key(self) -> None:
        self.assertIn("/x/key", self.protected('[providers.anthropic]\nkey = { file = "/x/key" }\n'))
        inside = self.protected('[providers.anthropic]\nkey = { file = "~/key" }\n')
        self.assertIn(str(Path("~/key").expanduser()), inside)
        self.assertIn("/x/token", self.protected('[audit]\nwitness_key_file = "/x/token"\n'))

    def test_files_of_logins_and_tokens_are_protected(self) -> None:
        named = self.protected('[accounts.claude]\nsource = "cli"\nfile = "/x/login"\n')
        self.assertIn("/x/login", named)
        self.assertIn("/x/t", self.protected('[accounts.claude]\ntoken = { file = "/x/t" }\n'))

    def test_home_is_the_accounts_where_it_is_not_set(self) -> None:
        for environ in ({}, {"HOME": ""}):
            self.assertEqual(person_home(environ, os.geteuid()), pwd.getpwuid(os.geteuid()).pw_dir)
        self.assertEqual(person_home({"HOME": "/x"}, 7), "/x")
        self.assertEqual(person_home({}, 2**31 - 2), "/")


class BoundsTests(SynchronousTestCase):
    """:func:`server_bounds`"""

    def test_each_server_of_this_machine_has_the_bounds_of_its_sandbox(self) -> None:
        sandbox = SandboxConfig(read=("/r",), write=("/w",), access=Access((Entry("a.test"),)))
        found = server_bounds(
            (
                CommandServer("boxed", "/bin/boxed", sandbox=sandbox),
                CommandServer("free", "/bin/free", sandbox=None),
                HttpServer("far", Secret("https://a.test/mcp", "url")),
            ),
            "/x/work",
        )
        boxed = ServerBounds(domains=("a.test",), reach=("/x/work", "/r", "/w"))
        self.assertEqual(found, {"boxed": boxed, "free": ServerBounds(sandboxed=False), "far": ServerBounds()})

"""What agents are told, and what they all find."""

from __future__ import annotations

import tomllib
from urllib.parse import urlsplit

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents import adapter as surroundings
from ironcurtain.agents.adapter import Adapter
from ironcurtain.agents.orientation import HOSTS_LISTED, TOOLS_LISTED, Reach, orientation
from ironcurtain.agents.registry import BUILT_IN
from ironcurtain.container import spec as layout
from ironcurtain.container.image_choices import FOLDERS
from ironcurtain.text.toml import toml_string
from tests.agents.samples import facts


class OrientationTests(SynchronousTestCase):
    """The text."""

    def test_it_says_what_is_where_and_how_long_a_person_may_take(self) -> None:
        text = orientation(["files__read", "git__push"], Reach(["api.anthropic.com"]), 300.0)
        for words in ("/workspace", "/home/agent", "The network", "api.anthropic.com", "- files__read\n- git__push\n"):
            self.assertIn(words, text)
        for words in ("Allowed", "Escalated", "Denied", "5 minutes", "never an instruction", "- Keys in your"):
            self.assertIn(words, text)

    def test_what_is_special_about_git_is_in_the_list_of_what_is_where(self) -> None:
        text = orientation([], Reach(), 300.0, git="- git is special.\n")
        self.assertIn("processes are limited.\n- git is special.\n\n# The network", text)

    def test_times(self) -> None:
        self.assertIn("for up to a minute. Wait", orientation([], Reach(), 20.0))
        self.assertIn("for up to 2 minutes. Wait", orientation([], Reach(), 61.0))

    def test_no_tools_and_no_hosts(self) -> None:
        text = orientation([], Reach(), 300.0)
        self.assertIn("no tools in this session", text)
        self.assertIn("Any other host: the connection is put before a person", text)
        self.assertNotIn("model", text)
        self.assertNotIn("Open to", text)
        self.assertNotIn("Keys", text)

    def test_open_hosts_and_how_a_refusal_looks(self) -> None:
        text = orientation([], Reach(["api.openai.com"], ["npm.test"], ["a.test", "*.b.test:22"]), 300.0)
        self.assertIn("\n- Open to every program: a.test, *.b.test:22\n", text)
        self.assertIn("\n- Package registries, to install packages only: npm.test\n", text)
        self.assertIn('begins with "IronCurtain:"', text)
        self.assertIn('Fetch the same address with\n  "curl -sS"', text)
        many = orientation([], Reach(policy=[f"h{number}.test" for number in range(HOSTS_LISTED + 3)]), 300.0)
        self.assertIn(", and 3 more\n", many)

    def test_many_tools(self) -> None:
        text = orientation([f"tool_{number}" for number in range(TOOLS_LISTED + 5)], Reach(), 300.0)
        self.assertIn("\n- and 5 more\n", text)
        self.assertLess(len(text), 20_000)

    def test_names_cannot_add_lines(self) -> None:
        text = orientation(["evil\n# New orders\u202e", "x" * 5000], Reach(*[["h\n# New orders"]] * 3), 300.0)
        self.assertNotIn("\n# New orders", text)
        self.assertNotIn("x" * 200, text)


class SurroundingsTests(SynchronousTestCase):
    """What every agent finds."""

    def test_proxy_and_certificates(self) -> None:
        environment = surroundings.environment()
        for name in ("HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "YARN_HTTPS_PROXY"):
            self.assertEqual(environment[name], "http://127.0.0.1:18080")
        for name in ("NODE_EXTRA_CA_CERTS", "CODEX_CA_CERTIFICATE", "DENO_CERT"):
            self.assertEqual(environment[name], "/etc/ironcurtain/ca.pem")
        for name in ("SSL_CERT_FILE", "GIT_SSL_CAINFO", "CARGO_HTTP_CAINFO", "npm_config_cafile"):
            self.assertEqual(environment[name], "/etc/ironcurtain/ca-bundle.pem")
        self.assertIn("127.0.0.1", environment["NO_PROXY"].split(","))
        java = environment["JAVA_TOOL_OPTIONS"].split()
        proxy = urlsplit(surroundings.PROXY_URL)
        for option in f"https.proxyHost={proxy.hostname}", f"https.proxyPort={proxy.port}":
            self.assertIn(f"-D{option}", java)
        self.assertIn("-Djavax.net.ssl.trustStore=/etc/ironcurtain/ca-bundle.p12", java)

    def test_they_are_where_the_container_puts_them(self) -> None:
        self.assertEqual(surroundings.WORKSPACE, layout.WORKSPACE)
        self.assertEqual(surroundings.HOME, layout.HOME)
        self.assertEqual(surroundings.ORIENTATION, layout.ORIENTATION)
        self.assertEqual(surroundings.MCP_COMMAND[-1], f"UNIX-CONNECT:{layout.SOCKETS}/proxy.sock")
        script = (FOLDERS / "base" / "entrypoint").read_text()
        self.assertIn(f"TCP-LISTEN:{urlsplit(surroundings.PROXY_URL).port},bind=127.0.0.1", script)


class EveryAdapterTests(SynchronousTestCase):
    """What holds for all of them."""

    def each(self) -> list[Adapter]:
        """:returns: all adapters."""
        return list(BUILT_IN)

    def test_files_have_places_of_their_own_below_them(self) -> None:
        for adapter in self.each():
            files = adapter.files(facts(model="claude-opus-5-5"))
            places = [(file.place, file.path) for file in files]
            self.assertEqual(len(set(places)), len(places))
            for file in files:
                self.assertFalse(file.path.startswith("/") or ".." in file.path.split("/"))
                self.assertNotEqual((file.place, file.path), ("orientation", "ca.pem"))
                self.assertNotEqual((file.place, file.path), ("orientation", "ca-bundle.pem"))

    def test_every_session_is_told_where_it_is(self) -> None:
        for adapter in self.each():
            given = facts(model="claude-opus-5-5")
            told = [file for file in adapter.files(given) if file.content == given.orientation]
            self.assertEqual([file.replace for file in told], [True], adapter.id)

    def test_keys_are_on_no_command_line(self) -> None:
        for adapter in self.each():
            given = facts(model="claude-opus-5-5")
            words = " ".join((*adapter.turn(given, True), *adapter.screen(given, True)))
            self.assertFalse([key for key in given.fake_keys.values() if key in words])

    def test_tools_wait_as_long_as_a_person_may(self) -> None:
        for adapter in self.each():
            given = facts(model="claude-opus-5-5", escalation_seconds=7 * 86400)
            texts = "".join(file.content for file in adapter.files(given))
            wanted = (str(given.tool_seconds), f"{given.tool_seconds}000")
            self.assertTrue(any(f" {number}" in texts for number in wanted), adapter.id)
            self.assertLess(given.tool_seconds * 1000, 2**31, "the longest timer of JavaScript")


class TomlTests(SynchronousTestCase):
    """Strings of generated files."""

    @given(st.text())
    def test_any_text_is_read_back(self, text: str) -> None:
        self.assertEqual(tomllib.loads(f"a = {toml_string(text)}")["a"], text)

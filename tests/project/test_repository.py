from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import UsageError
from ironcurtain.servers.git_remote.addresses import checked_address, clone_command, clone_environment

GOOD = (
    "https://host.test/org/project.git",
    "https://host.test:8443/project",
    "https://[2001:db8::1]/project",
    "ssh://git@host.test/~ada/project.git",
    "ssh://host.test:2222/project",
    "git@host.test:org/project.git",
    "host.test:project",
)
BAD = (
    "",
    "http://host.test/project",
    "HTTP://host.test/project",
    "git://host.test/project",
    "ftp://host.test/project",
    "file:///etc",
    "FILE:///etc",
    "/etc",
    "./project",
    "../project",
    "project",
    "ext::sh -c evil",
    "ext::sh",
    "ext::https://host.test/project",
    "fd::17",
    "transport::address",
    "https::https://host.test/x",
    "--upload-pack=evil",
    "-oProxyCommand=evil",
    "ssh://-oProxyCommand=evil/x",
    "ssh://host.test/-oProxyCommand=evil",
    "ssh://-oProxyCommand=evil@host.test/x",
    "-oProxyCommand=evil@host.test:x",
    "git@-oProxyCommand=evil:x",
    "git@host.test:-oProxyCommand=evil",
    "https://user:password@host.test/x",
    "https://token@host.test/x",
    "ssh://user:password@host.test/x",
    "https://host.test/x?y=z",
    "https://host.test/x#y",
    "https://host.test:0/x",
    "https://host.test:port/x",
    "https:///x",
    "https://host.test",
    "https://host.test/",
    "https://host.test/a b",
    "https://host.test/a\nb",
    "https://host.test/a\0b",
    "https://h\u00f6st.test/x",
    "https://ho st.test/x",
    "https://host.test/" + "x" * 3000,
)


class AddressTests(SynchronousTestCase):
    def test_https_and_ssh_are_fetched(self) -> None:
        for address in GOOD:
            self.assertEqual(checked_address(address), address)

    def test_everything_else_is_refused(self) -> None:
        for address in BAD:
            self.assertRaises(UsageError, checked_address, address)

    def test_a_password_is_not_repeated(self) -> None:
        for address in ("https://u:canary@host.test/x", "http://u:canary@host.test/x", "ssh://u:canary@h.test:x/y"):
            error = self.assertRaises(UsageError, checked_address, address)
            self.assertNotIn("canary", str(error))

    @given(st.text(max_size=40))
    def test_nothing_that_is_taken_can_be_an_option_or_a_helper(self, text: str) -> None:
        try:
            address = checked_address(text)
        except UsageError:
            return
        self.assertFalse(address.startswith("-"))
        self.assertNotIn("::", address.partition("[")[0])


class CommandTests(SynchronousTestCase):
    def test_hooks_templates_and_submodules_are_off(self) -> None:
        command = clone_command("git", "https://host.test/x", "/w")
        self.assertEqual(command[-3:], ["--", "https://host.test/x", "/w"])
        for word in ("core.hooksPath=/dev/null", "init.templateDir=", "--template=", "--no-recurse-submodules"):
            self.assertIn(word, command)

    def test_nobody_is_asked_and_the_ssh_agent_is_only_our_own_account_s(self) -> None:
        environ = {"SSH_AUTH_SOCK": "/agent", "ANTHROPIC_API_KEY": "canary"}
        own, other = (clone_environment({"PATH": "/bin"}, environ, mine) for mine in (True, False))
        self.assertEqual((own["SSH_AUTH_SOCK"], "SSH_AUTH_SOCK" in other), ("/agent", False))
        self.assertEqual((own["GIT_TERMINAL_PROMPT"], own["GIT_ALLOW_PROTOCOL"]), ("0", "https:ssh"))
        self.assertNotIn("canary", str(own))

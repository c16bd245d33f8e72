"""Where git may connect to."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.sandbox.spec import Listener
from ironcurtain.servers.git_remote.addresses import authority_of, checked_address
from ironcurtain.servers.git_remote.destinations import Destination, lookup_by_proxy, proxy_destination
from ironcurtain.servers.git_remote.ssh_settings import SshSettings, question, read_settings


class DestinationTests(SynchronousTestCase):
    def test_names_are_in_hosts_and_addresses_are_those_of_the_socket(self) -> None:
        for host, address, line in (
            ("git.example", "127.0.0.10", b"127.0.0.10 git.example\n"),
            ("localhost", "127.0.0.1", b""),
            ("app.localhost", "127.0.0.1", b""),  # curl asks nobody for it
            ("192.168.1.5", "192.168.1.5", b""),
            ("127.0.0.7", "127.0.0.7", b""),
            ("fd00::5", "fd00::5", b""),
        ):
            destination = Destination(host, 8443)
            self.assertEqual(destination.listener, Listener(address, 8443))
            self.assertEqual(
                destination.files(), (("/etc/hosts", b"127.0.0.1 localhost\n::1 localhost\n" + line),), host
            )

    def test_which_addresses_a_name_may_have(self) -> None:
        company = ("10.1.2.3", "172.16.0.9", "192.168.1.5", "100.64.0.1", "fd00::5", "1.1.1.1", "2606:4700::1111")
        refused = (
            "127.0.0.1", "127.8.9.1", "::1", "169.254.169.254", "fe80::1", "0.0.0.0", "::", "224.0.0.1", "240.0.0.1",
            "::ffff:127.0.0.1", "::ffff:169.254.169.254", "64:ff9b::7f00:1", "168.63.129.16", "fec0::1",
        )  # fmt: skip
        for address in company:
            self.assertTrue(Destination("git.example", 443).permits(address), address)
        for address in refused:
            self.assertFalse(Destination("git.example", 443).permits(address), address)
            self.assertTrue(Destination("git.example", 443, settled=True).permits(address), address)
        for host, address in (("localhost", "::1"), ("127.0.0.1", "127.0.0.1"), ("169.254.1.1", "169.254.1.1")):
            self.assertTrue(Destination(host, 443).permits(address), host)

    def test_address_of_a_call(self) -> None:
        for address, scheme, host, port, user in (
            ("https://Git.Example/a.git", "https", "git.example", None, ""),
            ("HTTPS://git.example:8443/a", "https", "git.example", 8443, ""),
            ("https://[fd00::5]:8443/a", "https", "fd00::5", 8443, ""),
            ("ssh://ada@git.example:2222/a", "ssh", "git.example", 2222, "ada"),
            ("ada@git.example:a/b:c.git", "ssh", "git.example", None, "ada"),
            ("git.example:a", "ssh", "git.example", None, ""),
        ):
            found, authority = authority_of(checked_address(address))
            self.assertEqual((found, authority.host.name, authority.port, authority.user), (scheme, host, port, user))

    def test_proxies(self) -> None:
        for text, host, port in (
            ("http://proxy:3128", "proxy", 3128),
            ("proxy:3128", "proxy", 3128),
            ("http://me:p%20w@127.0.0.1:8080/", "127.0.0.1", 8080),
            ("https://proxy", "proxy", 443),
            ("proxy", "proxy", 1080),
            ("socks5h://[::1]:9050", "::1", 9050),
        ):
            self.assertEqual(proxy_destination(text), Destination(host, port, settled=True))
        for text in ("http://", "http://:80", "http://proxy:port", "http://proxy:99999", "http://[::1"):
            self.assertRaises(ValueError, proxy_destination, text)
        self.assertEqual(lookup_by_proxy("socks5://me@proxy:1"), "socks5h://me@proxy:1")
        self.assertEqual(lookup_by_proxy("http://proxy:1"), "http://proxy:1")
        self.assertEqual(
            (lookup_by_proxy("proxy:1"), lookup_by_proxy("socks5"), lookup_by_proxy("")), ("proxy:1", "socks5", "")
        )


class SshSettingsTests(SynchronousTestCase):
    def test_what_ssh_says(self) -> None:
        said = "host far\nuser ada\nhostname ssh.git.example\nport 443\n"
        self.assertEqual(read_settings(said), SshSettings("ssh.git.example", 443))
        for jump, first in (
            ("bastion", ("bastion", 0)),
            ("ada@bastion:2222,other", ("bastion", 2222)),
            ("ssh://ada@[fd00::5]:22", ("fd00::5", 22)),
        ):
            self.assertEqual(read_settings(f"{said}proxyjump {jump}\n").jump, first)
        self.assertTrue(read_settings(f"{said}proxycommand nc %h %p\n").runs)
        self.assertFalse(read_settings(f"{said}proxycommand none\nproxyjump none\n").runs)
        self.assertTrue(read_settings(f"{said}nohostauthenticationforlocalhost yes\n").trusts_local)
        for wrong in ("", "hostname x\nport y\n", "hostname x\nproxyjump a:b:c\n"):
            self.assertRaises(ValueError, read_settings, wrong)

    @given(st.text())
    def test_any_answer_is_understood_or_an_error(self, said: str) -> None:
        with contextlib.suppress(ValueError):
            self.assertTrue(read_settings(said).host)

    def test_question(self) -> None:
        self.assertEqual(list(question("far", 0)), ["-G", "--", "far"])
        self.assertEqual(list(question("far", 22, "ada")), ["-G", "-p", "22", "--", "ada@far"])

"""What a server's list of hosts means."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.network.access import Access, Destination, Entry, conflict, read_entry
from ironcurtain.sandbox.spec import LISTENERS, Listener


def access(*entries: str) -> Access:
    """:returns: what a list permits."""
    return Access(tuple(map(read_entry, entries)))


class EntryTests(SynchronousTestCase):
    """One entry."""

    def test_a_host_alone_means_its_ports_for_the_web(self) -> None:
        self.assertEqual(read_entry("API.Example.com."), Entry("api.example.com", (443, 80)))

    def test_a_port_can_be_given(self) -> None:
        self.assertEqual(read_entry("db.example.com:5432"), Entry("db.example.com", (5432,)))
        self.assertEqual(read_entry("[::1]:5432"), Entry("::1", (5432,)))

    def test_unicode_names_become_ascii(self) -> None:
        self.assertEqual(read_entry("bücher.example").pattern, "xn--bcher-kva.example")

    def test_anything_else_is_refused(self) -> None:
        for text in (
            "",
            "https://example.com",
            "example.com/path",
            "a b",
            "x:0",
            "x:99999",
            "x:http",
            "*x.com",
            "a.*.b",
        ):
            with self.assertRaises(ValueError):
                read_entry(text)

    @given(st.text(max_size=40))
    def test_any_text_is_an_entry_or_refused(self, text: str) -> None:
        try:
            entry = read_entry(text)
        except ValueError:
            return
        self.assertTrue(0 < min(entry.ports) <= max(entry.ports) < 65536)


class AccessTests(SynchronousTestCase):
    """A list."""

    def test_only_the_listed_port_of_a_host_is_listed(self) -> None:
        given = access("db.example.com:5432")
        self.assertTrue(given.lists("db.example.com", 5432))
        for host, port in (("db.example.com", 443), ("example.com", 5432), ("x.db.example.com", 5432)):
            self.assertFalse(given.lists(host, port))

    def test_a_wildcard_covers_whole_labels_and_no_addresses(self) -> None:
        given = access("*.example.com")
        self.assertTrue(given.lists("a.b.example.com", 443) and given.lists("example.com", 443))
        for host in ("badexample.com", "example.com.evil.net", "127.0.0.1"):
            self.assertFalse(given.lists(host, 443))
        self.assertFalse(access("*").lists("10.0.0.1", 443))

    def test_only_hosts_named_exactly_may_be_private(self) -> None:
        given = access("*.example.com", "db.example.com:5432", "10.0.0.5:5432")
        self.assertTrue(given.names("db.example.com", 5432) and given.names("10.0.0.5", 5432))
        self.assertFalse(given.names("db.example.com", 443))

    def test_each_host_has_an_address_of_its_own_inside(self) -> None:
        given = access("db.example.com:5432", "api.example.com", "db.example.com:6432", "*.example.org", "10.0.0.5:1")
        self.assertEqual(given.addresses, {"db.example.com": "127.0.0.10", "api.example.com": "127.0.0.11"})
        self.assertEqual(
            given.relayed,
            {
                Listener("127.0.0.10", 5432): Destination("db.example.com", 5432, private=True),
                Listener("127.0.0.11", 443): Destination("api.example.com", 443, private=True),
                Listener("127.0.0.11", 80): Destination("api.example.com", 80, private=True),
                Listener("127.0.0.10", 6432): Destination("db.example.com", 6432, private=True),
            },
        )
        hosts = dict(given.files())["/etc/hosts"].decode()
        self.assertIn("127.0.0.10 db.example.com\n127.0.0.11 api.example.com\n", hosts)

    def test_services_of_this_machine_keep_their_addresses(self) -> None:
        given = access("localhost:5432", "127.0.0.2:6379")
        self.assertEqual(set(given.relayed), {Listener("127.0.0.1", 5432), Listener("127.0.0.2", 6379)})

    def test_what_collides_with_our_own_listeners_is_refused(self) -> None:
        for text in ("localhost:53", "127.0.0.1:18080"):
            self.assertIn("own proxy", conflict([read_entry(text)]) or "")
        self.assertIsNone(conflict([read_entry("127.0.0.1:5432")]))

    def test_many_hosts_fit_into_one_sandbox_and_more_are_refused(self) -> None:
        many = [Entry(f"h{number}.example.com") for number in range(101)]
        self.assertLessEqual(len(Access(tuple(many[:100])).relayed) + 3, LISTENERS)
        self.assertIsNone(conflict(many[:100]))
        self.assertIn("more than 100", conflict(many) or "")

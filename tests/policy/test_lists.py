"""Patterns for hosts and repositories, and lists: what certainly matches, and what can."""

from __future__ import annotations

import contextlib

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.http.urls import UnclearAddress
from ironcurtain.policy.lists import DomainPatterns, Members
from ironcurtain.policy.targets import HostileRemote, Target, git_target, web_target


class PatternTests(SynchronousTestCase):
    """:class:`DomainPatterns`"""

    def test_patterns(self) -> None:
        patterns = DomainPatterns(
            ["Example.com", "*.docs.example", "b\u00fccher.example", "10.0.0.1", "[::1]", "0x7f.1"]
        )
        for host in (
            "example.com",
            "docs.example",
            "a.b.docs.example",
            "xn--bcher-kva.example",
            "10.0.0.1",
            "127.0.0.1",
        ):
            self.assertTrue(patterns.match_host(host), host)
            self.assertTrue(patterns.may_match_host(host), host)
        for host in ("www.example.com", "evildocs.example", "example.com.evil.test", "10.0.0.2"):
            self.assertFalse(patterns.match_host(host), host)
            self.assertFalse(patterns.may_match_host(host), host)
        self.assertTrue(patterns.match(web_target("http://[0::1]:80/")))

    def test_a_host_that_cannot_be_read_is_never_permitted_and_always_denied(self) -> None:
        patterns = DomainPatterns(["example.com", "*"])
        for host in (
            "",
            "docs.example:80",
            "example.com.",
            "0xa.1",
            "example.com/x",
            "ex ample.com",
            "ex\u00e4mple.com",
        ):
            self.assertFalse(patterns.match_host(host), host)
            self.assertTrue(patterns.may_match_host(host), host)

    def test_a_denial_of_every_host_includes_addresses(self) -> None:
        for url in ("https://10.0.0.1/", "https://[::1]/", "https://a.test/"):
            self.assertEqual(DomainPatterns(["*"]).match(web_target(url)), "a.test" in url)
            self.assertTrue(DomainPatterns(["*"]).may_match(web_target(url)))
            self.assertFalse(DomainPatterns(["*.1", "*.test.x"]).may_match(web_target(url)))

    def test_a_remote_that_is_not_known_can_be_any(self) -> None:
        patterns = DomainPatterns(["github.com/acme/app"])
        for target in (git_target("origin"), Target("?", certain=False)):
            self.assertFalse(patterns.match(target))
            self.assertTrue(patterns.may_match(target))
        for text in ("/srv/x", "./x", "../x", "file:///srv/x"):
            self.assertFalse(DomainPatterns(["*"]).may_match(git_target(text)), text)

    def test_a_repository_is_denied_in_every_spelling_that_a_server_may_take_for_it(self) -> None:
        patterns = DomainPatterns(["github.com/Acme/App"])
        for text in (
            *("https://github.com/Acme/App.git", "git@github.com:acme/app", "ssh://git@GITHUB.com/ACME/app/"),
            *("https://github.com/x/../Acme/App", "https://github.com//Acme/App", "https://github.com/Acme/./App"),
            *("https://github.com/%41cme/App", "https://github.com/Acme/App?x", "https://github.com/Acme/App//"),
        ):
            self.assertTrue(patterns.may_match(git_target(text)), text)
        for text in ("https://github.com/Acme/Other", "https://gitlab.com/Acme/App", "https://evil.test/x/../Acme/App"):
            self.assertFalse(patterns.may_match(git_target(text)), text)

    @settings(max_examples=300, deadline=None, database=None)
    @given(
        st.lists(st.sampled_from(["*", "*.test", "a.test", "10.0.0.1", "::1", "a.test/x/y", "*.0.1"]), max_size=3),
        st.sampled_from(
            ["https://a.test/x/y", "https://b.a.test/", "https://10.0.0.1/x/y", "https://[::1]/", "https://c.d/"]
        ),
        st.booleans(),
    )
    def test_what_certainly_matches_can_match(self, patterns: list[str], url: str, remote: bool) -> None:
        with contextlib.suppress(UnclearAddress, HostileRemote):
            target = git_target(url) if remote else web_target(url)
            if DomainPatterns(patterns).match(target):
                self.assertTrue(DomainPatterns(patterns).may_match(target))


class MembersTests(SynchronousTestCase):
    """:class:`Members`"""

    def test_permissions_compare_whole_values_and_denials_what_programs_make_of_them(self) -> None:
        mails, names = Members(["Eve@evil.test"], "emails"), Members(["Evil", "stra\u00dfe"], "identifiers")
        for members, value, certain in (
            (mails, "eve@EVIL.test", True),
            (mails, "Eve <eve@evil.test>", False),
            (mails, "ann@acme.test, eve@evil.test", False),
            (mails, "ann@acme.test;eve@evil.test", False),
            (mails, " eve@evil.test\n", False),
            (mails, "eve\u200b@evil.test", False),
            (mails, "\uff45ve@evil.test", False),
            (names, "EVIL", True),
            (names, " evil ", False),
            (names, "ev\u00adil", False),
            (names, "\uff25vil", False),
            (names, "STRASSE", False),
        ):
            self.assertEqual(value in members, certain, value)
            self.assertTrue(members.may_contain(value), value)
        for members, value in (
            (mails, "steve@evil.test"),
            (mails, "eve@evil.test.x"),
            (names, "evil twin"),
            (names, ""),
        ):
            self.assertFalse(members.may_contain(value), value)

    @settings(max_examples=200, deadline=None, database=None)
    @given(st.lists(st.text(max_size=8), max_size=4), st.text(max_size=8), st.sampled_from(["emails", "identifiers"]))
    def test_what_is_a_member_can_be_one(self, allowed: list[str], value: str, kind: str) -> None:
        members = Members(allowed, "emails" if kind == "emails" else "identifiers")
        if value in members:
            self.assertTrue(members.may_contain(value))

"""Scopes: what an approval that is kept covers, and above all what it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.escalation.permission import Location, Scope, is_normalized, make_scope
from ironcurtain.policy.verdict import Decision, Resource, Verdict

HOME = "/home/ada"

NAMES = st.sampled_from(["a", "b", "bc", "a.b", "..", ".", "", "ä", "a b"])
PATHS = st.lists(NAMES, max_size=6).map(lambda names: "/" + "/".join(names))
ROLES = st.sampled_from(["read-path", "write-path", "delete-path"])


def scope(
    *resources: tuple[str, str],
    tool: str = "write_file",
    definition: str = "d",
    schema: dict[str, Any] | None = None,
    arguments: dict[str, Any] | None = None,
    rule: str = "outside",
    asking: tuple[str, ...] = (),
    version: str = "v1",
    directories: tuple[str, ...] = (),
    shown: Callable[[str], str] = str,
) -> Scope | None:
    """:returns: the scope of a call that acts on these roles and values."""
    judged = tuple(Resource(role, "path", value) for role, value in resources)
    verdict = Verdict(Decision.ESCALATE, rule, "it is outside", arguments or {}, judged, asking)
    return make_scope(
        "filesystem",
        tool,
        verdict,
        definition=definition,
        schema=schema or {},
        policy_version=version,
        home=HOME,
        is_directory=directories.__contains__,
        shown=shown,
    )


def sure(found: Scope | None) -> Scope:
    """:returns: a scope that there must be."""
    assert found is not None
    return found


class PathTests(SynchronousTestCase):
    """A directory, what is below it, and nothing else."""

    def covers(self, kept: str, wanted: str, role: str = "write-path", other: str = "write-path") -> bool:
        """Whether an approval of one path covers another."""
        new = scope((other, wanted))
        return new is not None and sure(scope((role, kept))).covers(new)

    def test_the_directory_and_what_is_below_it(self) -> None:
        for wanted in ("/srv/src/a.py", "/srv/src/other.py", "/srv/src/deep/down/b.py"):
            self.assertTrue(self.covers("/srv/src/a.py", wanted), wanted)
        for wanted in ("/srv/a.py", "/srv/srcs/a.py", "/srv/src2", "/srv/src.py", "/etc/passwd", "/"):
            self.assertFalse(self.covers("/srv/src/a.py", wanted), wanted)

    def test_a_path_that_is_no_real_one_is_never_covered(self) -> None:
        for wanted in ("/srv/src/../../etc/passwd", "/srv/src/./a", "//srv/src/a", "/srv/src//a", "srv/src/a", ""):
            self.assertIsNone(scope(("write-path", wanted)), wanted)
            self.assertFalse(
                Location("write-path", "/srv/src", below=True).holds(Location("write-path", wanted)), wanted
            )

    def test_another_role_is_asked_about(self) -> None:
        for role, other in (("read-path", "write-path"), ("write-path", "delete-path"), ("delete-path", "read-path")):
            self.assertFalse(self.covers("/srv/src/a", "/srv/src/a", role, other))

    def test_a_directory_that_is_named_is_the_place_itself(self) -> None:
        kept = sure(scope(("read-path", "/srv/src"), directories=("/srv/src",)))
        self.assertTrue(kept.covers(sure(scope(("read-path", "/srv/src/a")))))
        self.assertFalse(kept.covers(sure(scope(("read-path", "/srv/a")))))
        self.assertEqual(kept.words, "filesystem.write_file in /srv/src and below")

    def test_a_file_where_the_directory_was_is_another_place(self) -> None:
        for kept, wanted in (("/srv/src/a", "/srv/src"), ("/a/a", "/a")):
            self.assertFalse(self.covers(kept, wanted))

    def test_the_home_is_never_permitted_as_a_whole(self) -> None:
        for path in ("/home/ada/notes.txt", "/home/readme", "/vmlinuz"):
            self.assertTrue(self.covers(path, path))
            self.assertFalse(self.covers(path, f"{path}2"), path)
        self.assertFalse(self.covers("/home/ada/notes.txt", "/home/ada/.bashrc"))
        self.assertTrue(self.covers("/home/ada/src/a", "/home/ada/src/b"))
        kept = sure(scope(("read-path", HOME), directories=(HOME,)))
        self.assertFalse(kept.covers(sure(scope(("read-path", f"{HOME}/src/a")))))
        self.assertEqual(kept.words, "filesystem.write_file at /home/ada")

    def test_each_role_has_its_own_places(self) -> None:
        kept = sure(scope(("read-path", "/srv/from/a"), ("write-path", "/srv/to/a")))
        self.assertTrue(kept.covers(sure(scope(("read-path", "/srv/from/b"), ("write-path", "/srv/to/b")))))
        self.assertFalse(kept.covers(sure(scope(("read-path", "/srv/to/b"), ("write-path", "/srv/from/b")))))
        self.assertFalse(kept.covers(sure(scope(("write-path", "/srv/to/b")))))

    @given(PATHS, PATHS, ROLES, ROLES)
    def test_whatever_is_covered_lies_in_the_directory(self, kept: str, wanted: str, role: str, other: str) -> None:
        first, second = scope((role, kept)), scope((other, wanted))
        if first is None or second is None or not first.covers(second):
            return
        inside = f"{kept.rpartition('/')[0]}/"
        self.assertEqual(role, other)
        self.assertTrue(wanted.startswith(inside), (kept, wanted))
        self.assertNotIn("..", wanted.split("/"))

    @given(PATHS, ROLES)
    def test_what_was_approved_is_covered(self, path: str, role: str) -> None:
        found = scope((role, path))
        self.assertEqual(found is not None, is_normalized(path))
        if found is not None:
            self.assertTrue(found.covers(found))

    @given(st.lists(st.tuples(ROLES, PATHS), max_size=3), st.lists(st.tuples(ROLES, PATHS), max_size=3))
    def test_every_resource_counts(self, kept: list[tuple[str, str]], wanted: list[tuple[str, str]]) -> None:
        first, second = scope(*kept), scope(*wanted)
        if first is not None and second is not None and first.covers(second):
            for role, path in wanted:
                directories = [known.rpartition("/")[0] for same, known in kept if same == role]
                self.assertTrue(any(path.startswith(f"{directory}/") for directory in directories))


class OtherPlaceTests(SynchronousTestCase):
    """Addresses, remotes, and calls that name nothing."""

    def test_scheme_host_and_port(self) -> None:
        kept = sure(scope(("fetch-url", "https://docs.python.org/3/library?x#y")))
        for wanted in ("https://docs.python.org/", "HTTPS://DOCS.python.org:443/a/../b", "https://u@docs.python.org"):
            self.assertTrue(kept.covers(sure(scope(("fetch-url", wanted)))), wanted)
        for wanted in (
            "http://docs.python.org/", "https://docs.python.org:8443/", "https://docs.python.org.evil.org/",
            "https://evil.org/https://docs.python.org/", "https://docs.python.org@evil.org/", "https://python.org/",
        ):  # fmt: skip
            self.assertFalse(kept.covers(sure(scope(("fetch-url", wanted)))), wanted)
        self.assertEqual(kept.words, "filesystem.write_file at https://docs.python.org:443")

    def test_an_address_that_can_be_read_in_two_ways_is_never_kept(self) -> None:
        for value in (
            "https://a.org\\@b.org/", "https:/\\a.org/", "https:a.org", "ftp://a.org/", "file:///etc/passwd",
            "https://a.org:99999/", "https://a\t.org/", "", "https://",
        ):  # fmt: skip
            self.assertIsNone(scope(("fetch-url", value)), value)

    def test_the_exact_remote(self) -> None:
        kept = sure(scope(("git-remote-url", "https://example.org/me/it.git")))
        self.assertFalse(kept.covers(sure(scope(("git-remote-url", "https://example.org/me/other.git")))))
        self.assertTrue(kept.covers(sure(scope(("git-remote-url", "https://example.org/me/it.git")))))

    def test_a_remote_that_is_not_certain_is_never_kept(self) -> None:
        for value in ("an address that is not known, since /x has https://a.org", "origin", "../it", "/srv/it.git"):
            self.assertIsNone(scope(("git-remote-url", value)), value)

    def test_a_call_that_names_nothing_covers_none_that_does(self) -> None:
        kept = sure(scope(tool="notify"))
        self.assertEqual(kept.words, "every call of filesystem.notify without arguments")
        self.assertTrue(kept.covers(kept))
        self.assertFalse(kept.covers(sure(scope(tool="notify", arguments={"text": "other"}))))
        self.assertFalse(kept.covers(sure(scope(("write-path", "/srv/a"), tool="notify"))))
        self.assertFalse(sure(scope(("write-path", "/srv/a"), tool="notify")).covers(kept))

    def test_exact_values_of_other_roles(self) -> None:
        kept = sure(scope(("github-owner", "me"), ("github-repo", "it")))
        self.assertEqual(kept.words, "filesystem.write_file, github-owner at me, github-repo at it")
        self.assertFalse(kept.covers(sure(scope(("github-owner", "me"), ("github-repo", "other")))))


class BoundTests(SynchronousTestCase):
    """All that must be the same besides the place."""

    def test_tool_definition_rule_and_version(self) -> None:
        kept = sure(scope(("write-path", "/srv/a")))
        others: list[dict[str, Any]] = [{"tool": "edit"}, {"definition": "e"}, {"rule": "r"}, {"version": "v2"}]
        for other in (*others, {"asking": ("more",)}):
            self.assertFalse(kept.covers(sure(scope(("write-path", "/srv/a"), **other))), other)

    def test_fewer_rules_may_ask(self) -> None:
        self.assertTrue(sure(scope(tool="a", asking=("outside", "more"))).covers(sure(scope(tool="a"))))

    def test_what_chooses_between_ways_to_act(self) -> None:
        schema = {"properties": {"mode": {"type": "string", "enum": ["soft", "hard"]}, "note": {"type": "string"}}}
        kept = sure(scope(tool="reset", schema=schema, arguments={"mode": "soft", "note": "a", "force": False}))
        self.assertEqual(kept.words, 'every call of filesystem.reset with force=false, mode="soft", note: any text')
        for arguments, wanted in (
            ({"mode": "soft", "note": "b", "force": False}, True),
            ({"mode": "hard", "note": "a", "force": False}, False),
            ({"mode": "soft", "note": "a", "force": True}, False),
            ({"mode": "soft", "note": "a"}, False),
            ({"note": "a", "force": False}, False),
        ):
            new = sure(scope(tool="reset", schema=schema, arguments=arguments))
            self.assertEqual(kept.covers(new), wanted, arguments)

    def test_rules_that_are_no_rules_are_never_kept(self) -> None:
        for rule in ("structural-git-hooks", "structural-git-fetches"):
            self.assertIsNone(scope(("write-path", "/srv/a"), rule=rule), rule)
            self.assertIsNone(scope(("write-path", "/srv/a"), asking=("outside", rule)), rule)

    def test_a_server_s_domains_are_kept_if_nothing_else_is_touched(self) -> None:
        rule = "structural-domain-escalate"
        self.assertIsNotNone(scope(("fetch-url", "https://a.org/x"), rule=rule))
        self.assertIsNone(scope(("fetch-url", "https://a.org/x"), ("write-path", "/srv/a"), rule=rule))
        self.assertIsNone(scope(("git-remote-url", "https://a.org/x"), rule=rule))

    def test_people_read_the_name_that_they_know(self) -> None:
        kept = sure(scope(("write-path", "/srv/it/src/a"), shown=lambda path: path.replace("/srv/it", "/workspace")))
        self.assertEqual(kept.words, "filesystem.write_file in /workspace/src and below")
        moved = sure(scope(("read-path", "/srv/a b/x"), ("delete-path", "/srv/a b/x"), ("write-path", "/srv/to/x")))
        self.assertEqual(
            moved.words,
            'filesystem.write_file, read-path and delete-path in "/srv/a b" and below, write-path in /srv/to and below',
        )


class UnknownTests(SynchronousTestCase):
    """Tools about which nobody has said anything."""

    def kept(self, rule: str = "structural-unannotated", **arguments: Any) -> Scope:
        """:returns: the scope of a call; arguments that begin with a slash are likely paths."""
        schema = {"type": "object", "properties": {name: {"type": "string"} for name in ("query", "where")}}
        paths = [(n, v) for n, v in arguments.items() if v.startswith("/")]
        resources = tuple(Resource("unknown", name, value) for name, value in paths)
        verdict = Verdict(Decision.ESCALATE, rule, "", arguments, resources, (rule,))
        return sure(
            make_scope(
                "tickets", "show", verdict, definition="d", schema=schema, policy_version="v", home=HOME,
                is_directory=lambda path: True, shown=str,
            )
        )  # fmt: skip

    def test_texts_may_differ_but_not_likely_paths(self) -> None:
        scope = self.kept(query="a", where="/x")
        self.assertEqual(scope.words, 'every call of tickets.show with where="/x", query: any text')
        self.assertTrue(scope.covers(self.kept(query="b", where="/x")))
        for other in (self.kept(query="a", where="/x/y"), self.kept(query="/y", where="/x"), self.kept(query="a")):
            self.assertFalse(scope.covers(other), other)
        self.assertFalse(self.kept(query="a").covers(self.kept(query="/etc/hosts")))

    def test_argument_that_now_leads_elsewhere_is_asked_again(self) -> None:
        schema = {"type": "object", "properties": {"where": {"type": "string"}}}

        def scope(real: str) -> Scope:
            verdict = Verdict(
                Decision.ESCALATE, "structural-unannotated", "", {"where": "link"},
                (Resource("unknown", "where", real),),
            )  # fmt: skip
            return sure(
                make_scope(
                    "tickets", "show", verdict, definition="d", schema=schema, policy_version="v", home=HOME,
                    is_directory=lambda path: False, shown=str,
                )
            )  # fmt: skip

        self.assertTrue(scope("/x").covers(scope("/x")))
        self.assertFalse(scope("/x").covers(scope("/y")))

    def test_approval_for_a_server_without_rules_is_kept(self) -> None:
        self.assertTrue(self.kept("structural-no-rule", query="a").covers(self.kept("structural-no-rule", query="b")))

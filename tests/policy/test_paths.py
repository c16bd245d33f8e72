"""Real paths: what :func:`os.path.realpath` says, and an error where nobody can say."""

from __future__ import annotations

import os

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.paths import ForeignHome, NoPath, Places, Root, UnresolvablePath, real_path
from tests.examples import examples
from tests.policy.worlds import World

TREE = {
    "files": {"$WORKSPACE/a/b/f": "", "$WORKSPACE/f": "", "$ROOT/out/g": "", "$HOME/h": ""},
    "links": {
        "$WORKSPACE/out": "../out",
        "$WORKSPACE/a/up": "..",
        "$WORKSPACE/a/gone": "../../out/not-there",
        "$WORKSPACE/a/self": "self",
        "$WORKSPACE/ring": "a/ring",
        "$WORKSPACE/a/ring": "../ring",
        "$WORKSPACE/abs": "$ROOT/out",
        "$WORKSPACE/slash": "/",
        "$WORKSPACE/a/b/far": "../../out/../home",
        "$ROOT/out/back": "$WORKSPACE/a",
        "$WORKSPACE/f-link": "f",
    },
}
NAMES = ["", ".", "..", "a", "b", "f", "out", "up", "gone", "abs", "slash", "far", "back", "f-link", "new", "home", "g"]


class NamedTests(SynchronousTestCase):
    """What a path would be without links."""

    def test_it_differs_from_the_real_one_by_links_only(self) -> None:
        world = World.make(TREE)
        self.addCleanup(world.remove)
        places = Places(PathMap(world.workspace), f"{world.root}/home")
        same = ("f", "/workspace/a/./b/../b/f", "/workspace", "", f"/{world.workspace}/f", "~/h", "~", "a//b/")
        for written in same:
            self.assertEqual(places.named(written), places.real(written), written)
        for written in ("out/g", "/workspace/f-link", "a/up", "a/gone", "a/up/f", "slash", f"{world.workspace}/out"):
            self.assertNotEqual(places.named(written), places.real(written), written)


class RealPathTests(SynchronousTestCase):
    """:func:`real_path` over a tree with every kind of link."""

    def setUp(self) -> None:
        self.world = World.make(TREE)
        self.addCleanup(self.world.remove)

    def test_it_agrees_with_the_standard_library(self) -> None:
        @settings(max_examples=examples(400), deadline=None, database=None)
        @given(st.lists(st.sampled_from(NAMES), max_size=9))
        def agree(names: list[str]) -> None:
            path = "/".join((self.world.workspace, *names))
            self.assertEqual(real_path(path), os.path.realpath(path))

        agree()

    def test_known_directories_give_the_same(self) -> None:
        plain: set[str] = set()
        first = real_path(f"{self.world.workspace}/out/g", "", plain)
        self.assertEqual(real_path("out/g", self.world.workspace, plain), first)
        self.assertNotIn(f"{self.world.workspace}/out", plain)

    def test_a_circle_is_refused(self) -> None:
        for name in ("a/self", "ring", "a/ring/x"):
            with self.assertRaises(UnresolvablePath):
                real_path(f"{self.world.workspace}/{name}")

    def test_forty_links_pass_and_one_more_does_not(self) -> None:
        place = self.world.workspace
        os.symlink("f", f"{place}/l1")
        for number in range(2, 42):
            os.symlink(f"l{number - 1}", f"{place}/l{number}")
        self.assertEqual(real_path(f"{place}/l40"), f"{place}/f")
        with self.assertRaises(UnresolvablePath):
            real_path(f"{place}/l41")

    def test_names_and_paths_that_are_too_long_are_refused(self) -> None:
        for path in ("/" + "x" * 300, "/" + "./" * 3000):
            with self.assertRaises(UnresolvablePath):
                real_path(path)

    def test_what_no_path_can_have_is_refused(self) -> None:
        for path in ("/a\0b", "/\ud800"):
            with self.assertRaises(NoPath):
                real_path(path)

    def test_the_root(self) -> None:
        self.assertEqual(real_path("/../.."), "/")
        self.assertEqual(real_path(""), "/")


class PlacesTests(SynchronousTestCase):
    """What the agent's names mean."""

    def setUp(self) -> None:
        self.world = World.make(TREE)
        self.addCleanup(self.world.remove)
        self.places = Places(PathMap(self.world.workspace), self.world.home)

    def test_names_of_the_workspace(self) -> None:
        inside = f"{self.world.workspace}/a/b/f"
        from_home = os.path.join("~", os.path.relpath(inside, self.world.home))
        for name in ("/workspace/a/b/f", "a/b/f", "./a//b/./f", inside, "/workspace/a/../a/b/f", from_home):
            self.assertEqual(self.places.real(name), inside, name)
        self.assertEqual(self.places.real(""), self.world.workspace)
        self.assertEqual(self.places.real("/workspace"), self.world.workspace)

    def test_home_and_elsewhere(self) -> None:
        self.assertEqual(self.places.real("~"), self.world.home)
        self.assertEqual(self.places.real("~/h"), f"{self.world.home}/h")
        self.assertEqual(self.places.real("/workspace/../x"), f"{self.world.root}/x")
        self.assertEqual(self.places.real("/workspace-evil"), "/workspace-evil")

    def test_another_users_home_is_never_guessed(self) -> None:
        for name in ("~root", "~root/x", "~nobody/../x"):
            with self.assertRaises(ForeignHome):
                self.places.real(name)
        self.assertEqual(self.places.real("./~root"), f"{self.world.workspace}/~root")

    def test_a_root_holds_itself_and_what_is_below(self) -> None:
        self.assertTrue(Root("/a").holds("/a") and Root("/a").holds("/a/b") and Root("/").holds("/x"))
        self.assertFalse(Root("/a").holds("/ab") or Root("/a").holds("/"))

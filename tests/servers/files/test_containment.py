from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.table import SCHEMAS
from ironcurtain.servers.files.tools import FileTools
from ironcurtain.servers.files.walk import Roots
from tests.servers.files.trees import SECRET, ToolCase, trees


class ContainmentTests(ToolCase):
    def test_names_outside_are_refused(self) -> None:
        secret = self.outside / "secret.txt"
        up = "../" * 30
        for path in [
            str(secret),
            "../tree-evil/secret.txt",
            f"{self.inside}-evil/secret.txt",
            f"{self.inside}/../tree-evil/secret.txt",
            f"{up}{secret}",
            "/proc/self/root" + str(secret),
            "/dev/fd/0",
            "/",
            "/etc/passwd",
            "~/x",
            "",
            "a\0b",
        ]:
            for tool in ("read_file", "list_directory", "delete_file"):
                self.assertNotIn(SECRET, self.refused(tool, path=path))
        self.assertTrue(secret.exists())

    def test_links_are_refused_wherever_they_stand(self) -> None:
        (self.inside / "d").mkdir()
        (self.inside / "d" / "out").symlink_to(self.outside)
        (self.inside / "link.txt").symlink_to(self.outside / "secret.txt")
        (self.inside / "dangling").symlink_to(self.outside / "new.txt")
        (self.inside / "real.txt").write_text("x")
        (self.inside / "near").symlink_to("real.txt")
        calls: list[tuple[str, dict[str, Any]]] = [
            ("read_file", {"path": "link.txt"}),
            ("read_file", {"path": "near"}),
            ("read_file", {"path": "d/out/secret.txt"}),
            ("read_media_file", {"path": "link.txt"}),
            ("write_file", {"path": "link.txt", "content": "!"}),
            ("write_file", {"path": "dangling", "content": "!"}),
            ("write_file", {"path": "d/out/new.txt", "content": "!"}),
            ("edit_file", {"path": "link.txt", "edits": [{"oldText": "secret", "newText": "!"}]}),
            ("list_directory", {"path": "d/out"}),
            ("directory_tree", {"path": "d/out"}),
            ("search_files", {"path": "d/out/deep", "pattern": "*"}),
            ("create_directory", {"path": "d/out/new"}),
            ("get_file_info", {"path": "link.txt"}),
            ("move_file", {"source": "link.txt", "destination": "moved"}),
            ("move_file", {"source": "real.txt", "destination": "d/out/moved"}),
            ("delete_file", {"path": "link.txt"}),
            ("delete_file", {"path": "d/out/secret.txt"}),
            ("delete_directory", {"path": "d/out/deep"}),
        ]
        for tool, arguments in calls:
            self.assertIn("symbolic link", self.refused(tool, **arguments), (tool, arguments))
        self.assertIn("exists already", self.refused("move_file", source="real.txt", destination="dangling"))
        self.assertEqual(sorted(os.listdir(self.outside)), ["deep", "secret.txt"])

    def test_a_directory_replaced_by_a_link_fails(self) -> None:
        (self.inside / "d").mkdir()
        (self.inside / "d" / "secret.txt").write_text("mine")
        self.assertEqual(self.call("read_file", path="d/secret.txt"), "mine")
        os.rename(self.inside / "d", self.inside / "old")
        (self.inside / "d").symlink_to(self.outside)
        self.assertIn("symbolic link", self.refused("read_file", path="d/secret.txt"))

    def test_a_link_swapped_in_while_calls_run_never_leads_outside(self) -> None:
        (self.inside / "d").mkdir()
        (self.inside / "d" / "secret.txt").write_text("mine")
        (self.inside / "trap").symlink_to(self.outside)
        names = self.inside / "d", self.inside / "trap", self.inside / "spare"
        stop = threading.Event()

        def swap() -> None:
            while not stop.is_set():
                os.rename(names[0], names[2])
                os.rename(names[1], names[0])
                os.rename(names[0], names[1])
                os.rename(names[2], names[0])

        swapper = threading.Thread(target=swap)
        swapper.start()
        outcomes: set[str] = set()
        try:
            for number in range(3000):
                try:
                    outcomes.add(self.call("read_file", path="d/secret.txt"))
                    self.call("write_file", path="d/new.txt", content=str(number))
                except FileError as e:
                    outcomes.add("link" if "symbolic link" in str(e) else "missing")
        finally:
            stop.set()
            swapper.join()
        self.assertLessEqual({"mine"}, outcomes)
        self.assertLessEqual(outcomes, {"mine", "link", "missing"})
        self.assertEqual(sorted(os.listdir(self.outside)), ["deep", "secret.txt"])

    def test_what_is_no_regular_file_is_refused_without_waiting(self) -> None:
        os.mkfifo(self.inside / "pipe")
        calls: list[tuple[str, dict[str, Any]]] = [
            ("read_file", {}),
            ("write_file", {"content": "x"}),
            ("edit_file", {"edits": [{"oldText": "a", "newText": "b"}]}),
            ("delete_file", {}),
        ]
        for tool, arguments in calls:
            self.assertIn("not a regular file", self.refused(tool, path="pipe", **arguments))
        self.assertIn("not a regular file", self.refused("move_file", source="pipe", destination="x"))

    def test_the_allowed_directory_may_be_a_link(self) -> None:
        (self.inside / "a").write_text("A")
        link = self.inside.parent / "link"
        link.symlink_to(self.inside)
        roots = Roots([str(link)])
        self.addCleanup(roots.close)
        tools = FileTools(roots)
        for path in (f"{link}/a", f"{self.inside}/a", "a"):
            self.assertEqual(tools.call("read_file", {"path": path})[0]["text"], "A")
        link.unlink()
        link.symlink_to(self.outside)
        self.assertRaises(FileError, tools.call, "read_file", {"path": f"{link}/secret.txt"})

    def test_a_directory_that_is_missing_at_start_is_an_error(self) -> None:
        self.assertRaises(Unavailable, Roots, [str(self.inside / "no")])
        (self.inside / "f").write_text("")
        self.assertRaises(Unavailable, Roots, [str(self.inside / "f")])

    def test_the_longest_root_wins_and_both_work(self) -> None:
        (self.inside / "sub").mkdir()
        (self.inside / "sub" / "a").write_text("A")
        roots = Roots([str(self.inside), str(self.inside / "sub")])
        self.addCleanup(roots.close)
        self.assertEqual(roots.locate(f"{self.inside}/sub/a").parts, ("a",))
        self.assertEqual(roots.locate("sub/a").root.path, str(self.inside / "sub"))


NAMES = st.sampled_from(["a", "b", "f", "link", "up", "loop", "..", ".", "secret.txt", "deep"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
CALLS = st.one_of(
    st.tuples(
        st.sampled_from(
            sorted(
                {"read_file", "list_directory", "directory_tree", "delete_file", "delete_directory"}
                | {"create_directory", "get_file_info", "read_media_file"}
            )
        ),
        st.fixed_dictionaries({"path": PATHS}),
    ),
    st.tuples(st.just("write_file"), st.fixed_dictionaries({"path": PATHS, "content": st.just("new")})),
    st.tuples(st.just("search_files"), st.fixed_dictionaries({"path": PATHS, "pattern": st.just("*")})),
    st.tuples(st.just("move_file"), st.fixed_dictionaries({"source": PATHS, "destination": PATHS})),
    st.tuples(
        st.just("edit_file"),
        st.fixed_dictionaries({"path": PATHS, "edits": st.just([{"oldText": "secret", "newText": "new"}])}),
    ),
)


def plant(inside: Path, outside: Path, links: list[tuple[str, str]]) -> None:
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "f").write_text("mine")
    for directory, name in links:
        if not (inside / directory / name).is_symlink():
            target = {"link": outside, "up": Path(".."), "loop": Path("loop"), "secret.txt": outside / "secret.txt"}[
                name
            ]
            (inside / directory / name).symlink_to(target)


def picture(directory: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() if path.is_file() else b"" for path in sorted(directory.rglob("*"))}


class EverythingTests(SynchronousTestCase):
    @settings(max_examples=150, deadline=None)
    @given(
        st.lists(
            st.tuples(st.sampled_from([".", "a", "a/b"]), st.sampled_from(["link", "up", "loop", "secret.txt"])),
            max_size=6,
        ),
        st.lists(CALLS, max_size=12),
    )
    def test_no_sequence_of_calls_touches_what_is_outside(
        self, links: list[tuple[str, str]], calls: list[tuple[str, dict[str, Any]]]
    ) -> None:
        with trees() as (inside, outside):
            plant(inside, outside, links)
            before = picture(outside)
            roots = Roots([str(inside)])
            tools = FileTools(roots)
            try:
                for name, arguments in calls:
                    try:
                        answer = json.dumps(tools.call(name, arguments))
                    except FileError as e:
                        answer = str(e)
                    self.assertNotIn(SECRET, answer)
            finally:
                roots.close()
            self.assertEqual(picture(outside), before)
            self.assertEqual(sorted(os.listdir(inside.parent)), ["tree", "tree-evil"])

    def test_every_tool_of_the_table_has_a_method(self) -> None:
        with trees() as (inside, _):
            roots = Roots([str(inside)])
            for name in SCHEMAS:
                self.assertRaises(FileError, FileTools(roots).call, name, {"nonsense": 1})
            roots.close()

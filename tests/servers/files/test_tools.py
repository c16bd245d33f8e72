from __future__ import annotations

import json
import os
import stat
from base64 import b64decode

from ironcurtain.servers.files import content, listing
from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.walk import Roots
from tests.servers.files.trees import SECRET, ToolCase


class ReadTests(ToolCase):
    def test_a_text_is_read_as_it_is(self) -> None:
        (self.inside / "a.txt").write_bytes("ä\r\nb\0".encode())
        self.assertEqual(self.call("read_text_file", path=str(self.inside / "a.txt")), "ä\r\nb\0")
        self.assertEqual(self.call("read_file", path="a.txt"), "ä\r\nb\0")

    def test_head_and_tail(self) -> None:
        (self.inside / "a").write_text("1\n2\n3\n")
        (self.inside / "b").write_text("1\n2\n3")
        for name, head, tail in [("a", "1\n2\n", "2\n3\n"), ("b", "1\n2\n", "2\n3")]:
            self.assertEqual(self.call("read_text_file", path=name, head=2), head)
            self.assertEqual(self.call("read_text_file", path=name, tail=2), tail)
            whole = (self.inside / name).read_text()
            for many in (3, 4, 10**9):
                self.assertEqual(self.call("read_text_file", path=name, head=many), whole)
                self.assertEqual(self.call("read_text_file", path=name, tail=many), whole)
        self.assertIn("not both", self.refused("read_text_file", path="a", head=1, tail=1))
        for wrong in (0, -1, 1.5, float("nan"), float("inf")):
            self.assertIn("whole number", self.refused("read_text_file", path="a", head=wrong))

    def test_lines_across_the_blocks_of_a_large_file(self) -> None:
        lines = [f"{number:09d}\n" for number in range(3 * content.BLOCK // 10)]
        (self.inside / "large").write_text("".join(lines))
        self.assertEqual(self.call("read_file", path="large", tail=40_000), "".join(lines[-40_000:]))
        self.assertEqual(self.call("read_file", path="large", head=40_000), "".join(lines[:40_000]))

    def test_a_file_over_the_limit_is_refused_but_parts_can_be_read(self) -> None:
        with (self.inside / "huge").open("wb") as f:
            f.write(b"first\n")
            f.truncate(1 << 40)
        self.assertIn("read_text_file and head or tail", self.refused("read_file", path="huge"))
        self.assertEqual(self.call("read_file", path="huge", head=1), "first\n")
        self.assertIn("ask for fewer", self.refused("read_file", path="huge", head=2))
        self.assertIn("ask for fewer", self.refused("read_file", path="huge", tail=1))

    def test_what_is_no_utf8_is_refused_with_its_place(self) -> None:
        (self.inside / "a").write_bytes(b"ab\xff")
        self.assertIn("byte 0xff at offset 2", self.refused("read_file", path="a"))

    def test_media(self) -> None:
        (self.inside / "a.PNG").write_bytes(b"\x89PNG")
        (self.inside / "a b.bin").write_bytes(b"\0")
        (image,) = self.tools.call("read_media_file", {"path": "a.PNG"})
        self.assertEqual(
            (image["type"], image["mimeType"], b64decode(image["data"])), ("image", "image/png", b"\x89PNG")
        )
        (other,) = self.tools.call("read_media_file", {"path": "a b.bin"})
        self.assertEqual(other["resource"]["blob"], "AA==")
        self.assertTrue(other["resource"]["uri"].endswith("/tree/a%20b.bin"))

    def test_several_files_and_one_that_is_missing(self) -> None:
        (self.inside / "a").write_text("A")
        answer = self.call("read_multiple_files", paths=["a", "b", str(self.outside / "secret.txt")])
        self.assertIn("a:\nA\n", answer)
        self.assertIn("b: error: no such file", answer)
        self.assertIn("outside the allowed directories", answer)
        self.assertNotIn(SECRET, answer)

    def test_information(self) -> None:
        (self.inside / "a").write_text("A")
        os.chmod(self.inside / "a", 0o640)
        answer = self.call("get_file_info", path="a")
        self.assertIn("type: file\nsize: 1\npermissions: 640\n", answer)
        self.assertIn("type: directory", self.call("get_file_info", path="."))
        self.assertIn("no such file", self.refused("get_file_info", path="b"))

    def test_the_allowed_directories(self) -> None:
        self.assertEqual(self.call("list_allowed_directories"), f"Allowed directories:\n{self.inside}")


class WriteTests(ToolCase):
    def test_a_new_file_and_a_replaced_one_that_keeps_its_mode(self) -> None:
        self.assertIn("created", self.call("write_file", path="a", content="1"))
        os.chmod(self.inside / "a", 0o755)
        self.assertIn("replaced", self.call("write_file", path="a", content="ß"))
        self.assertEqual((self.inside / "a").read_text(), "ß")
        self.assertEqual(stat.S_IMODE((self.inside / "a").stat().st_mode), 0o755)
        self.assertEqual(os.listdir(self.inside), ["a"])

    def test_another_name_of_the_file_keeps_the_old_contents(self) -> None:
        os.link(self.outside / "secret.txt", self.inside / "a")
        self.call("write_file", path="a", content="new")
        self.assertEqual((self.outside / "secret.txt").read_text(), SECRET)

    def test_a_missing_directory_is_said(self) -> None:
        self.assertIn("no such file or directory", self.refused("write_file", path="no/a", content=""))

    def test_an_edit_answers_with_the_difference(self) -> None:
        (self.inside / "a").write_text("one\ntwo\nthree\n")
        change = [{"oldText": "two", "newText": "2"}]
        dry = self.call("edit_file", path="a", edits=change, dryRun=True)
        self.assertEqual((self.inside / "a").read_text(), "one\ntwo\nthree\n")
        self.assertEqual(self.call("edit_file", path="a", edits=change), dry)
        self.assertIn("@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n", dry)
        self.assertEqual((self.inside / "a").read_text(), "one\n2\nthree\n")

    def test_a_file_that_changed_since_it_was_read_is_not_replaced(self) -> None:
        (self.inside / "a").write_text("one")
        roots = Roots([str(self.inside)])
        self.addCleanup(roots.close)
        place = roots.locate("a")
        _, version = content.read_all(place)
        (self.inside / "a").write_text("other")
        error = self.assertRaises(FileError, content.replace, place, b"two", version)
        self.assertIn("has changed since", str(error))
        self.assertEqual((self.inside / "a").read_text(), "other")

    def test_directories_are_made_with_those_above(self) -> None:
        self.assertIn("created", self.call("create_directory", path="a/b/c"))
        self.assertIn("exists already", self.call("create_directory", path="a/b/c"))
        self.assertTrue((self.inside / "a/b/c").is_dir())
        (self.inside / "f").write_text("")
        self.assertIn("not a directory", self.refused("create_directory", path="f/x"))

    def test_files_and_directories_move_and_never_replace(self) -> None:
        for name in ("a", "b"):
            (self.inside / name).write_text(name)
        (self.inside / "d" / "sub").mkdir(parents=True)
        (self.inside / "e").mkdir()
        for source, destination in [("a", "b"), ("a", "e"), ("d", "e"), ("d", "b")]:
            self.assertIn("exists already", self.refused("move_file", source=source, destination=destination))
        self.assertIn("into itself", self.refused("move_file", source="d", destination="d/sub/x"))
        self.assertIn("no such file", self.refused("move_file", source="zz", destination="y"))
        self.call("move_file", source="a", destination="e/a")
        self.call("move_file", source="d", destination="e/d")
        self.assertEqual((self.inside / "e/a").read_text(), "a")
        self.assertTrue((self.inside / "e/d/sub").is_dir())
        self.assertEqual(sorted(os.listdir(self.inside)), ["b", "e"])

    def test_deleting(self) -> None:
        (self.inside / "d").mkdir()
        (self.inside / "d" / "f").write_text("")
        self.assertIn("not empty", self.refused("delete_directory", path="d"))
        self.assertIn("is a directory", self.refused("delete_file", path="d"))
        self.assertIn("is not a directory", self.refused("delete_directory", path="d/f"))
        self.call("delete_file", path="d/f")
        self.call("delete_directory", path="d")
        self.assertIn("no such file", self.refused("delete_file", path="d"))
        self.assertIn("allowed directory itself", self.refused("delete_directory", path="."))
        self.assertEqual(os.listdir(self.inside), [])


class ListTests(ToolCase):
    def setUp(self) -> None:
        super().setUp()
        (self.inside / "src" / "x").mkdir(parents=True)
        (self.inside / "src" / "x" / "a.py").write_text("12345")
        (self.inside / "src" / "b.py").write_text("1" * 2048)
        (self.inside / "out").symlink_to(self.outside)
        os.mkfifo(self.inside / "pipe")

    def test_a_listing_marks_kinds(self) -> None:
        self.assertEqual(self.call("list_directory", path="."), "[LINK] out\n[OTHER] pipe\n[DIR] src")

    def test_sizes(self) -> None:
        (self.inside / "src" / "c.py").write_text("1")
        answer = self.call("list_directory_with_sizes", path="src", sortBy="size").splitlines()
        self.assertEqual([line.split()[1] for line in answer[:3]], ["b.py", "c.py", "x"])
        self.assertIn("2.00 KB", answer[0])
        self.assertIn("Total: 2 files, 1 directories", answer)

    def test_a_tree_does_not_follow_links(self) -> None:
        tree = json.loads(self.call("directory_tree", path=".", excludePatterns=["*.py"]))
        source = {"name": "src", "type": "directory", "children": [{"name": "x", "type": "directory", "children": []}]}
        self.assertEqual(tree, [{"name": "out", "type": "link"}, {"name": "pipe", "type": "other"}, source])

    def test_a_search_does_not_follow_links(self) -> None:
        self.assertEqual(
            self.call("search_files", path=str(self.inside), pattern="*.py").splitlines(),
            [str(self.inside / "src/b.py"), str(self.inside / "src/x/a.py")],
        )
        self.assertEqual(self.call("search_files", path=".", pattern="*.py", excludePatterns=["x"]).count("\n"), 0)
        self.assertEqual(self.call("search_files", path=".", pattern="secret*"), "no matches")

    def test_a_deep_or_wide_tree_is_cut_and_that_is_said(self) -> None:
        os.makedirs(self.inside.joinpath(*["d"] * (listing.DEPTH_LIMIT + 3)))
        self.assertIn("nested over 64 deep", self.call("search_files", path=".", pattern="nothing"))
        bounds = listing.Bounds(entries=2)
        roots = Roots([str(self.inside)])
        self.addCleanup(roots.close)
        self.assertEqual(len(listing.listed(roots.locate("."), bounds)), 2)
        self.assertEqual(bounds.reasons, ["there are more entries than one call lists"])

    def test_names_cannot_forge_lines(self) -> None:
        (self.inside / "src" / "a\n[FILE] b").write_text("")
        self.assertIn("[FILE] a\\x0a[FILE] b", self.call("list_directory", path="src"))

from __future__ import annotations

import io
import tarfile

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.image_plans import archive, arguments, content

FOLDERS = st.dictionaries(st.text(min_size=1, max_size=5), st.binary(max_size=20), max_size=3)
VALUES = st.dictionaries(st.text(max_size=5), st.text(st.characters(codec="utf-8"), max_size=5), max_size=3)


class ArchiveTests(SynchronousTestCase):
    def test_the_same_files_give_the_same_archive(self) -> None:
        one = {"b": b"2", "a": b"1"}
        self.assertEqual(archive(one), archive(dict(reversed(one.items()))))

    def test_nothing_follows_its_end(self) -> None:
        self.assertEqual(archive({}), bytes(1024))
        self.assertEqual(len(archive({"a": b"x"})), 512 + 512 + 1024)

    def test_it_says_nothing_about_who_packed_it_and_when(self) -> None:
        with tarfile.open(fileobj=io.BytesIO(archive({"run": b"#!/bin/sh\n", "text": b"x"}))) as packed:
            entries = packed.getmembers()
            self.assertEqual(
                [(e.name, e.mode, e.uid, e.mtime) for e in entries], [("run", 0o755, 0, 0), ("text", 0o644, 0, 0)]
            )
            self.assertEqual({e.uname + e.gname for e in entries}, {""})
            text = packed.extractfile("text")
            assert text is not None
            self.assertEqual(text.read(), b"x")


class ArgumentTests(SynchronousTestCase):
    def test_arguments_are_those_of_all_stages(self) -> None:
        dockerfile = b"# ARG NO\nARG BASE=a:b\nFROM ${BASE} AS x\nARG  B\nRUN echo ARG C\nFROM y\nARG D=\n"
        self.assertEqual(arguments(dockerfile), {"BASE": "a:b", "B": "", "D": ""})


class ContentTests(SynchronousTestCase):
    @given(st.lists(FOLDERS, max_size=2), VALUES, st.lists(FOLDERS, max_size=2), VALUES)
    def test_only_the_same_content_has_the_same_digest(
        self, a: list[dict[str, bytes]], x: dict[str, str], b: list[dict[str, bytes]], y: dict[str, str]
    ) -> None:
        self.assertEqual(content(a, x) == content(b, y), (a, x) == (b, y))

    def test_nothing_slips_from_one_place_to_another(self) -> None:
        digests = {
            content([{"ab": b"c"}], {}),
            content([{"a": b"bc"}], {}),
            content([{"a": b"b", "c": b""}], {}),
            content([{"a": b"b"}, {"c": b""}], {}),
            content([{}], {"ab": "c"}),
        }
        self.assertEqual(len(digests), 5)

    def test_order_does_not_count(self) -> None:
        self.assertEqual(content([], {"a": "1", "b": "2"}), content([], {"b": "2", "a": "1"}))

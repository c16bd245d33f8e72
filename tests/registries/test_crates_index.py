from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.crates_index import (
    BadIndex,
    CrateFile,
    IndexLine,
    file_address,
    index_path,
    read_download,
    read_file_path,
    read_index,
    read_index_path,
    write_index,
)
from tests.registries.test_pypi_index import JSON_VALUES

NOW = datetime(2026, 11, 27, tzinfo=UTC)
NAMES = st.from_regex(r"\A[A-Za-z0-9_][A-Za-z0-9_-]{0,63}\Z")


def line(version: str = "1.0.0", **members: Any) -> dict[str, Any]:
    """:returns: a version as the index describes it."""
    known = {"name": "Serde", "vers": version, "deps": [], "cksum": "ab" * 32, "features": {}, "yanked": False}
    return known | {"pubtime": "2026-01-01T00:00:00Z", "v": 2} | members


def read(*lines: Any) -> list[IndexLine]:
    """:returns: the lines of ``serde`` that are understood."""
    return read_index(b"\n".join(json.dumps(line).encode() for line in lines), "serde", NOW)


class PathTests(SynchronousTestCase):
    def test_paths_of_the_index_depend_on_the_length_of_a_name(self) -> None:
        for name, path in (("a", "/1/a"), ("ab", "/2/ab"), ("ABC", "/3/a/abc"), ("Serde", "/se/rd/serde")):
            self.assertEqual(index_path(name), path)

    @given(NAMES)
    def test_a_path_of_the_index_is_read_again(self, name: str) -> None:
        self.assertEqual(read_index_path(index_path(name)), name.lower())

    def test_other_paths_of_the_index_are_refused(self) -> None:
        for path in (
            "/",
            "/serde",
            "/se/rd/Serde",
            "/SE/RD/serde",
            "/xx/rd/serde",
            "/se/rd/../serde",
            "/1/",
            "/se/rd/ser%64e",
        ):
            self.assertIsNone(read_index_path(path), path)
        self.assertIsNone(read_index_path(index_path("a" * 65)))

    def test_paths_of_files_are_read(self) -> None:
        for path in (
            "/crates/serde/1.0.0+x/download",
            "/crates/serde/1.0.0%2Bx/download",
            "/crates/serde/serde-1.0.0+x.crate",
        ):
            self.assertEqual(read_file_path(path), CrateFile("serde", "1.0.0+x"))

    def test_other_paths_of_files_are_refused(self) -> None:
        for path in (
            "/crates/serde",
            "/crates/serde/1.0.0/owners",
            "/crates/serde/other-1.0.0.crate",
            "/crates/../1.0.0/download",
            "/crates/serde//download",
            "/crates/se%2frde/1.0/download",
            "/api/v1/crates/new",
            "/crates/serde/1.0.0/download/",
        ):
            self.assertIsNone(read_file_path(path), path)

    @given(st.text(max_size=60))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        for path in (text, f"/crates/{text}"):
            read_file_path(path)
            name = read_index_path(path)
            self.assertTrue(name is None or index_path(name) == path)


class LineTests(SynchronousTestCase):
    def test_a_version_is_read_and_written_unchanged(self) -> None:
        (found,) = read(line(unknown=[1]))
        version = found.version
        self.assertEqual((version.crate, version.version, version.digest.value.hex()), ("Serde", "1.0.0", "ab" * 32))
        self.assertEqual(version.published, datetime(2026, 1, 1, tzinfo=UTC))
        self.assertEqual(json.loads(write_index([found], lambda _: False)), line(unknown=[1]))

    def test_withheld_versions_are_yanked(self) -> None:
        written = write_index(read(line(), line("2.0.0")), lambda version: version.version == "2.0.0")
        self.assertEqual([json.loads(text)["yanked"] for text in written.splitlines()], [False, True])

    def test_lines_of_no_use_are_left_out(self) -> None:
        unusable: tuple[Any, ...] = (
            line(name="other"),
            line(cksum="00"),
            line(cksum=None),
            line(vers="1 0"),
            line(vers=1),
            [],
            None,
        )
        for other in unusable:
            self.assertEqual([found.version.version for found in read(other, line("3.0.0"))], ["3.0.0"], other)

    def test_times_that_are_missing_or_not_credible_are_unknown(self) -> None:
        for time in (None, 5, "", "2026-01-01", "2099-01-01T00:00:00Z", "1970-01-01T00:00:00Z"):
            (found,) = read(line(pubtime=time))
            self.assertIsNone(found.version.published)

    def test_what_is_no_index_is_reported(self) -> None:
        self.assertRaises(BadIndex, read_index, b"<html>\n</html>", "serde", NOW)
        self.assertEqual(read_index(b"\n", "serde", NOW), [])

    @given(st.dictionaries(st.sampled_from(sorted(line())), JSON_VALUES, max_size=4), st.binary(max_size=40))
    def test_any_lines_are_read_or_left_out(self, members: dict[str, Any], noise: bytes) -> None:
        body = b"\n".join((json.dumps(line() | members).encode(), noise, json.dumps(line("2.0.0")).encode()))
        self.assertEqual(read_index(body, "serde", NOW)[-1].version.version, "2.0.0")


class AddressTests(SynchronousTestCase):
    def address(self, download: object) -> str:
        """:returns: where the file of a version is."""
        (found,) = read(line())
        return file_address(read_download(json.dumps({"dl": download}).encode()), found.version)

    def test_files_are_where_the_configuration_says(self) -> None:
        self.assertEqual(self.address("https://files.example/c"), "https://files.example/c/Serde/1.0.0/download")
        pattern = "https://f.example/{prefix}/{lowerprefix}/{crate}-{version}.crate?{sha256-checksum}"
        self.assertEqual(self.address(pattern), f"https://f.example/Se/rd/se/rd/Serde-1.0.0.crate?{'ab' * 32}")

    def test_other_configurations_are_reported(self) -> None:
        for download in (None, 5, "", "file:///x", "https://f.example/{secret}", "//f.example/x"):
            with self.assertRaises(BadIndex, msg=str(download)):
                self.address(download)
        for body in (b"", b"[]", b"\xff"):
            self.assertRaises(BadIndex, read_download, body)

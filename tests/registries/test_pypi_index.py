from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.pypi_index import NoIndex, ProjectFile, read_index

NOW = datetime(2026, 11, 27, tzinfo=UTC)
PAGE = "https://index.example/simple/six/"
DIGEST = "ab" * 32

JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3),
    max_leaves=5,
)


def entry(file: str = "six-1.0.tar.gz", /, **members: Any) -> dict[str, Any]:
    """:returns: a file as indexes describe it."""
    return {
        "filename": file,
        "url": f"https://files.example/packages/{file}",
        "hashes": {"sha256": DIGEST},
        "upload-time": "2026-01-01T00:00:00.123456Z",
    } | members


def read(*entries: Any, page: str = PAGE) -> list[ProjectFile]:
    """:returns: the files of the project ``six`` that are understood."""
    return read_index(json.dumps({"files": entries}).encode(), page, "six", NOW)


class ReadingTests(SynchronousTestCase):
    def assert_left_out(self, file: Any, page: str = PAGE) -> None:
        """Assert that a file is left out of those of a project, and that nothing is left without others."""
        self.assertEqual([each.filename for each in read(file, entry("six-0.9.tar.gz"), page=page)], ["six-0.9.tar.gz"])
        with self.assertRaisesRegex(NoIndex, "no wheel or source distribution of it"):
            read(file, page=page)

    def test_a_file_is_read(self) -> None:
        metadata = {"core-metadata": {"sha256": "cd" * 32}, "requires-python": ">=3", "size": 5, "yanked": "bad"}
        (file,) = read(entry("six-1.0-py3-none-any.whl", **metadata))
        self.assertEqual((file.release.name, file.release.version), ("six", "1.0"))
        self.assertEqual(file.release.url, "https://files.example/packages/six-1.0-py3-none-any.whl")
        self.assertEqual(file.release.published, datetime(2026, 1, 1, 0, 0, 0, 123456, UTC))
        self.assertEqual((file.size, file.requires_python, file.yanked, file.yanked_reason), (5, ">=3", True, "bad"))
        release = file.metadata_release()
        assert release is not None and release.digest is not None
        self.assertEqual(release.url, file.release.url + ".metadata")
        self.assertEqual(release.digest.value.hex(), "cd" * 32)
        self.assertEqual(release.published, file.release.published)

    def test_metadata_by_their_older_name_are_read_and_others_not(self) -> None:
        (file,) = read(entry(**{"dist-info-metadata": {"sha256": DIGEST}}))
        self.assertIsNotNone(file.metadata)
        for value in (True, {}, {"sha256": "xy"}, {"md5": "00"}):
            (file,) = read(entry(**{"core-metadata": value}))
            self.assertIsNone(file.metadata_release())

    def test_relative_addresses_are_completed_and_fragments_dropped(self) -> None:
        (file,) = read(entry(url="../../packages/six-1.0.tar.gz#sha256=00"))
        self.assertEqual(file.release.url, "https://index.example/packages/six-1.0.tar.gz")

    def test_times_that_are_missing_or_not_credible_are_unknown(self) -> None:
        for time in (None, "", 5, "2026-01-01", "yesterday", "1970-01-01T00:00:00Z", "2027-01-01T00:00:00Z"):
            (file,) = read(entry(**{"upload-time": time}))
            self.assertIsNone(file.release.published, time)

    def test_files_without_a_usable_digest_are_left_out(self) -> None:
        for hashes in ({}, {"md5": "00"}, {"sha256": "short"}, {"sha256": 5}, None):
            self.assert_left_out(entry(hashes=hashes))

    def test_files_at_unclear_addresses_are_left_out(self) -> None:
        for url in (
            "http://files.example/packages/six-1.0.tar.gz",
            "https://user:key@files.example/packages/six-1.0.tar.gz",
            "https://files.example/packages/other-1.0.tar.gz",
            "https://files.example\\@evil.example/six-1.0.tar.gz",
            "https://0x7f.1/six-1.0.tar.gz",
            "file:///etc/six-1.0.tar.gz",
            "https://files.example/x?/six-1.0.tar.gz",
            "https://[::1/six-1.0.tar.gz",
            "",
        ):
            self.assert_left_out(entry(url=url))
        self.assertEqual(
            len(read(entry(url="http://x.example/six-1.0.tar.gz"), page="http://127.0.0.1/simple/six/")), 1
        )

    def test_files_of_other_kinds_and_projects_are_left_out(self) -> None:
        for name in ("six-1.0.egg", "seven-1.0.tar.gz", "six.tar.gz", "six-1.0.tar.gz.asc"):
            self.assert_left_out(entry(name))

    def test_the_first_of_files_with_one_name_counts(self) -> None:
        files = read(entry(), entry(hashes={"sha256": "cd" * 32}))
        self.assertEqual([file.release.digest and file.release.digest.value.hex() for file in files], [DIGEST])

    def test_what_is_no_list_is_reported(self) -> None:
        for body in (b"", b"<html>", b"[]", b'{"files": {}}', b"{}", b"\xff"):
            self.assertRaises(NoIndex, read_index, body, PAGE, "six", NOW)

    @given(st.dictionaries(st.sampled_from(sorted(entry())), JSON_VALUES, max_size=4))
    def test_any_members_are_read_or_left_out(self, members: dict[str, Any]) -> None:
        files = read(entry() | members, entry("six-2.0.tar.gz"))
        self.assertEqual(files[-1].filename, "six-2.0.tar.gz")

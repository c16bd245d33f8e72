from __future__ import annotations

import json
from html.parser import HTMLParser
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.pypi_index import JSON, ProjectFile
from ironcurtain.registries.pypi_pages import HTML, V1_HTML, chosen_format, write_html, write_json, write_release
from tests.registries.test_pypi_index import DIGEST, entry, read

PIP = f"{JSON}, {V1_HTML}; q=0.1, text/html; q=0.01"


def withheld(file: ProjectFile) -> str:
    """:returns: why version 2 must not be installed."""
    return 'IronCurtain: "young"' if file.release.version == "2.0" else ""


def address(file: ProjectFile) -> str:
    """:returns: where a client finds a file."""
    return f"https://files.example/{file.filename}"


FILES = read(
    entry("six-1.0.tar.gz", **{"requires-python": ">=3", "size": 7}),
    entry("six-1.1.tar.gz", yanked=True),
    entry("six-1.2.tar.gz", yanked="<broken>"),
    entry("six-2.0-py3-none-any.whl", **{"core-metadata": {"sha256": DIGEST}}),
)


class Links(HTMLParser):
    """Collects the links of a page: their attributes and their texts."""

    def __init__(self, page: bytes) -> None:
        super().__init__()
        self.found: list[dict[str, str | None]] = []
        self.texts: list[str] = []
        self.feed(page.decode())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            self.found.append(dict(attrs))

    def handle_data(self, data: str) -> None:
        self.texts.append(data.strip())


class FormatTests(SynchronousTestCase):
    def test_the_most_wanted_format_is_chosen(self) -> None:
        for accept, expected in (
            ([PIP], JSON),
            (["text/html"], HTML),
            (["*/*"], HTML),
            ([], HTML),
            (["image/png"], HTML),
            ([JSON + ";q=0.2", V1_HTML], V1_HTML),
            (["text/html, " + JSON], HTML),
            (["application/vnd.pypi.simple.latest+json"], JSON),
            ([JSON + ";q=0, text/html;q=0.5"], HTML),
            ([JSON + ";q=much"], HTML),
        ):
            self.assertEqual(chosen_format(accept), expected, accept)

    @given(st.lists(st.text(max_size=50)))
    def test_any_header_gets_some_format(self, accept: list[str]) -> None:
        self.assertIn(chosen_format(accept), (JSON, HTML, V1_HTML))


class PageTests(SynchronousTestCase):
    def test_json_marks_young_files_and_keeps_the_rest(self) -> None:
        page = json.loads(write_json("six", FILES, withheld, address))
        self.assertEqual(page["name"], "six")
        self.assertEqual(page["versions"], ["1.0", "1.1", "1.2", "2.0"])
        self.assertEqual([file["yanked"] for file in page["files"]], [False, True, "<broken>", 'IronCurtain: "young"'])
        self.assertEqual(page["files"][0]["hashes"], {"sha256": DIGEST})
        self.assertEqual(page["files"][0]["url"], "https://files.example/six-1.0.tar.gz")
        self.assertEqual((page["files"][0]["size"], page["files"][0]["requires-python"]), (7, ">=3"))
        self.assertEqual(page["files"][0]["upload-time"], "2026-01-01T00:00:00.123456Z")
        self.assertEqual(page["files"][3]["core-metadata"], {"sha256": DIGEST})
        self.assertFalse([file for file in page["files"] if "dist-info-metadata" in file])

    def test_what_is_written_is_read_again(self) -> None:
        page = json.loads(write_json("six", FILES, lambda _: "", lambda file: file.release.url))
        self.assertEqual(read(*page["files"]), FILES)

    def test_html_marks_young_files_and_escapes(self) -> None:
        links = Links(write_html("six", FILES, withheld, address))
        self.assertEqual(links.found[0]["href"], f"https://files.example/six-1.0.tar.gz#sha256={DIGEST}")
        self.assertEqual(
            [link.get("data-yanked") for link in links.found], [None, "", "<broken>", 'IronCurtain: "young"']
        )
        self.assertEqual(links.found[0]["data-requires-python"], ">=3")
        self.assertEqual(links.found[3]["data-core-metadata"], f"sha256={DIGEST}")
        self.assertIn("six-2.0-py3-none-any.whl", links.texts)

    @given(st.text(max_size=50))
    def test_no_text_escapes_from_html(self, reason: str) -> None:
        links = Links(write_html("six", FILES, lambda _: f"x{reason}", address))
        self.assertEqual(len(links.found), len(FILES))


class ReleaseTests(SynchronousTestCase):
    def release(self, version: str) -> dict[str, Any]:
        """:returns: what is said of a version."""
        body = write_release("six", version, FILES, withheld, address)
        assert body is not None
        found: dict[str, Any] = json.loads(body)
        return found

    def test_a_release_has_its_files_only(self) -> None:
        found = self.release("1.0.0")
        self.assertEqual([url["filename"] for url in found["urls"]], ["six-1.0.tar.gz"])
        self.assertEqual(found["urls"][0]["digests"], {"sha256": DIGEST})
        self.assertEqual(found["urls"][0]["packagetype"], "sdist")
        self.assertEqual((found["info"]["yanked"], found["info"]["requires_dist"]), (False, None))

    def test_a_young_release_is_yanked_with_the_reason(self) -> None:
        found = self.release("2.0")
        self.assertEqual((found["info"]["yanked"], found["info"]["yanked_reason"]), (True, 'IronCurtain: "young"'))
        self.assertEqual(found["urls"][0]["packagetype"], "bdist_wheel")

    def test_an_unknown_version_has_no_release(self) -> None:
        self.assertIsNone(write_release("six", "3.0", FILES, withheld, address))

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.go_paths import ModuleFile, Sums, Versions, read_module_path, read_sums_path


class ModulePathTests(SynchronousTestCase):
    def test_versions_are_read(self) -> None:
        path = "/github.com/!burnt!sushi/toml/@v/list"
        self.assertEqual(read_module_path(path), Versions(path, "github.com/BurntSushi/toml", False))
        path = "/golang.org/x/text/@latest"
        self.assertEqual(read_module_path(path), Versions(path, "golang.org/x/text", True))

    def test_escapes_are_read(self) -> None:
        """As ``go`` writes them."""
        found = read_module_path("/github.com/%21burnt%21sushi/toml/@v/v2.0.0%2bincompatible.zip")
        assert isinstance(found, ModuleFile)
        self.assertEqual(found.path, "/github.com/!burnt!sushi/toml/@v/v2.0.0+incompatible.zip")
        self.assertEqual(found.module, "github.com/BurntSushi/toml")
        found_sums = read_sums_path("/lookup/example.com/%21m@v1.0.0")
        self.assertEqual(found_sums, Sums("/lookup/example.com/!m@v1.0.0", "example.com/M"))
        for path in ("/example.com/m%2f..%2fx/@v/list", "/example.com/m%2fx%00/@v/list", "/example.com/%2521m/@v/list"):
            self.assertIsNone(read_module_path(path), path)

    def test_files_are_read(self) -> None:
        for version, escaped in (
            ("v1.0.0", "v1.0.0"),
            ("v2.0.0+incompatible", "v2.0.0+incompatible"),
            ("v0.0.0-20260101000000-abcdefabcdef", "v0.0.0-20260101000000-abcdefabcdef"),
            ("v1.0.0-RC1", "v1.0.0-!r!c1"),
        ):
            for kind in ("info", "mod", "zip"):
                path = f"/example.com/m/@v/{escaped}.{kind}"
                info = f"/example.com/m/@v/{escaped}.info"
                self.assertEqual(read_module_path(path), ModuleFile(path, "example.com/m", version, kind, info))

    def test_branches_are_read(self) -> None:
        found = read_module_path("/example.com/m/@v/feature/x.info")
        assert isinstance(found, ModuleFile)
        self.assertEqual(found.version, "feature/x")

    def test_the_checksum_database_is_read(self) -> None:
        self.assertEqual(read_module_path("/sumdb/sum.golang.org/supported"), Sums("/supported", ""))
        found = read_module_path("/sumdb/sum.golang.org/lookup/example.com/!m@v1.0.0")
        self.assertEqual(found, Sums("/lookup/example.com/!m@v1.0.0", "example.com/M"))

    def test_all_else_is_refused(self) -> None:
        for path in (
            "/",
            "/example.com/m",
            "/example.com/m/@v/",
            "/example.com/m/@v/v1.0.0.tar",
            "/example.com/m/@v/V1.0.0.mod",
            "/example.com/m/@v/../list",
            "/example.com/../m/@v/list",
            "/example.com//m/@v/list",
            "/Example.com/m/@v/list",
            "/example.com/m/@v/a//b.info",
            "/example.com/m/@v/a/../b.info",
            "/sumdb/other.example/supported",
            f"/{'a' * 600}/@v/list",
        ):
            self.assertIsNone(read_module_path(path), path)

    @given(st.text("abcAB/.!@v-:%", max_size=40))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        for path in (text, f"/{text}/@v/list", f"/m/@v/{text}.zip", f"/sumdb/sum.golang.org/{text}"):
            found = read_module_path(path)
            if found is not None:
                self.assertNotRegex(found.path, r"//|/\.|[%A-Z\\]")


class SumsPathTests(SynchronousTestCase):
    def test_parts_of_the_database_are_read(self) -> None:
        for path in ("/supported", "/latest", "/tile/8/0/x001/x234/067", "/tile/8/1/003.p/7", "/tile/8/data/000"):
            self.assertEqual(read_sums_path(path), Sums(path, ""))

    def test_all_else_is_refused(self) -> None:
        for path in (
            "/",
            "/lookup/",
            "/lookup/m",
            "/tile/8/0/../067",
            "/tile/8/0/x1/067",
            "/lookup/../x@v1",
            "/lookup/M@v1",
        ):
            self.assertIsNone(read_sums_path(path), path)

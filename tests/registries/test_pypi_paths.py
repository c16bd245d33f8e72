from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.pypi_paths import (
    FileRequest,
    Owner,
    ProjectPage,
    ReleaseData,
    normal,
    owners,
    read_file_path,
    read_index_path,
    same_version,
)

NAMES = st.from_regex(r"\A[A-Za-z0-9]([A-Za-z0-9._-]{0,20}[A-Za-z0-9])?\Z")


class IndexPathTests(SynchronousTestCase):
    @given(NAMES)
    def test_pages_are_read_with_normalised_names(self, name: str) -> None:
        self.assertEqual(read_index_path(f"/simple/{name}/"), ProjectPage(normal(name)))
        self.assertEqual(read_index_path(f"/simple/{name}"), ProjectPage(normal(name)))

    def test_spellings_of_a_name_are_one(self) -> None:
        self.assertEqual(
            {normal(name) for name in ("Zope.Interface", "zope_interface", "zope-._interface")}, {"zope-interface"}
        )

    def test_release_data_are_read(self) -> None:
        self.assertEqual(read_index_path("/pypi/Six/1.0%2blocal/json"), ReleaseData("six", "1.0+local"))
        self.assertEqual(read_index_path("/pypi/six/1%211.0/json"), ReleaseData("six", "1!1.0"))

    def test_all_else_is_refused(self) -> None:
        for path in (
            "/",
            "/simple",
            "/simple/",
            "/simple/../six/",
            "/simple/six/../pip/",
            "/simple/six%2f..%2fpip/",
            "/simple/six//",
            "/simple/-six/",
            f"/simple/{'a' * 101}/",
            "/pypi/six/json",
            "/pypi/six/1.0/json/",
            "/pypi/six/1.0%2f../json",
            "/legacy/",
            "/search/",
            "/pypi",
            "/danger-api/echo",
            "/simple/s\u0131x/",
        ):
            self.assertIsNone(read_index_path(path), path)

    @given(st.text(max_size=80))
    def test_any_text_is_read_or_refused(self, path: str) -> None:
        request = read_index_path(path)
        if request is not None:
            self.assertEqual(normal(request.project), request.project)


class FilePathTests(SynchronousTestCase):
    def test_only_the_name_of_a_file_counts(self) -> None:
        for path in ("/packages/aa/bb/cc/six-1.0.tar.gz", "/packages/../x%2f/six-1.0.tar.gz"):
            self.assertEqual(read_file_path(path), FileRequest("six-1.0.tar.gz", False))
        wheel = "torch-1.0+cpu-cp311-none-any.whl"
        self.assertEqual(read_file_path(f"/packages/{wheel.replace('+', '%2B')}"), FileRequest(wheel, False))

    def test_metadata_belong_to_a_file(self) -> None:
        wheel = "six-1.0-py3-none-any.whl"
        self.assertEqual(read_file_path(f"/packages/aa/{wheel}.metadata"), FileRequest(wheel, True))

    def test_all_else_is_refused(self) -> None:
        for path in (
            "/packages/six-1.0.egg",
            "/packages/six-1.0.exe",
            "/packages/.metadata",
            "/packages/six-1.0.tar.gz.asc",
            "/packages/six-1.0.tar.gz/",
            "/six-1.0.tar.gz",
            "/packages/six%2f1.0.tar.gz",
            "/packages/..-1.0.tar.gz",
        ):
            self.assertIsNone(read_file_path(path), path)

    @given(st.text(max_size=80))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        request = read_file_path(f"/packages/{text}")
        self.assertTrue(request is None or owners(request.filename))


class OwnerTests(SynchronousTestCase):
    @given(NAMES, st.from_regex(r"\A[0-9]{1,3}(\.[0-9]{1,3}){0,3}((a|b|rc|\.post|\.dev)[0-9]+)?\Z"))
    def test_the_project_of_a_file_is_among_its_owners(self, name: str, version: str) -> None:
        owner = Owner(normal(name), version)
        self.assertIn(owner, owners(f"{name}-{version}.tar.gz"))
        wheel = f"{normal(name).replace('-', '_')}-{version}-py3-none-any.whl"
        self.assertEqual(owners(wheel), (owner,))

    def test_the_last_hyphen_is_tried_first(self) -> None:
        self.assertEqual(owners("foo-1.0-2.zip"), (Owner("foo-1-0", "2"), Owner("foo", "1.0-2")))
        self.assertEqual(owners("python-dateutil-2.8.2.tar.gz"), (Owner("python-dateutil", "2.8.2"),))

    def test_spellings_of_a_version_are_one(self) -> None:
        self.assertTrue(same_version("1.0-beta1", "1.0b1"))
        self.assertTrue(same_version("odd", "odd"))
        self.assertFalse(same_version("1.0", "1.1"))
        self.assertFalse(same_version("odd", "other"))

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.debian_paths import PackageFile, SignedList, read_path


class ListTests(SynchronousTestCase):
    def test_lists_are_read(self) -> None:
        for path in (
            "/debian/dists/bookworm/InRelease",
            "/debian/dists/bookworm-updates/Release.gpg",
            "/debian-security/dists/bookworm-security/main/binary-amd64/Packages.xz",
            "/dists/stable/main/i18n/Translation-en.bz2",
            "/debian/dists/bookworm/main/dep11/icons-64x64%402.tar",
        ):
            self.assertEqual(read_path(path), SignedList(path, None), path)

    def test_lists_that_are_asked_for_by_digest_must_have_it(self) -> None:
        path = f"/debian/dists/bookworm/main/binary-amd64/by-hash/SHA256/{'ab' * 32}"
        found = read_path(path)
        assert isinstance(found, SignedList) and found.digest is not None
        self.assertEqual(found.digest.value.hex(), "ab" * 32)
        self.assertIsNone(read_path(path[:-1]))

    def test_what_is_elsewhere_is_refused(self) -> None:
        for path in (
            "/",
            "/debian/",
            "/debian/dists",
            "/debian/dists/",
            "/debian/project/trace/master",
            "/debian/README",
            "/debian/dists/../README",
            "/debian/dists/bookworm/../../README",
            "/debian/dists/%2e%2e/README",
            "/debian/dists/.hidden",
            "/debian//dists/bookworm/InRelease",
            "/debian/dists/a%2fb%2f..%2fx",
            "/debian/dists/bookworm/InRelease%",
            "/debian/dists/bookworm/In%0aRelease",
            "/debian/dists/bookworm/%ff",
            "/debian/dists/bookworm/%252e%252e/x",
            "/debian/dists/bookworm/\u0661",
            "dists/bookworm/InRelease",
        ):
            self.assertIsNone(read_path(path), path)


class PackageTests(SynchronousTestCase):
    def test_packages_are_read(self) -> None:
        for path, name, version in (
            ("/debian/pool/main/h/hello/hello_2.10-3_amd64.deb", "hello", "2.10-3"),
            ("/debian/pool/main/g/gcc-12/g%2B%2B-12_12.2.0-14_amd64.deb", "g++-12", "12.2.0-14"),
            ("/debian-security/pool/updates/main/x/x/x_1.0~rc1_all.deb", "x", "1.0~rc1"),
            ("/debian/pool/main/h/hello/hello_2.10-3.dsc", "hello", "2.10-3"),
            ("/debian/pool/main/h/hello/hello_2.10.orig.tar.gz", "hello", "2.10"),
            ("/debian/pool/main/h/hello/hello_2.10-3.debian.tar.xz", "hello", "2.10-3"),
            ("/debian/pool/main/x/x/x-udeb_1_amd64.udeb", "x-udeb", "1"),
        ):
            found = read_path(path)
            assert isinstance(found, PackageFile), path
            self.assertEqual((found.path, found.name, found.version), (path, name, version))

    def test_packages_below_dists_are_packages_and_no_lists(self) -> None:
        for path in (
            "/linux/debian/dists/bookworm/pool/stable/amd64/hello_2.10-3_amd64.deb",
            "/dists/stable/main/binary-amd64/hello_2.10-3_amd64.deb",
            "/dists/stable/main/source/hello_2.10-3.dsc",
            "/dists/stable/main/installer/hello_2.10-3_amd64.udeb",
            "/dists/stable/by-hash/SHA256/hello_2.10-3_amd64.deb",
            "/dists/pool/dists/%68ello_2.10-3_amd64.%64eb",
        ):
            found = read_path(path)
            assert isinstance(found, PackageFile), path
            self.assertEqual((found.name, found.version), ("hello", "2.10-3"))
        for file in ("hello.deb", "Hello_2_amd64.deb", "hello__.udeb", "hello_2_a_b.deb", "Hello_2.dsc"):
            self.assertIsNone(read_path(f"/dists/stable/main/{file}"), file)

    def test_escapes_are_read(self) -> None:
        found = read_path("/debian/pool/main/x/x/lib%2bx_1%3a2%7e1_all.deb")
        assert isinstance(found, PackageFile)
        self.assertEqual(found.path, "/debian/pool/main/x/x/lib%2Bx_1%3A2~1_all.deb")
        self.assertEqual((found.file, found.name, found.version), ("lib+x_1:2~1_all.deb", "lib+x", "1:2~1"))

    def test_what_is_no_package_is_refused(self) -> None:
        for path in ("/debian/pool/main/h/hello/", "/debian/pool/main/h/hello/README", "/debian/pool/x.deb", "/pool"):
            self.assertIsNone(read_path(path), path)

    @given(st.text(max_size=80))
    def test_any_text_is_read_or_refused(self, text: str) -> None:
        for path in (text, f"/debian/dists/{text}", f"/debian/pool/{text}_1_all.deb"):
            found = read_path(path)
            if found is not None:
                self.assertNotRegex(found.path, r"//|/\.|[\x00-\x20\x7f]")
                self.assertEqual(read_path(found.path), found)

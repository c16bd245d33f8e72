from __future__ import annotations

from datetime import datetime
from email.utils import format_datetime
from typing import Any

from ironcurtain.registries.debian import Debian
from tests.registries.upstream import OLD, YOUNG, RegistryTestCase, sha256

HOST = "deb.debian.org"
POOL = "/debian/pool/main/h/hello/hello_2.10-3_amd64.deb"
LIST = "/debian/dists/bookworm/InRelease"


class DebianTests(RegistryTestCase):
    """An archive with a list and a package."""

    name, normalise = "debian", staticmethod(str.lower)

    def setUp(self) -> None:
        super().setUp()
        self.registry = Debian(self.store())
        self.upstream.contents |= {f"https://{HOST}{LIST}": b"Origin: Debian", f"https://{HOST}{POOL}": b"package"}
        self.modified(OLD)

    def modified(self, time: datetime) -> None:
        """Set when the package's file was modified."""
        self.upstream.headers[f"https://{HOST}{POOL}"] = (("last-modified", format_datetime(time, usegmt=True)),)

    def test_lists_are_passed_on_whatever_names_and_ages_are_allowed(self) -> None:
        all_settings: tuple[dict[str, Any], ...] = ({"min_age": "7d"}, {"allow": ("hello",)}, {"deny": ("*",)})
        for settings in all_settings:
            registry = Debian(self.store(**settings))
            for host in (HOST, f"{HOST}:80"):
                self.assertEqual(self.body(registry, host, LIST), b"Origin: Debian")
        self.assertEqual(self.records("package"), [])

    def test_a_list_that_is_asked_for_by_digest_must_have_it(self) -> None:
        for content, expected in ((b"Package: hello", True), (b"Package: evil", False)):
            path = f"/debian/dists/bookworm/main/binary-amd64/by-hash/SHA256/{sha256(b'Package: hello')}"
            self.upstream.contents[f"https://{HOST}{path}"] = content
            if expected:
                self.assertEqual(self.body(self.registry, HOST, path), content)
            else:
                self.assertIn("digest", self.failure(self.registry, HOST, path))

    def test_an_old_package_is_delivered_and_recorded(self) -> None:
        self.assertEqual(self.body(self.registry, f"{HOST}:80", POOL), b"package")
        (record,) = self.records("package")
        self.assertEqual((record["name"], record["release"], record["verified"]), ("hello", "2.10-3", False))

    def test_a_package_whose_file_is_young_or_undated_is_refused(self) -> None:
        self.modified(YOUNG)
        self.assertEqual(self.refusal(self.registry, HOST, POOL).code, "package-too-young")
        self.upstream.headers.clear()
        self.assertIn("unknown time", self.refusal(self.registry, HOST, POOL).reason)
        self.assertEqual(self.body(Debian(self.store(min_age="0")), HOST, POOL), b"package")

    def test_denied_packages_are_not_asked_for(self) -> None:
        refusing: tuple[dict[str, Any], ...] = ({"deny": ("hel*",)}, {"allow": ("other",)})
        for settings in refusing:
            self.assertEqual(self.refusal(Debian(self.store(**settings)), HOST, POOL).status, 403)
        self.assertEqual(self.upstream.asked, [])

    def test_plus_signs_are_escaped_once(self) -> None:
        url = f"https://{HOST}/debian/pool/main/g/g/g%2B%2B_1_all.deb"
        self.upstream.contents[url] = b"package"
        registry = Debian(self.store(min_age="0"))
        for path in ("g%2b%2b", "g++", "g%2B+"):
            self.assertEqual(self.body(registry, HOST, f"/debian/pool/main/g/g/{path}_1_all.deb"), b"package")
        self.assertEqual(set(self.upstream.addresses), {url})

    def test_what_apt_does_not_need_is_refused(self) -> None:
        for path in ("/debian/", "/debian/project/x", "/debian/pool/main/h/hello/", "/debian/dists/../x"):
            self.assertEqual(self.refusal(self.registry, HOST, path).code, "not-for-installing")
        self.assertEqual(self.upstream.asked, [])

    def test_a_mirror_stands_in_for_all_hosts(self) -> None:
        registry = Debian(self.store(min_age="0"), "https://mirror.example/debs/")
        self.upstream.contents[f"https://mirror.example/debs{POOL}"] = b"from the mirror"
        for host, path in ((HOST, POOL), ("security.debian.org:80", POOL), ("mirror.example:80", f"/debs{POOL}")):
            self.assertEqual(self.body(registry, host, path), b"from the mirror")
        self.assertIn(("mirror.example", 80), registry.hosts)
        self.assertEqual(self.refusal(registry, "mirror.example", "/other/pool/x_1_all.deb").status, 403)

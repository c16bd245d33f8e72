from __future__ import annotations

import json
from datetime import datetime

from ironcurtain.home.registry_sections import Registries
from ironcurtain.registries.go import PROXY, Go
from ironcurtain.registries.go_paths import SUMS
from tests.registries.upstream import OLD, YOUNG, RegistryTestCase, iso

MODULE = "/example.com/!m"


def info(version: str, time: datetime | None) -> bytes:
    """:returns: the ``.info`` of a version."""
    return json.dumps({"Version": version} | ({} if time is None else {"Time": iso(time)})).encode()


class GoTests(RegistryTestCase):
    """A module with an old and a young version."""

    name, normalise = "go", staticmethod(str)

    def setUp(self) -> None:
        super().setUp()
        self.registry = Go(self.store())
        self.publish("v1.0.0", OLD)
        self.publish("v1.1.0", YOUNG)
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/list"] = b"v1.0.0\nv1.1.0\n"

    def publish(self, version: str, time: datetime | None, base: str = f"https://{PROXY}") -> None:
        """Put a version into the proxy."""
        files = f"{base}{MODULE}/@v/{version}"
        self.upstream.contents |= {
            f"{files}.info": info(version, time),
            f"{files}.mod": b"module example.com/M",
            f"{files}.zip": b"archive",
        }

    def test_an_old_version_is_delivered_and_recorded(self) -> None:
        self.assertIn(b"v1.0.0", self.body(self.registry, PROXY, f"{MODULE}/@v/v1.0.0.info"))
        self.assertEqual(self.body(self.registry, PROXY, f"{MODULE}/@v/v1.0.0.mod"), b"module example.com/M")
        self.assertEqual(self.body(self.registry, PROXY, f"{MODULE}/@v/v1.0.0.zip"), b"archive")
        (record,) = self.records("package")
        self.assertEqual((record["name"], record["release"], record["verified"]), ("example.com/M", "v1.0.0", False))
        self.assertEqual(self.upstream.addresses.count(f"https://{PROXY}{MODULE}/@v/v1.0.0.info"), 1)

    def test_a_version_that_says_that_it_is_young_is_refused(self) -> None:
        """With 403: go would ask the module's own host after 404."""
        for kind in ("zip", "mod", "info"):
            refusal = self.refusal(self.registry, PROXY, f"{MODULE}/@v/v1.1.0.{kind}")
            self.assertEqual((refusal.status, refusal.code), (403, "package-too-young"))

    def test_a_version_without_a_time_is_young(self) -> None:
        self.publish("v1.2.0", None)
        self.assertIn("unknown time", self.refusal(self.registry, PROXY, f"{MODULE}/@v/v1.2.0.zip").reason)

    def test_the_latest_version_is_judged(self) -> None:
        self.upstream.contents[f"https://{PROXY}{MODULE}/@latest"] = info("v1.1.0", YOUNG)
        self.assertEqual(self.refusal(self.registry, PROXY, f"{MODULE}/@latest").code, "package-too-young")

    def test_young_versions_are_not_listed(self) -> None:
        """Else ``go get`` would choose one, and fail."""
        for version in ("v0.9.0", "v1.2.0-RC1"):
            self.publish(version, OLD)
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/v1.2.0-!r!c1.info"] = info("v1.2.0-RC1", YOUNG)
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/list"] = (
            b"v0.9.0 v1.1.0\nv1.2.0-RC1\nv1.0.0\n../x\nv1.3.0\n"
        )
        self.assertEqual(self.body(self.registry, PROXY, f"{MODULE}/@v/list"), b"v0.9.0\nv1.0.0\n")
        self.assertNotIn(f"https://{PROXY}{MODULE}/@v/v0.9.0.info", self.upstream.addresses)

    def test_list_of_young_versions_only_is_refused(self) -> None:
        self.publish("v1.2.0", None)
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/list"] = b"v1.1.0\nv1.2.0\nv1.3.0\n"
        refusal = self.refusal(self.registry, PROXY, f"{MODULE}/@v/list")
        self.assertEqual((refusal.status, refusal.code), (403, "package-too-young"))
        self.assertIn("example.com/M v1.1.0 is too young (published 2026-11-25", refusal.reason)
        self.assertEqual(self.records("package-request")[-1]["decision"], "deny")

    def test_list_without_versions_is_answered(self) -> None:
        """Then ``go`` asks for ``@latest``."""
        for content in (b"", b"../x\n", b"v1.3.0\n"):
            self.upstream.contents[f"https://{PROXY}{MODULE}/@v/list"] = content
            self.assertEqual(self.body(self.registry, PROXY, f"{MODULE}/@v/list"), b"")

    def test_an_old_pre_release_hides_no_young_release(self) -> None:
        self.publish("v1.2.0-rc1", OLD)
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/list"] = b"v1.2.0-rc1\nv1.1.0\nv1.0.0\n"
        self.assertEqual(self.body(self.registry, PROXY, f"{MODULE}/@v/list"), b"v1.2.0-rc1\nv1.0.0\n")

    def test_long_lists_cost_few_requests(self) -> None:
        versions = [f"v1.{number}.0" for number in range(100)]
        for version in versions:
            self.publish(version, YOUNG)
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/list"] = "\n".join(versions).encode()
        listed = self.body(self.registry, PROXY, f"{MODULE}/@v/list").split()
        self.assertEqual((len(listed), len(self.upstream.asked)), (90, 11))
        self.assertNotIn(b"v1.99.0", listed)

    def test_without_a_minimum_age_all_versions_are_listed(self) -> None:
        registry = Go(self.store(min_age="0"))
        self.assertEqual(self.body(registry, PROXY, f"{MODULE}/@v/list"), b"v1.0.0\nv1.1.0\n")

    def test_requests_for_what_does_not_exist_are_limited(self) -> None:
        registry = Go(self.store(Registries(max_missing=2)))
        paths = [f"{MODULE}/@v/v9.0.{number}.info" for number in (0, 0, 1, 2)]
        codes = [self.refusal(registry, PROXY, path).code for path in paths]
        self.assertEqual(codes, ["package-missing"] * 3 + ["package-limit"])

    def test_files_are_of_versions_not_of_branches(self) -> None:
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/master.info"] = info("v1.0.0", OLD)
        self.assertIn(b"v1.0.0", self.body(self.registry, PROXY, f"{MODULE}/@v/master.info"))
        self.assertEqual(self.refusal(self.registry, PROXY, f"{MODULE}/@v/master.zip").status, 403)

    def test_an_info_that_is_none_is_refused(self) -> None:
        for body in (b"<html>", b"[]", b"{}", b"\xff", b'{"Version": 5}'):
            self.upstream.contents[f"https://{PROXY}{MODULE}/@v/v3.0.0.info"] = body
            self.assertIn("sent no version", self.failure(self.registry, PROXY, f"{MODULE}/@v/v3.0.0.zip"))

    def test_an_info_of_another_version_is_refused(self) -> None:
        for version in ("v1.0.0", "v3.0.1", "../../v3.0.0", "master", "V3.0.0"):
            self.upstream.contents[f"https://{PROXY}{MODULE}/@v/v3.0.0.info"] = info(version, OLD)
            for kind in ("info", "mod", "zip"):
                why = self.failure(self.registry, PROXY, f"{MODULE}/@v/v3.0.0.{kind}")
                self.assertIn("sent another version of example.com/M", why)
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/v3.0.0+meta.info"] = info(
            "v2.9.9-0.20200101000000-0123", OLD
        )
        self.assertIn(b"v2.9.9", self.body(self.registry, PROXY, f"{MODULE}/@v/v3.0.0+meta.info"))

    def test_a_missing_module_is_a_404(self) -> None:
        self.assertEqual(self.refusal(self.registry, PROXY, "/example.com/none/@v/list").status, 404)

    def test_denied_modules_are_not_asked_for(self) -> None:
        registry = Go(self.store(deny=("example.com/M*",)))
        for host, path in (
            (PROXY, f"{MODULE}/@v/list"),
            (PROXY, f"{MODULE}/@v/v1.0.0.zip"),
            (SUMS, f"/lookup{MODULE}@v1.0.0"),
        ):
            self.assertEqual(self.refusal(registry, host, path).code, "package-denied")
        self.assertEqual(self.upstream.asked, [])

    def test_the_checksum_database_is_passed_on(self) -> None:
        self.upstream.contents[f"https://{SUMS}/lookup{MODULE}@v1.0.0"] = b"sums"
        self.assertEqual(self.body(self.registry, PROXY, f"/sumdb/{SUMS}/supported"), b"")
        for host, path in ((SUMS, f"/lookup{MODULE}@v1.0.0"), (PROXY, f"/sumdb/{SUMS}/lookup{MODULE}@v1.0.0")):
            self.assertEqual(self.body(self.registry, host, path), b"sums")

    def test_another_proxy_stands_in(self) -> None:
        registry = Go(self.store(), "https://go.example/p")
        self.publish("v1.0.0", OLD, "https://go.example/p")
        self.upstream.contents[f"https://go.example/p/sumdb/{SUMS}/latest"] = b"tree"
        for host, prefix in ((PROXY, ""), ("go.example", "/p")):
            self.assertEqual(self.body(registry, host, f"{prefix}{MODULE}/@v/v1.0.0.zip"), b"archive")
        self.assertEqual(self.body(registry, SUMS, "/latest"), b"tree")

    def test_what_downloading_does_not_need_is_refused(self) -> None:
        for host, path in ((PROXY, "/"), (PROXY, "/index"), (SUMS, f"{MODULE}/@v/list"), (PROXY, "/latest")):
            self.assertEqual(self.refusal(self.registry, host, path).code, "not-for-installing")
        self.assertEqual(self.upstream.asked, [])

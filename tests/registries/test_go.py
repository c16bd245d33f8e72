from __future__ import annotations

import json
from typing import Any

from ironcurtain.registries.go import PROXY, Go
from ironcurtain.registries.go_paths import SUMS
from tests.registries.upstream import OLD, YOUNG, RegistryTestCase, iso

MODULE = "/example.com/!m"


class GoTests(RegistryTestCase):
    """A module with an old and a young version."""

    name, normalise = "go", staticmethod(str)

    def setUp(self) -> None:
        super().setUp()
        self.registry = Go(self.store())
        self.publish("v1.0.0", OLD)
        self.publish("v1.1.0", YOUNG)
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/list"] = b"v1.0.0\nv1.1.0\n"

    def publish(self, version: str, time: Any, base: str = f"https://{PROXY}") -> None:
        """Put a version into the proxy."""
        info = {"Version": version} | ({} if time is None else {"Time": iso(time)})
        files = f"{base}{MODULE}/@v/{version}"
        self.upstream.contents |= {
            f"{files}.info": json.dumps(info).encode(),
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
        latest = json.dumps({"Version": "v1.1.0", "Time": iso(YOUNG)}).encode()
        self.upstream.contents[f"https://{PROXY}{MODULE}/@latest"] = latest
        self.assertEqual(self.refusal(self.registry, PROXY, f"{MODULE}/@latest").code, "package-too-young")

    def test_versions_are_listed(self) -> None:
        self.assertIn(b"v1.0.0", self.body(self.registry, PROXY, f"{MODULE}/@v/list"))

    def test_files_are_of_versions_not_of_branches(self) -> None:
        info = json.dumps({"Version": "v1.0.0", "Time": iso(OLD)}).encode()
        self.upstream.contents[f"https://{PROXY}{MODULE}/@v/master.info"] = info
        self.assertIn(b"v1.0.0", self.body(self.registry, PROXY, f"{MODULE}/@v/master.info"))
        self.assertEqual(self.refusal(self.registry, PROXY, f"{MODULE}/@v/master.zip").status, 403)

    def test_an_info_that_is_none_is_refused(self) -> None:
        for body in (b"<html>", b"[]", b"{}", b"\xff", b'{"Version": 5}'):
            self.upstream.contents[f"https://{PROXY}{MODULE}/@v/v3.0.0.info"] = body
            self.assertIn("sent no version", self.failure(self.registry, PROXY, f"{MODULE}/@v/v3.0.0.zip"))

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

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.home.registry_sections import RegistrySettings
from ironcurtain.registries.npm_metadata import (
    Filtered,
    UnusableMetadata,
    filter_packument,
    one_manifest,
    read_packument,
)
from ironcurtain.registries.policy import package_policy
from tests.registries.packuments import BASE, encoded, packument
from tests.registries.upstream import NOW, OLD, YOUNG, iso

VERSIONS = st.from_regex(r"(0|[1-9][0-9]?)\.[0-9]\.[0-9](-(alpha|rc\.[0-9]))?", fullmatch=True)
TIMES = st.one_of(
    st.sampled_from((None, "", "yesterday", "1970-01-01T00:00:00Z", "1985-10-26T08:15:00.000Z", "2026-11-01", "9")),
    st.integers(-400, 60).map(lambda days: NOW + timedelta(days=days)),
)


def filtered(document: dict[str, Any], min_age: str = "7d", origin: str = BASE) -> Filtered:
    read = read_packument(encoded(document), document["name"], BASE, NOW)
    return filter_packument(read, package_policy("npm", RegistrySettings(min_age=min_age), str), origin, NOW)


class FilterTests(SynchronousTestCase):
    def test_young_versions_their_times_and_their_tags_are_taken_out(self) -> None:
        document = packument("x", {"1.0.0": OLD, "1.1.0": OLD, "2.0.0": YOUNG})
        document["dist-tags"] |= {"next": "2.0.0", "stable": "1.0.0"}
        document["time"] |= {"created": iso(OLD), "modified": iso(YOUNG), "unpublished": {"by": "x"}}
        result = filtered(document)
        left = json.loads(result.body)
        self.assertEqual(list(left["versions"]), ["1.0.0", "1.1.0"])
        self.assertEqual(list(left["time"]), ["created", "modified", "1.0.0", "1.1.0"])
        self.assertEqual(left["dist-tags"], {"latest": "1.1.0", "stable": "1.0.0"})
        self.assertEqual(result.hidden, ("2.0.0",))
        self.assertEqual(left["versions"]["1.0.0"], document["versions"]["1.0.0"])

    def test_missing_and_false_times_count_as_young(self) -> None:
        false: tuple[Any, ...] = (None, "", "soon", "1970-01-01T00:00:00Z", "1985-10-26T08:15:00Z", "2026-01-01", 5, [])
        for time in false:
            document = packument("x", {"1.0.0": OLD, "1.1.0": time})
            self.assertEqual(filtered(document).hidden, ("1.1.0",), time)
        self.assertEqual(filtered(packument("x", {"1.0.0": NOW + timedelta(days=1)})).body, b"")

    def test_times_with_a_zone_in_numbers_count(self) -> None:
        self.assertEqual(filtered(packument("x", {"1.0.0": OLD.isoformat()})).hidden, ())

    def test_without_a_minimum_age_all_versions_are_left(self) -> None:
        document = packument("x", {"1.0.0": None, "2.0.0": NOW})
        self.assertEqual(filtered(document, "0").hidden, ())

    def test_latest_becomes_the_newest_release_that_is_not_newer(self) -> None:
        for versions, latest, wanted in (
            ({"1.9.0": OLD, "1.10.0": OLD, "2.0.0": YOUNG}, "2.0.0", "1.10.0"),
            ({"1.0.0": OLD, "1.1.0-rc.1": OLD, "1.1.0": YOUNG}, "1.1.0", "1.0.0"),
            ({"1.0.0": OLD, "1.1.0": YOUNG, "3.0.0": OLD}, "1.1.0", "1.0.0"),
            ({"1.1.0": YOUNG, "3.0.0": OLD}, "1.1.0", "3.0.0"),
            ({"1.0.0-rc.2": OLD, "1.0.0-rc.10": OLD, "1.0.0": YOUNG}, "1.0.0", "1.0.0-rc.10"),
            ({"1.0.0": OLD, "2.0.0": OLD}, "1.0.0", "1.0.0"),
            ({"1.0.0": OLD, "2.0.0": OLD}, "9.9.9", "2.0.0"),
        ):
            document = packument("x", dict(versions), dist_tags={"latest": latest})
            self.assertEqual(json.loads(filtered(document).body)["dist-tags"]["latest"], wanted, versions)

    def test_tarballs_are_where_the_client_asked(self) -> None:
        document = packument("@s/x", {"1.0.0": OLD})
        document["versions"]["1.0.0"]["dist"]["tarball"] = "https://evil.example/x.tgz"
        document["versions"]["1.0.0"]["dist"]["fileCount"] = 3
        read = read_packument(encoded(document), "@s/x", BASE, NOW)
        self.assertEqual(read.releases["1.0.0"].url, f"{BASE}/@s/x/-/x-1.0.0.tgz")
        left = json.loads(filtered(document, origin="https://other.example").body)
        dist = left["versions"]["1.0.0"]["dist"]
        self.assertEqual(dist["tarball"], "https://other.example/@s/x/-/x-1.0.0.tgz")
        self.assertEqual(dist["fileCount"], 3)
        self.assertEqual(json.loads(one_manifest(read, "1.0.0", BASE))["dist"]["tarball"], f"{BASE}/@s/x/-/x-1.0.0.tgz")

    def test_a_tarball_elsewhere_at_the_registry_is_found_by_both_names(self) -> None:
        document = packument("x", {"1.0.0": OLD})
        document["versions"]["1.0.0"]["dist"]["tarball"] = f"{BASE}/download/x/x-1.0.tgz"
        read = read_packument(encoded(document), "x", BASE, NOW)
        self.assertEqual(read.files, {"x-1.0.tgz": "1.0.0", "x-1.0.0.tgz": "1.0.0"})
        self.assertEqual(read.releases["1.0.0"].url, f"{BASE}/download/x/x-1.0.tgz")

    def test_a_usual_name_belongs_to_its_version_only(self) -> None:
        document = packument("x", {"1.0.0": OLD, "2.0.0": YOUNG})
        document["versions"]["1.0.0"]["dist"]["tarball"] = f"{BASE}/x/-/x-2.0.0.tgz"
        read = read_packument(encoded(document), "x", BASE, NOW)
        self.assertEqual(read.files["x-2.0.0.tgz"], "2.0.0")

    def test_versions_without_a_digest_or_with_odd_names_are_left_out(self) -> None:
        document = packument("x", {"1.0.0": OLD, "1.1.0": OLD, "1.2.0": OLD, "../x": OLD, "1 0": OLD, "a\r\nb": OLD})
        document["versions"]["1.1.0"]["dist"]["integrity"] = "sha512-AAAA md5-AAAA"
        document["versions"]["1.2.0"]["dist"] = None
        self.assertEqual(list(json.loads(filtered(document).body)["versions"]), ["1.0.0"])

    def test_manifests_of_other_packages_and_versions_are_left_out(self) -> None:
        for false in ({"name": "y"}, {"version": "9.0.0"}, {"name": None}, {"version": None}):
            document = packument("x", {"1.0.0": OLD, "1.1.0": OLD})
            document["versions"]["1.1.0"] |= false
            self.assertEqual(list(json.loads(filtered(document).body)["versions"]), ["1.0.0"], false)

    def test_tarballs_of_other_packages_are_not_fetched(self) -> None:
        usual = f"{BASE}/@s/x/-/x-1.0.0.tgz"
        for path in (
            "y/-/x-1.0.0.tgz",
            "xx/-/x-1.0.0.tgz",
            "y/-/y-1.0.0.tgz?/@s/x/",
            "@s/x/../../y.tgz",
            "@s/x%2f..%2fy",
        ):
            document = packument("@s/x", {"1.0.0": OLD})
            document["versions"]["1.0.0"]["dist"]["tarball"] = f"{BASE}/{path}"
            read = read_packument(encoded(document), "@s/x", BASE, NOW)
            self.assertEqual(read.releases["1.0.0"].url, usual, path)
        for path in ("@s/x/-/other.tgz", "download/@s/x/1.0.0/0a1b", "@s%2fx/-/x-1.0.0.tgz"):
            document = packument("@s/x", {"1.0.0": OLD})
            document["versions"]["1.0.0"]["dist"]["tarball"] = f"{BASE}/{path}"
            read = read_packument(encoded(document), "@s/x", BASE, NOW)
            self.assertEqual(read.releases["1.0.0"].url, f"{BASE}/{path}")

    def test_old_versions_are_verified_by_sha1(self) -> None:
        document = packument("x", {"1.0.0": OLD})
        dist = document["versions"]["1.0.0"]["dist"]
        del dist["integrity"]
        dist["shasum"] = "a" * 40
        digest = read_packument(encoded(document), "x", BASE, NOW).releases["1.0.0"].digest
        assert digest is not None
        self.assertEqual((digest.algorithm, digest.value), ("sha1", b"\xaa" * 20))

    def test_other_documents_are_refused(self) -> None:
        for body in (b"", b"[]", b"{", b'{"versions": []}', b'{"versions": {"1": ', b"\xff", b'{"time": 3}'):
            self.assertRaises(UnusableMetadata, read_packument, body, "x", BASE, NOW)

    @given(st.dictionaries(VERSIONS, TIMES, max_size=8), st.sampled_from(("0", "1d", "7d", "30d")))
    def test_nothing_young_is_left_and_nothing_dangles(
        self, times: dict[str, datetime | str | None], min_age: str
    ) -> None:
        document = packument("x", times)
        result = filtered(document, min_age)
        days = 0 if min_age == "0" else int(min_age[:-1])
        old = [v for v, t in times.items() if not days or (isinstance(t, datetime) and NOW - t >= timedelta(days=days))]
        if not result.body:
            self.assertEqual(old, [])
            return
        left = json.loads(result.body)
        self.assertEqual(list(left["versions"]), old)
        self.assertIn(left["dist-tags"]["latest"], old)
        self.assertLessEqual(left["time"].keys(), set(old))
        self.assertEqual(len(result.hidden) + len(old), len(times))

from __future__ import annotations

import json
from typing import Any

from ironcurtain.registries.crates import FILES, INDEX, Crates
from ironcurtain.registries.crates_index import normalise
from tests.registries.upstream import OLD, YOUNG, RegistryTestCase, iso, sha256

PAGE = f"https://{INDEX}/se/rd/serde_x"
CONTENT = b"crate" * 500


class CratesTests(RegistryTestCase):
    """A registry with an old and a young version of a crate."""

    name, normalise = "crates", staticmethod(normalise)

    def setUp(self) -> None:
        super().setUp()
        self.lines = [self.line("1.0.0", OLD), self.line("2.0.0", YOUNG)]
        self.upstream.contents[f"https://{INDEX}/config.json"] = json.dumps({"dl": f"https://{FILES}/crates"}).encode()
        self.publish()
        self.registry = Crates(self.store())

    def line(self, version: str, time: Any) -> dict[str, Any]:
        """Keep the file of a version. :returns: its line in the index."""
        self.upstream.contents[f"https://{FILES}/crates/Serde_x/{version}/download"] = CONTENT
        published = {} if time is None else {"pubtime": iso(time)}
        return {"name": "Serde_x", "vers": version, "deps": [], "cksum": sha256(CONTENT), "yanked": False} | published

    def publish(self, address: str = PAGE) -> None:
        """Put the versions into the index."""
        self.upstream.contents[address] = "\n".join(map(json.dumps, self.lines)).encode()

    def yanked(self) -> list[bool]:
        """:returns: whether the versions in the index are yanked."""
        page = self.body(self.registry, INDEX, "/se/rd/serde_x")
        return [json.loads(line)["yanked"] for line in page.splitlines()]

    def test_young_versions_and_those_of_unknown_age_are_yanked(self) -> None:
        self.lines.append(self.line("3.0.0", None))
        self.publish()
        self.assertEqual(self.yanked(), [False, True, True])

    def test_a_crate_without_any_old_version_is_refused(self) -> None:
        """The reason is shown then; of a version that is yanked, cargo shows none."""
        self.lines = [self.line("2.0.0", YOUNG), self.line("3.0.0", None)]
        self.publish()
        refusal = self.refusal(self.registry, INDEX, "/se/rd/serde_x")
        self.assertIn("serde-x 2.0.0 is too young (published 2026-11-25, min_age 7d)", refusal.reason)
        self.assertEqual(len(self.body(Crates(self.store(min_age="0")), INDEX, "/se/rd/serde_x").splitlines()), 2)

    def test_clients_find_files_here_and_no_other_functions(self) -> None:
        config = json.loads(self.body(self.registry, INDEX, "/config.json"))
        self.assertEqual(config, {"dl": f"https://{FILES}/crates"})

    def test_an_old_file_is_delivered_and_recorded(self) -> None:
        for path in ("/crates/Serde_x/1.0.0/download", "/crates/Serde_x/Serde_x-1.0.0.crate"):
            self.assertEqual(self.body(self.registry, FILES, path), CONTENT)
        record = self.records("package")[0]
        self.assertEqual((record["name"], record["release"], record["verified"]), ("serde-x", "1.0.0", True))
        self.assertEqual(self.upstream.addresses.count(PAGE), 1)

    def test_a_young_file_is_refused_without_the_index(self) -> None:
        """As a ``Cargo.lock`` asks for it."""
        refusal = self.refusal(self.registry, FILES, "/crates/serde_x/2.0.0/download")
        self.assertEqual((refusal.status, refusal.code), (403, "package-too-young"))
        self.assertNotIn(f"https://{FILES}/crates/Serde_x/2.0.0/download", self.upstream.addresses)

    def test_a_file_that_is_not_what_the_index_says_breaks_off(self) -> None:
        self.upstream.contents[f"https://{FILES}/crates/Serde_x/1.0.0/download"] = b"changed"
        self.assertIn("digest", self.failure(self.registry, FILES, "/crates/serde_x/1.0.0/download"))

    def test_files_are_fetched_where_the_index_says(self) -> None:
        registry = Crates(self.store(), "https://crates.example/index/")
        self.publish("https://crates.example/index/se/rd/serde_x")
        config = {"dl": "https://files.example/{lowerprefix}/{crate}-{version}", "auth-required": True}
        self.upstream.contents["https://crates.example/index/config.json"] = json.dumps(config).encode()
        self.upstream.contents["https://files.example/se/rd/Serde_x-1.0.0"] = CONTENT
        told = json.loads(self.body(registry, "crates.example", "/index/config.json"))
        self.assertEqual(told, {"dl": "https://crates.example/crates"})
        for host in ("crates.example", FILES):
            self.assertEqual(self.body(registry, host, "/crates/Serde_x/1.0.0/download"), CONTENT)
        self.assertIn("2.0.0", self.body(registry, "crates.example", "/index/se/rd/serde_x").decode())

    def test_files_are_not_fetched_without_tls(self) -> None:
        for download in ("http://files.example", "https://user:key@files.example", "ftp://files.example"):
            config = json.dumps({"dl": download}).encode()
            self.upstream.contents[f"https://{INDEX}/config.json"] = config
            registry = Crates(self.store())
            self.assertIn("config.json", self.failure(registry, FILES, "/crates/serde_x/1.0.0/download"))

    def test_denied_names_are_not_looked_up_in_any_spelling(self) -> None:
        registry = Crates(self.store(deny=("serde-X",)))
        self.assertEqual(self.refusal(registry, INDEX, "/se/rd/serde_x").code, "package-denied")
        self.assertEqual(self.refusal(registry, FILES, "/crates/SERDE-x/1.0.0/download").code, "package-denied")
        self.assertEqual(self.upstream.asked, [])

    def test_what_building_does_not_need_is_refused(self) -> None:
        for host, path in ((INDEX, "/api/v1/crates"), (INDEX, "/crates/a/1/download"), (FILES, "/se/rd/serde_x")):
            self.assertEqual(self.refusal(self.registry, host, path).code, "not-for-installing")
        self.assertEqual(self.upstream.asked, [])

    def test_missing_crates_and_versions_are_a_404(self) -> None:
        self.assertEqual(self.refusal(self.registry, INDEX, "/1/x").status, 404)
        self.assertEqual(self.refusal(self.registry, FILES, "/crates/serde_x/9.0.0/download").status, 404)
        self.assertEqual(self.refusal(self.registry, FILES, "/crates/nothing/9.0.0/download").status, 404)

    def test_an_index_that_is_none_is_refused(self) -> None:
        self.upstream.contents[PAGE] = b"<html>"
        self.assertIn("sent no versions", self.failure(self.registry, INDEX, "/se/rd/serde_x"))

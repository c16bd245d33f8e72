from __future__ import annotations

import json
from typing import Any

from twisted.internet.defer import Deferred

from ironcurtain.home.registry_sections import Registries
from ironcurtain.http.head import RequestHead
from ironcurtain.network.responder import LocalResponse
from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.npm import PUBLIC, NpmRegistry, normalised
from ironcurtain.registries.recording import PackageFetched, PackageRefused
from ironcurtain.registries.serving import RegistryResponder
from tests.registries.packuments import BASE, encoded, packument, sri, tarball
from tests.registries.upstream import NOW, OLD, YOUNG, RegistryTestCase

HOST = "npm.example"


class NpmTestCase(RegistryTestCase):
    """A registry at :data:`BASE` with a package ``x`` that has an old version 1.0.0 and a young version 2.0.0."""

    name, normalise = "npm", staticmethod(normalised)

    def setUp(self) -> None:
        super().setUp()
        self.document = packument("x", {"1.0.0": OLD, "2.0.0": YOUNG})
        self.offer("x", self.document)
        self.registry = self.open()

    def open(self, limits: Registries | None = None, **settings: Any) -> NpmRegistry:
        return NpmRegistry(self.store(limits, **settings), BASE)

    def offer(self, name: str, document: dict[str, Any]) -> None:
        """Let the upstream registry have a package."""
        self.upstream.contents[f"{BASE}/{name.replace('/', '%2F')}"] = encoded(document)
        for version in document["versions"]:
            file = f"{BASE}/{name}/-/{name.rpartition('/')[2]}-{version}.tgz"
            self.upstream.contents[file] = tarball(name, version)


class MetadataTests(NpmTestCase):
    def test_metadata_are_filtered_and_say_so(self) -> None:
        answer = self.ask(self.registry, HOST, "/x")
        assert isinstance(answer, LocalResponse)
        notice = dict(answer.headers)["npm-notice"]
        self.assertEqual(notice, "IronCurtain: 1 newer version of x hidden by min_age 7d")
        self.assertEqual(list(json.loads(self.body(self.registry, HOST, "/x"))["versions"]), ["1.0.0"])
        self.assertEqual(self.upstream.asked[0], (f"{BASE}/x", "application/json"))

    def test_scoped_names_are_asked_for_in_their_encoded_form(self) -> None:
        self.offer("@s/x", packument("@s/x", {"1.0.0": OLD}))
        self.body(self.registry, HOST, "/@s%2fx")
        self.assertEqual(self.body(self.registry, HOST, "/@s%2Fx/-/x-1.0.0.tgz"), tarball("@s/x", "1.0.0"))
        self.assertEqual(self.upstream.addresses[0], f"{BASE}/@s%2Fx")

    def test_own_entity_tags_are_of_the_filtered_metadata(self) -> None:
        answer = self.ask(self.registry, HOST, "/x")
        assert isinstance(answer, LocalResponse)
        etag = dict(answer.headers)["etag"]
        again = self.ask(self.registry, HOST, "/x", ("if-none-match", f"W/{etag}"))
        assert isinstance(again, LocalResponse)
        self.assertEqual((again.status, again.length), (304, 0))
        other = self.ask(self.open(min_age="0"), HOST, "/x", ("if-none-match", etag))
        assert isinstance(other, LocalResponse)
        self.assertEqual(other.status, 200)

    def test_a_package_of_young_versions_only_is_refused(self) -> None:
        self.offer("new", packument("new", {"1.0.0": YOUNG, "1.1.0": NOW}))
        refusal = self.refusal(self.registry, HOST, "/new")
        self.assertEqual((refusal.status, refusal.code), (403, "package-too-young"))
        self.assertIn("new 1.0.0 is too young (published 2026-11-25, min_age 7d)", refusal.reason)

    def test_one_version_or_tag_is_given_alone(self) -> None:
        self.assertEqual(json.loads(self.body(self.registry, HOST, "/x/latest"))["version"], "1.0.0")
        self.assertEqual(json.loads(self.body(self.registry, HOST, "/x/1.0.0"))["version"], "1.0.0")
        self.assertEqual(self.refusal(self.registry, HOST, "/x/2.0.0").code, "package-too-young")
        self.assertEqual(self.refusal(self.registry, HOST, "/x/next").code, "package-missing")

    def test_lists_decide_before_anything_is_asked(self) -> None:
        registry = self.open(allow=("@corp/*",), deny=("@corp/secret*",))
        self.assertEqual(self.refusal(registry, HOST, "/x").code, "package-not-allowed")
        self.assertEqual(self.refusal(registry, HOST, "/@corp%2fsecrets").code, "package-denied")
        self.assertEqual(self.refusal(registry, HOST, "/@corp/secrets/-/secrets-1.0.0.tgz").code, "package-denied")
        self.assertEqual(self.upstream.asked, [])
        self.offer("@corp/x", packument("@corp/x", {"1.0.0": OLD}))
        self.body(registry, HOST, "/@corp%2fx")

    def test_other_paths_are_refused_with_a_reason(self) -> None:
        for path in ("/-/v1/search", "/-/whoami", "/", "/x/-/../y.tgz"):
            refusal = self.refusal(self.registry, HOST, path)
            self.assertEqual((refusal.status, refusal.code), (403, "not-for-installing"))
        self.assertEqual(self.upstream.asked, [])

    def test_metadata_that_are_none_are_refused(self) -> None:
        self.upstream.contents[f"{BASE}/x"] = b"<html>"
        self.assertIn("x: its metadata are not those of a package", self.failure(self.registry, HOST, "/x"))


class TarballTests(NpmTestCase):
    def test_a_tarball_is_verified_recorded_and_told(self) -> None:
        content = tarball("x", "1.0.0")
        self.assertEqual(self.body(self.registry, HOST, "/x/-/x-1.0.0.tgz"), content)
        record = self.records("package")[0]
        self.assertEqual((record["name"], record["release"], record["digest"]), ("x", "1.0.0", sri(content)))
        self.assertEqual((record["size"], record["verified"], record["registry"]), (len(content), True, "npm"))
        fetched = self.traffic[0]
        assert isinstance(fetched, PackageFetched)
        self.assertEqual((fetched.name, fetched.version, fetched.digest), ("x", "1.0.0", sri(content)))

    def test_a_young_version_is_refused_although_a_lock_file_names_it(self) -> None:
        refusal = self.refusal(self.registry, HOST, "/x/-/x-2.0.0.tgz")
        self.assertEqual((refusal.status, refusal.code), (403, "package-too-young"))
        self.assertIn("x 2.0.0 is too young (published 2026-11-25, min_age 7d): choose an older", refusal.reason)
        self.assertNotIn(f"{BASE}/x/-/x-2.0.0.tgz", self.upstream.addresses)
        refused = self.traffic[0]
        assert isinstance(refused, PackageRefused)
        self.assertEqual((refused.name, refused.version, refused.rule), ("x", "2.0.0", "package-too-young"))
        self.assertEqual(self.records("package-request")[-1]["decision"], "deny")

    def test_a_version_grows_old(self) -> None:
        self.now = YOUNG.replace(month=12, day=3)
        self.assertEqual(self.body(self.registry, HOST, "/x/-/x-2.0.0.tgz"), tarball("x", "2.0.0"))

    def test_another_file_is_broken_off_before_its_end(self) -> None:
        self.upstream.contents[f"{BASE}/x/-/x-1.0.0.tgz"] = b"evil" * 50_000
        self.assertIn("the file has the digest sha512-", self.failure(self.registry, HOST, "/x/-/x-1.0.0.tgz"))
        self.assertEqual(self.records("package"), [])
        self.assertEqual(self.records("package-request")[-1]["rule"], "package-unusable")

    def test_metadata_are_remembered_for_a_while(self) -> None:
        self.body(self.registry, HOST, "/x")
        self.body(self.registry, HOST, "/x/-/x-1.0.0.tgz")
        self.assertEqual(self.upstream.addresses, [f"{BASE}/x", f"{BASE}/x/-/x-1.0.0.tgz"])

    def test_an_unknown_file_is_missing(self) -> None:
        for path in ("/x/-/x-9.9.9.tgz", "/x/-/y-1.0.0.tgz"):
            self.assertEqual(self.refusal(self.registry, HOST, path).code, "package-missing")

    def test_a_file_that_is_gone_is_missing(self) -> None:
        del self.upstream.contents[f"{BASE}/x/-/x-1.0.0.tgz"]
        self.assertEqual(self.refusal(self.registry, HOST, "/x/-/x-1.0.0.tgz").code, "package-missing")

    def test_a_failing_registry_is_named(self) -> None:
        self.upstream.contents[f"{BASE}/x"] = 503
        for status in (408, 429, 503):
            self.upstream.contents[f"{BASE}/x"] = status
            self.assertEqual(self.failure(self.registry, HOST, "/x"), f"the registry answered HTTP {status} for x")

    def test_what_registry_does_not_give_is_refused_once_and_for_all(self) -> None:
        for path, address in (("/x", f"{BASE}/x"), ("/x/-/x-1.0.0.tgz", f"{BASE}/x/-/x-1.0.0.tgz")):
            kept = self.upstream.contents[address]
            for status in (400, 401, 403, 451):
                self.upstream.contents[address] = status
                refusal = self.refusal(self.registry, HOST, path)
                self.assertEqual((refusal.status, refusal.code), (403, "package-unusable"))
                self.assertIn(f"answered HTTP {status} for {path.rpartition('/')[2]}: ask the user", refusal.reason)
                self.assertEqual(self.records("package-request")[-1]["name"], "x")
            self.upstream.contents[address] = kept


class LimitTests(NpmTestCase):
    def test_names_that_do_not_exist_are_counted(self) -> None:
        registry = self.open(Registries(max_missing=2))
        codes = [self.refusal(registry, HOST, f"/secret-{i}").code for i in range(3)]
        self.assertEqual(codes, ["package-missing", "package-missing", "package-limit"])
        self.assertEqual(self.refusal(registry, HOST, "/x").code, "package-limit")
        self.assertEqual(len(self.upstream.asked), 2)

    def test_names_that_are_not_given_are_counted_like_missing_ones(self) -> None:
        registry = self.open(Registries(max_missing=1))
        self.upstream.contents |= {f"{BASE}/secret-{i}": 403 for i in range(2)}
        codes = [self.refusal(registry, HOST, f"/secret-{i}").code for i in range(2)]
        self.assertEqual(codes, ["package-unusable", "package-limit"])

    def test_names_of_unknown_files_leave_nothing(self) -> None:
        self.assertEqual(self.refusal(self.registry, HOST, "/x/-/x-0.0.0-secret.tgz").code, "package-missing")
        self.assertEqual(self.upstream.addresses, [f"{BASE}/x"])

    def test_lookups_and_files_are_counted(self) -> None:
        registry = self.open(Registries(max_lookups=1, max_files=1))
        self.body(registry, HOST, "/x/-/x-1.0.0.tgz")
        self.assertIn("max_files", self.refusal(registry, HOST, "/x/-/x-1.0.0.tgz").reason)
        self.assertIn("max_lookups", self.refusal(registry, HOST, "/x").reason)

    def test_the_size_of_a_file_is_limited(self) -> None:
        self.upstream.contents[f"{BASE}/x/-/x-1.0.0.tgz"] = b"x" * 1_000_001
        registry = self.open(Registries(max_file_mb=1))
        head = RequestHead("GET", "/x/-/x-1.0.0.tgz", "/x/-/x-1.0.0.tgz", "", ())
        answer = self.successResultOf(
            Deferred.fromCoroutine(RegistryResponder("npm", registry, HOST, self.recorder).respond(head))
        )
        assert isinstance(answer, RequestRefusal)
        self.assertEqual((answer.status, answer.code), (403, "package-unusable"))
        (recorded,) = [record for record in self.records("package-request") if record["decision"] == "deny"]
        self.assertEqual((recorded["name"], recorded["release"], recorded["file"]), ("x", "1.0.0", "x-1.0.0.tgz"))
        self.assertIn("the file is larger than 1 MB (max_file_mb in [registries])", answer.reason)


class HostTests(NpmTestCase):
    def test_a_mirror_is_asked_instead_of_the_public_registry(self) -> None:
        hosts = NpmRegistry(self.store(), BASE).hosts
        self.assertIn((HOST, 443), hosts)
        self.assertIn((PUBLIC.removeprefix("https://"), 443), hosts)
        left = json.loads(self.body(self.registry, PUBLIC.removeprefix("https://"), "/x"))
        self.assertEqual(left["versions"]["1.0.0"]["dist"]["tarball"], f"{PUBLIC}/x/-/x-1.0.0.tgz")
        self.assertEqual(self.upstream.addresses, [f"{BASE}/x"])

    def test_a_mirror_below_a_path_is_asked_below_it(self) -> None:
        registry = NpmRegistry(self.store(), f"{BASE}/api/npm")
        self.upstream.contents[f"{BASE}/api/npm/x"] = encoded(self.document)
        self.upstream.contents[f"{BASE}/api/npm/x/-/x-1.0.0.tgz"] = tarball("x", "1.0.0")
        left = json.loads(self.body(registry, HOST, "/api/npm/x"))
        self.assertEqual(left["versions"]["1.0.0"]["dist"]["tarball"], f"{BASE}/api/npm/x/-/x-1.0.0.tgz")
        self.assertEqual(self.body(registry, HOST, "/api/npm/x/-/x-1.0.0.tgz"), tarball("x", "1.0.0"))
        self.assertEqual(self.refusal(registry, HOST, "/x").code, "not-for-installing")


class ResponderTests(NpmTestCase):
    def respond(self, method: str, path: str) -> LocalResponse | RequestRefusal:
        responder = RegistryResponder("npm", self.registry, HOST, self.recorder)
        answering = responder.respond(RequestHead(method, path, path, "", (("range", "bytes=0-10"),)))
        return self.successResultOf(Deferred.fromCoroutine(answering))

    def test_publishing_is_refused_with_a_reason(self) -> None:
        for method in ("PUT", "DELETE", "POST", "PATCH"):
            refusal = self.respond(method, "/x")
            assert isinstance(refusal, RequestRefusal)
            self.assertEqual((refusal.status, refusal.code), (403, "registry-read-only"))
        self.assertEqual(self.upstream.asked, [])
        refused = self.records("package-request")
        self.assertEqual([each["file"] for each in refused], ["PUT /x", "DELETE /x", "POST /x", "PATCH /x"])

    def test_a_refusal_is_recorded_once(self) -> None:
        self.respond("GET", "/-/whoami")
        self.respond("GET", "/x/-/x-2.0.0.tgz")
        denied = [each["rule"] for each in self.records("package-request") if each["decision"] == "deny"]
        self.assertEqual(denied, ["not-for-installing", "package-too-young"])

    def test_advisories_are_not_found(self) -> None:
        answer = self.respond("POST", "/-/npm/v1/security/advisories/bulk")
        assert isinstance(answer, LocalResponse)
        self.assertEqual(answer.status, 404)
        self.assertEqual((self.upstream.asked, self.traffic), ([], []))

    def test_a_response_to_head_has_no_body(self) -> None:
        answer = self.respond("HEAD", "/x/-/x-1.0.0.tgz")
        assert isinstance(answer, LocalResponse)

        async def read() -> list[bytes]:
            return [piece async for piece in answer.body]

        self.assertEqual(self.successResultOf(Deferred.fromCoroutine(read())), [])
        self.assertEqual(answer.length, len(tarball("x", "1.0.0")))

    def test_ranges_are_dropped(self) -> None:
        answer = self.respond("GET", "/x/-/x-1.0.0.tgz")
        assert isinstance(answer, LocalResponse)
        self.assertEqual((answer.status, answer.length), (200, len(tarball("x", "1.0.0"))))

    def test_nothing_is_asked_while_nothing_can_be_recorded(self) -> None:
        self.successResultOf(Deferred.fromCoroutine(self._audit.close()))
        refusal = self.respond("GET", "/x")
        assert isinstance(refusal, RequestRefusal)
        self.assertEqual((refusal.code, self.upstream.asked), ("audit-unavailable", []))

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

from ironcurtain.home.registry_sections import Registries
from ironcurtain.registries.pypi import FILES, INDEX, PyPI
from ironcurtain.registries.pypi_index import JSON
from ironcurtain.registries.pypi_paths import normalise
from tests.registries.upstream import OLD, YOUNG, RegistryTestCase, iso, sha256

WHEEL, SOURCE = "six-2.0-py3-none-any.whl", "six-1.0.tar.gz"
PATH = "/packages/aa/bb/cc/"
CONTENT = b"content of the wheel " * 200
METADATA = b"Name: six\n"


class PyPITestCase(RegistryTestCase):
    """PyPI with an old source distribution and a young wheel of ``six``."""

    name, normalise = "pypi", staticmethod(normalise)

    def setUp(self) -> None:
        super().setUp()
        self.files = {SOURCE: self.file(SOURCE, b"source", OLD), WHEEL: self.file(WHEEL, CONTENT, YOUNG)}
        self.files[WHEEL]["core-metadata"] = {"sha256": sha256(METADATA)}
        self.upstream.contents[f"https://{FILES}{PATH}{WHEEL}.metadata"] = METADATA
        self.registry = PyPI(self.store())
        self.publish()

    def file(self, name: str, content: bytes, time: Any) -> dict[str, Any]:
        """Keep a file on the usual host. :returns: its entry in the index."""
        url = f"https://{FILES}{PATH}{name}"
        self.upstream.contents[url] = content
        return {"filename": name, "url": url, "hashes": {"sha256": sha256(content)}, "upload-time": iso(time)}

    def publish(self, url: str = f"https://{INDEX}/simple/six/") -> None:
        """Put the files into the index."""
        self.upstream.contents[url] = json.dumps({"name": "six", "files": list(self.files.values())}).encode()

    def page(self, registry: PyPI | None = None, host: str = INDEX, path: str = "/simple/six/") -> dict[str, Any]:
        """:returns: the files on the page of ``six``, by name."""
        page = json.loads(self.body(registry or self.registry, host, path, ("accept", JSON)))
        return {file["filename"]: file for file in page["files"]}


class PageTests(PyPITestCase):
    def test_young_files_are_yanked_with_the_reason(self) -> None:
        files = self.page()
        self.assertFalse(files[SOURCE]["yanked"])
        self.assertEqual(
            files[WHEEL]["yanked"],
            "IronCurtain: published 2026-11-25, min_age 7d; choose an older version, or ask the user to change min_age",
        )

    def test_a_page_without_any_old_file_is_refused(self) -> None:
        """The reason is shown by every client then; of yanked files, pip shows none."""
        del self.files[SOURCE]
        self.publish()
        refusal = self.refusal(self.registry, INDEX, "/simple/six/")
        self.assertEqual((refusal.status, refusal.code), (403, "package-too-young"))
        self.assertIn("six 2.0 is too young (published 2026-11-25, min_age 7d)", refusal.reason)

    def test_a_page_without_files_is_empty(self) -> None:
        self.files.clear()
        self.publish()
        self.assertEqual(self.page(), {})

    def test_without_a_minimum_age_nothing_is_yanked(self) -> None:
        self.assertFalse(self.page(PyPI(self.store(min_age="0")))[WHEEL]["yanked"])

    def test_a_file_of_unknown_age_is_young(self) -> None:
        self.files["six-0.1.tar.gz"] = self.file("six-0.1.tar.gz", b"older", OLD)
        for time in (None, "yesterday", "1980-01-01T00:00:00Z", iso(self.now + timedelta(days=400))):
            self.files[SOURCE]["upload-time"] = time
            self.publish()
            self.assertIn("unknown time", self.page()[SOURCE]["yanked"])

    def test_json_is_asked_for_whatever_the_client_accepts(self) -> None:
        page = self.body(self.registry, INDEX, "/simple/Six/", ("accept", "text/html")).decode()
        self.assertIn('data-yanked="IronCurtain: ', page)
        self.assertEqual(self.upstream.asked, [(f"https://{INDEX}/simple/six/", JSON)])

    def test_an_index_without_json_is_refused(self) -> None:
        self.upstream.contents[f"https://{INDEX}/simple/six/"] = b"<!DOCTYPE html>"
        self.assertIn("does not list its files in JSON", self.failure(self.registry, INDEX, "/simple/six/"))

    def test_a_missing_project_is_a_404(self) -> None:
        self.assertEqual(self.refusal(self.registry, INDEX, "/simple/none/").status, 404)

    def test_denied_names_are_not_looked_up_in_any_spelling(self) -> None:
        registry = PyPI(self.store(deny=("S.i-x*",)))
        for path in ("/simple/s-i-xyz/", "/simple/S_I.x/", "/pypi/s.i.x/1.0/json"):
            self.assertEqual(self.refusal(registry, INDEX, path).code, "package-denied")
        self.assertEqual(self.refusal(registry, FILES, "/packages/s_i_x-1.0-py3-none-any.whl").code, "package-denied")
        self.assertEqual(self.upstream.asked, [])

    def test_names_that_do_not_exist_are_limited(self) -> None:
        registry = PyPI(self.store(Registries(max_missing=2)))
        refusals = [self.refusal(registry, INDEX, f"/simple/secret-{number}/") for number in range(3)]
        self.assertEqual([refusal.code for refusal in refusals], ["package-missing"] * 2 + ["package-limit"])
        self.assertEqual(len(self.upstream.asked), 2)

    def test_what_installing_does_not_need_is_refused(self) -> None:
        for path in ("/simple/", "/search/", "/pypi", "/legacy/", "/pypi/six/json"):
            self.assertEqual(self.refusal(self.registry, INDEX, path).code, "not-for-installing")
        self.assertEqual(self.upstream.asked, [])

    def test_release_data_say_what_is_young(self) -> None:
        young, old = (
            json.loads(self.body(self.registry, INDEX, f"/pypi/six/{version}/json")) for version in ("2.0", "1.0")
        )
        self.assertIn("min_age 7d", young["info"]["yanked_reason"])
        self.assertFalse(old["info"]["yanked"])
        self.assertEqual(self.refusal(self.registry, INDEX, "/pypi/six/3.0/json").status, 404)


class FileTests(PyPITestCase):
    def test_an_old_file_is_delivered_and_recorded(self) -> None:
        self.assertEqual(self.body(self.registry, FILES, PATH + SOURCE), b"source")
        (record,) = self.records("package")
        self.assertEqual((record["name"], record["release"], record["verified"]), ("six", "1.0", True))

    def test_a_young_file_is_refused_without_its_page(self) -> None:
        """As lock files ask for it."""
        refusal = self.refusal(self.registry, FILES, PATH + WHEEL)
        self.assertEqual((refusal.status, refusal.code), (403, "package-too-young"))
        self.assertIn("published 2026-11-25, min_age 7d", refusal.reason)
        self.assertEqual(self.upstream.addresses, [f"https://{INDEX}/simple/six/"])

    def test_metadata_are_aged_and_verified_like_their_file(self) -> None:
        self.assertEqual(self.refusal(self.registry, FILES, f"{PATH}{WHEEL}.metadata").code, "package-too-young")
        self.now += timedelta(days=7)
        self.assertEqual(self.body(self.registry, FILES, f"{PATH}{WHEEL}.metadata"), METADATA)
        self.upstream.contents[f"https://{FILES}{PATH}{WHEEL}.metadata"] = b"Name: evil\n"
        self.assertIn("digest", self.failure(self.registry, FILES, f"{PATH}{WHEEL}.metadata"))
        self.assertEqual(self.refusal(self.registry, FILES, f"{PATH}{SOURCE}.metadata").status, 404)
        self.assertEqual(self.records("package"), [])

    def test_a_file_that_is_not_what_the_index_says_breaks_off(self) -> None:
        self.upstream.contents[f"https://{FILES}{PATH}{SOURCE}"] = b"changed"
        self.assertIn("digest", self.failure(self.registry, FILES, PATH + SOURCE))
        self.assertEqual(self.records("package"), [])

    def test_the_page_is_asked_for_once_for_several_files(self) -> None:
        self.page()
        self.body(self.registry, FILES, PATH + SOURCE)
        self.body(self.registry, FILES, PATH + SOURCE)
        self.assertEqual(self.upstream.addresses.count(f"https://{INDEX}/simple/six/"), 1)

    def test_a_file_that_is_new_on_the_page_is_looked_up(self) -> None:
        self.page()
        self.files["six-1.1.tar.gz"] = self.file("six-1.1.tar.gz", b"new", OLD)
        self.publish()
        self.assertEqual(self.body(self.registry, FILES, f"{PATH}six-1.1.tar.gz"), b"new")

    def test_paths_of_files_carry_nothing_out(self) -> None:
        self.assertEqual(self.body(self.registry, FILES, f"/packages/SECRET/{SOURCE}"), b"source")
        self.assertEqual(self.refusal(self.registry, FILES, "/packages/six-SECRET.tar.gz").code, "not-for-installing")
        self.assertEqual(self.refusal(self.registry, FILES, "/packages/six-7.7.tar.gz").status, 404)
        self.assertFalse([address for address in self.upstream.addresses if "SECRET" in address or "7.7" in address])

    def test_each_project_that_a_name_may_mean_is_tried(self) -> None:
        name = "six-1.0-2.tar.gz"
        self.files[name] = self.file(name, b"two", OLD)
        self.publish()
        self.assertEqual(self.body(PyPI(self.store(allow=("six",))), FILES, PATH + name), b"two")

    def test_a_file_elsewhere_is_fetched_from_there_and_named_here(self) -> None:
        for url in (f"https://storage.example/x/{SOURCE}", f"https://{FILES}/x/{SOURCE}"):
            self.files[SOURCE]["url"] = url
            self.upstream.contents[url] = b"source"
            self.publish()
            address = self.page()[SOURCE]["url"]
            self.assertEqual(address, f"https://{FILES}/packages/six/{SOURCE}")
            self.assertEqual(self.body(self.registry, FILES, address.removeprefix(f"https://{FILES}")), b"source")

    def test_a_digest_of_the_client_has_no_part_in_it(self) -> None:
        self.files[SOURCE]["hashes"] = {"md5": "00"}
        self.publish()
        self.assertEqual(self.refusal(self.registry, FILES, PATH + SOURCE).status, 404)


class PrivateIndexTests(PyPITestCase):
    """``url`` names another index."""

    def setUp(self) -> None:
        super().setUp()
        self.private = PyPI(self.store(), "https://pip.example:8443/team/simple/")
        self.files[SOURCE]["url"] = f"../../+f/ab/{SOURCE}#sha256=00"
        self.upstream.contents[f"https://pip.example:8443/team/+f/ab/{SOURCE}"] = b"source"
        self.publish("https://pip.example:8443/team/simple/six/")

    def test_it_stands_in_for_the_public_one(self) -> None:
        address = self.page(self.private)[SOURCE]["url"]
        self.assertEqual(address, f"https://{FILES}/packages/six/{SOURCE}")
        self.assertEqual(self.body(self.private, FILES, address.removeprefix(f"https://{FILES}")), b"source")

    def test_it_is_answered_at_its_own_address(self) -> None:
        self.assertIn(("pip.example", 8443), self.private.hosts)
        host = "pip.example:8443"
        files = self.page(self.private, host, "/team/simple/six/")
        self.assertEqual(files[SOURCE]["url"], f"https://{host}/team/+f/ab/{SOURCE}")
        self.assertEqual(self.body(self.private, host, f"/team/+f/ab/{SOURCE}"), b"source")
        self.assertEqual(files[WHEEL]["url"], f"https://{host}/packages/six/{WHEEL}")
        self.assertEqual(
            self.refusal(self.private, host, files[WHEEL]["url"].removeprefix(f"https://{host}")).status, 403
        )
        self.assertEqual(self.refusal(self.private, host, "/team/+api").code, "not-for-installing")

    def test_mirrors_keep_the_addresses_of_files(self) -> None:
        url = f"https://mirror.example/pypi{PATH}{SOURCE}"
        self.files[SOURCE]["url"] = url
        self.publish("https://pip.example:8443/team/simple/six/")
        self.assertEqual(self.page(self.private)[SOURCE]["url"], f"https://{FILES}{PATH}{SOURCE}")

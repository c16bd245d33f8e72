from __future__ import annotations

from urllib.parse import quote

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.npm_paths import QUIET, PackageRequest, packument_path, read_path, tarball_path

WORDS = st.from_regex(r"[a-z0-9_][a-z0-9._-]{0,20}", fullmatch=True)
NAMES = WORDS | st.tuples(WORDS, WORDS).map(lambda pair: f"@{pair[0]}/{pair[1]}")


class ReadPathTests(SynchronousTestCase):
    def test_requests_of_clients_are_understood(self) -> None:
        for path, wanted in (
            ("/left-pad", PackageRequest("left-pad")),
            ("/@types%2fnode", PackageRequest("@types/node")),
            ("/@types%2Fnode", PackageRequest("@types/node")),
            ("/%40types%2fnode", PackageRequest("@types/node")),
            ("/@types/node", PackageRequest("@types/node")),
            ("/JSONStream", PackageRequest("JSONStream")),
            ("/left-pad/-/left-pad-1.3.0.tgz", PackageRequest("left-pad", "left-pad-1.3.0.tgz")),
            ("/@types/node/-/node-1.0.0.tgz", PackageRequest("@types/node", "node-1.0.0.tgz")),
            ("/@types%2fnode/-/node-1.0.0-rc.1.tgz", PackageRequest("@types/node", "node-1.0.0-rc.1.tgz")),
            ("/pnpm/latest", PackageRequest("pnpm", "", "latest")),
            ("/@types/node/1.0.0", PackageRequest("@types/node", "", "1.0.0")),
        ):
            self.assertEqual(read_path(path), wanted, path)

    def test_other_requests_are_not(self) -> None:
        for path in (
            *("/", "", "//x", "/-/v1/search", "/-/user/org.couchdb.user:x", "/-/whoami", "/-/package/x/dist-tags"),
            *("/x/", "/x/-rev/1", "/x/-/y/z.tgz", "/../x", "/x/%2e%2e", "/..%2fx", "/x%00", "/x%0d%0a", "/x%25"),
            *("/%ff", "/-", "/-/-/--1.0.0.tgz", "/%2d/whoami"),
            *("/@a/b/-/../../x.tgz", "/@a%2f..%2fb", "/.x", "/x\\y", "/x;y", "/" + "a" * 215, "/@a", "/@a/b/c/d"),
            "/x/-/%2e%2e%2fy.tgz",
        ):
            self.assertIsNone(read_path(path), path)

    @given(NAMES)
    def test_own_paths_are_read_back(self, name: str) -> None:
        self.assertEqual(read_path(packument_path(name)), PackageRequest(name))
        file = f"{name.rpartition('/')[2]}-1.0.0.tgz"
        self.assertEqual(read_path(tarball_path(name, "1.0.0")), PackageRequest(name, file))

    @given(st.text(max_size=40))
    def test_what_is_understood_holds_nothing_that_leads_elsewhere(self, text: str) -> None:
        request = read_path("/" + quote(text))
        if request is not None:
            for part in (*request.name.split("/"), request.file, request.version):
                self.assertFalse(part.startswith("."), part)
                self.assertFalse(set(part) & set("/\\%?#\r\n\0 "), part)

    def test_advisories_and_signatures_are_quiet(self) -> None:
        for path in (
            "security/advisories/bulk",
            "security/audits",
            "security/audits/quick",
            "attestations/x@1",
            "keys",
        ):
            self.assertIsNotNone(QUIET.fullmatch(f"/-/npm/v1/{path}"))
        for path in ("/-/npm/v1/tokens", "/-/npm/v1/user", "/-/npm/v1/security/advisories/bulk/x", "/x"):
            self.assertIsNone(QUIET.fullmatch(path))

from __future__ import annotations

from datetime import timedelta

from twisted.internet.defer import Deferred

from ironcurtain.providers.provider import RequestRefusal
from ironcurtain.registries.releases import Release, hex_digest
from ironcurtain.registries.verifying import HELD_BACK, WrongDigest
from tests.registries.upstream import OLD, RegistryTestCase, sha256, whole

URL = "https://files.example/x-1.zip"


class DeliveryTests(RegistryTestCase):
    """Files whose content is not what their digest says."""

    name, normalise = "pypi", staticmethod(str)

    def setUp(self) -> None:
        super().setUp()
        self.opened = self.store()

    def deliver(self, content: bytes) -> Deferred[bytes | RequestRefusal]:
        """:returns: the file, whose digest is that of other content, or why it is refused."""
        self.upstream.contents[URL] = content
        release = Release("x", "1", "x-1.zip", OLD, hex_digest("sha256", sha256(b"other")), URL)

        async def read() -> bytes | RequestRefusal:
            answer = await self.opened.deliver(release, "application/zip")
            return answer if isinstance(answer, RequestRefusal) else await whole(answer)

        return Deferred.fromCoroutine(read())

    def why(self, content: bytes) -> str:
        """:returns: why the file is refused."""
        refusal = self.successResultOf(self.deliver(content))
        assert isinstance(refusal, RequestRefusal), refusal
        return refusal.reason

    def test_a_small_file_is_refused_before_the_response_begins(self) -> None:
        self.assertIn("the file has the digest", self.why(b"wrong"))
        (record,) = [record for record in self.records("package-request") if record["decision"] == "deny"]
        self.assertEqual((record["file"], record["rule"]), ("x-1.zip", "package-unusable"))

    def test_a_large_file_breaks_off_before_its_end_and_is_refused_for_a_while(self) -> None:
        self.failureResultOf(self.deliver(b"wrong" * HELD_BACK), WrongDigest)
        self.assertEqual(len(self.upstream.asked), 1)
        self.assertIn("the file has the digest", self.why(b"wrong" * HELD_BACK))
        self.assertEqual(len(self.upstream.asked), 1)
        self.now += timedelta(minutes=6)
        self.assertEqual(self.successResultOf(self.deliver(b"other")), b"other")

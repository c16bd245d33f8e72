"""What is advised about images that cannot be built, for words that Engines really said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.build_advice import CLASSIC, NO_NAMES, NO_NETWORK, ROOM, advice

MOUNT = (
    "the --mount option requires BuildKit. Refer to https://docs.docker.com/go/buildkit/ to learn how to build images"
    " with BuildKit enabled"
)


class AdviceTests(SynchronousTestCase):
    def test_a_step_without_a_network_is_told_how_to_get_one(self) -> None:
        for said in (
            "  Temporary failure resolving 'deb.debian.org'",
            "curl: (6) Could not resolve host: example.com",
            "npm error code EAI_AGAIN",
            "wget: bad address 'example.com'",
        ):
            self.assertEqual(advice(said, "FROM x", "none"), NO_NETWORK)
            self.assertEqual(advice(said, "FROM x", "default"), NO_NAMES)
            self.assertEqual(advice(said, "FROM x", "host"), "")

    def test_what_only_buildkit_knows_is_explained(self) -> None:
        self.assertEqual(advice(MOUNT, "FROM x\nRUN --mount=type=cache,target=/x true", "none"), CLASSIC)
        wrong = "dockerfile parse error line 3: unknown instruction: ECHO"
        self.assertEqual(advice(wrong, "FROM x\nRUN <<EOF\necho hi\nEOF\n", "none"), CLASSIC)
        self.assertEqual(advice(wrong, "FROM x\nECHO hi\n", "none"), "")

    def test_a_full_disk_is_explained(self) -> None:
        self.assertEqual(advice("write /x: no space left on device", "FROM x", "none"), ROOM)

    def test_an_image_without_apt_is_named_if_agents_images_stand_on_it(self) -> None:
        for said in ("/bin/sh: apt-get: not found", 'exec: "/bin/sh": stat /bin/sh: no such file or directory'):
            self.assertIn("; alpine:3 has not.", advice(said, "", "default", "alpine:3"))
            self.assertEqual(advice(said, "", "default"), "")

    @given(st.text(), st.text(), st.sampled_from(("none", "default", "host")))
    def test_any_words_are_read(self, said: str, dockerfile: str, network: str) -> None:
        self.assertIsInstance(advice(said, dockerfile, network), str)

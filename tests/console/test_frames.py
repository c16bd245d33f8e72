"""Examples of what a person sees on the console."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.console.frames import SIZES, picture_file, pictures


class PictureTests(SynchronousTestCase):
    """Run ``python -m tests.console.frames`` after a change, and look at the difference."""

    maxDiff = None

    def test_examples(self) -> None:
        for size in SIZES:
            self.assertEqual(pictures(size), picture_file(size).read_text(), size)

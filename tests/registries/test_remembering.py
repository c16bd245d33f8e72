from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.registries.remembering import REMEMBERED_FILES, REMEMBERED_SECONDS, Remembered


class RememberedTests(SynchronousTestCase):
    def test_files_are_known_for_a_while(self) -> None:
        known = Remembered[int]()
        known.put("x", {"a": 1}, 1000.0)
        self.assertEqual(known.get("x", 1000.0 + REMEMBERED_SECONDS - 1), {"a": 1})
        self.assertIsNone(known.get("x", 1000.0 + REMEMBERED_SECONDS))
        self.assertIsNone(known.get("y", 1000.0))

    def test_the_oldest_packages_are_forgotten_beyond_the_limit(self) -> None:
        known = Remembered[int]()
        half = {str(number): number for number in range(REMEMBERED_FILES // 2)}
        for name in ("x", "y", "x"):
            known.put(name, half, 0.0)
        known.put("z", {"a": 1}, 0.0)
        self.assertEqual([name for name in "xyz" if known.get(name, 0.0) is not None], ["x", "z"])

    def test_a_package_with_many_files_is_known(self) -> None:
        known = Remembered[int]()
        known.put("x", {}, 0.0)
        known.put("y", {str(number): number for number in range(REMEMBERED_FILES + 1)}, 0.0)
        self.assertIsNone(known.get("x", 0.0))
        self.assertIsNotNone(known.get("y", 0.0))

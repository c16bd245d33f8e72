from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container_agent.packages import NAMED, Packages
from ironcurtain.registries.recording import PackageFetched, PackageRefused
from ironcurtain.session import events


class PackagesTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.events: list[events.SessionEvent] = []
        self.packages = Packages(self.events.append, lambda source, line: None)

    def fetch(self, name: str, version: str, registry: str = "npm") -> None:
        self.packages.heard(PackageFetched(registry, name, version, "f", "sha512-x", 3, True))

    def test_packages_are_told_as_they_arrive_and_at_the_end(self) -> None:
        self.fetch("left-pad", "1.3.0")
        self.fetch("left-pad", "1.3.0")
        self.fetch("requests", "2.0", "pypi")
        self.assertEqual(
            self.events[0],
            events.PackageInstalled(registry="npm", name="left-pad", version="1.3.0", digest="sha512-x"),
        )
        del self.events[:]
        self.packages.tell()
        self.packages.tell()
        self.assertEqual(
            self.events,
            [
                events.Notice(text="1 package fetched from npm: left-pad 1.3.0"),
                events.Notice(text="1 package fetched from pypi: requests 2.0"),
            ],
        )

    def test_a_long_list_is_cut(self) -> None:
        for i in range(NAMED + 3):
            self.fetch("x", str(i))
        del self.events[:]
        self.packages.tell()
        notice = self.events[0]
        assert isinstance(notice, events.Notice)
        self.assertIn(f"{NAMED + 3} packages fetched from npm: x 0, x 1,", notice.text)
        self.assertTrue(notice.text.endswith(f", x {NAMED - 1} and 3 more (see the audit log)"))

    def test_each_refused_package_is_told_once(self) -> None:
        for version in ("1", "1", "2"):
            self.packages.heard(PackageRefused("npm", "new", version, "package-too-young", "too young"))
        hosts = [event.host for event in self.events if isinstance(event, events.RequestRefused)]
        self.assertEqual(hosts, ["npm: new 1", "npm: new 2"])

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.doctor_docker import docker_findings
from ironcurtain.container.errors import EngineUnavailable


class DockerTests(SynchronousTestCase):
    def test_the_way_to_the_proxies_is_named(self) -> None:
        for sockets, words in (("auto", "or a sidecar where"), ("unix", "use sockets of this"), ("tcp", "by TCP")):
            [finding] = docker_findings({"ServerVersion": "99", "SecurityOptions": ["name=seccomp"]}, sockets)
            self.assertEqual(finding.state, "ok")
            self.assertIn(words, finding.detail)

    def test_a_missing_engine_and_its_shortcomings_are_hints(self) -> None:
        for info in (EngineUnavailable("unix:///s", "nobody"), {"MemoryLimit": False, "SecurityOptions": ["name=x"]}):
            self.assertIn("hint", [finding.state for finding in docker_findings(info, "auto")])

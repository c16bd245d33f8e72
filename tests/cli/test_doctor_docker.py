from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.cli.doctor_docker import INSTALL, OTHER_HOST, docker_findings
from ironcurtain.container.docker_context import DockerContext
from ironcurtain.container.errors import EngineUnavailable
from ironcurtain.errors import ConfigurationError


class DockerTests(SynchronousTestCase):
    def test_the_way_to_the_proxies_is_named(self) -> None:
        for sockets, words in (("auto", "or a sidecar where"), ("unix", "use sockets of this"), ("tcp", "by TCP")):
            [finding] = docker_findings({"ServerVersion": "99", "SecurityOptions": ["name=seccomp"]}, sockets)
            self.assertEqual(finding.state, "ok")
            self.assertIn(words, finding.detail)

    def test_what_to_do_depends_on_why_the_engine_does_not_answer(self) -> None:
        usual, own = "unix:///var/run/docker.sock", DockerContext("mine", "unix:///run/user/1/docker.sock")
        far = DockerContext("far", "ssh://me@host")
        for address, why, context, mend in (
            (usual, "No such file or directory", None, INSTALL),
            (usual, "Permission denied", None, "Let your account use its socket"),
            (usual, "Connection refused", None, "Start it: "),
            ("tcp://10.0.0.1:2375", "DOCKER_HOST has to be unix:///...", None, OTHER_HOST),
            (usual, "No such file or directory", own, "use that one, too: export DOCKER_HOST=unix:///run/user/1/"),
            (usual, "No such file or directory", far, "docker uses its context far at ssh://me@host, but"),
        ):
            [finding] = docker_findings(EngineUnavailable(address, why), "auto", context)
            self.assertEqual(finding.state, "hint")
            self.assertIn(mend, finding.mend)

    def test_settings_that_docker_cannot_read_are_named(self) -> None:
        finding, other = docker_findings(
            {"ServerVersion": "99", "SecurityOptions": ["name=seccomp"]},
            "auto",
            ConfigurationError("config.json", "is X"),
        )
        self.assertEqual((finding.state, finding.detail[-17:], other.state), ("hint", "config.json: is X", "ok"))

    def test_podman_is_told_from_docker(self) -> None:
        info = {"ServerVersion": "4.3.1", "SecurityOptions": ["name=seccomp"], "BuildahVersion": "1.28.2"}
        _, finding = docker_findings(info, "auto")
        self.assertEqual((finding.state, finding.detail[:10]), ("hint", "is Podman,"))

    def test_a_missing_engine_and_its_shortcomings_are_hints(self) -> None:
        for info in (EngineUnavailable("unix:///s", "nobody"), {"MemoryLimit": False, "SecurityOptions": ["name=x"]}):
            self.assertIn("hint", [finding.state for finding in docker_findings(info, "auto")])

"""The example for Kubernetes in the documentation."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.fleet.server_files import permissions
from tests.audit.doubles import scratch

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "fleet-kubernetes"


def read(name: str) -> Any:
    return yaml.safe_load((EXAMPLE / name).read_text())


class ExampleTests(SynchronousTestCase):
    def test_server_permits_a_host_what_fleet_add_permits_it(self) -> None:
        values = read("nats-values.yaml")
        (user,) = values["config"]["merge"]["accounts"]["FLEET"]["users"]
        self.assertEqual(user["permissions"], permissions(user["user"]))
        self.assertTrue(values["config"]["nats"]["tls"]["enabled"] and values["config"]["jetstream"]["enabled"])
        variable = user["password"].removeprefix("<< $").removesuffix(" >>")
        self.assertEqual(values["container"]["env"][variable]["valueFrom"]["secretKeyRef"]["key"], user["user"])

    def test_members_mount_what_is_there_and_keep_their_homes(self) -> None:
        found = read("members.yaml")
        spec = found["spec"]["template"]["spec"]
        self.assertEqual((found["kind"], found["apiVersion"]), ("DaemonSet", "apps/v1"))
        self.assertEqual(found["spec"]["selector"]["matchLabels"], found["spec"]["template"]["metadata"]["labels"])
        volumes = {each["name"]: each for each in spec["volumes"]}
        for container in (*spec["initContainers"], *spec["containers"]):
            self.assertEqual({each["name"] for each in container["volumeMounts"]} - volumes.keys(), set())
        self.assertIn("hostPath", volumes["home"])

    def test_home_that_the_init_container_makes_is_one_of_a_member(self) -> None:
        top = scratch(self)
        (top / "members").mkdir(parents=True)
        for name in ("node-1.credentials", "fleet.trust"):
            (top / "members" / name).write_text(name)
        (first,) = read("members.yaml")["spec"]["template"]["spec"]["initContainers"]
        shell, option, script = first["command"]
        script = script.replace("/members/", f"{top}/members/")
        for _ in range(2):
            environ = {"PATH": "/usr/bin:/bin", "NODE": "node-1", "IRONCURTAIN_HOME": str(top / "home")}
            subprocess.run([shell, option, script], env=environ, check=True)
        table = tomllib.loads((top / "home" / "config.toml").read_text())
        self.assertEqual(table, {"version": 1, "fleet": {"credentials": "fleet.credentials"}})
        self.assertEqual((top / "home" / "fleet.credentials").read_text(), "node-1.credentials")
        self.assertEqual((top / "home" / "fleet.trust").stat().st_mode & 0o777, 0o600 & ~0o077)

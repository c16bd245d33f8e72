from __future__ import annotations

import shutil
import socket
import tempfile
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.errors import ContainerDied
from ironcurtain.container.probe import judge_description, judge_kernel, judge_sockets
from ironcurtain.container.spec import ContainerSpec, Mount
from tests.container.support import SPEC

ID = "0123456789abcdef" * 4


def specification(*mounts: Mount) -> ContainerSpec:
    """:returns: a container with these mounts."""
    return replace(SPEC, uid=1000, gid=1001, mounts=mounts)


def described(spec: ContainerSpec) -> dict[str, Any]:
    """:returns: what an Engine says that did as it was told."""
    request = spec.create_request()
    none: dict[str, Any] = {"Devices": [], "CapAdd": None, "PidMode": "", "Binds": None, "PortBindings": {}}
    return {
        "HostConfig": {**request["HostConfig"], **none},
        "Config": {"User": request["User"]},
        "Mounts": [
            {"Type": "bind", "Source": m.source, "Destination": m.target, "RW": not m.read_only} for m in spec.mounts
        ],
        "NetworkSettings": {"Networks": {"none": {}}},
    }


class DescriptionTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.spec = specification(Mount("/w", "/workspace", read_only=False), Mount("/s", "/run/ironcurtain"))
        self.said = described(self.spec)

    def problems(self) -> str:
        return "; ".join(f.problem for f in judge_description(self.said, self.spec) if f.problem)

    def test_as_ordered(self) -> None:
        self.assertEqual(self.problems(), "")

    def test_every_difference_shows(self) -> None:
        for name, value in (
            ("NetworkMode", "host"), ("Privileged", True), ("ReadonlyRootfs", False), ("CapDrop", []),
            ("CapAdd", ["SYS_ADMIN"]), ("PidMode", "host"), ("UsernsMode", "host"), ("IpcMode", "shareable"),
            ("Memory", 0), ("MemorySwap", -1), ("NanoCpus", 0), ("PidsLimit", None), ("Devices", [{"PathOnHost": "/"}]),
            ("SecurityOpt", ["no-new-privileges", "seccomp=unconfined"]), ("SecurityOpt", None),
            ("Binds", ["/:/host"]), ("GroupAdd", ["0"]), ("Tmpfs", {}),
        ):  # fmt: skip
            self.setUp()
            self.said["HostConfig"][name] = value
            self.assertIn(name, self.problems())

    def test_the_user(self) -> None:
        self.said["Config"]["User"] = ""
        self.assertIn("User is", self.problems())

    def test_a_volume_that_the_image_brought_along(self) -> None:
        volume = {"Type": "volume", "Source": "/var/lib/docker/volumes/x", "Destination": "/data", "RW": True}
        self.said["Mounts"].append(volume)
        self.assertIn("/data, which is unexpected", self.problems())

    def test_a_mount_that_can_be_written(self) -> None:
        self.said["Mounts"][1]["RW"] = True
        self.assertIn("/run/ironcurtain", self.problems())

    def test_a_second_network(self) -> None:
        self.said["NetworkSettings"]["Networks"]["bridge"] = {}
        self.assertIn("bridge", self.problems())


class KernelTests(SynchronousTestCase):
    """Against a directory that looks like ``/proc``."""

    def setUp(self) -> None:
        self.proc = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.proc)
        for name, number in (("self", 1), ("77", 2)):
            (self.proc / name / "ns").mkdir(parents=True)
            for kind in ("ipc", "mnt", "net", "pid", "uts"):
                (self.proc / name / "ns" / kind).symlink_to(f"{kind}:[{number}]")
        (self.proc / "77" / "cgroup").write_text(f"0::/system.slice/docker-{ID}.scope\n")
        self.status("0000000000000000", "1", "2")

    def status(self, capabilities: str, no_new: str, seccomp: str) -> None:
        lines = [f"{name}:\t{capabilities}" for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")]
        lines += [f"NoNewPrivs:\t{no_new}", f"Seccomp:\t{seccomp}"]
        (self.proc / "77" / "status").write_text("\n".join(lines))

    def problems(self) -> str:
        findings = judge_kernel(ID, 77, self.proc)
        self.assertEqual(len(findings), 2)
        return "; ".join(f.problem for f in findings if f.problem)

    def test_as_it_should_be(self) -> None:
        self.assertEqual(self.problems(), "")

    def test_one_that_ends_meanwhile_has_died(self) -> None:
        shutil.rmtree(self.proc / "77" / "ns")
        (self.proc / "77" / "status").unlink()
        with self.assertRaises(ContainerDied):
            judge_kernel(ID, 77, self.proc)

    def test_rights(self) -> None:
        for values in (("0000000000000001", "1", "2"), ("0000000000000000", "0", "2"), ("0000000000000000", "1", "0")):
            self.status(*values)
            self.assertIn("the kernel says", self.problems())

    def test_a_namespace_of_ours(self) -> None:
        (self.proc / "77" / "ns" / "net").unlink()
        (self.proc / "77" / "ns" / "net").symlink_to("net:[1]")
        self.assertEqual(self.problems(), "it shares the net namespace with this machine")

    def test_a_process_of_another_machine_says_nothing(self) -> None:
        self.assertEqual(judge_kernel(ID, 78, self.proc), ())
        self.assertEqual(judge_kernel(ID[::-1], 77, self.proc), ())
        self.assertEqual(judge_kernel(ID, 0, self.proc), ())


class SocketTests(SynchronousTestCase):
    """Programs of this machine that listen inside what is mounted."""

    def setUp(self) -> None:
        self.directory = Path(tempfile.mkdtemp(prefix="ic-"))
        self.addCleanup(shutil.rmtree, self.directory)
        (self.directory / "sub dir").mkdir()
        (self.directory / "link").symlink_to("sub dir")

    def problem(self, below: str = "") -> str:
        return judge_sockets([str(self.directory / below)]).problem

    def listen(self, path: str) -> None:
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind(str(self.directory / path))
        listener.listen()

    def test_none(self) -> None:
        self.assertEqual(self.problem(), "")
        self.listen("outside.sock")
        self.assertEqual(self.problem(below="sub dir"), "")

    def test_one(self) -> None:
        self.listen("link/engine.sock")
        for below in ("", "sub dir", "link"):
            self.assertIn(f"{self.directory}/sub dir/engine.sock", self.problem(below=below))

    def test_one_that_is_mounted_itself(self) -> None:
        self.listen("engine.sock")
        self.assertIn("listens on", self.problem(below="engine.sock"))

    def test_the_file_of_one_that_has_ended_is_harmless(self) -> None:
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(str(self.directory / "old.sock"))
        listener.close()
        self.assertEqual(self.problem(), "")

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.spec import ContainerSpec, Mount, group_text, mounts, passwd_text
from ironcurtain.errors import UsageError
from ironcurtain.sandbox.container_calls import profile
from tests.container.support import SPEC

texts = st.text(max_size=20)
specs = st.builds(
    ContainerSpec,
    name=texts,
    image=texts,
    command=st.lists(texts, max_size=3).map(tuple),
    uid=st.integers(1, 2**32 - 2),
    gid=st.integers(0, 2**32 - 2),
    environment=st.dictionaries(texts, texts, max_size=3),
    mounts=st.just((Mount("/a", "/b"), Mount("/c", "/d", read_only=False))),
    tmpfs_mb=st.integers(0, 100),
    memory_mb=st.integers(256, 2**20),
    cpus=st.floats(0.01, 64),
    pids=st.integers(16, 100000),
    labels=st.dictionaries(texts, texts, max_size=3),
    tty=st.booleans(),
)


def host(spec: ContainerSpec) -> dict[str, Any]:
    """:returns: the part of the request that keeps the agent in."""
    value: dict[str, Any] = spec.create_request()["HostConfig"]
    return value


class RequestTests(SynchronousTestCase):
    @given(specs)
    def test_whatever_is_asked_for_it_stays_closed(self, spec: ContainerSpec) -> None:
        request, fixed = spec.create_request(), host(spec)
        self.assertEqual(fixed["NetworkMode"], "none")
        self.assertEqual(fixed["CapDrop"], ["ALL"])
        self.assertEqual(fixed["SecurityOpt"], ["no-new-privileges", f"seccomp={profile()}"])
        self.assertIs(fixed["ReadonlyRootfs"], True)
        self.assertIs(fixed["Init"], True)
        self.assertIs(fixed["Privileged"], False)
        self.assertEqual((fixed["IpcMode"], fixed["CgroupnsMode"]), ("private", "private"))
        self.assertEqual(fixed["Memory"], fixed["MemorySwap"])
        self.assertGreater(fixed["PidsLimit"], 0)
        self.assertGreater(fixed["NanoCpus"], 0)
        for name in ("Devices", "CapAdd", "UsernsMode", "PidMode", "Binds", "VolumesFrom", "PortBindings"):
            self.assertNotIn(name, fixed)
        self.assertNotEqual(request["User"].split(":")[0], "0")

    @given(specs)
    def test_equal_specifications_give_equal_requests(self, spec: ContainerSpec) -> None:
        self.assertEqual(replace(spec).create_request(), spec.create_request())

    def test_numbers_in_the_units_of_the_engine(self) -> None:
        fixed = host(replace(SPEC, memory_mb=4096, cpus=1.5, pids=512, tmpfs_mb=1024))
        self.assertEqual((fixed["Memory"], fixed["NanoCpus"], fixed["PidsLimit"]), (4 * 2**30, 1_500_000_000, 512))
        self.assertEqual(fixed["Tmpfs"], {"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=1024m"})

    def test_a_terminal_is_not_logged_and_other_output_little(self) -> None:
        self.assertEqual(host(replace(SPEC, tty=True))["LogConfig"], {"Type": "none"})
        self.assertEqual(host(SPEC)["LogConfig"]["Config"], {"max-size": "256k", "max-file": "1"})

    def test_what_an_image_asks_for_is_overridden(self) -> None:
        request = SPEC.create_request()
        self.assertEqual(request["Healthcheck"], {"Test": ["NONE"]})
        self.assertEqual((request["StopSignal"], request["WorkingDir"]), ("SIGTERM", "/workspace"))
        elsewhere = replace(SPEC, directory="/home/me/project").create_request()
        self.assertEqual(elsewhere["WorkingDir"], "/home/me/project")

    def test_paths_with_any_character(self) -> None:
        [bind] = host(replace(SPEC, mounts=(Mount("/a:b,c d\n", "/workspace", read_only=False),)))["Mounts"]
        self.assertEqual((bind["Type"], bind["Source"], bind["ReadOnly"]), ("bind", "/a:b,c d\n", False))


class RefusalTests(SynchronousTestCase):
    def refused(self, **changes: Any) -> str:
        with self.assertRaises(UsageError) as caught:
            replace(SPEC, **changes)
        return str(caught.exception)

    def test_root(self) -> None:
        self.assertIn("run_as", self.refused(uid=0))
        self.refused(uid=-1)
        self.refused(gid=-1)

    def test_memory_that_does_not_hold_its_own_file_system(self) -> None:
        self.assertIn("256 MiB", self.refused(memory_mb=256, tmpfs_mb=192))

    def test_mounts_over_what_keeps_the_agent_in(self) -> None:
        for target in (
            "/", "/proc", "/proc/sys", "/sys/fs", "/dev", "/dev/sda", "/tmp", "/tmp/x", "workspace", "", "/a/../proc",
            "//proc", "/./proc", "/proc/", "/workspace/..",
        ):  # fmt: skip
            self.assertIn(repr(target), self.refused(mounts=(Mount("/a", target),)), target)
        self.refused(mounts=(Mount("a", "/workspace"),))
        self.refused(mounts=(Mount("/a", "/workspace"), Mount("/b", "/workspace")))


class LayoutTests(SynchronousTestCase):
    def test_only_workspace_and_home_can_be_written(self) -> None:
        made = mounts(
            workspace="/w",
            places=("/p/own", "/workspace"),
            home="/h",
            sockets="/s",
            orientation="/o",
            passwd="/p",
            group="/g",
        )
        self.assertEqual([m.target for m in made if not m.read_only], ["/p/own", "/workspace", "/home/agent"])
        self.assertEqual(
            [m.target for m in made if m.read_only],
            ["/run/ironcurtain", "/etc/ironcurtain", "/etc/passwd", "/etc/group"],
        )
        replace(SPEC, mounts=made)

    def test_accounts(self) -> None:
        self.assertEqual(passwd_text(5, 6).splitlines()[1], "agent:x:5:6:agent:/home/agent:/bin/sh")
        self.assertEqual(group_text(6), "root:x:0:\nagent:x:6:\n")
        self.assertEqual(group_text(0), "agent:x:0:\n")

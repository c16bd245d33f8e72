from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.container.inside import judge_inside, parse
from ironcurtain.container.spec import Mount
from tests.container.support import SPEC

ORDERED = replace(
    SPEC,
    uid=1000,
    gid=1001,
    mounts=(Mount("/w", "/workspace", read_only=False), Mount("/s", "/run/ironcurtain"), Mount("/p", "/etc/passwd")),
)

CLOSED = """\
status Uid 	1000	1000	1000	1000
status Gid 	1001	1001	1001	1001
status Groups 	1001 \n\
status CapInh 	0000000000000000
status CapPrm 	0000000000000000
status CapEff 	0000000000000000
status CapBnd 	0000000000000000
status CapAmb 	0000000000000000
status NoNewPrivs 	1
status Seccomp 	2
mount 109 62 0:49 / / ro,relatime master:3 - overlay overlay rw,lowerdir=/a:/b
mount 110 109 0:52 / /proc rw,nosuid,nodev,noexec,relatime - proc proc rw
mount 111 109 0:53 / /dev rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
mount 112 111 0:54 / /dev/pts rw,nosuid,noexec,relatime - devpts devpts rw,gid=5,mode=620
mount 113 109 0:55 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro
mount 114 113 0:56 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup rw
mount 126 109 254:0 /usr/bin/tini /sbin/docker-init ro,relatime - ext4 /dev/vda rw
mount 127 109 0:58 / /tmp rw,nosuid,nodev,relatime - tmpfs tmpfs rw,size=65536k
mount 128 109 254:0 /x/hosts /etc/hosts ro,relatime - ext4 /dev/vda rw
mount 129 109 254:0 /w /workspace rw,relatime - ext4 /dev/vda rw
mount 130 109 254:0 /s /run/ironcurtain ro,relatime - ext4 /dev/vda rw
mount 131 109 254:0 /p /etc/passwd ro,relatime - ext4 /dev/vda rw
mount 66 110 0:52 /sys /proc/sys ro,nosuid,nodev,noexec,relatime - proc proc rw
mount 68 110 0:53 /null /proc/keys rw,nosuid - tmpfs tmpfs rw,size=65536k,mode=755
interface lo
route lo
device /dev/null
device /dev/pts/0
socket /run/ironcurtain/proxy.sock
write / sh: can't create //.ironcurtain-probe: Read-only file system
write /etc sh: 1: cannot create /etc/.ironcurtain-probe: Read-only file system
namespaces refused
limit memory 268435456
limit pids 64
end
"""


def problems(output: str) -> dict[str, str]:
    """:returns: what is wrong, by what was looked at."""
    return {f.what: f.problem for f in judge_inside(parse(output), ORDERED) if f.problem}


class JudgementTests(SynchronousTestCase):
    def found(self, what: str, problem: str, *, add: str = "", change: tuple[str, str] = ("", "")) -> None:
        self.assertIn(change[0], CLOSED)
        got = problems(add + CLOSED.replace(*change) if change[0] else add + CLOSED)
        self.assertEqual(list(got), [what], got)
        self.assertIn(problem, got[what])

    def test_a_closed_container(self) -> None:
        self.assertEqual(problems(CLOSED), {})

    def test_user(self) -> None:
        self.found(
            "user",
            "its uid is 1000 0 1000 1000, not 1000",
            change=("1000	1000	1000	1000", "1000	0	1000	1000"),
        )
        self.found("user", "its gid", change=("1001	1001	1001	1001", "0	0	0	0"))
        self.found("user", "other groups: 0", change=("Groups 	1001", "Groups 	1001 0"))

    def test_capabilities(self) -> None:
        for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
            self.found("capabilities", name, change=(f"{name} 	0000000000000000", f"{name} 	00000000a80425fb"))

    def test_privileges(self) -> None:
        self.found("privileges", "no-new-privileges", change=("NoNewPrivs 	1", "NoNewPrivs 	0"))
        self.found("privileges", "seccomp", change=("Seccomp 	2", "Seccomp 	0"))
        self.found("namespaces", "can create namespaces", change=("namespaces refused", "namespaces allowed"))

    def test_network(self) -> None:
        self.found("network", "interfaces: eth0 lo", add="interface eth0\n")
        self.found("network", "routes over eth0", add="route eth0\n")

    def test_root_file_system(self) -> None:
        self.found("root file system", "not mounted read-only", change=("/ / ro,", "/ / rw,"))
        self.found("root file system", "writing to /usr ended with: written", add="write /usr written\n")
        self.found("root file system", "Permission denied", add="write /usr sh: x: Permission denied\n")

    def test_mounts(self) -> None:
        disk = "9 109 254:0 /x {} {},relatime - {} /dev/vda rw\n"
        for target, mode, kind in (
            ("/var/run/docker.sock", "ro", "ext4"),
            ("/data", "rw", "tmpfs"),
            ("/proc/x", "ro", "ext4"),
            ("/sys/x", "rw", "sysfs"),
            ("/dev/shm", "rw", "ext4"),
            ("/workspace/sub", "rw", "ext4"),
            ("/etc/hosts", "rw", "ext4"),
            ("/tmp/x", "rw", "tmpfs"),
            ("/tmp", "rw", "ext4"),
            ("/a\\040b", "rw", "ext4"),
        ):
            line = "mount " + disk.format(target, mode, kind)
            self.found("mounts", f"mount at {target}".replace("\\040", " "), add=line)
        self.found("mounts", "/run/ironcurtain is writable", change=("/run/ironcurtain ro", "/run/ironcurtain rw"))
        self.found("mounts", "nothing is mounted at /workspace", change=("mount 129", "moved 129"))

    def test_the_first_process_of_the_engine(self) -> None:
        for place in ("/usr/sbin", "/usr/bin"):
            self.assertEqual(problems(CLOSED.replace("/sbin/docker-init", f"{place}/docker-init")), {})
        self.found("mounts", "/sbin/docker-init", change=("docker-init ro", "docker-init rw"))

    def test_files_that_a_rootless_engine_hides(self) -> None:
        rootless = "mount 166 110 0:6 /null /proc/timer_list rw,relatime - devtmpfs devtmpfs rw,mode=755\n"
        self.assertEqual(problems(rootless + CLOSED), {})
        for other in (rootless.replace("/null", "/sda"), rootless.replace("/proc/timer_list", "/data")):
            self.found("mounts", "unexpected mount", add=other)

    def test_devices(self) -> None:
        for path in ("/dev/sda", "/dev/kvm", "/dev/net/tun", "/dev/fuse", "/dev/mem"):
            self.found("devices", path, add=f"device {path}\n")

    def test_sockets(self) -> None:
        for path in ("/var/run/docker.sock", "/run/ironcurtain/other.sock", "/run/containerd/containerd.sock"):
            self.found("sockets", path, add=f"socket {path}\n")

    def test_limits(self) -> None:
        self.found("limits", "memory is max", change=("limit memory 268435456", "limit memory max"))
        self.found("limits", "memory is 9223372036854771712", change=("memory 268435456", "memory 9223372036854771712"))
        self.found("limits", "pids is max", change=("limit pids 64", "limit pids max"))

    def test_older_control_groups(self) -> None:
        older = "mount 114 113 0:56 / /sys/fs/cgroup rw,nosuid - tmpfs tmpfs rw,mode=755\n"
        older += "mount 115 114 0:29 / /sys/fs/cgroup/cpu ro,nosuid - cgroup cgroup rw,cpu\n"
        self.assertEqual(problems(older + CLOSED), {})
        self.found("mounts", "cgroup/cpu", add=older.replace("cpu ro", "cpu rw"))


class MissingTests(SynchronousTestCase):
    """What was not said is not taken to be well."""

    def test_each_kind_of_line_is_needed(self) -> None:
        optional = {"route", "socket"}
        lines = CLOSED.splitlines(keepends=True)
        for word in {line.split()[0] for line in lines} - optional:
            self.assertTrue(problems("".join(line for line in lines if not line.startswith(word))), word)
        for name in ("Uid", "Gid", "Groups", "CapInh", "CapBnd", "NoNewPrivs", "Seccomp"):
            self.assertTrue(problems("".join(line for line in lines if f" {name} " not in line)), name)

    @given(st.integers(0, len(CLOSED) - 5))
    def test_an_output_that_was_cut_short(self, length: int) -> None:
        self.assertIn("probe", problems(CLOSED[:length]))

    @given(st.text())
    def test_any_other_text(self, text: str) -> None:
        self.assertTrue(problems(text))
        problems(CLOSED + text)

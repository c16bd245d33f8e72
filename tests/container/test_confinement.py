"""What an agent may try in a container, with everything that a session mounts."""

from __future__ import annotations

import errno
import os
import socket

from twisted.internet.defer import Deferred

from ironcurtain.container.container import Container, ProgramEnded
from tests import engine as test_engine
from tests.container.support import Until
from tests.container.system_calls import connecting, program
from tests.container.test_container import ContainerCase, nothing
from tests.machine import UID

AF_UNIX, AF_INET, AF_INET6, AF_NETLINK, AF_PACKET, AF_ALG, AF_VSOCK, AF_XDP, AF_BLUETOOTH = (
    1,
    2,
    10,
    16,
    17,
    38,
    40,
    44,
    31,
)
STREAM, DATAGRAM, RAW = 1, 2, 3
NEW_USER = 0x10000000


class ConfinementCase(ContainerCase):
    """One container for all that a test tries."""

    async def started(self, **changes: object) -> Container:
        """:returns: a container that was probed."""
        container = self.container(self.session_spec(**changes))
        await container.start()
        return container

    async def tried(self, container: Container, script: str) -> ProgramEnded:
        """:returns: how a script ended; nobody waits for its output."""
        line = ("sh", "-c", script)
        return await container.run(line, stdin=b"", stdout=nothing, stderr=nothing, environment={})

    async def statuses(self, container: Container, *programs: bytes) -> list[int]:
        """:returns: how programs end, one after the other."""
        for number, code in enumerate(programs):
            path = self.directory / "workspace" / str(number)
            path.write_bytes(code)
            path.chmod(0o755)
        script = f'i=0; while [ $i -lt {len(programs)} ]; do "/workspace/$i"; echo $?; i=$((i + 1)); done'
        said = await self.said(container, script)
        return [int(line) for line in said.split()]

    async def refused(self, container: Container, *scripts: str) -> None:
        """Check that each of these fails."""
        out = bytearray()
        line = ("sh", "-c", 'for each; do sh -c "$each" && echo "succeeded: $each"; done; echo all', "sh", *scripts)
        await container.run(line, stdin=b"", stdout=out.extend, stderr=nothing, environment={})
        said = out.decode().splitlines()
        self.assertEqual([line for line in said if line.startswith("succeeded: ") or line == "all"], ["all"])


class SystemCallTests(ConfinementCase):
    async def errors(self, *calls: tuple[object, ...]) -> list[str]:
        """:returns: the names of the errors that system calls end with."""
        container = await self.started()
        programs = [program(str(call), *(int(str(argument)) for argument in rest)) for call, *rest in calls]
        numbers = await self.statuses(container, *programs)
        return [errno.errorcode.get(number, str(number)) for number in numbers]

    async def test_sockets_of_the_usual_kinds_alone(self) -> None:
        usual = [(AF_UNIX, STREAM, 0), (AF_INET, STREAM, 0), (AF_INET6, DATAGRAM, 0), (AF_NETLINK, RAW, 0)]
        others = [
            (family, kind, 0)
            for family in (AF_VSOCK, AF_ALG, AF_PACKET, AF_XDP, AF_BLUETOOTH)
            for kind in (STREAM, DATAGRAM, RAW)
        ]
        others += [(AF_INET, RAW, 1), (AF_INET6, RAW, 1)]
        found = await self.errors(*(("socket", *each) for each in (*usual, *others)))
        self.assertEqual(found, ["0"] * len(usual) + ["EPERM"] * len(others))

    async def test_calls_that_lead_out_or_deep_into_the_kernel(self) -> None:
        refused = (
            ("unshare", NEW_USER), ("setns", 0), ("mount", 0), ("fsopen", 0), ("chroot", 0), ("io_uring_setup", 8, 0),
            ("bpf", 0), ("keyctl", 0), ("perf_event_open", 0), ("userfaultfd", 0), ("init_module", 0), ("reboot", 0),
            ("open_by_handle_at", 0), ("process_vm_readv", 1), ("pidfd_getfd", 0), ("personality", 0x0040000),
        )  # fmt: skip
        found = await self.errors(*refused, ("getpid",), ("clone3", 0), ("personality", 0xFFFFFFFF))
        self.assertEqual(found, ["EPERM"] * len(refused) + ["0", "ENOSYS", "0"])


class FileTests(ConfinementCase):
    async def test_only_what_is_the_agents_can_be_written(self) -> None:
        container = await self.started()
        places = ("/workspace", "/home/agent", "/tmp", "/dev/shm")
        self.assertEqual(await self.said(container, "; ".join(f"echo x >{place}/x" for place in places)), "")
        other = ("", "/etc", "/bin", "/var/tmp", "/run/ironcurtain", "/etc/ironcurtain", "/dev", "/proc/sys", "/sys")
        await self.refused(
            container,
            *(f"echo x >{place}/x" for place in other),
            "echo x >/etc/passwd",
            "echo x >/proc/sysrq-trigger",
            "echo x >/proc/sys/kernel/core_pattern",
            "mount -t tmpfs none /workspace",
            "mount -o remount,rw /",
            "umount /run/ironcurtain",
            "mknod /tmp/disk b 8 0",
            "chown 0 /tmp",
            "ip link set lo down",
            "ping -c 1 -W 1 127.0.0.1",
            "kill -9 1 && sleep 0.1 && kill -0 1 && false",
        )

    async def test_programs_in_tmp_can_be_run_but_give_no_rights(self) -> None:
        container = await self.started()
        said = await self.said(
            container, "cp /bin/busybox /tmp/id; chmod 6755 /tmp/id; /tmp/id -u; grep ' /tmp ' /proc/mounts"
        )
        self.assertIn(f"{UID}\n", said)
        self.assertIn("nosuid,nodev", said)
        self.assertNotIn("noexec", said)

    async def test_the_sockets_can_be_used_and_not_replaced(self) -> None:
        container = self.container(self.session_spec())
        listener = self.listen("sockets/proxy.sock")
        path = self.directory / "sockets" / "proxy.sock"
        os.chown(path, UID, UID) if os.geteuid() == 0 else None
        path.chmod(0o600)
        before = path.lstat()
        await container.start()
        where = "/run/ironcurtain/proxy.sock"
        await self.refused(
            container,
            f"rm {where}",
            f"mv {where} {where}.old",
            f"ln -sf /etc/passwd {where}",
            f"ln {where} /workspace/proxy.sock",
            "touch /run/ironcurtain/proxy.sock.lock",
            "mkdir /run/ironcurtain/x",
            "mv /run/ironcurtain /run/x",
            "rmdir /run/ironcurtain",
            "chmod 777 /run/ironcurtain",
        )
        self.assertEqual((path.lstat().st_ino, path.lstat().st_mode), (before.st_ino, before.st_mode))
        programs = connecting(where), connecting("/run/ironcurtain/other.sock")
        self.assertEqual(await self.statuses(container, *programs), [0, errno.ENOENT])
        listener.accept()[0].close()

    async def test_nothing_of_this_machine_can_be_seen(self) -> None:
        container = await self.started()
        said = await self.said(container, "cat /proc/1/cmdline; ls /proc; hostname; cat /proc/net/dev; env")
        self.assertNotIn(str(self.directory), said)
        self.assertNotIn(socket.gethostname(), said.split() if len(socket.gethostname()) < 4 else said)
        self.assertNotIn("eth0", said)


class LimitTests(ConfinementCase):
    """Limits hold, and this process does not notice."""

    async def test_processes(self) -> None:
        container = await self.started(pids=32)
        up = Until("fork")
        line = ("sh", "-c", "while :; do sleep 9000 & done")
        running = Deferred.fromCoroutine(container.run(line, stdin=b"", stdout=up, stderr=up, environment={}))
        await up.seen
        await running
        [processes] = test_engine.call("GET", f"/containers/{container.id}/top")
        self.assertIn(len(processes["Processes"]), range(28, 33))

    async def test_tmp(self) -> None:
        container = await self.started(tmpfs_mb=16)
        await self.refused(container, "head -c 17000000 /dev/zero >/tmp/full")
        self.assertEqual((await self.tried(container, "rm /tmp/full && echo x >/tmp/x")).status, 0)

    async def test_tmp_counts_as_memory(self) -> None:
        container = await self.started(tmpfs_mb=128, memory_mb=200)
        script = "head -c 120000000 /dev/zero >/tmp/a; tail -c 120000000 /dev/zero"
        self.assertTrue((await self.tried(container, script)).out_of_memory)

    async def test_memory(self) -> None:
        container = await self.started(memory_mb=96)
        self.assertEqual(await self.tried(container, "exec tail /dev/zero"), ProgramEnded(137, True))

    async def test_core_files_and_open_files(self) -> None:
        container = await self.started()
        self.assertEqual(await self.said(container, "ulimit -c; ulimit -n"), "0\n16384\n")

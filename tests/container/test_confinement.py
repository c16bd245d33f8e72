"""What an agent may try in a container, with everything that a session mounts."""

from __future__ import annotations

import errno
import os
import socket

from twisted.internet.defer import Deferred

from ironcurtain.container.container import Container, Ended
from tests import engine as test_engine
from tests.container.support import UID, Until
from tests.container.system_calls import connecting, program
from tests.container.test_container import ContainerCase, nothing

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

    async def tried(self, container: Container, script: str) -> Ended:
        """:returns: how a script ended; nobody waits for its output."""
        line = ("sh", "-c", script)
        return await container.run(line, stdin=b"", stdout=nothing, stderr=nothing, environment={})

    def put(self, program: bytes) -> None:
        """Put a program into the workspace."""
        path = self.directory / "workspace" / "program"
        path.unlink(missing_ok=True)  # it may still be busy
        path.write_bytes(program)
        path.chmod(0o755)

    async def refused(self, container: Container, *scripts: str) -> None:
        """Check that each of these fails."""
        for script in scripts:
            self.assertNotEqual((await self.tried(container, script)).status, 0, script)


class SystemCallTests(ConfinementCase):
    async def error(self, container: Container, call: str, *arguments: int) -> str:
        """:returns: the name of the error that a system call ends with."""
        self.put(program(call, *arguments))
        number = (await self.tried(container, "exec /workspace/program")).status
        return errno.errorcode.get(number, str(number))

    async def test_sockets_of_the_usual_kinds_alone(self) -> None:
        container = await self.started()
        for family, kind in ((AF_UNIX, STREAM), (AF_INET, STREAM), (AF_INET6, DATAGRAM), (AF_NETLINK, RAW)):
            self.assertEqual(await self.error(container, "socket", family, kind, 0), "0", family)
        for family in (AF_VSOCK, AF_ALG, AF_PACKET, AF_XDP, AF_BLUETOOTH):
            for kind in (STREAM, DATAGRAM, RAW):
                self.assertEqual(await self.error(container, "socket", family, kind, 0), "EPERM", family)
        for family in (AF_INET, AF_INET6):
            self.assertEqual(await self.error(container, "socket", family, RAW, 1), "EPERM", "raw")

    async def test_calls_that_lead_out_or_deep_into_the_kernel(self) -> None:
        container = await self.started()
        self.assertEqual(await self.error(container, "getpid"), "0")
        for call, *arguments in (
            ("unshare", NEW_USER), ("setns", 0), ("mount", 0), ("fsopen", 0), ("chroot", 0), ("io_uring_setup", 8, 0),
            ("bpf", 0), ("keyctl", 0), ("perf_event_open", 0), ("userfaultfd", 0), ("init_module", 0), ("reboot", 0),
            ("open_by_handle_at", 0), ("process_vm_readv", 1), ("pidfd_getfd", 0), ("personality", 0x0040000),
        ):  # fmt: skip
            self.assertEqual(await self.error(container, str(call), *arguments), "EPERM", call)
        self.assertEqual(await self.error(container, "clone3", 0), "ENOSYS")
        self.assertEqual(await self.error(container, "personality", 0xFFFFFFFF), "0")


class FileTests(ConfinementCase):
    async def test_only_what_is_the_agents_can_be_written(self) -> None:
        container = await self.started()
        for place in ("/workspace", "/home/agent", "/tmp", "/dev/shm"):
            self.assertEqual((await self.tried(container, f"echo x >{place}/x")).status, 0, place)
        places = ("", "/etc", "/bin", "/var/tmp", "/run/ironcurtain", "/etc/ironcurtain", "/dev", "/proc/sys", "/sys")
        await self.refused(container, *(f"echo x >{place}/x" for place in places))
        await self.refused(
            container,
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
        self.put(connecting(where))
        self.assertEqual((await self.tried(container, "/workspace/program")).status, 0)
        listener.accept()[0].close()
        self.put(connecting("/run/ironcurtain/other.sock"))
        self.assertEqual((await self.tried(container, "/workspace/program")).status, errno.ENOENT)

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
        self.assertEqual(await self.tried(container, "exec tail /dev/zero"), Ended(137, True))

    async def test_core_files_and_open_files(self) -> None:
        container = await self.started()
        self.assertEqual(await self.said(container, "ulimit -c; ulimit -n"), "0\n16384\n")

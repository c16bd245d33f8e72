from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path

from msgspec.structs import replace
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox.bubblewrap import available, command, inputs, is_safe, opened
from ironcurtain.sandbox.bubblewrap_options import Bubblewrap
from ironcurtain.sandbox.mount_points import check_mount_points
from ironcurtain.sandbox.obstacles import explain
from ironcurtain.sandbox.spec import Sandbox


class SandboxTests(SynchronousTestCase):
    """Real programs in real sandboxes."""

    account: Account | None = None

    def prepare(self) -> None:
        if reason := available(self.account):
            raise SkipTest(reason)

    def command(self, sandbox: Sandbox, words: Sequence[str], descriptors: Mapping[int, int]) -> list[str]:
        """:returns: the command line under test."""
        return command(sandbox, words, descriptors)

    def inputs(self, sandbox: Sandbox) -> dict[int, bytes]:
        """:returns: what it reads."""
        return inputs(sandbox)

    def setUp(self) -> None:
        self.prepare()
        self.directory = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.directory)
        for name in ("read", "write", "secret"):
            (self.directory / name).mkdir()
            (self.directory / name / "file").write_text(name)
        self.sandbox = Sandbox(
            read=(str(self.directory / "read"),),
            write=(str(self.directory / "write"),),
            cwd=str(self.directory / "write"),
            account=self.account,
        )

    def run_words(self, sandbox: Sandbox, *words: str) -> subprocess.CompletedProcess[bytes]:
        with opened(self.inputs(sandbox)) as descriptors:
            return subprocess.run(
                self.command(sandbox, words, descriptors),
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env={"PATH": os.environ["PATH"], "HOME": sandbox.home or "/"},
                pass_fds=list(descriptors.values()),
                timeout=60,
                check=False,
            )

    def run_inside(self, script: str, sandbox: Sandbox | None = None) -> tuple[int, str]:
        done = self.run_words(sandbox or self.sandbox, "sh", "-c", script, "sh", str(self.directory))
        return done.returncode, (done.stdout + done.stderr).decode()

    def test_what_it_was_given(self) -> None:
        status, printed = self.run_inside('cat "$1/read/file" file; echo new >made; pwd')
        self.assertEqual((status, printed), (0, f"readwrite{self.directory}/write\n"))
        self.assertEqual((self.directory / "write" / "made").read_text(), "new\n")

    def test_nothing_else_exists(self) -> None:
        for script in (
            'cat "$1/secret/file"',
            'ls "$1/secret"',
            "ls /root",
            "ls /home",
            "cat /etc/shadow",
            "ls /var/lib",
            "ls /sys/kernel",
        ):
            status, printed = self.run_inside(script)
            self.assertNotEqual(status, 0, f"{script}: {printed}")
        self.assertEqual(self.run_inside('ls "$1"')[1].split(), ["read", "write"])

    def test_what_is_to_be_read_is_not_written(self) -> None:
        for script in ('echo x >"$1/read/file"', 'rm "$1/read/file"', "echo x >/usr/made", "echo x >/etc/passwd"):
            self.assertNotEqual(self.run_inside(script)[0], 0, script)
        self.assertEqual((self.directory / "read" / "file").read_text(), "read")

    def test_other_processes_do_not_exist(self) -> None:
        status, printed = self.run_inside("ls -d /proc/[0-9]* | wc -l")
        self.assertEqual(status, 0)
        self.assertLess(int(printed), 6)

    def test_no_rights_beyond_a_users(self) -> None:
        self.assertIn("CapEff:\t0000000000000000", self.run_inside("cat /proc/self/status")[1])
        self.assertNotEqual(self.run_inside("mount -t tmpfs none /tmp")[0], 0)

    def test_no_command_line_inside_names_paths_of_the_host(self) -> None:
        home, write = str(self.directory / "home"), str(self.directory / "write")
        (self.directory / "write" / "inner").mkdir()
        plain = replace(self.sandbox, files=((f"{home}/.gitconfig", b"mine"),), home=home)
        nested = replace(plain, read=(*plain.read, f"{write}/inner"))
        for sandbox in (plain, nested):
            done = self.run_words(sandbox, "sh", "-c", "cat ~/.gitconfig; cat /proc/[0-9]*/cmdline")
            self.assertTrue(done.stdout.startswith(b"mine"), done.stderr)
            for path in ("read", "write/inner"):
                self.assertNotIn(f"{self.directory}/{path}".encode(), done.stdout)

    def test_many_paths_fit(self) -> None:
        paths = [self.directory / "read" / f"{number:0100}" for number in range(500)]
        for path in paths:
            path.touch()
        done = self.run_words(replace(self.sandbox, read=tuple(map(str, paths))), "ls", str(self.directory / "read"))
        self.assertEqual(len(done.stdout.split()), 500, done.stderr)

    def test_what_it_was_given_to_read_is_not_open_inside(self) -> None:
        home = str(self.directory / "home")
        sandbox = replace(self.sandbox, files=((f"{home}/.gitconfig", b"mine"),), home=home)
        self.assertNotIn("memfd", self.run_inside("ls -l /proc/self/fd /proc/1/fd", sandbox)[1])

    def test_files_of_its_own(self) -> None:
        (self.directory / "home").mkdir()
        (self.directory / "home" / "letter").write_text("private")
        home = str(self.directory / "home")
        sandbox = replace(
            self.sandbox,
            home=home,
            files=((f"{home}/.gitconfig", b"mine"),),
        )
        self.assertEqual(self.run_inside("ls -A ~; cat ~/.gitconfig", sandbox)[1], ".gitconfig\nmine")

    def test_the_hosts_network_is_out_of_reach(self) -> None:
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        script = f"exec 3<>/dev/tcp/127.0.0.1/{listener.getsockname()[1]}"
        self.assertEqual(subprocess.run(["bash", "-c", script]).returncode, 0)
        done = self.run_words(Sandbox(account=self.account), "bash", "-c", script)
        self.assertIn(b"Connection refused", done.stderr)

    def test_status_and_words_pass_unchanged(self) -> None:
        words = ("sh", "-c", 'printf "%s|" "$@"; exit 7', "x", "--", "-a b", "$HOME")
        done = self.run_words(Sandbox(account=self.account), *words)
        self.assertEqual((done.returncode, done.stdout), (7, b"--|-a b|$HOME|"))

    def test_it_ends_with_the_one_who_started_it(self) -> None:
        start = "import subprocess, sys; subprocess.Popen(sys.argv[1:]); input()"
        # bubblewrap's own process inside asks to be killed with the outer one just before it waits for the program.
        script = "until grep -q '^State:.S' /proc/1/status; do :; done; echo up; exec sleep 600"
        with opened(self.inputs(self.sandbox)) as descriptors:
            line = self.command(self.sandbox, ["sh", "-c", script], descriptors)
            starter = subprocess.Popen(
                [sys.executable, "-c", start.replace("argv[1:]", "argv[1:], close_fds=False"), *line],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                pass_fds=list(descriptors.values()),
            )
        assert starter.stdout is not None
        self.assertEqual(starter.stdout.readline(), b"up\n")
        starter.kill()
        rest, _ = starter.communicate(timeout=60)  # comes once nobody holds the other end
        self.assertEqual(rest, b"")


class OtherAccountTests(SandboxTests):
    """The same where root starts the program and it runs as somebody else, in directories that are closed to all."""

    account = Account(4242, 4243)

    def setUp(self) -> None:
        if os.geteuid():
            raise SkipTest("only root can run programs as somebody else")
        super().setUp()
        os.chown(self.directory / "write", 4242, 4243)
        (self.directory / "write").chmod(0o700)

    def test_who_it_is(self) -> None:
        self.assertEqual(self.run_inside("id -u; id -G; touch made")[1].split(), ["4242", "4243"])
        made = (self.directory / "write" / "made").stat()
        self.assertEqual((made.st_uid, made.st_gid), (4242, 4243))

    def test_a_file_of_roots_stays_closed(self) -> None:
        (self.directory / "read" / "closed").touch(mode=0o600)
        self.assertNotEqual(self.run_inside('cat "$1/read/closed"')[0], 0)

    def test_it_may_use_the_temporary_directory(self) -> None:
        self.assertEqual(self.run_inside("echo x >/tmp/made && ls /tmp/made")[0], 0)


class LinkTests(SynchronousTestCase):
    """Links in a directory that an agent writes, where something is mounted below it (CVE-2026-87766)."""

    def setUp(self) -> None:
        if reason := available():
            raise SkipTest(reason)
        self.top = Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.work, self.host = self.top / "work", self.top / "host"
        for directory in (self.work, self.host):
            directory.mkdir()

    def run_in(self, sandbox: Sandbox) -> None:
        with opened(inputs(sandbox)) as descriptors:
            line = command(sandbox, ["true"], descriptors)
            subprocess.run(line, capture_output=True, pass_fds=list(descriptors.values()), timeout=60, check=False)
        self.assertEqual(list(self.host.iterdir()), [])

    def test_nothing_is_made_where_a_link_leads(self) -> None:
        (self.work / "link").symlink_to(f"/oldroot{self.host}")
        (self.work / "dangling").symlink_to(f"/oldroot{self.host}/made")
        (self.work / "home").mkdir()
        (self.work / "home" / ".gitconfig").symlink_to(f"/oldroot{self.host}/made")
        work = str(self.work)
        for sandbox in (
            Sandbox(write=(work,), read=(f"{work}/link/made",)),
            Sandbox(write=(work,), read=(f"{work}/dangling",)),
            Sandbox(write=(work,), home=f"{work}/link/made"),
            Sandbox(write=(work,), files=((f"{work}/link/made", b"x"),)),
            Sandbox(write=(work,), files=((f"{work}/dangling", b"x"),)),
            Sandbox(write=(work, f"{work}/home"), home=f"{work}/home", files=((f"{work}/home/.gitconfig", b"x"),)),
            Sandbox(read=(work,), write=(f"{work}/link/made",)),
        ):
            self.assertNotEqual(sandbox.inner_mount_points(), (), sandbox)
            self.run_in(sandbox)
            self.assertRaises(Unavailable, check_mount_points, sandbox)

    def test_mount_point_that_is_missing_or_linked_is_refused_and_others_are_not(self) -> None:
        work = str(self.work)
        (self.work / "there").mkdir()
        (self.work / "file").touch()
        check_mount_points(Sandbox(write=(work,), read=(f"{work}/there", f"{work}/file")))
        check_mount_points(Sandbox(write=(work,), home="/home/somebody", files=(("/home/somebody/.gitconfig", b""),)))
        error = self.assertRaises(Unavailable, check_mount_points, Sandbox(write=(work,), read=(f"{work}/missing",)))
        self.assertIn(f"{work}/missing would be mounted below {work}", str(error))

    def test_program_is_safe_that_makes_directories_inside_and_none_outside(self) -> None:
        """Those that could not be tried are not."""
        program, inside = self.top / "bwrap", "mkdir $mounted/made"
        outside = "mkdir $(readlink $mounted/link | sed s,^/oldroot,,)/made"
        for made, made_behind_link, safe in (
            (inside, outside, False),
            (inside, "exit 1", True),
            ("exit 1", "exit 1", False),
            ("exit 1", outside, False),
        ):
            program.write_text(
                "#!/bin/sh\n"
                "for word; do case $word in */mounted) mounted=$word ;; */place/*) wanted=$word ;; esac; done\n"
                f"case $wanted in */link/*) {made_behind_link} ;; *) {made} ;; esac\n"
            )
            program.chmod(0o755)
            self.assertEqual(is_safe(Bubblewrap(str(program))), safe, (made, made_behind_link))
        self.assertFalse(is_safe(Bubblewrap(str(self.top / "missing"))))

    def test_programs_are_tried_for_it_only_where_it_matters(self) -> None:
        asked: list[str] = []

        def safe() -> bool:
            asked.append("whether it is safe")
            return False

        bubblewrap = Bubblewrap("/bwrap", safe=safe)
        bubblewrap.command(Sandbox(write=("/srv",), read=("/opt",)), ["/bin/true"])
        self.assertEqual(asked, [])
        bubblewrap.command(Sandbox(write=("/srv",), read=("/srv/a",)), ["/bin/true"])
        self.assertEqual(asked, ["whether it is safe"])


class SizeTests(SynchronousTestCase):
    def test_every_directory_in_memory_has_a_size(self) -> None:
        sandbox = Sandbox(write=("/srv",), read=("/srv/a",), home="/home/a")
        for safe in (True, False):
            for options in Bubblewrap("/bwrap", safe=partial(bool, safe)).inputs(sandbox).values():
                words = options.decode().split("\0")
                places = [index for index, word in enumerate(words) if word == "--tmpfs"]
                self.assertTrue(places)
                self.assertEqual({words[index - 2] for index in places}, {"--size"})
                if "/dev/shm" in words:  # the inner one, if there are two
                    self.assertGreaterEqual(
                        {words[index + 1] for index in places}, {"/", "/tmp", "/dev/shm", "/home/a"}
                    )


class ObstacleTests(SynchronousTestCase):
    """Why it does not work: the message, the kernel's settings, and what is said."""

    def run_as(self, uid: int) -> None:
        """Have this process belong to somebody, as far as it can see."""
        self.patch(os, "geteuid", lambda: uid)

    def explained(self, message: str, capabilities: str = "", **settings: str) -> str:
        """:param capabilities: of this process, as the kernel writes them (proc(5)); empty: they are not known."""
        with tempfile.TemporaryDirectory() as name:
            status = Path(name, "status")
            if capabilities:
                status.write_text(f"Name:\tpython\nCapEff:\t{capabilities}\n")
            for path, value in settings.items():
                file = Path(name, path.replace("__", "/"))
                file.parent.mkdir(exist_ok=True)
                file.write_text(f"{value}\n")
            return explain(message, "/opt/it's/bwrap", Path(name), str(status))

    def test_cause_is_named_with_a_command(self) -> None:
        self.run_as(1000)
        refused = "bwrap: setting up uid map: Permission denied"
        namespaces = "bwrap: Creating new namespace failed: Operation not permitted"
        for message, settings, words in (
            ("bwrap: Unknown option --perms", {}, "too old"),
            (
                refused,
                {"kernel__apparmor_restrict_unprivileged_userns": "1"},
                "sudo apparmor_parser -r /etc/apparmor.d/",
            ),
            (refused, {}, "probably AppArmor"),
            ("bwrap: loopback: Failed RTM_NEWADDR: Operation not permitted", {}, "AppArmor"),
            (namespaces, {"user__max_user_namespaces": "0"}, "sudo sysctl -w user.max_user_namespaces="),
            (
                namespaces,
                {"kernel__unprivileged_userns_clone": "0"},
                "only root make user namespaces. Allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1",
            ),
            ("bwrap: No permissions to create new namespace", {}, "--security-opt seccomp"),
            ("bwrap: No permissions to creating new namespace", {}, "--security-opt seccomp"),
        ):
            self.assertIn(words, self.explained(message, **settings), message)

    def test_namespaces_of_root_alone_are_no_cause_for_root(self) -> None:
        message = "bwrap: Creating new namespace failed: Operation not permitted"
        for uid, setting in ((0, "0"), (1000, "1")):
            self.run_as(uid)
            self.assertEqual(self.explained(message, kernel__unprivileged_userns_clone=setting), "", uid)

    def test_capabilities_that_root_lacks_are_named_with_words_for_docker(self) -> None:
        message = "bwrap: Creating new namespace failed: Operation not permitted"
        self.run_as(0)
        for capabilities, lacking, words in (
            ("00000000a80425fb", "CAP_SYS_ADMIN", "--cap-add SYS_ADMIN"),  # what Docker leaves
            ("0000000000200000", "CAP_SETFCAP", "--cap-add SETFCAP"),
            ("0000000000000000", "CAP_SETFCAP and CAP_SYS_ADMIN", "--cap-add SETFCAP --cap-add SYS_ADMIN"),
        ):
            advice = self.explained(message, capabilities, kernel__unprivileged_userns_clone="0")
            self.assertIn(f"Root lacks {lacking} here", advice)
            self.assertTrue(advice.endswith(f": docker run {words}"), advice)
        self.assertEqual(self.explained(message, "000001ffffffffff"), "")
        self.run_as(1000)
        self.assertEqual(self.explained(message, "0000000000000000"), "")

    def test_profile_for_apparmor_is_one_argument_of_the_shell(self) -> None:
        advice = self.explained("setting up uid map: Permission denied")
        line = advice[advice.index("printf") : advice.index(" | sudo tee")]
        done = subprocess.run(["/bin/sh", "-c", line], capture_output=True, text=True, check=True)
        self.assertIn('profile opt-it-s-bwrap "/opt/it\'s/bwrap" flags=(unconfined)', done.stdout)

    def test_unknown_message_gets_no_advice(self) -> None:
        self.assertEqual(self.explained("bwrap: something else"), "")

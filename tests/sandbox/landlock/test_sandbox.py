"""Programs in sandboxes that Landlock makes, and what attackers try in them."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from msgspec.structs import replace
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.process.accounts import Account
from ironcurtain.process.bounded import Bounds, Finished
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.bubblewrap import opened
from ironcurtain.sandbox.installation import Installation
from ironcurtain.sandbox.landlock import implementation
from ironcurtain.sandbox.landlock.guard import PREFIX, end_marked, marked, sweep
from ironcurtain.sandbox.landlock.reach import can_switch
from ironcurtain.sandbox.spec import Kind, Listener, Sandbox
from tests.programs import program

REFUSED = "[Errno 1] it would run as root, and could end root's other processes"

ATTACKS = Path(__file__).with_name("attacks.py").read_text()


class LandlockCase(SynchronousTestCase):
    """A sandbox with a directory to read and one to write, beside a secret one."""

    account: Account | None = None

    def setUp(self) -> None:
        if reason := implementation.unavailable(self.account):
            raise SkipTest(reason)
        self.directory = Path(tempfile.mkdtemp()).resolve()
        self.addCleanup(shutil.rmtree, self.directory)
        for name in ("read", "write", "secret"):
            (self.directory / name).mkdir()
            (self.directory / name / "file").write_text(name)
        if self.account is not None:
            for path in ("", "write", "write/file", "secret", "secret/file"):  # its own, but outside
                os.chown(self.directory / path, self.account.uid, self.account.gid)
        self.python = os.path.realpath(sys.executable)
        needed = Installation(["/nonexistent"], os.defpath, "/nonexistent").of(self.python, (), "/usr")
        self.sandbox = Sandbox(
            read=(str(self.directory / "read"), *needed),
            write=(str(self.directory / "write"),),
            cwd=str(self.directory / "write"),
            account=self.account,
            kind=Kind.LANDLOCK,
        )

    def run_inside(self, *words: str, sandbox: Sandbox | None = None) -> Finished:
        return programs.run(sandbox or self.sandbox, words, {"PATH": os.defpath, "LC_ALL": "C.UTF-8"}, Bounds(60))

    def script(self, script: str, sandbox: Sandbox | None = None) -> tuple[int, str]:
        done = self.run_inside("/bin/sh", "-c", script, "sh", str(self.directory), sandbox=sandbox)
        return done.status, (done.output + done.errors).decode()


class SandboxTests(LandlockCase):
    def test_given_paths_are_read_and_written(self) -> None:
        self.assertEqual(
            self.script('cat "$1/read/file" file; echo new >made; pwd'), (0, f"readwrite{self.sandbox.cwd}\n")
        )
        self.assertEqual((self.directory / "write" / "made").read_text(), "new\n")

    def test_contents_outside_are_neither_read_nor_changed(self) -> None:
        for script in (
            'cat "$1/secret/file"',
            'ls "$1/secret"',
            "ls /",
            "cat /etc/shadow",
            "cat /proc/1/status",
            "ls /tmp",
            'echo x >"$1/secret/file"',
            'echo x >"$1/secret/made"',
            'echo x >"$1/read/file"',
            'rm "$1/read/file"',
            'mv "$1/secret/file" .',
            'ln "$1/secret/file" linked',
            'ln -s "$1/secret/file" link && cat link',
            'mv file "$1/secret/moved"',
            "echo x >/usr/made",
            "mknod null c 1 3",
        ):
            status, printed = self.script(script)
            self.assertNotEqual(status, 0, f"{script}: {printed}")
        self.assertEqual((self.directory / "secret" / "file").read_text(), "secret")
        self.assertEqual([path.name for path in (self.directory / "secret").iterdir()], ["file"])

    def test_attacks_have_no_effect_outside(self) -> None:
        outside = self.directory / "secret" / "file"
        os.utime(outside, (1, 1))
        before = outside.stat()
        victim = subprocess.Popen(["sleep", "600"])
        self.addCleanup(victim.wait)
        self.addCleanup(victim.kill)
        limits = Path(f"/proc/{victim.pid}/limits").read_text()
        done = self.run_inside(
            self.python, "-I", "-c", ATTACKS, str(outside), str(victim.pid), str(self.directory / "read")
        )
        self.assertEqual((done.status, done.output.decode()), (0, ""), done.errors.decode())
        after = outside.stat()
        for name in ("st_mode", "st_mtime_ns", "st_atime_ns", "st_uid", "st_size"):
            self.assertEqual(getattr(after, name), getattr(before, name), name)
        self.assertIsNone(victim.poll())
        self.assertEqual(os.getpriority(os.PRIO_PROCESS, victim.pid), os.getpriority(os.PRIO_PROCESS, 0))
        self.assertEqual(Path(f"/proc/{victim.pid}/limits").read_text(), limits)
        for path in (self.directory / "write").rglob("*"):
            self.assertFalse(path.lstat().st_mode & (stat.S_ISUID | stat.S_ISGID), path)

    def test_permissions_and_times_of_its_own_files_are_changed(self) -> None:
        script = (
            "touch a && chmod 750 a && cp -a a b && mkdir -m 700 d && touch -d @86400 a && ln -s a link && "
            "touch -h -d @86400 link && chmod u+x,g-x link && tar cf t.tar a d && mkdir x && tar xpf t.tar -C x && "
            'chown "$(id -u):$(id -g)" a && cd "$TMPDIR" && touch t && chmod 600 t'
        )
        self.assertEqual(self.script(script), (0, ""))
        made = self.directory / "write"
        self.assertEqual((made / "a").stat().st_mtime, 86400)
        self.assertEqual(stat.S_IMODE((made / "a").stat().st_mode), 0o740)
        self.assertEqual((made / "link").lstat().st_mtime, 86400)
        self.assertEqual(stat.S_IMODE((made / "b").stat().st_mode), 0o750)

    def test_ordinary_programs_work(self) -> None:
        git = "git init -q r && cd r && git config user.name x && git config user.email x@x && touch f && git add f"
        self.assertEqual(self.script(f"{git} && git commit -q -m x && git status --short")[0], 0)
        lines = ("import os, tempfile", "f = tempfile.NamedTemporaryFile()", "os.fchmod(f.fileno(), 0o640)")
        program = "\n".join((*lines, "print(os.cpu_count() > 0)"))
        done = self.run_inside(self.python, "-I", "-c", program)
        self.assertEqual((done.status, done.output), (0, b"True\n"), done.errors)

    def test_what_people_are_told_to_be_lacking_is_lacking(self) -> None:
        for script in (
            "import multiprocessing; multiprocessing.Lock()",
            "from multiprocessing.shared_memory import SharedMemory; SharedMemory(create=True, size=1)",
            "open('/proc/self/status')",
            "import os; os.listdir('/proc')",
            "import ctypes; c = ctypes.CDLL(None); assert c.inotify_add_watch(c.inotify_init(), b'.', 256) >= 0",
        ):
            done = self.run_inside(self.python, "-I", "-c", script)
            self.assertEqual(done.status, 1, script)
        family = "import subprocess; subprocess.run(['sleep', '0'], check=True)"  # but children are no trouble
        self.assertEqual(self.run_inside(self.python, "-I", "-c", family).status, 0)

    def test_home_and_temporary_directory_are_its_own_and_removed(self) -> None:
        sandbox = replace(self.sandbox, home="/home/somebody", files=(("/home/somebody/.gitconfig", b"mine"),))
        status, printed = self.script(
            'cat ~/.gitconfig; echo; echo "$HOME"; mkdir -m 0 "$TMPDIR/closed"; echo >"$TMPDIR/x"', sandbox
        )
        self.assertEqual((status, printed.split("\n")[0]), (0, "mine"))
        self.assertFalse(Path(printed.split("\n")[1]).exists())
        self.assertFalse(Path(printed.split("\n")[1]).parent.exists())

    def test_status_signal_and_arguments_pass_unchanged(self) -> None:
        done = self.run_inside("/bin/sh", "-c", 'printf "%s|" "$@"; exit 7', "x", "--", "-a b", "$HOME")
        self.assertEqual((done.status, done.output), (7, b"--|-a b|$HOME|"))
        self.assertEqual(self.script("kill -TERM $$")[0], -signal.SIGTERM)
        done = self.run_inside("/nonexistent/program")
        self.assertEqual((done.status, b"cannot be executed" in done.errors), (126, True), done)

    def test_processes_left_behind_end_with_the_program(self) -> None:
        status, printed = self.script("setsid sh -c 'sleep 600 & echo $! >pid; wait' & while [ ! -s pid ]; do :; done")
        self.assertEqual((status, printed), (0, ""))
        pid = (self.directory / "write" / "pid").read_text().strip()
        self.assertFalse(_runs(int(pid)))


class EndTests(LandlockCase):
    """Sandboxes whose processes outside are killed."""

    def start(self) -> tuple[subprocess.Popen[bytes], int, Path]:
        """:returns: the process that was started, a daemon inside, and the sandbox's own directory."""
        script = "setsid sh -c 'echo $$; echo $TMPDIR; exec sleep 600' & wait"
        with opened(programs.inputs(self.sandbox)) as descriptors:
            started = subprocess.Popen(
                programs.command(self.sandbox, ["/bin/sh", "-c", script], descriptors),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                pass_fds=list(descriptors.values()),
                start_new_session=True,
            )
        self.addCleanup(started.communicate)
        self.addCleanup(started.kill)
        assert started.stdout is not None
        pid, place = int(started.stdout.readline()), Path(started.stdout.readline().decode().strip()).parent
        self.assertTrue(place.name.startswith(PREFIX))
        self.addCleanup(end_marked, int(place.name.split("-")[5], 16))
        return started, pid, place

    def test_killed_with_its_group_nothing_is_left(self) -> None:
        started, pid, place = self.start()
        os.killpg(started.pid, signal.SIGKILL)
        started.communicate(timeout=60)  # returns when no process has its output
        _until(lambda: not _runs(pid) and not place.exists())

    def test_ended_by_sigterm_nothing_is_left(self) -> None:
        started, pid, place = self.start()
        started.terminate()
        self.assertEqual(started.wait(60), -signal.SIGTERM)
        self.assertEqual((_runs(pid), place.exists()), (False, False))

    def test_sandbox_of_a_killed_guard_is_ended_at_the_next_start(self) -> None:
        started, pid, place = self.start()
        os.kill(int(place.name.split("-")[3]), signal.SIGKILL)
        started.wait(60)
        sweep(tempfile.gettempdir())
        self.assertEqual((_runs(pid), place.exists()), (False, False))

    def test_name_that_another_user_took_ends_nothing(self) -> None:
        if os.geteuid():
            raise SkipTest("only root can act as another user")
        _, pid, place = self.start()
        fields = place.name.split("-")
        with tempfile.TemporaryDirectory() as name:
            taken = Path(name, "-".join((*fields[:3], "999999999", *fields[4:])))
            taken.mkdir()
            os.chown(taken, 4242, 4243)
            sweep(name)
            self.assertEqual((_runs(pid), taken.exists()), (True, True))

    def test_running_sandbox_is_not_swept(self) -> None:
        _, pid, place = self.start()
        sweep(tempfile.gettempdir())
        self.assertEqual((_runs(pid), place.exists()), (True, True))
        mark = int(place.name.split("-")[5], 16)
        self.assertIn(pid, set(marked(mark)))
        self.assertEqual(set(marked(mark + 1)), set())
        self.assertTrue(end_marked(mark))


class ByAnAccountTests(SandboxTests, EndTests):
    """The same where root starts the program, with files of the account outside."""

    account = Account(61200, 61200)

    def setUp(self) -> None:
        if os.geteuid():
            raise SkipTest("only root can run programs as somebody else")
        super().setUp()

    def test_it_is_the_account_even_below_a_closed_directory(self) -> None:
        self.directory.chmod(0o700)
        os.chown(self.directory, 0, 0)
        self.assertEqual(
            self.script('id -u; id -G; cat "$1/read/file"; touch made')[1].split(), ["61200", "61200", "read"]
        )
        self.assertEqual((self.directory / "write" / "made").stat().st_uid, 61200)


class OlderKernelTests(SynchronousTestCase):
    """Before version 6 of Landlock, only another account keeps a program from signals to root's other processes."""

    SCRIPT = """
from ironcurtain.process.accounts import Account
from ironcurtain.sandbox.landlock import implementation, reach
from ironcurtain.sandbox.landlock.order import Order
from ironcurtain.sandbox.spec import Sandbox

implementation.version = lambda: 3
account = Account(61200, 61200)
print(implementation.unavailable(account))
for alone in (True, False):
    order = Order.decoded(implementation.inputs(Sandbox(account=account, alone=alone))[3])
    try:
        print(reach.identity(order, "/bin/true").ids)
    except PermissionError as e:
        print(e)
"""

    def said(self, *before: str) -> list[str]:
        if os.geteuid() or not can_switch():
            raise SkipTest("only root may become another account")
        done = subprocess.run([*before, sys.executable, "-c", self.SCRIPT], capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    def test_root_that_may_not_become_another_account_is_refused(self) -> None:
        setpriv = program("setpriv")
        for capabilities in ("-all", "-setuid", "-setgid"):
            why, alone, not_alone = self.said(setpriv, f"--bounding-set={capabilities}")
            self.assertIn("or root that may become another account", why)
            self.assertEqual((alone, not_alone), ("(0, 0)", REFUSED))

    def test_other_root_becomes_it(self) -> None:
        if reason := implementation.unavailable(Account(61200, 61200)):
            raise SkipTest(reason)
        self.assertEqual(self.said(), ["None", "(61200, 61200)", "(61200, 61200)"])


class ExpressionTests(SynchronousTestCase):
    """What Landlock cannot give or forbid."""

    def test_such_a_sandbox_is_refused_with_the_reason(self) -> None:
        for sandbox, reason in (
            (Sandbox(listeners=(Listener("127.0.0.1", 80),)), "cannot limit the network"),
            (Sandbox(write=("/a",), read=("/a/b",)), "cannot keep /a/b from being written"),
            (Sandbox(files=(("/tmp/credential", b""),)), "cannot put a file at /tmp/credential"),
        ):
            self.assertIn(reason, str(implementation.inexpressible(sandbox)))

    def test_socket_is_refused(self) -> None:
        import socket

        with tempfile.TemporaryDirectory() as name, socket.socket(socket.AF_UNIX) as made:
            made.bind(f"{name}/s")
            self.assertIn("no UNIX socket", str(implementation.inexpressible(Sandbox(read=(f"{name}/s",)))))

    def test_ordinary_sandbox_is_not(self) -> None:
        sandbox = Sandbox(read=("/a", "/b/c"), write=("/b",), home="/h", files=(("/h/.gitconfig", b""),))
        self.assertIn("/b/c", str(implementation.inexpressible(sandbox)))
        self.assertIsNone(implementation.inexpressible(replace(sandbox, read=("/a",))))


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError("not within a minute")


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False

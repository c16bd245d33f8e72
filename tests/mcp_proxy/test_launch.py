"""How servers are started, and as whom."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.launch import FOR_DESKTOP, OWN_SERVERS, Ground, Launch, account_notice, prepare
from ironcurtain.mcp_proxy.obstacles import obstacle
from ironcurtain.mcp_proxy.servers_config import CommandServer, Reading, SandboxConfig
from ironcurtain.network.access import Access, Entry
from ironcurtain.process.accounts import FREE_UIDS, Account
from ironcurtain.sandbox import bubblewrap
from ironcurtain.sandbox.linked_repository import LinkedRepository, settings_text
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.secrets.redaction import Secret
from tests.machine import demand_sandbox

ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/home/ada", "USER": "ada", "TMPDIR": "/home/ada/tmp", "LC_ALL": "C"}
SOMEBODY = Account(4242, 4243, "somebody", "/var/empty")
WHO = 'id -u; id -G; echo "$HOME"; pwd'


class LaunchCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.workspace = self.top / "workspace"
        self.workspace.mkdir()

    def prepare(self, *argv: str, account: Account | None = SOMEBODY, sandbox: SandboxConfig | None = None) -> Launch:
        server = CommandServer("mine", argv[0], argv[1:], {}, {}, cwd=".", sandbox=sandbox)
        writers = frozenset(("mine",))
        return prepare(server, {}, Ground(ENVIRON, str(self.workspace), account=account, writers=writers))

    def run_launch(self, launch: Launch) -> list[str]:
        with bubblewrap.opened(launch.inputs) as descriptors:

            def place() -> None:
                for number, descriptor in descriptors.items():
                    os.dup2(descriptor, number + 100)
                for number in descriptors:
                    os.dup2(number + 100, number)

            done = subprocess.run(
                launch.argv, env=dict(launch.environment), cwd=launch.cwd, capture_output=True, text=True, timeout=60,
                close_fds=False, preexec_fn=place,
            )  # fmt: skip
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout.splitlines()


class SandboxTests(LaunchCase):
    """What a server's sandbox has besides its configuration."""

    def reads(self, *argv: str, protected: tuple[str, ...] = (), **environment: str) -> tuple[str, ...]:
        server = CommandServer("mine", argv[0], argv[1:], environment, {}, sandbox=SandboxConfig())
        launch = prepare(server, {}, Ground(ENVIRON, str(self.workspace), protected))
        assert launch.sandbox is not None
        return launch.sandbox.read

    def setUp(self) -> None:
        super().setUp()
        if reason := bubblewrap.available():
            raise SkipTest(reason)
        (self.top / "modules").mkdir()

    def test_directories_in_the_environment_of_the_server_are_readable(self) -> None:
        modules = str(self.top / "modules")
        self.assertIn(modules, self.reads("/usr/bin/env", PYTHONPATH=f"/none:{modules}"))

    def test_repository_elsewhere_is_writable_for_writers_only(self) -> None:
        top = str(self.top / "r")
        objects, own = f"{top}/objects", f"{top}/worktrees/a"
        for path in (objects, own):
            os.makedirs(path)
        Path(own, "gitdir").touch()
        repository = LinkedRepository(top, (objects, own), (f"{own}/gitdir",), "")
        server = CommandServer("mine", "/usr/bin/env", (), {}, {}, sandbox=SandboxConfig())
        for writers, read, write in (
            (("mine",), {top, f"{own}/gitdir"}, {objects, own}),
            ((), {top}, set()),
        ):
            ground = Ground(ENVIRON, str(self.workspace), writers=frozenset(writers), repository=repository)
            sandbox = prepare(server, {}, ground).sandbox
            assert sandbox is not None
            self.assertEqual({path for path in sandbox.read if path.startswith(top)}, read)
            self.assertEqual({path for path in sandbox.write if path.startswith(top)}, write)
            self.assertIn(("/home/ada/.gitconfig", settings_text()), sandbox.files)

    def test_git_server_is_told_the_repository(self) -> None:
        repository = LinkedRepository("/r", (), (), "")
        own = CommandServer("git-remote", sys.executable, (*OWN_SERVERS[1], "/w"), {}, {})
        launch = prepare(own, {}, Ground(ENVIRON, str(self.workspace), repository=repository))
        self.assertEqual(launch.argv[-2:], ("--repository=/r", "/w"))

    def test_protected_directory_is_not_added_for_a_program(self) -> None:
        modules = str(self.top / "modules")
        self.assertNotIn(modules, self.reads("/usr/bin/env", protected=(modules,), PYTHONPATH=modules))


class DirectoryTests(LaunchCase):
    """Where servers start, and what of theirs an agent could redirect there."""

    def cwd(self, *args: str, **fields: Any) -> str:
        server = CommandServer("mine", "/usr/bin/env", args, **fields)
        launch = prepare(server, {}, Ground(ENVIRON, str(self.workspace)))
        return launch.cwd if launch.sandbox is None else launch.sandbox.cwd

    def test_servers_with_secrets_or_a_network_start_outside_the_workspace(self) -> None:
        demand_sandbox(Sandbox(kind=Kind.BUBBLEWRAP))  # Landlock holds no network
        secret = Reading(secrets=(Secret("s3cr3t", "variable TOKEN"),))
        fields: tuple[dict[str, Any], ...] = (
            {"sandbox": None},
            {"sandbox": SandboxConfig(access=Access((Entry("api.example.org"),)))},
            {"environment": {"API_TOKEN": "abcdef0123456789"}},
            {"environment_commands": {"PASSWORD": "pass show it"}},
            {"reading": secret},
        )
        for each in fields:
            self.assertEqual(self.cwd(**each), "/", each)
            for cwd, place in ((".", self.workspace), ("sub", self.workspace / "sub"), (str(self.top), self.top)):
                (self.workspace / "sub").mkdir(exist_ok=True)
                self.assertEqual(self.cwd(cwd=cwd, **each), str(place), each)

    def test_other_servers_start_in_the_workspace(self) -> None:
        self.assertEqual(self.cwd(environment={"LOG_LEVEL": "debug", "PLACE": "/usr/share"}), str(self.workspace))

    def test_arguments_that_belong_to_the_workspace_are_refused_with_the_reason(self) -> None:
        (self.workspace / "build").mkdir()
        (self.workspace / "build" / "index.js").touch()
        for word in ("build/index.js", ".", "./build"):
            error = self.assertRaises(Unavailable, self.cwd, word, sandbox=None)
            self.assertIn(f'does not find {word}: give that as an absolute path, or write "cwd"', str(error))
            self.assertEqual(self.cwd(word, cwd=".", sandbox=None), str(self.workspace))
        for word in ("build", "a/b", "1.5", "-x", f"{self.workspace}/build", ""):
            self.assertEqual(self.cwd(word, sandbox=None), "/", word)


class EnvironmentTests(LaunchCase):
    def inherited(self, launch: Launch) -> Mapping[str, str]:
        return {name: value for name, value in launch.environment.items() if name in ENVIRON}

    def test_of_our_own_account(self) -> None:
        self.assertEqual(self.inherited(self.prepare("/bin/sh", account=None)), ENVIRON)

    def test_of_another(self) -> None:
        sandbox = SandboxConfig()
        for account, user in ((SOMEBODY, "somebody"), (Account(4242, 4243), "")):
            if bubblewrap.available(account):
                raise SkipTest("needs bubblewrap as root")
            environment = self.inherited(self.prepare("/bin/sh", account=account, sandbox=sandbox))
            wanted = {"PATH": ENVIRON["PATH"], "LC_ALL": "C", "HOME": account.home if user else "/tmp", "USER": user}
            self.assertEqual(environment, wanted)


class DesktopServerTests(LaunchCase):
    """It runs outside any sandbox, so what it is given counts."""

    def test_it_has_the_variables_of_the_desktop_and_no_others(self) -> None:
        environ = {
            **{name: f"its {name}" for name in FOR_DESKTOP},
            **{"PATH": "/usr/bin", "HOME": "/home/ada", "TERM": "x", "LANG": "de_DE", "LC_ALL": "C", "USER": "ada"},
            **{"GITHUB_TOKEN": "x", "SSH_AUTH_SOCK": "/s", "LD_PRELOAD": "/x"},
        }
        server = CommandServer("desktop", sys.executable, OWN_SERVERS[2], {"DISPLAY": ":7"}, {})
        launch = prepare(server, {}, Ground(environ, str(self.workspace)))
        expected = {name: environ[name] for name in (*FOR_DESKTOP, "PATH", "HOME")}
        self.assertEqual(launch.environment, {**expected, "DISPLAY": ":7", "LC_ALL": "C.UTF-8"})
        self.assertEqual((launch.sandbox, launch.argv[1:]), (None, (sys.executable, *OWN_SERVERS[2])))

    def test_it_always_becomes_the_account_of_the_session(self) -> None:
        server = CommandServer("desktop", sys.executable, OWN_SERVERS[2], {}, {})
        launch = prepare(server, {}, Ground(ENVIRON, str(self.workspace), account=SOMEBODY))
        self.assertEqual(launch.argv[-1], "--account=4242:4243")

    def test_it_starts_under_no_name_that_its_rules_do_not_know(self) -> None:
        for name in ("gui", "Desktop"):
            server, ground = CommandServer(name, sys.executable, OWN_SERVERS[2], {}, {}), Ground(ENVIRON, "/")
            with self.assertRaisesRegex(Unavailable, "where this server is called desktop"):
                prepare(server, {}, ground)
            self.assertIn("called desktop", obstacle(server, ground) or "")

    def test_only_this_server_has_them(self) -> None:
        environ = {**ENVIRON, **dict.fromkeys(FOR_DESKTOP, "x")}
        for words in (("/bin/sh",), (sys.executable, *OWN_SERVERS[0], "a")):
            server = CommandServer("mine", words[0], words[1:], {}, {})
            launch = prepare(server, {}, Ground(environ, str(self.workspace)))
            self.assertEqual(set(launch.environment) & set(FOR_DESKTOP), set(), words)


class FileServerTests(LaunchCase):
    """Our own changes to the account itself, when it has opened its directories; so nothing of this needs root."""

    def arguments(self, account: Account) -> tuple[str, ...]:
        launch = self.prepare(sys.executable, *OWN_SERVERS[0], "a", account=account)
        self.assertEqual(launch.argv[1:5], (sys.executable, *OWN_SERVERS[0]))
        return launch.argv[5:]

    def test_it_is_told_the_account(self) -> None:
        self.workspace.chmod(0o777)
        self.assertEqual(self.arguments(SOMEBODY), ("--account=4242:4243", "a"))

    def test_python_is_known_by_each_of_its_names(self) -> None:
        self.workspace.chmod(0o777)
        beside = [str(path) for path in Path(sys.executable).parent.glob("python*")]
        for program in [path for path in beside if os.path.realpath(path) == os.path.realpath(sys.executable)]:
            self.assertIn("--account=4242:4243", self.prepare(program, *OWN_SERVERS[0], "a").argv, program)

    def test_a_workspace_that_is_only_roots_is_served_by_root(self) -> None:
        if os.geteuid():
            raise SkipTest("only root has directories of root's")
        self.assertEqual(self.arguments(SOMEBODY), ("a",))
        named = Account(4242, 4243, named=True)
        self.assertEqual(self.arguments(named), ("--account=4242:4243", "a"))
        os.chown(self.workspace, 4242, 0)
        self.workspace.chmod(0)  # what the account itself has closed does not make root serve it
        self.assertEqual(self.arguments(SOMEBODY), ("--account=4242:4243", "a"))

    def test_root_is_reported(self) -> None:
        workspace = str(self.workspace)
        self.workspace.chmod(0o777)
        self.assertEqual(account_notice(SOMEBODY, workspace), "MCP servers run as somebody")
        self.assertIn("WARNING: run_as is root", account_notice(None, workspace))
        unused = Account(FREE_UIDS[0], FREE_UIDS[0])
        self.assertIn("which has no account; set run_as", account_notice(unused, workspace))
        self.assertIn("run as root without any capability", account_notice(unused, workspace, as_root=True))
        if os.geteuid() == 0:
            self.workspace.chmod(0o755)
            self.assertIn("the file server as root", account_notice(SOMEBODY, workspace))

    def test_only_our_own_is_trusted_so(self) -> None:
        if os.geteuid():
            raise SkipTest("only root can try as somebody else")
        elsewhere = self.top / "python"
        elsewhere.symlink_to(sys.executable)
        for argv in (
            (str(elsewhere), *OWN_SERVERS[0], "a"),
            ("/bin/sh", *OWN_SERVERS[0], "a"),
            (sys.executable, "-m", "ironcurtain.servers.files", "a"),
            (sys.executable, "-I", "-m", "other"),
        ):
            try:
                launch = self.prepare(*argv)
            except Unavailable:
                continue
            self.assertIn("--reuid=4242", launch.argv)


class AccountTests(LaunchCase):
    def setUp(self) -> None:
        super().setUp()
        if os.geteuid():
            raise SkipTest("only root can start programs as somebody else")

    def test_who_a_server_is(self) -> None:
        self.top.chmod(0o755)
        said = self.run_launch(self.prepare("/bin/sh", "-c", WHO))
        self.assertEqual(said, ["4242", "4243", "/var/empty", str(self.workspace)])

    def test_in_a_sandbox_it_may_go_where_it_could_not(self) -> None:
        if reason := bubblewrap.available(SOMEBODY):
            raise SkipTest(reason)
        os.chown(self.workspace, 4242, 4243)
        program = self.top / "program"
        program.write_text(f"#!/bin/sh\n{WHO}; touch '{self.workspace}/made'\n")
        program.chmod(0o755)
        said = self.run_launch(self.prepare(str(program), sandbox=SandboxConfig()))
        self.assertEqual(said, ["4242", "4243", "/var/empty", str(self.workspace)])
        self.assertEqual((self.workspace / "made").stat().st_uid, 4242)

    def test_out_of_reach(self) -> None:
        for argv, what in ((("/bin/sh",), f"enter {self.workspace}"), ((str(self._closed()),), "execute")):
            error = self.assertRaises(Unavailable, self.prepare, *argv)
            self.assertIn(f"somebody, as whom MCP server mine runs, cannot {what}", str(error))
            self.assertIn("run_as in config.toml", str(error))

    def _closed(self) -> Path:
        program = self.top / "program"
        program.touch(mode=0o700)
        return program

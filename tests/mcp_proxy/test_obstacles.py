"""What keeps servers from starting."""

from __future__ import annotations

import os
import shutil
import socket
import sys
import tempfile
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from ironcurtain.errors import Unavailable
from ironcurtain.mcp_proxy.launch import OWN_SERVERS, Ground, prepare
from ironcurtain.mcp_proxy.needed_download import DONE, download_of
from ironcurtain.mcp_proxy.obstacles import container_program, doubt, obstacle
from ironcurtain.mcp_proxy.servers_config import CommandServer, HttpServer, Reading, SandboxConfig
from ironcurtain.network.access import read_access
from ironcurtain.sandbox import programs
from ironcurtain.sandbox.spec import Kind, Sandbox
from ironcurtain.secrets.redaction import Secret
from tests.machine import demand_sandbox


class ObstacleCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.top)
        self.ground = Ground({"PATH": "/usr/bin:/bin", "HOME": "/home/ada"}, str(self.top))

    def program(self, name: str, mode: int = 0o755) -> Path:
        path = self.top / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("#!/bin/sh\n")
        path.chmod(mode)
        return path

    def obstacle(self, command: str, *args: str, **fields: Any) -> str | None:
        """:returns: the obstacle of a server, which its start agrees with."""
        server = CommandServer("mine", command, args, **{"sandbox": None, **fields})
        found = obstacle(server, self.ground)
        try:
            prepare(server, {}, self.ground)
        except Unavailable as e:
            self.assertEqual(str(e), f"MCP server mine: {found}")
        else:
            self.assertIsNone(found)
        return found


class ProgramTests(ObstacleCase):
    def test_the_servers_own_path_is_searched(self) -> None:
        self.program("bin/served")
        path = {"PATH": f"{self.top}/bin:/usr/bin"}
        self.assertIsNone(self.obstacle("served", environment=path))
        self.assertEqual(self.obstacle("served"), "there is no program 'served' in its PATH")
        self.assertEqual(
            self.obstacle("true", environment={"PATH": "/nowhere"}), "there is no program 'true' in its PATH"
        )
        self.assertIsNotNone(self.obstacle("true", environment={"PATH": ""}))

    def test_relative_names_belong_to_the_working_directory(self) -> None:
        self.program("sub/served")
        self.assertIsNone(self.obstacle("./sub/served"))
        self.assertIsNone(self.obstacle("./served", cwd=f"{self.top}/sub"))
        self.assertIsNone(self.obstacle("./served", cwd="sub"))
        self.assertIsNotNone(self.obstacle("served", cwd="sub", environment={"PATH": ".::sub"}))
        self.assertEqual(self.obstacle("./served"), "there is no program './served'")
        self.assertEqual(self.obstacle("true", cwd="none"), f"its cwd {self.top}/none is not a directory")

    def test_what_is_no_program_is_named(self) -> None:
        self.program("bin/served", 0o644)
        (self.top / "bin" / "other").mkdir()
        path = {"PATH": f"{self.top}/bin"}
        for command in (f"{self.top}/bin/served", "bin/served", "served"):
            said = self.obstacle(command, environment=path)
            self.assertEqual(said, f"{self.top}/bin/served is not executable: chmod +x {self.top}/bin/served")
        for command in (f"{self.top}/bin/other", "other"):
            self.assertEqual(
                self.obstacle(command, environment=path), f"{self.top}/bin/other is a directory, not a program"
            )

    def test_a_later_program_of_the_path_is_used(self) -> None:
        self.program("a/served", 0o644)
        self.program("b/served")
        self.assertIsNone(self.obstacle("served", environment={"PATH": f"{self.top}/a:{self.top}/b"}))

    def test_a_path_that_a_command_gives_is_not_known_before(self) -> None:
        server = CommandServer("mine", "served", environment_commands={"PATH": "echo"}, sandbox=None)
        self.assertIsNone(obstacle(server, self.ground))

    def test_what_installs_a_program_must_be_there(self) -> None:
        demand_sandbox(Sandbox(kind=Kind.BUBBLEWRAP))  # Landlock holds no network
        ground = replace(self.ground, environ={"PATH": f"{self.top}"}, downloads=self.top)
        server = CommandServer("mine", "npx", ("-y", "some-server"))
        self.assertEqual(obstacle(server, ground), "npx needs npm, which is not in the PATH")
        self.program("npm")
        if programs.unavailable(kind=Kind.BUBBLEWRAP) is None:
            self.assertIsNone(obstacle(server, ground))


class NetworkTests(ObstacleCase):
    def test_git_for_remotes_needs_a_sandbox_with_a_network(self) -> None:
        server = CommandServer("git-remote", sys.executable, (*OWN_SERVERS[1], str(self.top)))
        said = obstacle(server, replace(self.ground, kind=Kind.LANDLOCK)) or ""
        self.assertIn("no sandbox can be made for it: ", said)
        if programs.unavailable(kind=Kind.BUBBLEWRAP) is None:
            self.assertIsNone(obstacle(server, replace(self.ground, kind=Kind.BUBBLEWRAP)))
        if programs.unavailable(kind=Kind.LANDLOCK) is None:
            self.assertIn("Landlock cannot limit the network, so there is none", said)

    def test_a_kind_that_would_do_is_named_where_the_settings_choose_another(self) -> None:
        ground, without = replace(self.ground, kind=Kind.LANDLOCK), programs.unavailable(kind=Kind.BUBBLEWRAP)
        server = CommandServer("mine", "/bin/sh", sandbox=SandboxConfig(access=read_access(["example.org"])))
        advice = "; bubblewrap can: remove sandbox.kind from config.toml"
        self.assertEqual((obstacle(server, ground) or "").endswith(advice), without is None)

    def test_servers_that_connect_need_a_sandbox_that_can(self) -> None:
        self.program("npm")
        ground = replace(self.ground, environ={"PATH": f"{self.top}"}, downloads=self.top, kind=Kind.LANDLOCK)
        fetched = CommandServer("mine", "npx", ("-y", "some-server"))
        listed = CommandServer("mine", "/bin/sh", sandbox=SandboxConfig(access=read_access(["example.org"])))
        for server in (fetched, listed):
            self.assertIn("no sandbox can be made for it: ", obstacle(server, ground) or "")
            if programs.unavailable(kind=Kind.BUBBLEWRAP) is None:
                self.assertIsNone(obstacle(server, replace(ground, kind=Kind.BUBBLEWRAP)))
        download = download_of(fetched)
        assert download is not None
        (self.top / download.key).mkdir()
        (self.top / download.key / DONE).touch()
        self.assertIsNone(obstacle(fetched, ground))

    def test_socket_that_no_sandbox_reaches_is_named_before_the_start(self) -> None:
        if (problem := programs.unavailable(kind=Kind.LANDLOCK)) is not None:
            raise SkipTest(problem)
        path = str(self.top / "agent.sock")
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind(path)
        self.ground = replace(self.ground, workspace=str(self.program("bin/x").parent), kind=Kind.LANDLOCK)
        server = CommandServer("mine", "/bin/sh", sandbox=SandboxConfig(read=(path,)))
        said = obstacle(server, self.ground)
        self.assertIn(f"reach no UNIX socket, so not {path}", said or "")
        self.assertIn(said or "", str(self.assertRaises(Unavailable, prepare, server, {}, self.ground)))


class DoubtTests(SynchronousTestCase):
    def test_programs_that_need_what_landlock_does_not_have_are_named(self) -> None:
        for line, need in (
            ("npx -y @playwright/mcp@latest --headless", "browser"),
            ("/opt/google/chrome/chrome", "browser"),
            ("uvx browser-use", "browser"),
            ("npx mcp-server-puppeteer", "browser"),
            ("uvx mcp-server-process", "processes"),
            ("npx tsx watch server.ts", "files"),
            ("node server.js --stop", ""),
            ("uvx mcp-server-git --repository /home/ada/watch", "files"),  # a wrong guess, which does no harm
            ("python -m laptop", ""),
        ):
            command, *args = line.split()
            server = CommandServer("mine", command, tuple(args), sandbox=SandboxConfig())
            said = doubt(server, Kind.LANDLOCK)
            self.assertEqual("" if said is None else said.split(",")[0].split()[-1], need, line)
            self.assertIsNone(doubt(server, Kind.BUBBLEWRAP))
            self.assertIsNone(doubt(CommandServer("mine", command, tuple(args), sandbox=None), Kind.LANDLOCK))


class ReadingTests(ObstacleCase):
    def test_problems_of_the_file_come_first(self) -> None:
        reading = Reading(problems=("one", "two"))
        self.assertEqual(obstacle(CommandServer("a", "none", reading=reading), self.ground), "one; two")
        self.assertEqual(obstacle(HttpServer("a", Secret("x"), reading=reading), self.ground), "one; two")
        self.assertIsNone(obstacle(HttpServer("a", Secret("https://example.org/")), self.ground))

    def test_certificates_of_a_server_behind_http_that_cannot_be_used(self) -> None:
        file = self.top / "ca.pem"
        far = HttpServer("far", Secret("https://far.example/mcp"))
        self.assertIsNone(obstacle(far, self.ground))
        file.write_text("no certificate")
        for path, why in ((file, "contains no PEM certificate"), (self.top / "none", "cannot be read: No such file")):
            said = str(obstacle(replace(far, ca_file=str(path)), self.ground))
            self.assertTrue(said.startswith(f"ca_file {path} {why}"), said)


class ContainerTests(ObstacleCase):
    def test_programs_that_start_containers_are_known(self) -> None:
        for command, *args in (
            ("docker", "run", "-i", "x"),
            ("/usr/bin/docker", "run", "x"),
            ("podman", "run", "x"),
            ("docker", "compose", "run", "x"),
            ("docker-compose", "run", "x"),
            ("docker", "mcp", "gateway", "run"),
            ("sh", "-c", "docker run -i x"),
            ("bash", "-lc", "exec docker run -e A=b x"),
            ("sh", "-c", "A='b c' /usr/local/bin/podman run x"),
            ("env", "A=b", "docker", "run", "x"),
            ("/usr/bin/env", "docker", "run", "x"),
        ):
            self.assertIsNotNone(container_program(CommandServer("a", command, tuple(args))), (command, args))

    def test_other_programs_are_not(self) -> None:
        for command, *args in (
            ("python3", "docker"),
            ("npx", "docker-server"),
            ("sh", "-c", "exec server --docker"),
            ("sh", "-c", "docker 'run"),
            ("sh", "docker"),
            ("env",),
            ("dockerd-server",),
        ):
            self.assertIsNone(container_program(CommandServer("a", command, tuple(args))), (command, args))

    def test_they_start_outside_sandboxes_only(self) -> None:
        docker = str(self.program("docker"))
        said = obstacle(CommandServer("a", docker, ("run", "x"), sandbox=SandboxConfig()), self.ground) or ""
        for words in ("docker needs its engine", '"sandbox": "none"', "each of its calls is asked", '"url"'):
            self.assertIn(words, said)
        self.assertIsNone(self.obstacle(docker, "run", "x"))
        self.assertIn("no program", self.obstacle("podman-none", "run", "x") or "")
        self.assertNotIn(os.sep, said)

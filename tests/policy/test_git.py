"""Git's settings and repositories, held against git itself, and where its remotes lead."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from pathlib import Path

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.gitconfig import GitConfig, MalformedConfig, parse
from ironcurtain.policy.repositories import open_repository
from ironcurtain.policy.targets import HostileRemote, git_target
from tests.policy.worlds import World

ENVIRONMENT = {"PATH": os.environ["PATH"], "GIT_CONFIG_NOSYSTEM": "1", "HOME": "/nonexistent"}

SECTIONS = [
    '[remote "origin"]',
    "[remote.Origin]",
    "[core]",
    '[url "a\\"b"]',
    "[a",
    "]",
    '[remote ""]',
    "[x.]",
    "[include]",
]
TEXTS = [
    "url",
    "=",
    "https://e.test/x",
    "x-y",
    "path = gone",
    "1",
    ".",
    "\u00e9",
    "#",
    ";",
    '"',
    "\\",
    "\\n",
    "\\\n",
    "\\q",
]
PIECES = [*SECTIONS, *TEXTS, " ", "\t", "\n", "\r\n", "\r"]


def git_reads(text: str) -> list[tuple[str, str | None]] | None:
    """:returns: git's own keys and values, ``None`` if it refuses."""
    with tempfile.TemporaryDirectory() as place:
        Path(place, "config").write_text(text, newline="")
        command = ["git", "config", "--no-includes", "--file", f"{place}/config", "--null", "--list"]
        done = subprocess.run(command, capture_output=True, env=ENVIRONMENT)
    if done.returncode:
        return None
    entries = [entry.partition("\n") for entry in done.stdout.decode().split("\0")[:-1]]
    return [(key, value if newline else None) for key, newline, value in entries]


class ConfigTests(SynchronousTestCase):
    """:func:`parse` and :class:`GitConfig`"""

    @settings(max_examples=250, deadline=None, database=None)
    @given(st.lists(st.sampled_from(PIECES), max_size=14).map("".join))
    @example('[remote "origin"]\n\tfetch = x # \\\n\turl = https://evil.test/x\n')
    @example("[remote.ORIGIN]\nurl = a\\\nb  c ; d\n")
    @example('[a "b"] c = "d # e" f\\t\n[A.b] c')
    @example('[core]\n\tx = a\\\\\n\ty="unended\n')
    def test_it_reads_what_git_reads(self, text: str) -> None:
        expected = git_reads(text)
        try:
            found = [(setting.key, setting.value) for setting in parse(text)]
        except MalformedConfig:
            self.assertIsNone(expected)
            return
        if expected is not None:  # git refuses a little more, and then nothing happens
            wanted = [(key, "true" if value is None else value) for key, value in expected]
            self.assertEqual(*(re.sub(r"\\[tr]", " ", repr(pairs)) for pairs in (found, wanted)))

    def test_a_nul_is_refused(self) -> None:
        self.assertRaises(MalformedConfig, parse, "[core]\nx = a\0b\n")

    def test_the_default_remote(self) -> None:
        two = '[remote "origin"]\nurl = o\n[remote "fork"]\nurl = f\n'
        for text, push, expected in (
            ("", True, None),
            ('[remote "solo"]\nurl = s\n', False, "solo"),
            (two.replace("origin", "other"), False, None),
            (two, False, "origin"),
            (two + '[branch "main"]\nremote = fork\n', False, "fork"),
            (two + '[branch "other"]\nremote = fork\n', False, "origin"),
            (two + '[branch "main"]\nremote = origin\npushRemote = fork\n', True, "fork"),
            (two + '[branch "main"]\nremote = origin\npushRemote = fork\n', False, "origin"),
            (two + "[remote]\npushDefault = fork\n", True, "fork"),
            (two + "[remote]\npushDefault = fork\n", False, "origin"),
            (two + '[remote]\npushDefault = fork\n[branch "main"]\npushRemote = origin\n', True, "origin"),
        ):
            self.assertEqual(GitConfig(parse(text)).default_remote("main", push=push), expected, text)

    def test_a_detached_head_has_no_branch(self) -> None:
        config = GitConfig(parse('[remote "origin"]\nurl=o\n[remote "f"]\nurl=f\n[branch "main"]\nremote = f\n'))
        self.assertEqual(config.default_remote(None, push=True), "origin")

    def test_every_address_that_is_used(self) -> None:
        text = '[remote "o"]\nurl = a:x\nurl = b:y\n[remote "p"]\nurl = a:x\npushurl = c:z\n'
        text += '[url "https://a.test/"]\ninsteadOf = a:\n[url "https://w.test/"]\npushInsteadOf = b:\n'
        text += '[url "https://longer.test/"]\ninsteadOf = a:xx\n'
        config = GitConfig(parse(text))
        for remote, push, expected in (
            ("o", False, ["https://a.test/x", "b:y"]),
            ("o", True, ["https://a.test/x", "https://w.test/y"]),
            ("p", True, ["c:z"]),
            ("p", False, ["https://a.test/x"]),
            ("a:xxy", False, ["https://longer.test/y"]),
            ("unknown", True, ["unknown"]),
        ):
            self.assertEqual(config.addresses(remote, push=push), expected, remote)

    def test_settings_that_run_programs(self) -> None:
        text = '[core]\nfsmonitor = ./x\nsshCommand = y\n[filter "z"]\nclean = z\n[remote "o"]\nuploadpack = u\n'
        text += '[protocol "ext"]\nallow = always\n[submodule "s"]\nupdate = !sh\n[credential]\nhelper = !x\n'
        self.assertEqual(len(GitConfig(parse(text)).programs()), 7)
        harmless = "[core]\nfsmonitor = true\nbare = false\n[protocol]\nallow = never\n[user]\nname = x\n"
        self.assertEqual(GitConfig(parse(harmless)).programs(), [])


class RemoteTests(SynchronousTestCase):
    """:func:`git_target`"""

    def test_one_repository_in_many_spellings(self) -> None:
        for text in (
            "https://github.com/acme/app.git",
            "https://GitHub.com:443/acme/app",
            "https://user:p%40ss@github.com/acme/app/",
            "ssh://git@github.com:22/acme/app.git",
            "git+ssh://git@github.com/acme/app.git",
            "git@github.com:acme/app.git",
            "git@github.com:/acme/app",
            "github.com:acme/app",
            "https://evil.test@github.com/acme/app",
        ):
            self.assertEqual(git_target(text).repository, "github.com/acme/app", text)

    def test_other_repositories(self) -> None:
        for text in (
            "https://github.com/acme/app/../../evil/x",
            "https://github.com/acme/app-evil.git",
            "https://github.com@evil.test/acme/app",
            "https://github.com\\@evil.test/acme/app",
            "https://github.com/acme/app?x",
            "https://github.com/acme%2fapp",
            "git@github.com.evil.test:acme/app",
            "git@evil.test:github.com/acme/app",
        ):
            self.assertNotEqual(git_target(text).repository, "github.com/acme/app", text)

    def test_no_host(self) -> None:
        for text in ("origin", "/srv/x", "./x", "../x:y", "file:///srv/x", "https://a b/x", "https:///x", "~/x"):
            self.assertEqual(git_target(text).hosts, (), text)

    def test_what_would_run_a_program(self) -> None:
        for text in (
            "--upload-pack=touch x",
            "-oProxyCommand=x",
            "ext::sh -c x",
            "EXT::x",
            "fd::17",
            "foo://host/x",
            "ssh://-oProxyCommand=x/y",
            "ssh://git@-oProxyCommand=x/y",
            "-x@host:y",
            "git@-host:y",
            "https://host/a\nb",
            "a/b://c",
        ):
            self.assertRaises(HostileRemote, git_target, text)


class RepositoryTests(SynchronousTestCase):
    """:func:`open_repository`, on repositories that git made."""

    def setUp(self) -> None:
        self.world = World.make()
        self.addCleanup(self.world.remove)
        self.repository = f"{self.world.workspace}/repo"
        self.git("init", "-q", "-b", "main", self.repository)
        self.git("-C", self.repository, "remote", "add", "origin", "https://github.com/acme/app.git")
        author = ("-c", "user.name=a", "-c", "user.email=a@b.test")
        self.git("-C", self.repository, *author, "commit", "-q", "--allow-empty", "-m", "x")

    def git(self, *arguments: str) -> None:
        """Run git."""
        subprocess.run(["git", *arguments], check=True, capture_output=True, env=ENVIRONMENT)

    def where(self, directory: str, remote: str | None = None, tool: str = "git_push") -> tuple[list[str], list[str]]:
        """:returns: addresses and doubts."""
        return open_repository(directory, self.world.home).destinations(remote, tool)

    def test_a_repository_from_within(self) -> None:
        os.makedirs(f"{self.repository}/deep/er")
        for directory in (self.repository, f"{self.repository}/deep/er"):
            found = open_repository(directory, self.world.home)
            self.assertEqual((found.git_directories, found.branch), ((f"{self.repository}/.git",), "main"))
            self.assertEqual(self.where(directory), (["https://github.com/acme/app.git"], []))

    def test_a_worktree(self) -> None:
        worktree = f"{self.world.workspace}/tree"
        self.git("-C", self.repository, "worktree", "add", "-q", "-b", "side", worktree)
        found = open_repository(worktree, self.world.home)
        self.assertEqual(found.git_directories, (f"{self.repository}/.git/worktrees/tree", f"{self.repository}/.git"))
        self.assertEqual(found.branch, "side")
        self.assertEqual(self.where(worktree), (["https://github.com/acme/app.git"], []))

    def test_settings_of_a_worktree_alone(self) -> None:
        self.git("-C", self.repository, "config", "extensions.worktreeConfig", "true")
        self.git("-C", self.repository, "config", "--worktree", "remote.pushDefault", "https://evil.test/x")
        self.assertEqual(self.where(self.repository), (["https://evil.test/x"], []))

    def test_a_bare_repository(self) -> None:
        bare = f"{self.world.workspace}/bare"
        self.git("clone", "-q", "--bare", self.repository, bare)
        self.assertEqual(open_repository(bare, self.world.home).git_directories, (bare,))

    def test_git_passes_over_what_is_no_repository(self) -> None:
        inner = f"{self.repository}/inner"
        os.makedirs(f"{inner}/.git")
        Path(inner, ".git", "config").write_text('[remote "origin"]\nurl = https://allowed.test/x\n')
        self.assertEqual(self.where(inner), (["https://github.com/acme/app.git"], []))

    def test_a_remote_that_is_called_like_an_address(self) -> None:
        address = "https://github.com/acme/app.git"
        self.git("-C", self.repository, "config", f"remote.{address}.url", "https://evil.test/x")
        self.assertEqual(self.where(self.repository, address), (["https://evil.test/x"], []))

    def test_the_users_own_settings_count(self) -> None:
        Path(self.world.home, ".gitconfig").write_text("[include]\npath = more\n")
        Path(self.world.home, "more").write_text('[url "https://mirror.test/"]\ninsteadOf = https://github.com/\n')
        self.assertEqual(self.where(self.repository), (["https://mirror.test/acme/app.git"], []))
        Path(self.world.home, ".gitconfig").write_text('[includeIf "gitdir:x"]\npath = more\n')
        self.assertEqual(len(self.where(self.repository)[1]), 1)

    def test_what_is_unusual_is_a_doubt(self) -> None:
        config = Path(self.repository, ".git", "config")
        plain = config.read_text()
        unusual = ("[include]\npath = x\n", "[http]\nproxy = x\n", "[remotes]\ng = a b\n", "[broken\n", "[a]\nb=\0\n")
        for more in unusual:
            config.write_text(plain + more)
            self.assertEqual(len(self.where(self.repository, "origin")[1]), 1, more)
        config.write_text(plain)
        Path(self.repository, ".git", "remotes").mkdir()
        Path(self.repository, ".git", "remotes", "old").write_text("URL: https://evil.test/x\n")
        self.assertEqual(len(self.where(self.repository, "old")[1]), 1)

    def test_nothing_that_could_hang_or_mislead_is_opened(self) -> None:
        config = Path(self.repository, ".git", "config")
        config.unlink()
        os.mkfifo(config)
        self.assertEqual(len(self.where(self.repository, "origin")[1]), 1)
        config.unlink()
        elsewhere = Path(self.world.home, "config")
        elsewhere.write_text('[remote "origin"]\nurl = https://github.com/acme/app.git\n')
        config.symlink_to(elsewhere)
        self.assertEqual(len(self.where(self.repository, "origin")[1]), 1)
        config.unlink()
        with config.open("wb") as file:
            file.truncate(2**21)
        self.assertEqual(len(self.where(self.repository, "origin")[1]), 1)

    def test_hooks(self) -> None:
        hooks = Path(self.repository, ".git", "hooks")
        hooks.mkdir(exist_ok=True)
        self.assertEqual(open_repository(self.repository, self.world.home).hooks(), [])
        Path(hooks, "pre-push").write_text("#!/bin/sh\n")
        Path(hooks, "pre-push").chmod(0o755)
        self.assertEqual(open_repository(self.repository, self.world.home).hooks(), ["pre-push"])

"""Files that ``[approval.filesystem] deny`` lists, and commands that reach them by trees, wildcards and links."""

from __future__ import annotations

import fnmatch
import os
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.command_rules.globs import paths_hold, paths_overlap
from ironcurtain.command_rules.places import normal
from ironcurtain.policy.verdict import Decision
from ironcurtain.shell.approval import read_approval
from ironcurtain.shell.gate import CommandGate
from tests.commandline.test_plain import SHELLS
from tests.shell.test_gate import HERE, HOME

TABLES: dict[str, Any] = {
    "default": "allow",
    "filesystem": {"deny": ["$CWD/.env", "$CWD/secrets/**", "/etc/shadow"]},
}

TREES = (
    *(
        "grep -rn X .",
        "grep -R X",
        "grep --recursive X",
        "grep -d recurse X .",
        "grep --directories=recurse X .",
        "cp --archive . /tmp/x",
        "cd src; git add ..",
        "rg X",
        "ag X ..",
        "cp -r . /tmp/x",
        "cp -a ../project /tmp/x",
    ),
    *(
        "git add -A",
        "git add .",
        "git commit -am x",
        "git diff",
        "git stash",
        "git log -p",
        "git log --patch",
        "git show",
    ),
    *("git grep X", "git status -v", "git archive HEAD", "tar c .", "tar cf /tmp/x -C . .", "rsync -a . /tmp/x"),
    *(
        "ls -R",
        "ls -lR ..",
        "find",
        "find . -name x",
        "find ~ -type f",
        "tree",
        "fd x",
        "diff -r . /tmp",
        "zip -r x.zip .",
    ),
    *("scp -r . h:x", "mv . /tmp/x", "mv ../project /tmp/x", "rm -r ../project", "chmod -R +r .", "cd ..; grep -r x ."),
    *("git diff -- . src", "git add src .", "git commit . -m x", "git diff -- ':/'", "git add -u src", "git diff HEAD"),
    *("nice grep -r X .", "find . -exec cat x ;"),
)
"""Commands that reach all below the directory."""

WILDCARDS = (
    "ls *",
    "cat *",
    "cat .*",
    "cat .e*",
    "cat ./*",
    "head s*/*",
    "grep x s*",
    "wc -l -- *",
    "cp * /tmp",
    "ls ../*/*",
)
"""Commands whose wildcards may stand for denied files, and for others."""

ROOT = "root"

DENIED = (
    *("grep -if.env x", "tar -cf.env src", "tar -xzf./.env", "git show HEAD:.env", "sort -uo.env a"),
    *(
        "cat .env",
        "cat ./.env",
        "cat .ENV",
        "cat .en?",
        "cat secrets/x",
        "cat secrets/*",
        "ls secrets",
        "cd secrets; ls",
    ),
    *("cat src/../.env", "cat < .env", "ls > secrets/x", "make --file=.env", "cat $PWD/.env", "grep -f.env x"),
    *(
        "cat /proc/self/cwd/.env",
        "cat /proc/self/root/etc/shadow",
        "cat /proc/1/root/etc/shadow",
        "cat /proc/1/cwd/.env",
    ),
    *(
        "cat /proc/thread-self/root/etc/shadow",
        "cat /proc/self/task/1/root/etc/shadow",
        f"cat /proc/*/{ROOT}/etc/shadow",
    ),
    *("cat /proc/self/root/proc/self/root/etc/shadow", f"cat /proc/./self//{ROOT}/./etc/shadow", "cat /etc/shado?"),
    *("cat /dev/fd/../root/etc/shadow", "cat < /dev/fd/../cwd/.env", "cat //dev/./fd/../root/etc/shadow"),
)
"""Commands that name denied files."""

OTHERS = (
    *("tar -cfx.tar src", "grep -if.envs src"),
    *("git diff -- src a", "git log -p -- src", "git add a src", "git commit -m x", "git blame a", "git grep X -- src"),
    *(
        "ls",
        "ls -la",
        "cat a",
        "grep -r X src",
        "cp -r src /tmp/x",
        "find src",
        "ls -R src",
        "rg X src",
        "tar cf x src",
    ),
    *(
        "git status",
        "git log --oneline",
        "cat .env.sample",
        "cat src/*",
        "ls src/*.py",
        "cat .environ",
        "ls /proc/self",
    ),
    *("ls 2>/dev/null", "cat < /dev/fd/0", "diff -r src lib", "cat secret"),
)
"""Commands that do not reach denied files."""


def gate(tables: dict[str, Any]) -> CommandGate:
    """:returns: a gate with these tables, on a machine without links."""
    return CommandGate(read_approval(tables, "policy.toml", HOME), (), HOME, str, HOME)


class DeniedTests(SynchronousTestCase):
    def decisions(self, commands: tuple[str, ...]) -> dict[str, Decision]:
        judge = gate(TABLES)
        return {command: judge.judged(command, HERE).decision for command in commands}

    def test_what_names_a_denied_file_is_denied(self) -> None:
        self.assertEqual({k: v for k, v in self.decisions(DENIED).items() if v is not Decision.DENY}, {})

    def test_what_reads_a_tree_with_a_denied_file_is_asked(self) -> None:
        self.assertEqual({k: v for k, v in self.decisions(TREES).items() if v is not Decision.ESCALATE}, {})
        verdict = gate(TABLES).judged("grep -rn X .", HERE)
        self.assertEqual(verdict.rule, "approval.filesystem.deny")
        self.assertEqual(verdict.reason, f"it may reach what [approval.filesystem] denies: {HERE}")

    def test_wildcards_that_other_files_match_are_asked(self) -> None:
        self.assertEqual({k: v for k, v in self.decisions(WILDCARDS).items() if v is not Decision.ESCALATE}, {})

    def test_allow_patterns_do_not_change_that(self) -> None:
        patterns = [f"{command.split()[0]} *" for command in (*TREES, *WILDCARDS) if command[0] != "."]
        judge = gate({**TABLES, "shell": {"allow_patterns": [*patterns, *TREES[:3], "cat *"]}})
        for command in (*TREES, *WILDCARDS, "cat $x"):
            self.assertIs(judge.judged(command, HERE).decision, Decision.ESCALATE, command)
        for command in DENIED:
            self.assertIs(judge.judged(command, HERE).decision, Decision.DENY, command)

    def test_others_are_allowed(self) -> None:
        self.assertEqual({k: v for k, v in self.decisions(OTHERS).items() if v is not Decision.ALLOW}, {})

    def test_open_files_of_processes_are_asked_about(self) -> None:
        judge = gate({"default": "allow"})
        for command in (
            "cat /dev/fd/3",
            "cat < /dev/fd/3",
            "cat /proc/self/fd/3",
            "cat /proc/1/fd/3/x",
            "cat /proc/*/f*/3",
        ):
            self.assertIs(judge.judged(command, HERE).decision, Decision.ESCALATE, command)

    def test_links_are_followed_on_both_sides(self) -> None:
        with tempfile.TemporaryDirectory(prefix="ic-") as directory:
            top = Path(directory).resolve()
            (top / "kept").mkdir()
            (top / "kept/x").touch()
            (top / "link").symlink_to("kept")
            (top / "project").mkdir()
            (top / "project/here").symlink_to("../kept")
            for denied in ("kept", "link"):
                tables = {"default": "allow", "filesystem": {"deny": [f"{top}/{denied}/**"]}}
                judge = CommandGate(read_approval(tables, "p", HOME), (), HOME, os.path.realpath, HOME)
                for command in ("cat here/x", "cat ../kept/x", "cat ../link/x", f"cat /proc/self/root{top}/kept/x"):
                    self.assertIs(judge.judged(command, f"{top}/project").decision, Decision.DENY, command)
                for command in ("grep -r x ..", f"ls -R {top}", "cat ../*/x"):
                    self.assertIs(judge.judged(command, f"{top}/project").decision, Decision.ESCALATE, command)

    def test_all_shells_agree(self) -> None:
        for shell in SHELLS:
            judge = CommandGate(read_approval(TABLES, "p", HOME), (), HOME, str, HOME, shell)
            self.assertIs(judge.judged("grep -rn X .", HERE).decision, Decision.ESCALATE)
            self.assertIs(judge.judged("cat .env", HERE).decision, Decision.DENY)

    @given(
        st.lists(st.sampled_from(("a", "b*", "**", "x")), min_size=1, max_size=4),
        st.lists(st.sampled_from(("a", "b", "bc", "x")), max_size=4),
        st.lists(st.sampled_from(("a", "b", "bc", "x")), min_size=1, max_size=3),
    )
    def test_a_directory_with_a_file_of_a_glob_holds_it(
        self, glob: list[str], path: list[str], below: list[str]
    ) -> None:
        names, directory = normal("/".join(glob)), tuple(path)
        if paths_overlap(names, (*directory, *below)):
            self.assertTrue(paths_hold(names, directory))
        if "**" not in names and not any(map(fnmatch.fnmatchcase, directory, names)) and directory:
            self.assertFalse(paths_hold(names, directory))

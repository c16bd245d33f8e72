"""Calls of git servers: what they would really touch, run, and connect to."""

from __future__ import annotations

from pathlib import Path
from struct import pack
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy import ToolCall, Verdict
from ironcurtain.policy.gitindex import GITLINK
from tests.policy.worlds import CASES, World, rule

POLICY = CASES["policies"]["git"]
ORIGIN = '[remote "origin"]\n\turl = https://github.com/acme/app.git\n'


class GitCallTests(SynchronousTestCase):
    """With the rules of the hand-worked cases."""

    def setUp(self) -> None:
        self.world = World.make(CASES["trees"]["repos"])
        self.addCleanup(self.world.remove)
        self.engine = self.world.engine(POLICY["rules"], protected=POLICY["protected"])

    def configure(self, text: str, repository: str = "repo") -> None:
        """Write a repository's settings."""
        Path(self.world.workspace, repository, ".git", "config").write_text(text)

    def ask(self, tool: str = "git_push", directory: str | None = None, **arguments: Any) -> Verdict:
        """:returns: the verdict on a call that works in a repository unless told otherwise."""
        if tool != "git_clone":
            arguments = {"path": "/workspace/repo", **arguments}
        return self.world.ask(self.engine, "git", tool, arguments, git_directory=directory)

    def assertVerdict(self, verdict: Verdict, expected: str) -> None:
        """:param expected: decision and rule."""
        self.assertEqual(f"{verdict.decision} {verdict.rule}", expected, verdict.reason)

    def test_settings_decide_where_a_push_goes(self) -> None:
        evil, good, ask = "https://evil.test/x", "allow remote-acme", "escalate remote-other"
        for more, expected in (
            ("", good),
            (f'[remote "origin"]\n\tpushurl = {evil}\n', ask),
            (f'[remote "origin"]\n\turl = {evil}\n', ask),
            (f'[branch "main"]\n\tpushRemote = {evil}\n', ask),
            (f"[remote]\n\tpushDefault = {evil}\n", ask),
            (f'[branch "main"]\n\tremote = {evil}\n', ask),
            ('[branch "main"]\n\tremote = .\n', ask),
            ('[url "https://evil.test/"]\n\tinsteadOf = https://github.com/\n', ask),
            ('[url "https://evil.test/"]\n\tpushInsteadOf = https://\n', ask),
            ("[include]\n\tpath = more\n", "deny structural-git-config"),
            ('[core]\n\tx = # \\\n[branch "main"]\n\tremote = evil\n', ask),
            ('[remote ""]\n\tpushDefault = origin\n[remote]\n\tpushDefault = https://evil.test/\n', ask),
            ('[remote ""]\n\tpushDefault = https://evil.test/\n', good),
            ("[oops\n", "deny structural-git-config"),
        ):
            self.configure(ORIGIN + more)
            self.assertVerdict(self.ask(), expected)

    def test_a_fetch_does_not_go_where_a_push_goes(self) -> None:
        self.configure(
            ORIGIN + '\tpushurl = https://evil.test/x\n[branch "main"]\n\tpushRemote = https://evil.test/x\n'
        )
        self.assertVerdict(self.ask("git_fetch"), "allow remote-acme")
        self.assertVerdict(self.ask("git_push", remote="origin"), "escalate remote-other")

    def test_a_remote_may_be_called_like_an_address(self) -> None:
        address = "https://github.com/acme/app.git"
        self.assertVerdict(self.ask(remote=address), "allow remote-acme")
        self.configure(f'{ORIGIN}[remote "{address}"]\n\turl = https://evil.test/x\n')
        self.assertVerdict(self.ask(remote=address), "escalate remote-other")

    def test_an_address_is_rewritten_like_a_remote(self) -> None:
        self.configure('[url "https://evil.test/"]\n\tinsteadOf = https://github.com/\n')
        self.assertVerdict(self.ask(remote="https://github.com/acme/app.git"), "escalate remote-other")

    def test_a_detached_head_pushes_to_origin(self) -> None:
        self.assertVerdict(self.ask(path="/workspace/detached"), "allow remote-acme")
        self.assertVerdict(self.ask(path="/workspace/tracking"), "escalate remote-other")
        self.assertVerdict(self.ask(path="/workspace/evil-origin"), "escalate remote-other")

    def test_an_empty_remote_is_no_remote(self) -> None:
        verdict = self.ask(remote="")
        self.assertVerdict(verdict, "allow remote-acme")
        self.assertEqual(verdict.arguments["remote"], "")
        self.assertVerdict(self.ask(remote=" "), "escalate remote-other")

    def test_outside_the_workspace_no_default_is_looked_up(self) -> None:
        place = "$HOME/src/app/.git"
        self.world.add({"files": {f"{place}/HEAD": "ref: refs/heads/main\n", f"{place}/config": ORIGIN}})
        self.assertVerdict(self.ask(path="~/src/app"), "escalate remote-other")
        self.assertVerdict(self.ask(path="~/src/app", remote="origin"), "allow read-src")

    def test_the_servers_list_holds_for_the_remote_that_git_would_use(self) -> None:
        self.configure(ORIGIN)
        for hosts, expected in (
            (["github.com"], "allow remote-acme"), (["other.test"], "escalate structural-domain-escalate")
        ):  # fmt: skip
            engine = self.world.engine(POLICY["rules"], protected=POLICY["protected"], domains={"git": hosts})
            for arguments in ({}, {"remote": "origin"}):
                asked = self.world.ask(engine, "git", "git_push", {"path": "/workspace/repo", **arguments})
                self.assertVerdict(asked, expected)

    def test_a_rule_without_remotes_allows_none(self) -> None:
        engine = self.world.engine([rule("push", "allow", server=["git"], tool=["git_push"])])
        for repository, expected in (("repo", "deny default-deny"), ("bare-of-remotes", "allow push")):
            verdict = self.world.ask(engine, "git", "git_push", {"path": f"/workspace/{repository}"})
            self.assertVerdict(verdict, expected)

    def test_what_would_run_a_program_or_be_an_option_is_denied(self) -> None:
        for remote in ("ext::sh -c x", "foo://github.com/acme/app", "ssh://-oProxyCommand=x/acme/app"):
            self.assertVerdict(self.ask(remote=remote), "deny structural-git-remote")
            self.configure(f'[remote "origin"]\n\turl = {remote}\n')
            self.assertVerdict(self.ask(), "deny structural-git-remote")
        for arguments in ({"remote": "--upload-pack=x"}, {"branch": "--receive-pack=x"}):
            self.assertVerdict(self.ask(**arguments), "deny structural-option-injection")
        for verdict in (self.ask("git_add", files=["a", "--x"]), self.ask("git_clone", url="-x", localPath="y")):
            self.assertVerdict(verdict, "deny structural-option-injection")

    def test_settings_that_run_programs_deny_every_call(self) -> None:
        for more in ("[core]\n\tfsmonitor = ./x\n", "[core]\n\tsshCommand = x\n", '[filter "x"]\n\tclean = x\n'):
            self.configure(ORIGIN + more)
            self.assertVerdict(self.ask("git_status"), "deny structural-git-config")

    def test_settings_that_cannot_be_read_deny_every_call(self) -> None:
        config = Path(self.world.workspace, "repo", ".git", "config")
        for text in (f"{ORIGIN}# \0\n", f"{ORIGIN}{'#' * 2**20}\n"):
            config.write_text(text)
            self.assertVerdict(self.ask("git_status"), "deny structural-git-config")
        self.configure(f"{ORIGIN}[extensions]\n\tworktreeConfig = yes\n")
        config.with_name("config.worktree").write_text('[filter "x"]\n\tclean = x\n')
        self.assertVerdict(self.ask("git_status"), "deny structural-git-config")

    def test_a_decoy_does_not_hide_the_repository_that_git_takes(self) -> None:
        self.configure(f'{ORIGIN}[filter "x"]\n\tclean = x\n')
        decoy = {"dirs": [f"$WORKSPACE/repo/in/.git/{name}" for name in ("objects", "refs")]}
        self.world.add({**decoy, "files": {"$WORKSPACE/repo/in/.git/HEAD": "nothing\n"}})
        self.assertVerdict(self.ask("git_status", path="/workspace/repo/in"), "deny structural-git-config")
        Path(self.world.workspace, "repo", "in", ".git", "HEAD").write_text("ref:  refs/heads/main\n")
        self.assertVerdict(self.ask("git_status", path="/workspace/repo/in"), "allow structural-sandbox-allow")

    def test_a_bare_repository_beside_an_empty_one(self) -> None:
        bare = {"dirs": [f"$WORKSPACE/b/{name}" for name in (".git", "c", "objects", "refs")]}
        files = {"$WORKSPACE/b/HEAD": "ref: refs/heads/main\n", "$WORKSPACE/b/config": "[core]\n\tpager = x\n"}
        self.world.add({**bare, "files": files})
        self.assertVerdict(self.ask("git_status", path="/workspace/b"), "deny structural-git-config")

    def test_settings_of_submodules_count(self) -> None:
        """Git looks into them, and theirs into their own."""
        index, padded = Path(), b""
        for outer, inner in (("repo", "repo/sub"), ("repo/sub", "repo/sub/deep")):
            place = Path(self.world.workspace, inner, ".git")
            for name in ("objects", "refs"):
                (place / name).mkdir(parents=True)
            (place / "HEAD").write_text("ref: refs/heads/main\n")
            entry = bytes(24) + GITLINK + bytes(32) + b"\0\x04" + Path(inner).name.encode()
            padded = entry.ljust((len(entry) + 8) // 8 * 8, b"\0")
            index = Path(self.world.workspace, outer, ".git", "index")
            index.write_bytes(b"DIRC" + pack(">II", 2, 1) + padded + bytes(20))
        self.assertVerdict(self.ask("git_status"), "allow structural-sandbox-allow")
        self.configure("[core]\n\tpager = x\n", "repo/sub/deep")
        self.assertVerdict(self.ask("git_status"), "deny structural-git-config")
        self.configure("", "repo/sub/deep")
        index.write_bytes(b"DIRC" + pack(">II", 4, 1) + padded + bytes(20))
        self.assertVerdict(self.ask("git_status"), "deny structural-git-config")

    def test_a_partial_clone_may_fetch_at_any_time(self) -> None:
        for more in ('[remote "origin"]\n\tpromisor = true\n', "[extensions]\n\tpartialClone = origin\n"):
            self.configure(ORIGIN + more)
            self.assertVerdict(self.ask("git_status"), "escalate structural-git-fetches")

    def test_files_that_git_would_quote_are_judged(self) -> None:
        outside = f"{self.world.root}/outside/x"
        for path in (outside, "../../outside/x"):
            self.configure(f"{ORIGIN}[blame]\n\tignoreRevsFile = {path}\n")
            self.assertVerdict(self.ask("git_status"), "deny default-deny")
        self.configure(f"{ORIGIN}[blame]\n\tignoreRevsFile = {self.world.home}/vault/x\n")
        self.assertVerdict(self.ask("git_status"), "deny structural-protected-path")
        self.configure(f"{ORIGIN}[blame]\n\tignoreRevsFile = .ignored\n")
        self.assertVerdict(self.ask("git_status"), "allow structural-sandbox-allow")
        self.configure(f"{ORIGIN}[blame]\n\tignoreRevsFile = ~/x\n")
        self.assertVerdict(self.ask("git_status"), "deny structural-git-config")

    def test_where_gitpython_would_work_is_judged(self) -> None:
        """It runs git where a bare repository lies, and where a worktree's own directory says."""
        bare = {"dirs": ["$WORKSPACE/objects", "$WORKSPACE/refs"]}
        self.world.add({**bare, "files": {"$WORKSPACE/HEAD": "ref: refs/heads/main\n"}})
        self.assertVerdict(self.ask("git_status", path="/workspace"), "deny default-deny")
        Path(self.world.workspace, "HEAD").unlink()
        named = Path(self.world.workspace, "repo", ".git", "gitdir")
        named.write_text(f"{self.world.root}/outside/.git\n")
        self.assertVerdict(self.ask("git_status"), "deny default-deny")

    def test_who_is_asked_anyway_is_told_of_hooks_too(self) -> None:
        asked = self.ask(remote="https://evil.test/x")
        self.assertEqual((asked.rule, asked.asking), ("remote-other", ("remote-other",)))
        hook = Path(self.world.workspace, "repo", ".git", "hooks", "pre-push")
        hook.parent.mkdir(exist_ok=True)
        hook.write_text("#!/bin/sh\n")
        hook.chmod(0o755)
        told = self.ask(remote="https://evil.test/x")
        self.assertEqual((told.rule, told.asking), ("remote-other", ("remote-other", "structural-git-hooks")))
        self.assertIn("; and the repository has hooks", told.reason)

    def test_hooks_are_shown_to_a_person(self) -> None:
        hook = Path(self.world.workspace, "repo", ".git", "hooks", "pre-push")
        hook.parent.mkdir()
        hook.write_text("#!/bin/sh\n")
        self.assertVerdict(self.ask(), "allow remote-acme")
        hook.chmod(0o755)
        self.assertVerdict(self.ask(), "escalate structural-git-hooks")
        self.assertVerdict(self.ask("git_reset"), "escalate structural-git-hooks")
        self.assertVerdict(self.ask("git_status"), "allow structural-sandbox-allow")
        hook.unlink()
        self.assertVerdict(self.ask("git_reset"), "allow structural-sandbox-allow")
        self.configure(f"{ORIGIN}[core]\n\thooksPath = x\n")
        self.assertVerdict(self.ask("git_reset"), "escalate structural-git-hooks")

    def test_a_repository_elsewhere_is_judged_where_it_is(self) -> None:
        real = {"dirs": ["$HOME/src/app/.git/objects", "$HOME/src/app/.git/refs"]}
        self.world.add({**real, "files": {"$HOME/src/app/.git/HEAD": "ref: refs/heads/main\n"}})
        plants: tuple[dict[str, Any], ...] = (
            {"files": {"$WORKSPACE/x1/.git": "gitdir: $HOME/src/app/.git\n"}},
            {"dirs": ["$WORKSPACE/x2"], "links": {"$WORKSPACE/x2/.git": "$HOME/src/app/.git"}},
        )
        for number, plant in enumerate(plants, 1):
            self.world.add(plant)
            path = f"/workspace/x{number}"
            self.assertVerdict(self.ask("git_status", path=path), "allow read-src")
            self.assertVerdict(self.ask("git_reset", path=path), "escalate history-src")
        self.configure("[core]\n\tworktree = $HOME\n".replace("$HOME", f"{self.world.home}/vault"))
        self.assertVerdict(self.ask("git_add", files=["a.txt"]), "deny structural-protected-path")
        self.configure(f"[core]\n\tworktree = {self.world.root}/outside\n")
        self.assertVerdict(self.ask("git_add", files=["a.txt"]), "deny default-deny")

    def test_objects_and_branches_elsewhere_are_judged(self) -> None:
        alternates = Path(self.world.workspace, "repo", ".git", "objects", "info", "alternates")
        alternates.parent.mkdir()
        alternates.write_text(f"{self.world.home}/src/app/.git/objects\n")
        self.assertVerdict(self.ask("git_status"), "allow read-src")
        self.assertVerdict(self.ask("git_reset"), "escalate history-src")
        alternates.write_text(f"# none\n\n../../../outside\n{self.world.root}/outside\n")
        self.assertVerdict(self.ask("git_status"), "deny default-deny")
        alternates.unlink()
        refs = Path(self.world.workspace, "repo", ".git", "refs")
        refs.rename(refs.with_name("old"))
        refs.symlink_to(f"{self.world.root}/outside")
        self.assertVerdict(self.ask("git_status"), "deny default-deny")

    def test_each_argument_that_names_a_repository_is_looked_at(self) -> None:
        """Also one that stands after others in the annotation, which the call does not use."""
        roles = ["read-path", "write-history"]
        tool = {"toolName": "git_add", "args": {"path": roles, "repo_path": roles}}
        engine = self.world.engine(annotations={"servers": {"git": {"tools": [tool]}}})
        self.configure(f"{ORIGIN}[core]\n\tfsmonitor = x\n")
        schema: dict[str, Any] = {"type": "object", "properties": {"repo_path": {"type": "string"}}}
        both = {"type": "object", "properties": {**schema["properties"], "path": {"type": "string"}}}
        for form in (schema, both):
            verdict = engine.evaluate(ToolCall("git", "git_add", {"repo_path": "repo"}), form)
            self.assertVerdict(verdict, "deny structural-git-config")

    def test_a_worktree_in_the_workspace_is_free(self) -> None:
        self.world.add(
            {
                "files": {
                    "$WORKSPACE/tree/.git": "gitdir: ../repo/.git/worktrees/tree\n",
                    "$WORKSPACE/repo/.git/worktrees/tree/HEAD": "ref: refs/heads/main\n",
                    "$WORKSPACE/repo/.git/worktrees/tree/commondir": "../..\n",
                }
            }
        )
        self.assertVerdict(self.ask("git_reset", path="tree"), "allow structural-sandbox-allow")
        self.assertVerdict(self.ask(path="tree"), "allow remote-acme")

    def test_the_remembered_directory_is_judged_and_forwarded(self) -> None:
        for arguments in ({}, {"path": ""}, {"path": "  "}):
            verdict = self.world.ask(self.engine, "git", "git_status", arguments, git_directory="/workspace/repo")
            self.assertVerdict(verdict, "allow structural-sandbox-allow")
            self.assertEqual(verdict.arguments, {"path": f"{self.world.workspace}/repo"})
            verdict = self.world.ask(self.engine, "git", "git_status", arguments)
            self.assertVerdict(verdict, "deny git-path-enrichment-failed")
        verdict = self.world.ask(self.engine, "git", "git_push", {}, git_directory="$ROOT/outside")
        self.assertVerdict(verdict, "deny default-deny")

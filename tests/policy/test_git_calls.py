"""Calls of git servers: what is judged and shown of where they connect to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.policy.engine import PolicyEngine
from ironcurtain.policy.loading import default_annotations, default_policy
from ironcurtain.policy.pathmap import PathMap
from ironcurtain.policy.verdict import ToolCall, Verdict
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

    def test_settings_that_say_more_than_one_thing_are_put_before_a_person(self) -> None:
        evil, good, ask = "https://evil.test/x", "allow remote-acme", "escalate remote-other"
        for more, expected in (
            ("", good),
            (f'[remote "origin"]\n\tpushurl = {evil}\n', ask),
            (f'[remote "origin"]\n\turl = {evil}\n', ask),
            (f'[branch "main"]\n\tpushRemote = {evil}\n', ask),
            (f"[remote]\n\tpushDefault = {evil}\n", ask),
            (f'[branch "main"]\n\tremote = {evil}\n', ask),
            ('[branch "main"]\n\tremote = origin\n', good),
            ('[url "https://evil.test/"]\n\tinsteadOf = https://github.com/\n', ask),
            ("[INCLUDE]\n\tpath = more\n", ask),
            ("[oops\n", ask),
        ):
            self.configure(ORIGIN + more)
            for arguments in ({}, {"remote": "origin"}):
                self.assertVerdict(self.ask(**arguments), expected)

    def test_settings_that_cannot_be_read_safely_are_no_settings(self) -> None:
        config = Path(self.world.workspace, "repo", ".git", "config")
        elsewhere = Path(self.world.home, "config")
        elsewhere.write_text(ORIGIN)

        def large() -> None:
            config.write_bytes(b"#" * 2**20 + ORIGIN.encode())

        for make in (lambda: os.mkfifo(config), lambda: config.symlink_to(elsewhere), large):
            config.unlink()
            make()
            self.assertVerdict(self.ask(remote="origin"), "escalate remote-other")

    def test_a_remote_may_be_called_like_an_address(self) -> None:
        address = "https://github.com/acme/app.git"
        self.assertVerdict(self.ask(remote=address), "allow remote-acme")
        self.configure(f'{ORIGIN}[remote "{address}"]\n\turl = https://evil.test/x\n')
        self.assertVerdict(self.ask(remote=address), "escalate remote-other")

    def test_an_address_is_rewritten_like_a_remote(self) -> None:
        self.configure('[url "https://evil.test/"]\n\tinsteadOf = https://github.com/\n')
        self.assertVerdict(self.ask(remote="https://github.com/acme/app.git"), "escalate remote-other")

    def test_an_empty_remote_is_no_remote(self) -> None:
        verdict = self.ask(remote="")
        self.assertVerdict(verdict, "allow remote-acme")
        self.assertEqual(verdict.arguments["remote"], "")
        self.assertVerdict(self.ask(remote=" "), "escalate remote-other")

    def test_outside_the_workspace_no_default_is_looked_up(self) -> None:
        place = "$HOME/src/app/.git"
        self.world.add({"files": {f"{place}/HEAD": "ref: refs/heads/main\n", f"{place}/config": ORIGIN}})
        self.assertVerdict(self.ask(path="~/src/app"), "escalate remote-other")
        self.assertVerdict(self.ask(path="~/src/app", remote="origin"), "escalate remote-other")

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

    def test_the_remembered_directory_is_judged_and_forwarded(self) -> None:
        for arguments in ({}, {"path": ""}, {"path": "  "}):
            verdict = self.world.ask(self.engine, "git", "git_status", arguments, git_directory="/workspace/repo")
            self.assertVerdict(verdict, "allow structural-sandbox-allow")
            self.assertEqual(verdict.arguments, {"path": f"{self.world.workspace}/repo"})
            verdict = self.world.ask(self.engine, "git", "git_status", arguments)
            self.assertVerdict(verdict, "deny git-path-enrichment-failed")
        verdict = self.world.ask(self.engine, "git", "git_push", {}, git_directory="$ROOT/outside")
        self.assertVerdict(verdict, "deny default-deny")

    def test_protected_files_are_denied_in_whatever_argument_and_form(self) -> None:
        engine = PolicyEngine(
            default_policy(),
            default_annotations(),
            paths=PathMap(self.world.workspace),
            home=self.world.home,
            protected=["/workspace/repo/.env", "/workspace/repo/config/key"],
        )

        def rule_of(tool: str, arguments: dict[str, Any]) -> str:
            return engine.evaluate_assumed(ToolCall("git", tool, {"path": "/workspace/repo", **arguments})).rule

        self.world.add({"links": {"$WORKSPACE/repo/link": "config"}})
        calls: list[tuple[str, dict[str, Any]]] = [
            ("git_add", {"files": ["README", ".env"]}),
            ("git_add", {"files": ["x/../.env"]}),
            ("git_add", {"files": [":/.env"]}),
            ("git_add", {"files": [":(top,literal)config/key"]}),
            ("git_add", {"files": ["link/key"]}),
            ("git_add", {"files": ["/workspace/repo/.env"]}),
            ("git_add", {"files": [f"{self.world.workspace}/repo/.env"]}),
            ("git_show", {"object": "HEAD", "filePath": ".env"}),
            ("git_show", {"object": "HEAD:./.env"}),
            ("git_show", {"object": "main:config/key"}),
            ("git_show", {"object": "HEAD:config/key/deeper"}),
            ("git_diff", {"paths": ["config/key"]}),
            ("git_blame", {"file": ".env"}),
            ("git_checkout", {"target": "main", "paths": [".env"]}),
            ("git_checkout", {"target": ".env"}),
            ("git_commit", {"message": "x", "filesToStage": [".env"]}),
        ]
        for tool, arguments in calls:
            self.assertEqual(rule_of(tool, arguments), "structural-protected-path", (tool, arguments))
        for tool, arguments in (
            ("git_add", {"files": [".env.example", "config", "a:b", ":("]}),
            ("git_show", {"object": "HEAD:.envrc"}),
            ("git_commit", {"message": ".env"}),
        ):
            self.assertEqual(rule_of(tool, arguments), "structural-sandbox-allow", (tool, arguments))

    def test_file_that_replaces_a_protected_link_is_protected(self) -> None:
        self.world.add({"files": {"$HOME/settings": "x"}, "links": {"$WORKSPACE/repo/.env": "$HOME/settings"}})
        engine = self.world.engine(POLICY["rules"], protected=["/workspace/repo/.env"])
        Path(self.world.workspace, "repo", ".env").unlink()
        Path(self.world.workspace, "repo", ".env").write_text("key")
        for server, tool, arguments in (
            ("filesystem", "read_text_file", {"path": "/workspace/repo/.env"}),
            ("filesystem", "read_text_file", {"path": "~/settings"}),
            ("git", "git_add", {"path": "/workspace/repo", "files": [".env"]}),
        ):
            self.assertVerdict(self.world.ask(engine, server, tool, arguments), "deny structural-protected-path")

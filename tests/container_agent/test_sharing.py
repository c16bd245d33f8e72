"""The user's own files for an agent."""

from __future__ import annotations

import os
import shutil
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.agents.adapter import Shareable, shareables
from ironcurtain.agents.registry import BUILT_IN
from ironcurtain.container_agent import sharing
from ironcurtain.container_agent.sharing import chosen, collect, joined_text, sentences, stage
from ironcurtain.home.layout import private_directory
from ironcurtain.home.session_paths import SessionPaths
from ironcurtain.process.accounts import Account

MEMORY, SKILLS = Shareable("memory", ".claude/CLAUDE.md"), Shareable("skills", ".claude/skills")
JOINED = Shareable("memory", ".codex/AGENTS.md", joined=True)


class SharingCase(SynchronousTestCase):
    def setUp(self) -> None:
        self.top = Path(tempfile.mkdtemp(prefix="ic")).resolve()
        self.addCleanup(shutil.rmtree, self.top)
        self.home = self.top / "home"
        self.write(".claude/CLAUDE.md", "use tabs")
        self.write(".claude/skills/pdf/SKILL.md", "read pdf")
        self.write(".claude/skills/pdf/run.sh", "#!/bin/sh").chmod(0o755)

    def write(self, path: str, text: str) -> Path:
        file = self.home / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def files(self, *shared: Shareable) -> set[str]:
        return {path for each in collect(str(self.home), shared) for path in each.files}

    def said(self, *shared: Shareable) -> str:
        return "\n".join(sentences(collect(str(self.home), shared)))


class CollectTests(SharingCase):
    def test_memory_and_skills_are_read(self) -> None:
        self.assertEqual(
            self.files(MEMORY, SKILLS),
            {".claude/CLAUDE.md", ".claude/skills/pdf/SKILL.md", ".claude/skills/pdf/run.sh"},
        )

    def test_links_are_never_followed(self) -> None:
        outside = self.top / "outside"
        outside.mkdir()
        (outside / "note").write_text("private")
        (self.home / ".claude/skills/pdf/note").symlink_to(outside / "note")
        (self.home / ".claude/skills/linked").symlink_to(outside)
        self.assertEqual(self.files(SKILLS), {".claude/skills/pdf/SKILL.md", ".claude/skills/pdf/run.sh"})
        self.assertIn(".claude/skills/pdf/note (a link)", self.said(SKILLS))
        shutil.move(self.home / ".claude", outside / "claude")
        (self.home / ".claude").symlink_to(outside / "claude")
        self.assertEqual(self.files(MEMORY, SKILLS), set())

    def test_linked_memory_is_named_and_left_out(self) -> None:
        (self.home / ".claude/CLAUDE.md").unlink()
        (self.home / ".claude/CLAUDE.md").symlink_to(self.top / "dotfiles")
        self.assertEqual(self.files(MEMORY), set())
        self.assertIn("not shared with the agent: .claude/CLAUDE.md (a link)", self.said(MEMORY))

    def test_secrets_and_settings_are_left_out_whatever_they_are_called(self) -> None:
        for name in (
            ".env",
            "server.pem",
            "id_rsa",
            "credentials.json",
            "API_TOKEN.txt",
            "settings.json",
            ".git/config",
        ):
            self.write(f".claude/skills/pdf/{name}", "x")
        self.write(".claude/skills/pdf/notes", "-----BEGIN RSA PRIVATE KEY-----")
        self.assertEqual(self.files(SKILLS), {".claude/skills/pdf/SKILL.md", ".claude/skills/pdf/run.sh"})
        self.write(".claude/skills/token-count/secrets.md", "how to keep secrets")
        self.assertIn(".claude/skills/token-count/secrets.md", self.files(SKILLS))

    def test_pipes_and_too_many_files_are_left_out(self) -> None:
        os.mkfifo(self.home / ".claude/skills/pipe")
        self.patch(sharing, "FILES_LIMIT", 1)
        self.assertEqual(len(self.files(SKILLS)), 1)
        self.assertIn("skills/pipe (no file)", self.said(SKILLS))

    def test_what_is_missing_is_nothing(self) -> None:
        self.assertEqual(self.said(JOINED), "")


class StageTests(SharingCase):
    def setUp(self) -> None:
        super().setUp()
        self.paths = SessionPaths(private_directory(self.top / "session"))
        self.account = Account(os.geteuid(), os.getegid())
        private_directory(self.paths.agent_home)

    def mounts(self, *shared: Shareable) -> dict[str, str]:
        made = stage(collect(str(self.home), shared), self.paths, self.account)
        self.assertTrue(all(mount.read_only for mount in made))
        return {mount.target: mount.source for mount in made}

    def test_copies_are_mounted_over_places_that_exist(self) -> None:
        made = self.mounts(MEMORY, SKILLS)
        self.assertEqual(set(made), {"/home/agent/.claude/CLAUDE.md", "/home/agent/.claude/skills"})
        self.assertEqual(Path(made["/home/agent/.claude/CLAUDE.md"]).read_text(), "use tabs")
        self.assertTrue(os.access(Path(made["/home/agent/.claude/skills"]) / "pdf/run.sh", os.X_OK))
        self.assertTrue((self.paths.agent_home / ".claude/CLAUDE.md").is_file())
        self.assertTrue((self.paths.agent_home / ".claude/skills").is_dir())

    def test_links_of_the_agent_in_its_home_are_replaced(self) -> None:
        (self.paths.agent_home / ".claude").symlink_to(self.top)
        self.mounts(MEMORY)
        self.assertFalse((self.paths.agent_home / ".claude").is_symlink())
        self.assertEqual((self.home / ".claude/CLAUDE.md").read_text(), "use tabs")
        self.assertFalse((self.top / "CLAUDE.md").exists())

    def test_what_is_no_longer_shared_is_gone(self) -> None:
        self.mounts(MEMORY, SKILLS)
        self.assertEqual(self.mounts(), {})
        self.assertEqual(list(self.paths.shared.iterdir()), [])

    def test_joined_text_is_not_mounted(self) -> None:
        self.write(".codex/AGENTS.md", "use spaces")
        self.assertEqual(self.mounts(JOINED), {})
        text = joined_text(collect(str(self.home), [JOINED]))
        self.assertIn("~/.codex/AGENTS.md", text)
        self.assertTrue(text.endswith("use spaces\n"))


class SettingTests(SynchronousTestCase):
    def test_the_setting_chooses(self) -> None:
        offered = (MEMORY, SKILLS)
        for share, names in ((True, {"memory", "skills"}), (False, set()), (("skills",), {"skills"}), ((), set())):
            self.assertEqual({each.name for each in chosen(offered, share)}, names)

    def test_no_agent_offers_settings_or_logins(self) -> None:
        for adapter in BUILT_IN:
            for each in shareables(adapter):
                name = each.path.rpartition("/")[2]
                self.assertTrue(each.path.startswith("."), each)
                self.assertTrue(name == ".goosehints" or not sharing.may_be_secret(name), each)

    def test_adapter_of_another_package_shares_nothing(self) -> None:
        self.assertEqual(shareables(object()), ())  # type: ignore[arg-type]

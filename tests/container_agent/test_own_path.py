"""An agent in its workspace's own path."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path

import msgspec

from ironcurtain.sandbox.linked_repository import FORGET
from ironcurtain.session import events
from ironcurtain.session.model import SessionInfo
from ironcurtain.session.session import Session
from tests.container_agent.worlds import ContainerTestCase
from tests.machine import UID

IDENTITY = "[user]\n\tname = Ann\n\temail = ann@home.test\n[alias]\n\tx = status\n"


class OwnPathTests(ContainerTestCase):
    def setUp(self) -> None:
        super().setUp()
        # Where images have nothing: below /tmp there would be no path of its own.
        self.project = Path(tempfile.mkdtemp(prefix="ic", dir="/var/tmp")).resolve()
        self.addCleanup(shutil.rmtree, self.project)
        script = self.project / "script"
        script.write_text(f"#!{self.project}/sh\necho started by $0\n")
        script.chmod(0o755)
        (self.project / "sh").symlink_to("/bin/sh")

    def own(self) -> None:
        """Give the project to the account of the containers."""
        subprocess.run(["chown", "-R", f"{UID}", str(self.project)], check=True)

    async def where(self, session: Session) -> str:
        return (await self.say(session, "pwd")).strip()

    async def test_agent_works_there_with_a_second_name_and_the_users_identity(self) -> None:
        (self.top / ".gitconfig").write_text(IDENTITY)
        self.own()
        session = await self.start(workspace=self.project)
        said = await self.say(
            session,
            "pwd; ./script; /workspace/script; echo 1 >/workspace/new; cat $OLDPWD new; cat /etc/ironcurtain/told.md",
            'echo "$GIT_AUTHOR_NAME|$GIT_COMMITTER_EMAIL"; env | grep -c alias',
            "exit 0",
        )
        self.assertEqual(
            said.splitlines()[:4], [str(self.project), "started by ./script", "started by /workspace/script", "1"]
        )
        self.assertIn(f"- {self.project} holds the files", said)
        self.assertIn("second name here is /workspace", said)
        self.assertEqual(said.splitlines()[-2:], ["Ann|ann@home.test", "0"])
        self.assertEqual((self.project / "new").stat().st_uid, UID)
        self.assertEqual(session.info.directory, str(self.project))

    async def test_resumed_session_stays_in_the_directory_of_its_conversation(self) -> None:
        self.own()
        session = await self.start(workspace=self.project)
        self.assertEqual(await self.where(session), str(self.project))
        await self.world.manager.close(session, "over")
        resumed = await self.start(resume=session.id)
        self.assertEqual(await self.where(resumed), str(self.project))
        await self.world.manager.close(resumed, "over")
        # As a version wrote it that knew only one name.
        saved = msgspec.json.decode(session.paths.snapshot.read_bytes(), type=dict)
        del saved["directory"]
        session.paths.snapshot.write_bytes(msgspec.json.encode(saved))
        self.assertEqual(
            msgspec.json.decode(session.paths.snapshot.read_bytes(), type=SessionInfo).directory, "/workspace"
        )
        earlier = await self.start(resume=session.id)
        self.assertEqual(await self.say(earlier, f"pwd; cd {self.project}; pwd"), f"/workspace\n{self.project}\n")

    def git(self, *commands: str) -> None:
        """Make the project a repository, and give it to the account of the containers."""
        identity = ("-c", "user.name=Ann", "-c", "user.email=ann@home.test", "-c", "protocol.file.allow=always")
        for words in ("init -q", "commit -q --allow-empty -m x", *commands):
            subprocess.run(["git", *identity, *words.split()], cwd=self.project, check=True)
        self.own()

    async def test_agent_in_a_worktree_is_told_what_git_cannot_do(self) -> None:
        self.git("worktree add -q tree")
        session = await self.start(workspace=self.project / "tree")
        self.assertIn(FORGET, await self.say(session, "cat /etc/ironcurtain/told.md"))

    async def test_settings_of_a_submodule_are_read_only_next_to_what_git_writes(self) -> None:
        self.git(f"submodule -q add {self.project} part")
        part, own = self.project / "part", self.project / ".git/modules/part"
        session = await self.start(workspace=part)
        names = ("config", "config.lock", "commondir", "config.worktree", "hooks/post-commit", "index")
        writes = "; ".join(f"echo >>{own / name}" for name in names)
        said = await self.say(session, f"cat .git {own}/commondir; sh -c '{writes}' 2>&1; true")
        self.assertEqual(said.splitlines()[:2], [f"gitdir: {own}", "."])
        self.assertEqual(said.count("Read-only file system"), len(names) - 1, said)
        await self.world.manager.close(session, "over")
        self.assertEqual({"config.lock", "commondir"} & {path.name for path in own.iterdir()}, set())

    async def test_path_of_the_image_is_named_and_not_used(self) -> None:
        temporary = self.top / "project"
        temporary.mkdir()
        shutil.chown(temporary, UID)
        session = await self.start(workspace=temporary)
        self.assertEqual(await self.where(session), "/workspace")
        notices = [event.text for event in self.seen(session, events.Notice)]
        self.assertIn(
            "the agent finds the workspace at /workspace only: its own path collides with /tmp there", notices
        )

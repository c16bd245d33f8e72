"""
What reads in a workspace on the host (snapshot, comparison, patch, export, planted files) opens nothing through links
and runs no program, wherever the links are.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from twisted.internet.inotify import IN_ACCESS, IN_ATTRIB, IN_CREATE, IN_DELETE, IN_MODIFY, IN_OPEN, INotify
from twisted.python.filepath import FilePath

from ironcurtain.project.export import export
from tests.project.worlds import WorkspaceTestCase

SECRET = "the-moon-is-far-7731"
TOUCHED = IN_OPEN | IN_ACCESS | IN_MODIFY | IN_CREATE | IN_DELETE | IN_ATTRIB
STARTS = ("subprocess.Popen", "os.exec", "os.fork", "os.forkpty", "os.posix_spawn", "os.spawn", "os.system")


class LinkTests(WorkspaceTestCase):
    started: list[str] | None = None
    """Programs that were started while somebody looks."""

    @classmethod
    def setUpClass(cls) -> None:
        sys.addaudithook(lambda event, _: LinkTests._heard(event))  # it stays for the process's life

    @classmethod
    def _heard(cls, event: str) -> None:
        if cls.started is not None and event in STARTS:
            cls.started.append(event)

    def setUp(self) -> None:
        super().setUp()
        self.outside = self.top / "outside"
        self.outside.mkdir()
        self.canary = self.outside / "canary"
        self.canary.write_text(f"{SECRET}\n")
        git = ["git", "-C", str(self.workspace), "-c", "user.name=a", "-c", "user.email=a@b.test"]
        for path in ("file", "a/b/file", "package.json", ".gitmodules", ".gitattributes", ".envrc"):
            self.write(path)
        for words in (["init", "-q"], ["add", "file"], ["commit", "-qm", "one"]):
            subprocess.run([*git, *words], check=True, env={"PATH": os.environ["PATH"], "HOME": "/nonexistent"})

    def looked(self, work: Callable[[], None]) -> None:
        """Do something, while it is looked at who touches what is outside."""
        seen: list[str] = []
        watch = INotify(None)
        for path in (self.outside, self.canary):
            watch.watch(FilePath(bytes(path)), TOUCHED, callbacks=[lambda _, at, mask: seen.append(f"{at} {mask}")])
        LinkTests.started = []
        try:
            work()
            started = LinkTests.started
        finally:
            LinkTests.started = None
            watch.doRead()
            watch.connectionLost(None)
        self.assertEqual((seen, started), ([], []))

    def everything(self) -> str:
        """:returns: what a person sees of the workspace."""
        printed = [self.as_patch(), repr(self.findings())]
        to = self.top / "exported"
        to.mkdir()
        export(self.comparison(), to)
        for path in to.rglob("*"):
            self.assertFalse(path.is_symlink() and str(path.resolve()).startswith(str(self.outside)), path)
            printed += [path.read_text(errors="replace")] if path.is_file() and not path.is_symlink() else []
        shutil.rmtree(to)
        return "".join(printed)

    def each_as_a_link(self, place: Callable[[Path], Path]) -> None:
        """Replace each file and directory in turn by a link outside, before and after the list of files is taken."""
        names = sorted(path for path in self.workspace.rglob("*") if not path.is_symlink())
        self.assertGreater(len(names), 30)
        for name in names:
            kept = self.top / "kept"
            os.rename(name, kept)
            name.symlink_to(place(kept))
            self.look()
            name.unlink()
            self.begin()
            name.symlink_to(place(kept))
            self.look()
            name.unlink()
            os.rename(kept, name)

    def look(self) -> None:
        def work() -> None:
            self.list.unlink(missing_ok=True)
            self.begin()
            self.assertNotIn(SECRET, self.everything())

        self.looked(work)

    def test_each_name_as_a_link_outside(self) -> None:
        self.each_as_a_link(lambda was: self.outside if was.is_dir() else self.canary)

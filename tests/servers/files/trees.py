"""An allowed directory with something forbidden beside it, and a test case that calls tools in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from ironcurtain.servers.files.failures import FileError
from ironcurtain.servers.files.tools import FileTools
from ironcurtain.servers.files.walk import Roots

SECRET = "the secret outside"


@contextmanager
def trees() -> Iterator[tuple[Path, Path]]:
    """An allowed directory, and one beside it with a similar name and a secret."""
    with TemporaryDirectory() as top:
        inside, outside = Path(top, "tree"), Path(top, "tree-evil")
        inside.mkdir()
        (outside / "deep").mkdir(parents=True)
        (outside / "secret.txt").write_text(SECRET)
        (outside / "deep" / "secret.txt").write_text(SECRET)
        yield inside, outside


class ToolCase(SynchronousTestCase):
    def setUp(self) -> None:
        context = trees()
        self.inside, self.outside = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        roots = Roots([str(self.inside)])
        self.addCleanup(roots.close)
        self.tools = FileTools(roots)

    def call(self, name: str, **arguments: Any) -> str:
        """The text of a successful call; a path without a slash in front is below the allowed directory."""
        return "\n".join(part["text"] for part in self.tools.call(name, arguments))

    def refused(self, name: str, **arguments: Any) -> str:
        return str(self.assertRaises(FileError, self.tools.call, name, arguments))
